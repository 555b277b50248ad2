"""Simulated runs per second of a 24 h job with five interruptions, on one core. By hand:

    OMP_NUM_THREADS=1 python tests/speed/simulation.py      # JSON on the last line

A gang on spot in a failover list of two zones; outages, notice too short, saves, the free first
hour, the billing minimum, price and speed that are not known exactly, and a fallback with a queue.
Four ways: many plans on the same paths (the search; paths are drawn once), one plan on
the same paths, paths drawn again for every run, and that with the states and quantiles of
`recommend simulate`.
"""

import json
import sys
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

sys.path.append(str(Path(__file__).parents[2]))

import numpy as np

from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.path_inputs import PathInputs, Paths
from recommender.risk.random_numbers import clear_caches
from recommender.simulation.paths import simulate
from tests.recommender.risk.cases import RESCUE, path_inputs

H = 3600.0
DEADLINE_S = 40 * H
PLANS = 64
PATHS = 2048
REPEATS = 9
LEAST = 500_000  # runs per second: the target
JOB = RESCUE | {
    "work_s": 20 * H,
    "speed_sigma": 0.15,
    "run_mean_s": 4.5 * H,
    "run_sigma": 1.2,
    "outage_sigma": 1.3,
    "availability_logit": 1.7,
    "zone_sd": 1.0,
    "zone_count": 2.0,
    "correlation": 0.3,
    "runs_from_start": 0.0,
    "spot_price_sigma": 0.2,
    "changeover_s": 600.0,
    "interval_s": 1500.0,
    "free_s": 3600.0,
    "usd_per_move": 0.1,
}


def plans(count: int) -> PathInputs:
    """Jobs that differ by a second of work each, so that none is the other."""
    return path_inputs(*(JOB | {"work_s": JOB["work_s"] + k} for k in range(count)))


def rate(many: PathInputs, paths: int, fresh: bool) -> tuple[float, float]:
    """Runs per second of wall clock and of processor time; the median of some repeats."""
    walls, cores = [], []
    simulate_paths(many, DEADLINE_S, paths)
    for repeat in range(REPEATS):
        if fresh:
            clear_caches()
        wall, core = perf_counter(), process_time()
        simulate_paths(many, DEADLINE_S, paths, seed=1000 + repeat if fresh else 7)
        walls.append(perf_counter() - wall)
        cores.append(process_time() - core)
    runs = len(many) * paths
    return runs / median(walls), runs / median(cores)


def rate_of_simulate(blocks: int = 40) -> tuple[float, float]:
    """The same of `recommend simulate`: paths drawn again, states and all."""
    walls, cores = [], []
    for repeat in range(REPEATS):
        wall, core = perf_counter(), process_time()
        simulate(plans(1), DEADLINE_S, blocks * PATHS, seed=2000 + repeat)
        walls.append(perf_counter() - wall)
        cores.append(process_time() - core)
    return blocks * PATHS / median(walls), blocks * PATHS / median(cores)


def main() -> None:
    """Measure, print a table, end with JSON."""
    h: Paths = simulate_paths(plans(1), DEADLINE_S, PATHS)
    job = {
        "time_h": round(float(h.time_s.mean()) / H, 2),
        "interruptions": round(float(h.interruptions.mean()), 2),
        "fallback": round(float(np.mean(h.fallback_s > 0)), 3),
    }
    ways = {
        "many plans, same paths": (plans(PLANS), PATHS, False),
        "one plan, same paths": (plans(1), 10 * PATHS, False),
        "one plan, new random numbers": (plans(1), PATHS, True),
    }
    found = {name: rate(*way) for name, way in ways.items()}
    found["recommend simulate"] = rate_of_simulate()
    for name, (wall, core) in found.items():
        print(f"{name:28}{wall:12,.0f} runs/s   {core:12,.0f} per second of processor time")
    ours = found["recommend simulate"]
    said = {
        "job": job,
        "runs_per_s": {name: round(wall) for name, (wall, _) in found.items()},
        "runs_per_core_s": {name: round(core) for name, (_, core) in found.items()},
        "met": ours[1] >= LEAST,
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main()
