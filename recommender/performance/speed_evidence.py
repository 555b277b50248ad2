"""The evidence for a GPU's speed: trainings on it, its matrix rate, or its datasheet."""

import math
from collections.abc import Mapping

from recommender.arrays import Z_90
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.schema import Achieved, Gpu
from recommender.job.job import Job
from recommender.performance.generations import related_sd
from recommender.performance.low_precision import FP8, SIGMA
from recommender.performance.measured import SIGMA_MEASURED
from recommender.performance.priors import Prior, gpus_with_runs, kind_of, number_format
from recommender.plan.evidence import SpeedGrade

# What a GPU that no run of the family was on adds to the spread: with all its runs left out
# next to the source, the rms of the 56 pairs of source and GPU rises from 0.257 to 0.271 (2026-11).
SIGMA_NEW_GPU = 0.09
# What a GPU adds that nobody timed at anything: the sd between GPUs of ln of what the formulas miss
# on them, 0.17 over sequences and 0.20 over convolutions (gpu_factors.csv, 16 bits, 2026-11).
SIGMA_GUESSED = 0.18


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
    share = SIGMA if precision == FP8 else 0.0
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
