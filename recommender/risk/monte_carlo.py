"""Monte Carlo of the time and bill of jobs on capacity with outages.

Plans are given as `PathInputs`, everything their time and bill depend on: work, prices, the laws of
runs and outages, the changeover, checkpoints, billing rules and the fallback. Each is walked
through the common random numbers (`walk.py`), so plans differ by what they are and not by luck.

Times are seconds, prices USD per hour. On-demand machines are the same process with long runs
between faults, and waits for the replacement of a failed machine. Every start of on-demand machines
has a wait (`on_demand_wait.py`); before the first start nothing is paid.
"""

from dataclasses import replace

import numpy as np

from recommender.risk.path_inputs import PathInputs, Paths
from recommender.risk.random_numbers import SEED, random_numbers, some_paths
from recommender.risk.spot_capacity import CLASS_CAPACITY, Capacity
from recommender.risk.walk import walk

_LANES = 1 << 14  # clusters × paths at once: their arrays stay in the second-level cache


def simulate_paths(
    plans: PathInputs,
    deadline_s: float | None,
    paths: int,
    seed: int = SEED,
    capacity: Capacity = CLASS_CAPACITY,
    first: int | None = None,
    most_away_s: float | None = None,
) -> Paths:
    """Simulate every plan on all paths of the common random numbers, or on the first of them.

    With `most_away_s` fallbacks take over once spot has been away that long, whatever the time.
    """
    sample = random_numbers(paths, seed)
    if first is not None and first < paths:
        sample = some_paths(sample, np.arange(first))
    batch = plans.clusters()[1] // max(1, _LANES // sample.paths)  # those of a cluster share a walk
    if len(plans) and not batch.any():
        return walk(plans, deadline_s, sample, capacity, most_away_s)
    result = Paths.blank(len(plans), sample.paths)
    for each in range(1 + int(batch.max(initial=-1))):
        rows = np.flatnonzero(batch == each)
        result.put(rows, walk(plans.take(rows), deadline_s, sample, capacity, most_away_s))
    return result


def simulate_with_known_speed(
    plan: PathInputs, deadline_s: float | None, paths: int, seed: int = SEED
) -> tuple[Paths, Paths]:
    """Simulate one plan, and again with its predicted speed."""
    sure = replace(plan, speed_sigma=np.zeros(1), cautious_work_s=plan.work_s)
    uncertain, known = (simulate_paths(p, deadline_s, paths, seed) for p in (plan, sure))
    return uncertain, known
