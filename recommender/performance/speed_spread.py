"""How far the true speed may be from the predicted one: by its evidence, its GPU and its job.

The evidence of a GPU's speed are trainings on it, its matrix rate, or its datasheet.

GPUs of one architecture bound each other. A datasheet's rates are ceilings, and the smaller part of
an architecture often has a larger figure somewhere: the H100 NVL has 16 % more memory bandwidth
than the SXM part and a third less power to use it with. So if a part was never timed, a faster part
that was timed is its ceiling.

Of a job that was timed on another GPU, the sd of ln speed grows with the generations between both:

    sd² = 0.14² + 0.12² · generations apart

From ten networks of one laboratory on ten GPUs, V100 to B200, each predicted on every GPU from
every other one without having been seen: the two constants of least loss of a 90 % quantile, where
each network weighs the square root of its pairs (`tests/research/accuracy/other_gpu.py`). Every
generation adds the same variance, as every doubling of GPUs does (`calibration_spread.py`). A GPU
that is not listed is as far from others as the farthest of these pairs.

What the kind of a job adds to the sd of ln speed that its family and its GPUs have:

Long runs. Published hours include evaluations, repeated work (`job/job.py`), and software and
hardware that were not always what is published of them; nobody knows these in advance.

Narrow shared layers. Parts of layers narrower than those of the fits leave kernels so small that
the time to start them, and the latency of all-reduces between them, decide a step. Published times
of a layer's forward pass are between 0.26 and 1.2 ms (`overheads.py`), which is taken to hold
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
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

import numpy as np

from recommender.arrays import Z_90
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.schema import Achieved, Gpu
from recommender.job.job import MODEL_PARALLEL_SHARDINGS, Job, long_run_share
from recommender.performance.clusters import MachineColumns, widened
from recommender.performance.overheads import constants, is_scripted
from recommender.performance.priors import (
    FP8,
    REFERENCE_WIDTH,
    Prior,
    gpus_with_runs,
    kind_of,
    number_format,
)
from recommender.plan.evidence import SpeedGrade

# NVIDIA's architectures, by the catalog's names (vendor's product pages, 2026-08).
ARCHITECTURES = tuple(
    frozenset(names.split())
    for names in (
        "K80",
        "M60",
        "P4 P100",
        "V100 V100-32GB V100-PCIe",
        "T4 T4G",
        "A10 A10G A30 A40 A100 A100-80GB A100-80GB-PCIe RTX-3090 RTX-A6000",
        "L4 L40 L40S RTX-4090 RTX-6000-Ada",
        "H100 H100-NVL H100-PCIe H200 GH200",
        "B200 B300 GB200 GB300 RTX-5090 RTX-PRO-4500 RTX-PRO-6000",
    )
)
SAME = 0.14
EACH = 0.12
RELATED = 0.21  # of all pairs together, whatever lies between them
FARTHEST = 3  # generations: V100 and H100
ADA = "L4"  # its architecture has a place of its own in the list, but is of Hopper's year (2022)
# What a GPU that no run of the family was on adds to the spread: with all its runs left out
# next to the source, the rms of the 56 pairs of source and GPU rises from 0.257 to 0.271 (2026-11).
SIGMA_NEW_GPU = 0.09
# What φ of scripts adds (`gpu_speed.TYPICAL`): 0.23 to 0.74 of a gain of 1.5.
SIGMA_FP8 = 0.10
SIGMA_MEASURED = 0.10  # timed once: scaling it to other sizes; docs/models.md (2026-11)
# What a GPU adds that nobody timed at anything: the sd between GPUs of ln of what the formulas miss
# on them, 0.17 over sequences and 0.20 over convolutions (gpu_factors.csv, 16 bits, 2026-11).
SIGMA_GUESSED = 0.18
# Sd of ln hours that twelve runs of 4e22 to 4e25 FLOP showed in addition to the spread of a step
# (method of moments, `tests/research/accuracy/whole_runs.py`, 2026-11).
LONG_RUN = 0.16
WIDE = 4096  # width of the narrowest networks but one of Megatron-LM's tables (2104.04473, table 1)
# Sd that 0.15, of wide decoders (`priors.csv`), lacks of 0.36, of constants that are transferred.
NARROW_RECIPE = 0.33
# By the rule of the families' spreads (`tests/research/accuracy/finetuning.py`, 2026-11).
ADAPTERS = 0.22
# Of ln (time with a derived width and depth / with the network's own) of 157 decoders and 14
# mixtures of the table of known models on 32 H100, root of the mean square (2026-11-29).
SHAPE = {"decoder": 0.12, "moe": 0.30}


def generation(gpu: str) -> int | None:
    """The number of a GPU's generation, Kepler's 0; None if it is not listed."""
    place = next((at for at, parts in enumerate(ARCHITECTURES) if gpu in parts), None)
    if place is None:
        return None
    ada = next(at for at, parts in enumerate(ARCHITECTURES) if ADA in parts)
    return place - (place > ada)


def generations_apart(gpu: str, timed: Collection[str]) -> float:
    """Generations between a GPU and those that were timed, in the mean, as of their levels."""
    apart = [_between(generation(gpu), generation(other)) for other in timed]
    return float(np.mean(apart or [FARTHEST]))


def _between(one: int | None, other: int | None) -> int:
    return FARTHEST if one is None or other is None else abs(one - other)


def related_sd(gpu: str, timed: Collection[str]) -> float:
    """Sd of ln(true / predicted) speed on a GPU, of a job that was timed on others."""
    return float(np.hypot(SAME, added_sd(gpu, timed)))


def added_sd(gpu: str, timed: Collection[str]) -> float:
    """What the generations between a GPU and those that were timed add to `SAME`."""
    return EACH * float(np.sqrt(generations_apart(gpu, timed)))


def siblings(name: str) -> frozenset[str]:
    """The GPUs of the same architecture, including this one; none if it is not listed."""
    return next((parts for parts in ARCHITECTURES if name in parts), frozenset())


def faster_siblings(
    name: str, precision: str, gpus: Mapping[str, Gpu], measured: Collection[str]
) -> Iterator[str]:
    """Timed GPUs of the same architecture that are faster by their datasheet.

    More arithmetic decides; with equal arithmetic, at least the same memory bandwidth.
    """
    for other in sorted(siblings(name) & gpus.keys() & set(measured) - {name}):
        if _datasheet(gpus[other], precision) >= _datasheet(gpus[name], precision):
            yield other


def _datasheet(gpu: Gpu, precision: str) -> tuple[float, float]:
    peaks = {
        "fp8": gpu.peak_fp8_tflops,
        "fp16": gpu.peak_fp16_tflops,
        "bf16": gpu.peak_bf16_tflops,
        "tf32": gpu.peak_tf32_tflops,
        "fp32": gpu.peak_fp32_tflops,
    }
    return peaks.get(precision) or 0.0, gpu.memory_gb_per_s


@dataclass(frozen=True, slots=True)
class SpeedEvidence:
    """The evidence for a GPU's speed, and the sd of ln speed it adds to the family's."""

    grade: SpeedGrade
    sd: float


def achieved_sd(row: Achieved) -> float:
    """Sd of the ln of a matrix rate, whose low and high values contain 90 %."""
    return math.log(row.high_tflops / row.low_tflops) / (2.0 * Z_90)


def has_runs(name: str, precision: str, prior: Prior) -> bool:
    """Whether the speed of a GPU comes from published trainings of networks of its kind."""
    key = name, number_format(precision), kind_of(prior.family)
    return name in prior.gpus or key in gpus_with_runs()


def speed_evidence(prior: Prior, name: str, precision: str, row: Achieved | None) -> SpeedEvidence:
    """The evidence for a GPU's speed without the user's timings."""
    if row is None or row.low_tflops <= 0:
        return SpeedEvidence("guessed", 0.0)
    share = SIGMA_FP8 if precision == FP8 else 0.0
    ran = has_runs(name, precision, prior)
    grade: SpeedGrade = "measured" if ran and prior.basis == "fitted" else "scaled"
    if row.kind == "fallback" and not ran:
        return SpeedEvidence("guessed", math.hypot(achieved_sd(row), SIGMA_GUESSED, share))
    new = 0.0 if name in prior.gpus else SIGMA_NEW_GPU
    return SpeedEvidence(grade, math.hypot(achieved_sd(row), new, share))


def evidence_for(
    job: Job, prior: Prior, gpu: Gpu, precision: str, achieved: Mapping[tuple[str, str], Achieved]
) -> SpeedEvidence:
    """The evidence for a GPU's speed, including the user's timings of the job."""
    own = {timing.gpu for timing in job.timings}
    own |= {name for name, _ in job.calibration.gpus} if job.calibration else set()
    carried = job.carried.sd if job.carried else 0.0
    if gpu.gpu in own:
        grade: SpeedGrade = "scaled" if carried else "measured"
        return SpeedEvidence(grade, math.hypot(SIGMA_MEASURED, carried))
    shipped = speed_evidence(prior, gpu.gpu, precision, achieved.get((gpu.gpu, precision)))
    if own and shipped.grade == "measured":
        return SpeedEvidence("scaled", math.hypot(related_sd(gpu.gpu, own), carried))
    return shipped


def run_sd(job: Job) -> float:
    """Sd of ln time that a job's run has in addition to the speed of its steps."""
    return LONG_RUN * long_run_share(job.total_flop)


def narrow_sd(job: Job) -> float:
    """Sd of ln speed of shared narrow layers; 0 for wide ones, other layouts, and after timings."""
    shared = job.sharding in MODEL_PARALLEL_SHARDINGS
    if not shared or job.hidden < 1 or job.timings or job.calibration is not None:
        return 0.0
    whole = math.log(constants()["eager_layer"] / constants()["fused_layer"]) / (2.0 * Z_90)
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
