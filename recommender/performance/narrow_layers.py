"""How far steps may be from predictions where GPUs share the layers of a narrow network.

Parts of layers narrower than those of the fits leave kernels so small that the time to start them,
and the latency of all-reduces between them, decide a step. Published times of a layer's forward
pass are between 0.26 and 1.2 ms (`launch_time.py`), which is taken to hold nine of ten figures.
From a width of 4,096 on, the runs of model parallelism that the spread of decoders follows from
show what is left of it; below, it counts in proportion to the logarithm of the width.
"""

import math

import numpy as np

from recommender.arrays import Z_90
from recommender.job.job import Job
from recommender.performance.clusters import MachineColumns, widened
from recommender.performance.launch_time import EAGER_LAYER_S, FUSED_LAYER_S
from recommender.performance.priors import REFERENCE_WIDTH

WIDE = 4096  # width of the narrowest networks but one of Megatron-LM's tables (2104.04473, table 1)


def narrow_sd(job: Job) -> float:
    """Sd of ln speed of shared narrow layers; 0 for wide ones, other layouts, and after timings."""
    shared = job.sharding in ("tensor", "pipeline", "context")
    if not shared or job.hidden < 1 or job.timings or job.calibration is not None:
        return 0.0
    whole = math.log(EAGER_LAYER_S / FUSED_LAYER_S) / (2.0 * Z_90)
    ends = np.log([REFERENCE_WIDTH, WIDE])
    return whole * float(np.interp(math.log(job.hidden), ends, [1.0, 0.0]))


def with_narrow_spread(job: Job, columns: MachineColumns) -> MachineColumns:
    """Columns whose spreads include that of shared narrow layers."""
    return widened(columns, narrow_sd(job))
