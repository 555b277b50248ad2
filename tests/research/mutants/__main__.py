"""Seeds faults into shipped functions and counts how many the default tests find.

    python -P tests/run.py tests.research.mutants record REACHED [PYTEST ARGUMENTS]
    python -P tests/run.py tests.research.mutants run REACHED --count 200 --seed 1

`record` runs tests (the default ones; with `-m "slow or not slow"` all) and notes which functions
each enters. `run` puts one fault at a time into a process that has read all tests, and asks the
tests that enter its function, cheap ones first, until one fails: those of the default run, then
the other ones of the record. A program that a test starts has no fault, and constants outside of
functions have none.
"""

import argparse
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

from tests.research.mutants.reached import PACKAGE, Reached
from tests.research.mutants.sites import Site, put_into_process, spread

ROOT = Path(__file__).parents[3]
SOURCES = (PACKAGE, "catalogs", "benchmarks")
PATIENCE = 5.0  # times the CPU seconds that its tests took; a fault may loop for ever


class Run:
    """Instead of the tests, the faults."""

    def __init__(self, record: list[dict[str, object]], faults: list[Site], most_s: float) -> None:
        self._record = {str(line["test"]): line for line in record}
        self._faults, self._most_s = faults, most_s

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        found = Counter(self._verdict(session, fault) for fault in self._faults)
        reached = sum(found.values()) - found["reached by no test"]
        print(f"\n{len(self._faults)} faults, {reached} in functions that a test enters:")
        for verdict, count in found.most_common():
            print(f"  {verdict}: {count}")
        default, others = found["found by default"], found["found by others"]
        print(f"the default tests find {default / max(default + others, 1):.1%} of all found")
        return True

    def _verdict(self, session: pytest.Session, fault: Site) -> str:
        entered = f"{_module(fault.path)}:{fault.function}"
        tests = [
            (bool(item.get_closest_marker("slow")), float(str(line["cpu_s"])), number, item)
            for number, item in enumerate(session.items)
            if (line := self._record.get(item.nodeid)) and entered in list(line["functions"])  # type: ignore[call-overload]
        ]
        verdict, test = "reached by no test", ""
        for slow, kind in ((False, "default"), (True, "others")):
            asked, used = [], 0.0
            for _, cpu_s, _, item in sorted(each for each in tests if each[0] == slow):
                used += cpu_s
                if used > self._most_s and asked:
                    break
                asked.append(item)
            if asked:
                test = _failing(asked, fault, min(used, self._most_s) * PATIENCE + 20.0)
                verdict = f"found by {kind}" if test else "not found"
            if test:
                break
        where = f"{fault.path.relative_to(ROOT)}:{fault.line} {fault.function}"
        print(f"\n{where}: {fault.what}: {verdict} {test}", flush=True)
        return verdict


def _failing(items: Sequence[pytest.Item], fault: Site, limit_s: float) -> str:
    """The first of some tests that fails in a copy of this process with a fault."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        signal.setitimer(signal.ITIMER_PROF, limit_s)
        put_into_process(fault, _file(_module(fault.path)))
        for item, after in zip(items, [*items[1:], None], strict=True):
            if any(r.failed for r in runtestprotocol(item, log=False, nextitem=after)):
                os.write(write, item.nodeid.encode())
                break
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return said or (f"ended with {status}" if status else "")


def _module(path: Path) -> str:
    inside = path.relative_to(ROOT).with_suffix("").parts
    parts = inside if inside[0] == PACKAGE else (PACKAGE, *inside)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _file(module: str) -> str:
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return spec.origin


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["record", "run"])
    parser.add_argument("record", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=float, default=120.0, help="CPU seconds of tests per fault")
    given, words = parser.parse_known_args()
    if given.what == "record":
        return int(pytest.main(["-n", "0", *words], plugins=[Reached(given.record)]))
    record = [json.loads(line) for line in given.record.read_text("utf-8").splitlines()]
    paths = sorted(path for name in SOURCES for path in (ROOT / name).rglob("*.py"))
    run = Run(record, spread(paths, given.count, given.seed), given.most)
    return int(pytest.main(["-n", "0", "-s", "-m", "not attack", *words], plugins=[run]))


if __name__ == "__main__":
    sys.exit(main())
