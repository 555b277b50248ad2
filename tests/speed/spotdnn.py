"""Seconds of the optimiser call on spotDNN's quota problem: 7 GPU types, 10 machines of each.

`python -P tests/run.py tests.speed.spotdnn`. Published for 70 machines of quota: spotDNN
0.3 s, Srifty+ 1,503.7 s; target 0.1 s. `--exhaustive` looks at all 19 million clusters first (a
minute).
"""

import json
import sys
from collections.abc import Callable
from itertools import product
from time import perf_counter

import numpy as np

from recommender.optimize.search import search
from recommender.optimize.space import Space
from recommender.plan.limits import Limits
from tests.research.spotdnn.problem import HOUR, QUOTA, SPOT_USD, min_goals, problem

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


def exhaustive(space: Space) -> float:
    """Least goal of every cluster of the site."""
    best = np.inf
    tail = np.array(list(product(range(QUOTA + 1), repeat=len(SPOT_USD) - 2)))
    for head in product(range(QUOTA + 1), repeat=2):
        counts = np.concatenate([np.tile(head, (len(tail), 1)), tail], axis=1)
        counts = counts[counts.sum(axis=1) > 0]
        best = min(best, float(min_goals(space, counts).min()))
    return best


def main() -> None:
    """Time every question and print the result as JSON."""
    results = {}
    for name, limits in LIMITS.items():
        space = problem(limits)
        first, again = timed(lambda space=space: search(space))  # type: ignore[misc]
        found = search(space)
        results[name] = {
            "first_s": first,
            "again_s": again,
            "best": found.best_goal,
            "gap": found.gap(),
        }
        if "--exhaustive" in sys.argv:
            start = perf_counter()
            results[name] |= {"least": exhaustive(space), "all_s": round(perf_counter() - start, 1)}
    print(json.dumps(results))


if __name__ == "__main__":
    main()
