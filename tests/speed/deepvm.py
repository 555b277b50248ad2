"""Seconds to plan DeepVM's simulation, 98 prices per hour, with our own search.

`python -P tests/run.py tests.speed.deepvm`. Published: no time; target
2 s for the sweep.
"""

import json
import tempfile
from pathlib import Path
from time import perf_counter

from tests.research.deepvm.test_virtual import PRICES, asked, planned


def timed() -> dict[str, float]:
    """Seconds of the preparation (catalog, timings, sites) and of the sweep, cold and warm."""
    with tempfile.TemporaryDirectory() as folder:
        start = perf_counter()
        problem = asked(Path(folder))
        assert problem.single_type_sites.sites
        ready = perf_counter()
        planned(problem)
        cold = perf_counter()
        planned(problem)
        return {
            "prices": len(PRICES),
            "prepare_s": round(ready - start, 3),
            "sweep_s": round(cold - ready, 3),
            "sweep_again_s": round(perf_counter() - cold, 3),
        }


if __name__ == "__main__":
    print(json.dumps(timed()))
