"""How far the time of a long run may be from that of its steps and faults.

Published hours of large runs include evaluations, repeated work, and software and hardware that
were not always what is published of them. Nobody knows these in advance: one large laboratory had a
goodput of 85 % in one run and of 97 % in the next (Gemini, arXiv 2312.11805, 2023), others state
"more than 90 %" (Llama 3, arXiv 2407.21783; MegaScale, arXiv 2402.15627, 2024). Small runs and
benchmarks show none of it.

A run is long by its FLOP, because its hours depend on the cluster. On large clusters spans of
shorter runs are therefore too wide: 1e22 FLOP take seven hours on 1,024 H100 (40 % of their peak)
and have the whole spread.
"""

import numpy as np

from recommender.job.job import Job
from recommender.performance.clusters import MachineColumns, widened

# Sd of ln hours that twelve runs of 4e22 to 4e25 FLOP showed in addition to the spread of a step
# (method of moments, `tests/research/accuracy/whole_runs.py`, 2026-11).
SIGMA = 0.22
# FLOP up to which runs have none of it, and from which on they have all of it: of the fifteen
# published runs three have 2.03e21 or fewer, the others 4e22 or more.
SHORT_FLOP = 1e21
LONG_FLOP = 1e22


def run_sd(job: Job) -> float:
    """Sd of ln time that a job's run has in addition to the speed of its steps."""
    return SIGMA * long_run_share(job.total_flop)


def long_run_share(flop: float) -> float:
    """The share of the spread of a long run that a run of so many FLOP has."""
    ends = np.log([SHORT_FLOP, LONG_FLOP])
    return float(np.interp(np.log(max(flop, 1.0)), ends, [0.0, 1.0]))


def with_run_spread(job: Job, columns: MachineColumns) -> MachineColumns:
    """Columns whose spreads are those of a run instead of a step."""
    return widened(columns, run_sd(job))
