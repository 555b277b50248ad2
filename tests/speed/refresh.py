"""How long a refresh of AWS, Google Cloud and Azure takes from local servers. By hand:

    python tests/speed/refresh.py          # JSON on the last line

The servers run in a process of their own, which is not measured; so does each refresh: its
seconds on the clock and of the processor, and its peak memory, are those of the whole process
from the first import to the published store. The clients are the real ones.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).parents[2]
ROWS = {"gcp": 18_000, "azure": 17_500}  # with the 4,800 of AWS some 40,000
PATH = f"import sys; sys.path.append({str(ROOT)!r})\n"  # of `tests`, after the installed package
MAX_SECONDS, MAX_MB = 20.0, 400.0  # of three providers with 40,000 rows, on two cores

SERVE = """
import sys
from tests.catalogs.providers.azure import items as azure_items
from tests.catalogs.providers.gcp import skus as gcp_skus
from tests.catalogs.refresh import clouds
from tests.catalogs.providers.aws import full, server
gcp = clouds.gcp_list()
gcp = clouds.gcp_list(int(sys.argv[1]) - len(gcp))
azure = clouds.azure_list()
azure = clouds.azure_list(int(sys.argv[2]) - len(azure))
aws = server.serving(full.full_cloud())
with aws as first, gcp_skus.price_list(gcp) as one, azure_items.price_list(azure) as other:
    print(first.url, one.address, other.address, flush=True)
    sys.stdin.read()
"""
REFRESH = """
import json, resource, sys, time
start = time.perf_counter()
from pathlib import Path
from recommender.catalogs.refresh.run import RefreshRequest, refresh
from recommender.catalogs.store import Store
from recommender.catalogs.providers.aws.provider import Aws, Places
from tests.catalogs.providers.azure import items as azure_items
from tests.catalogs.providers.gcp import skus as gcp_skus
from tests.catalogs.refresh.servers import Server
aws, gcp, azure, folder, names = sys.argv[1:]
made = {
    "aws": lambda: Aws(Places(f"{aws}/pages", f"{aws}/spot-advisor-data.json")),
    "gcp": lambda: gcp_skus.client(Server(gcp)),
    "azure": lambda: azure_items.client(Server(azure)),
}
report = refresh(RefreshRequest(
    store=Store(Path(folder)), makers={n: made[n] for n in names.split(",")},
    clock=lambda: gcp_skus.NOW,
))
seconds = time.perf_counter() - start
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({
    "seconds": round(seconds, 2),
    "processor_seconds": round(used.ru_utime + used.ru_stime, 2),
    "peak_mb": round(used.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6, 1),
    "results": {p.provider: [p.result, *p.reasons, len(p.quarantined)] for p in report.providers},
    "offers": {p.provider: dict(p.offers) for p in report.providers},
    "harvest_seconds": {p.provider: round(p.seconds, 2) for p in report.providers},
    "rows": {p.provider: p.counters.raw_rows for p in report.providers},
    "calls": {p.provider: p.counters.calls for p in report.providers},
}))
"""
READ = """
import json, sys, time
from pathlib import Path
from recommender.catalogs.load import SNAPSHOT, load
from recommender.catalogs.store import Store, newest_good
def best(read):
    times = []
    for _ in range(12):
        start = time.process_time()
        read()
        times.append(time.process_time() - start)
    return round(1000 * min(times), 1)
store = Store(Path(sys.argv[1]))
assert newest_good(store).name
newest, snapshot = best(lambda: newest_good(store)), best(lambda: load(SNAPSHOT))
print(json.dumps({"newest_ms": newest, "snapshot_ms": snapshot}))
"""
# One after the other, as the servers make an answer when it is first requested.
RUNS = ("aws", "aws without an account", "gcp", "azure", "aws,gcp,azure")


def measured(addresses: list[str], run: str) -> dict[str, object]:
    """One refresh in a process of its own."""
    names, _, without = run.partition(" ")
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
        "PYTHONSAFEPATH": "1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    if not without:
        env |= {"AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": "none"}
    for service in ("EC2", "PRICING", "SERVICE_QUOTAS"):
        env[f"AWS_ENDPOINT_URL_{service}"] = addresses[0]
    with tempfile.TemporaryDirectory() as folder:
        found = _answer(["-c", PATH + REFRESH, *addresses, folder, names], env)
        return {**found, **_answer(["-c", READ, folder], env), **_status(folder, env)}


def _answer(words: list[str], env: dict[str, str]) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=env, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(done.stderr)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _status(folder: str, env: dict[str, str]) -> dict[str, object]:
    """Seconds of `recommend catalog status` on the clock and of the processor, least of five."""
    words = [sys.executable, "-m", "recommender", "catalog", "status", "--store", folder]
    clock, processor = [], []
    for _ in range(5):
        start, before = perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(words, cwd=ROOT, env=env, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        clock.append(perf_counter() - start)
        processor.append(sum(after[:2]) - sum(before[:2]))
    return {"status_s": round(min(clock), 2), "status_processor_s": round(min(processor), 2)}


def main() -> None:
    """Measure each cloud and all at once, print a table, end with JSON."""
    server = subprocess.Popen(
        [sys.executable, "-c", PATH + SERVE, *map(str, ROWS.values())],
        cwd=ROOT,
        env={**os.environ, "PYTHONSAFEPATH": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        addresses = server.stdout.readline().split()
        start = perf_counter()
        measured(addresses, "aws")  # the servers make their answers
        found = {run: measured(addresses, run) for run in RUNS}
    finally:
        server.stdin.close()
        server.wait(timeout=30)
        server.stdout.close()
    print(f"{'refresh of':24} {'clock':>7} {'processor':>9} {'memory':>8}  rows")
    for run, each in found.items():
        took, used = f"{each['seconds']} s", f"{each['processor_seconds']} s"
        rows = sum(dict(each["rows"]).values())  # type: ignore[call-overload]
        print(f"{run:24} {took:>7} {used:>9} {each['peak_mb']:>5} MB  {rows:,}")
    last = found[RUNS[-1]]
    print(
        f"newest version read in {last['newest_ms']} ms, the snapshot in {last['snapshot_ms']} ms"
    )
    print(f"catalog status: {last['status_s']} s, processor {last['status_processor_s']} s")
    print(f"at most {MAX_SECONDS} s and {MAX_MB} MB for three providers with 40,000 rows")
    spent = round(perf_counter() - start, 1)
    print(json.dumps({"date": time.strftime("%Y-%m-%d"), "took": spent, "found": found}))


if __name__ == "__main__":
    main()
