"""How long a policy table takes, and how fast windows are replayed. By hand, on one core:

OMP_NUM_THREADS=1 python -P tests/run.py tests.speed.policies       # JSON on the last line
"""

import json
from time import perf_counter

import numpy as np

from recommender.policies.availability import chain
from recommender.policies.availability_fit import of_zone, zone_class
from recommender.policies.optimal import SemiMarkov
from recommender.policies.policy_table import policy_table
from recommender.policies.replay import replay
from recommender.policies.rules import Greedy, UniformProgress
from tests.recommender.policies.laws import HEAVY
from tests.recommender.policies.markets import PRICES, hours, one, simulated

TICK = 600.0
TASK = hours(48, 60, 0.1)  # the 60 h job
MAX_TABLE_S = 0.5
REPEATS = 7


def main() -> None:
    """Print seconds per table and windows per second."""
    zones = [simulated(HEAVY, TICK, 3_000, seed) for seed in range(4)]
    law = of_zone(zones[0], TICK, zone_class(zones, TICK))
    process = chain(law, TICK)
    table = min(_timed(lambda: policy_table(process, TASK, PRICES, TICK)) for _ in range(REPEATS))
    series = simulated(HEAVY, TICK, 20_000, seed=9)
    starts = one(series, TICK, PRICES).windows(TASK, 3_600.0)
    rates = {
        policy.name: len(starts)
        / _timed(lambda policy=policy: replay(policy, one(series, TICK, PRICES), starts, TASK))
        for policy in (Greedy(), UniformProgress(), SemiMarkov(law))
    }
    found = {
        "states": len(process.up),
        "table_s": round(table, 3),
        "table_ok": bool(table <= MAX_TABLE_S),
        "windows_per_s": {name: int(np.round(rate)) for name, rate in rates.items()},
    }
    print(json.dumps(found))


def _timed(work) -> float:  # type: ignore[no-untyped-def]
    begin = perf_counter()
    work()
    return perf_counter() - begin


if __name__ == "__main__":
    main()
