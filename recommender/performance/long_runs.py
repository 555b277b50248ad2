"""What the time of a long run holds besides steps and faults, as a spread.

Published hours of runs of weeks and months include evaluations, repeated stretches, and software
and hardware that were not always what is published of them. Nobody can know these before: one large
laboratory kept 85 % of the time of one run and 97 % of the next (Gemini, arXiv 2312.11805, 2023),
others state "more than 90 %" (Llama 3, arXiv 2407.21783; MegaScale, arXiv 2402.15627, 2024). Runs
of a few hours, and benchmarks, hold none of it.
"""

from dataclasses import replace

import numpy as np

from recommender.job.job import Job
from recommender.performance.clusters import MachineColumns

# Sd of ln hours that twelve runs of 4e22 to 4e25 FLOP showed in addition to the spread of a step
# (method of moments, `tests/research/accuracy/whole_runs.py`, 2026-11).
SIGMA = 0.26
# FLOP of the runs that show none of it and all of it: of fifteen, three need fewer than 2e21.
NONE_FLOP = 1e21
ALL_FLOP = 1e22


def run_sd(job: Job) -> float:
    """Sd of ln time that a job's run has in addition to the speed of its steps."""
    return SIGMA * share_of(job.total_flop)


def share_of(flop: float) -> float:
    """The share of the spread of a long run that a run of so many FLOP has."""
    ends = np.log([NONE_FLOP, ALL_FLOP])
    return float(np.interp(np.log(max(flop, 1.0)), ends, [0.0, 1.0]))


def with_run_spread(job: Job, columns: MachineColumns) -> MachineColumns:
    """Columns whose spreads are those of a run instead of a step."""
    sd = run_sd(job)
    if not sd:
        return columns
    return replace(
        columns,
        speed_sigma=np.hypot(columns.speed_sigma, sd),
        speed_sigma_several=np.hypot(columns.speed_sigma_several, sd),
        speed_sigma_larger=tuple(
            (most, np.hypot(spread, sd)) for most, spread in columns.speed_sigma_larger
        ),
    )
