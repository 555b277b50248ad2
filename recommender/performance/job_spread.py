"""What the kind of a job adds to the sd of ln speed that its family and its GPUs have.

Long runs. Published hours include evaluations, repeated work (`job/long_run.py`), and software and
hardware that were not always what is published of them; nobody knows these in advance.

Narrow shared layers. Parts of layers narrower than those of the fits leave kernels so small that
the time to start them, and the latency of all-reduces between them, decide a step. Published times
of a layer's forward pass are between 0.26 and 1.2 ms (`launch_time.py`), which is taken to hold
nine of ten figures. From a width of 4,096 on, the runs of model parallelism that the spread of
decoders follows from show what is left of it; below, it counts in proportion to ln of the width.

Recipes of narrow decoders. The spread of recipes on one machine is that of runs from a width of
4,096 on. Narrower ones are timed by few: GPT-2 124M of llm.c takes 0.71 of the predicted time
(discussion 481, 2024-05), GPT-2 XL 0.82 (677), so at the widest doubt they have the spread of
constants that are transferred from other software.

Adapters. Scripts that fine-tune differ more than those that train: in padding, in the precision of
adapters, in dropout. 13 laboratories, each predicted without it, are in their spans with this.
"""

import math
from dataclasses import replace

import numpy as np

from recommender.arrays import Z_90
from recommender.job.job import MODEL_PARALLEL_SHARDINGS, Job
from recommender.job.long_run import long_run_share
from recommender.performance.clusters import MachineColumns, widened
from recommender.performance.launch_time import EAGER_LAYER_S, FUSED_LAYER_S, is_scripted
from recommender.performance.priors import REFERENCE_WIDTH

# Sd of ln hours that twelve runs of 4e22 to 4e25 FLOP showed in addition to the spread of a step
# (method of moments, `tests/research/accuracy/whole_runs.py`, 2026-11).
LONG_RUN = 0.16
WIDE = 4096  # width of the narrowest networks but one of Megatron-LM's tables (2104.04473, table 1)
# Sd that 0.15, of wide decoders (`priors.csv`), lacks of 0.36, of constants that are transferred.
NARROW_RECIPE = 0.33
# By the rule of the families' spreads (`tests/research/accuracy/finetuning.py`, 2026-11).
ADAPTERS = 0.19
# Of ln (time with a derived width and depth / with the network's own) of 157 decoders and 14
# mixtures of the table of known models on 32 H100, root of the mean square (2026-11-29).
SHAPE = {"decoder": 0.12, "moe": 0.30}


def run_sd(job: Job) -> float:
    """Sd of ln time that a job's run has in addition to the speed of its steps."""
    return LONG_RUN * long_run_share(job.total_flop)


def narrow_sd(job: Job) -> float:
    """Sd of ln speed of shared narrow layers; 0 for wide ones, other layouts, and after timings."""
    shared = job.sharding in MODEL_PARALLEL_SHARDINGS
    if not shared or job.hidden < 1 or job.timings or job.calibration is not None:
        return 0.0
    whole = math.log(EAGER_LAYER_S / FUSED_LAYER_S) / (2.0 * Z_90)
    return whole * _narrowness(job)


def narrow_recipe_sd(job: Job) -> float:
    """Sd of ln speed of a narrow decoder's recipe on one machine; 0 for others, after timings."""
    recipe = job.family == "decoder" and job.stack == "tuned" and job.hidden > 0
    if not recipe or job.timings or job.calibration is not None:
        return 0.0
    return NARROW_RECIPE * _narrowness(job)


def _narrowness(job: Job) -> float:
    """From 0 for layers as wide as those of large models to 1, in ln of the width."""
    ends = np.log([REFERENCE_WIDTH, WIDE])
    return float(np.interp(math.log(job.hidden), ends, [1.0, 0.0]))


def adapters_sd(job: Job) -> float:
    """Sd of ln speed of scripts that train adapters; 0 in recipes and after timings."""
    return ADAPTERS if job.method != "full" and is_scripted(job) else 0.0


def shape_sd(job: Job) -> float:
    """Sd of ln speed of a language model of which only the size is known; 0 after timings."""
    timed = job.timings or job.calibration is not None
    return SHAPE.get(job.family, 0.0) if "hidden" in job.assumed and not timed else 0.0


def with_job_spread(job: Job, columns: MachineColumns) -> MachineColumns:
    """Columns whose spreads are those of the job's run instead of a step of its family."""
    one = np.hypot(columns.speed_sigma, narrow_recipe_sd(job))
    columns = replace(columns, speed_sigma=one)
    others = narrow_sd(job), adapters_sd(job), shape_sd(job)
    return widened(columns, math.hypot(run_sd(job), *others))
