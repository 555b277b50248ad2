"""How long a first answer takes, against importing what any such tool imports. By hand:

    python tests/speed/cold.py          # JSON on the last line

Each call is a new process; calls alternate, so that a busy machine slows all of them alike.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

ROOT = Path(__file__).parents[2]
REPEATS = 7
WARM_UP = 1  # bytecode is compiled, as pip does on installing, and files are in the page cache
PROGRAM = str(Path(sys.executable).with_name("recommend"))  # as installed: pip install -e .
CALLS = {
    "python": ["-c", "pass"],
    "imports": ["-c", "import numpy, pulp, typer, rich"],
    "answer": [PROGRAM, "--deadline", "24h", "resnet50-imagenet"],
    "help": [PROGRAM, "--help"],
    "landing": [PROGRAM],
}
MAX_ANSWER, MAX_HELP, MAX_MB = 3.5, 1.0, 200.0  # targets, as shares of "imports"
UNWANTED = ("pandas", "boto3", "botocore", "google", "scipy")
MODULES = """
import json, sys
from recommender.cli import main
main(sys.argv[1:])
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def once(words: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Seconds and peak megabytes of one process."""
    start = perf_counter()
    child = subprocess.Popen(
        [sys.executable, *words], cwd=ROOT, stdout=subprocess.DEVNULL, env=environment
    )
    _, status, used = os.wait4(child.pid, 0)
    seconds = perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, words
    return seconds, used.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


def installed(folder: str) -> dict[str, str]:
    """The environment of a call whose modules are compiled, whatever this shell forbids."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": folder}


def unwanted(*words: str) -> list[str]:
    """Libraries that a call loads without need."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", MODULES, *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return sorted(set(UNWANTED) & set(json.loads(done.stdout.splitlines()[-1])))


def main() -> None:
    """Measure, print a table, end with JSON."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in CALLS}
    with TemporaryDirectory() as folder:
        environment = installed(folder)
        for repeat in range(WARM_UP + REPEATS):
            for name, words in CALLS.items():
                found = once(words, environment)
                if repeat >= WARM_UP:
                    taken[name].append(found)
    seconds = {name: median(s for s, _ in rows) for name, rows in taken.items()}
    ratio = {name: round(s / seconds["imports"], 2) for name, s in seconds.items()}
    peak = {name: round(max(mb for _, mb in rows), 1) for name, rows in taken.items()}
    loaded = {"help": unwanted("--help"), "answer": unwanted(*CALLS["answer"][1:])}
    print(f"{'':8}{'seconds':>9}{'/ imports':>11}{'peak MB':>9}")
    for name in CALLS:
        print(f"{name:8}{seconds[name]:9.3f}{ratio[name]:11.2f}{peak[name]:9.1f}")
    met = {
        "answer": ratio["answer"] <= MAX_ANSWER,
        "help": ratio["help"] <= MAX_HELP,
        "memory": peak["answer"] <= MAX_MB,
        "unwanted": not loaded["help"] and not loaded["answer"],
    }
    every = {name: [round(s, 4) for s, _ in rows] for name, rows in taken.items()}
    said = {"ratio": ratio, "peak_mb": peak, "unwanted": loaded, "met": met, "seconds": every}
    print(json.dumps(said))


if __name__ == "__main__":
    main()
