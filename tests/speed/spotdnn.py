"""Seconds of the optimiser call on spotDNN's quota problem: 7 GPU types, 10 machines of each.

`python -P tests/run.py tests.speed.spotdnn`. Published for 70 machines of quota: spotDNN
0.3 s, Srifty+ 1,503.7 s; target 0.1 s.
"""

import json
from collections.abc import Callable
from time import perf_counter

import numpy as np

from recommender.plan.limits import Limits
from tests.recommender.optimize.pooled import selected
from tests.research.spotdnn.problem import HOUR, problem

LIMITS = {
    **{f"deadline {h} h": Limits(deadline_s=h * HOUR, max_machines=70) for h in (7, 8, 10, 12, 24)},
    **{f"{usd} USD/h": Limits(hourly_usd=usd, max_machines=70) for usd in (10.0, 20.0, 40.0)},
}
REPEATS = 5


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the first call, and the median of the next ones."""
    seconds = []
    for _ in range(1 + REPEATS):
        start = perf_counter()
        call()
        seconds.append(perf_counter() - start)
    return round(seconds[0], 4), round(float(np.median(seconds[1:])), 4)


def main() -> None:
    """Time every question and print the result as JSON."""
    results = {}
    for name, limits in LIMITS.items():
        space = problem(limits)
        first, again = timed(lambda space=space: selected(space))  # type: ignore[misc]
        results[name] = {"first_s": first, "again_s": again, "best": selected(space).goal}
    print(json.dumps(results))


if __name__ == "__main__":
    main()
