"""What the guards make of faults in the answers of all providers: `tests.catalogs.providers.every`.

`python -P tests/run.py tests.research.provider_faults [NAME ...]` prints a line for each: faults,
how many published no price that is off by a tenth, and of how many the report tells.
"""

import sys
import tempfile
from pathlib import Path

from tests.catalogs.providers import every

MOST = 50


def main(names: list[str]) -> int:
    """Tell every fault of the providers, and name those that are not held or not told."""
    missed = 0
    with tempfile.TemporaryDirectory() as top:
        for name in names or every.NAMES:
            faults = every.faults(name)[:MOST]
            found = [
                (fault, every.night(name, fault, Path(top) / f"{name}-{n}"))
                for n, fault in enumerate(faults)
            ]
            held = sum(outcome.held for _, outcome in found)
            told = sum(outcome.told for _, outcome in found)
            print(f"{name:14}{len(faults):5}{held:6}{told:6}", flush=True)
            for fault, outcome in found:
                if not (outcome.held and outcome.told):
                    missed += 1
                    print(f"    {fault.name}: worst {outcome.worst:.0%}, told {outcome.told}")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
