"""How long a refresh of Google Cloud and Azure takes from local servers. By hand:

    python tests/speed/refresh.py          # JSON on the last line

The servers run in a process of their own, which is not measured; so does the refresh, whose
peak memory is that of the whole process: interpreter, clients, guards and the published store.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).parents[2]
ROWS = {"gcp": 15_000, "azure": 15_000}  # with AWS some 40,000
MOST_SECONDS, MOST_MB = 20.0, 400.0  # of three providers with 40,000 rows, on two cores

SERVE = """
import sys
from tests.catalogs.refresh import azure_items, clouds, gcp_skus
gcp = clouds.gcp_list()
gcp = clouds.gcp_list(int(sys.argv[1]) - len(gcp))
azure = clouds.azure_list()
azure = clouds.azure_list(int(sys.argv[2]) - len(azure))
with gcp_skus.price_list(gcp) as one, azure_items.price_list(azure) as other:
    print(one.address, other.address, len(gcp), len(azure), flush=True)
    sys.stdin.read()
"""
REFRESH = """
import json, resource, sys, time
from pathlib import Path
from catalogs.refresh.run import Order, refresh
from catalogs.versions import Store
from tests.catalogs.refresh import azure_items, gcp_skus
from tests.catalogs.refresh.servers import Server
gcp, azure, folder, names = sys.argv[1:]
made = {
    "gcp": lambda: gcp_skus.client(Server(gcp)),
    "azure": lambda: azure_items.client(Server(azure)),
}
start = time.perf_counter()
report = refresh(Order(
    store=Store(Path(folder)), makers={n: made[n] for n in names.split(",")},
    clock=lambda: gcp_skus.NOW,
))
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({
    "seconds": round(seconds, 2),
    "peak_mb": round(peak * (1 if sys.platform == "darwin" else 1024) / 1e6, 1),
    "results": {p.provider: p.result for p in report.providers},
    "harvest_seconds": {p.provider: round(p.seconds, 2) for p in report.providers},
    "rows": {p.provider: p.counters.raw_rows for p in report.providers},
}))
"""


def measured(addresses: list[str], names: str) -> dict[str, object]:
    """One refresh in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", REFRESH, *addresses, folder, names],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Measure each cloud and both at once, print a table, end with JSON."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVE, *map(str, ROWS.values())],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        addresses = server.stdout.readline().split()[:2]
        start = perf_counter()
        found = {names: measured(addresses, names) for names in ("gcp", "azure", "gcp,azure")}
    finally:
        server.stdin.close()
        server.wait(timeout=30)
        server.stdout.close()
    for names, each in found.items():
        print(f"{names:10} {each['seconds']:6} s {each['peak_mb']:7} MB  {each['rows']}")
    print(f"at most {MOST_SECONDS} s and {MOST_MB} MB for three providers with 40,000 rows")
    took = round(perf_counter() - start, 1)
    print(json.dumps({"date": time.strftime("%Y-%m-%d"), "took": took, "found": found}))


if __name__ == "__main__":
    main()
