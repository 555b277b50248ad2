"""A job's timings in another precision than its own: what they say of it, and how surely.

The formulas err alike in all precisions that the same units compute: of a timing in one, what the
formulas miss is carried to another. It is multiplied by the gain that the formulas give the timed
cluster, and the spread of ln speed grows with every halving of the bits between the two:

    sd² = Σ sd² of the halvings; 0.04² between two formats of as many bits

The sds hold 90 % of the errors of published pairs of runs that differ in precision alone
(`tests/research/accuracy/other_precision.py`; docs/research/accuracy-spans.md). Products in fp32
run on other units, and their timings say nothing of tensor cores: on 109 pairs with 16 bits, speeds
carried are wrong by 31 % in the mean, uncalibrated ones by 19 % (2026-11).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from recommender.catalogs.schema import Achieved, Gpu, InstanceType
from recommender.job.job import LOW_PRECISIONS, Calibration, CarriedTiming, Job, Precision, Timing
from recommender.performance.gpu_speed import precision_on
from recommender.performance.machines import machine_columns
from recommender.performance.measured import times_slower

# Formats that tensor cores multiply
BITS = {"tf32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "mxfp8": 8, "nvfp4": 4}
# Sd of ln speed by the bits that are halved (2026-11; studies `other-precision-*`): 227 pairs of
# NVIDIA DeepLearningExamples and Lambda, seven of torchtitan, torchao, Habana and Megatron-Bridge,
# and of the last alone 25 and, for formats of as many bits, 16.
HALVED = {32: 0.21, 16: 0.14, 8: 0.08}
FORMAT = 0.04


def carries(timed: str, planned: str) -> bool:
    """Whether a timing in one number format says something of another."""
    return timed == planned or {timed, planned} <= BITS.keys()


def precision_sd(timed: str, planned: str) -> float:
    """Sd of ln(true / predicted) speed that another number format than the timed one adds."""
    if timed == planned:
        return 0.0
    fewer, more = sorted((BITS[timed], BITS[planned]))
    return math.hypot(*(sd for bits, sd in HALVED.items() if fewer < bits <= more)) or FORMAT


def in_own_precision(
    job: Job,
    types: Iterable[InstanceType],
    gpus: Mapping[str, Gpu],
    achieved: Mapping[tuple[str, str], Achieved],
) -> Job:
    """A job whose timings and calibration are of its own precision, carried to it if need be.

    Timings and a calibration in another precision count only without timings in the job's own.
    What was carried once is not carried again.
    """
    if job.carried is not None:
        return job
    timings, sd, remarks = _timings(job, types, gpus, achieved)
    calibration, fitted_sd, unused = _calibration(job, gpus)
    if calibration is not None and fitted_sd and timings and not sd:
        remarks.append(
            f"calibration is not used: its runs are in {_formats(_fitted(calibration, gpus))}, "
            f"there are timings in {job.precision}"
        )
        calibration, fitted_sd = None, 0.0
    carried = [(t.precision or job.precision, gpus[t.gpu]) for t in timings] if sd else []
    if calibration is not None and fitted_sd:
        carried += _fitted(calibration, gpus)
    return replace(
        job,
        timings=tuple(replace(timing, precision="") for timing in timings),
        calibration=calibration,
        carried=CarriedTiming(_formats(carried), max(sd, fitted_sd)) if carried else None,
        remarks=(*job.remarks, *remarks, *unused),
    )


def _fitted(own: Calibration, gpus: Mapping[str, Gpu]) -> list[tuple[Precision, Gpu]]:
    """The precision that a calibration states, and the GPUs of its runs."""
    timed = [gpus[name] for name, _ in own.gpus if name in gpus]
    return [(own.precision, gpu) for gpu in timed] if own.precision else []


def _formats(timed: Iterable[tuple[Precision, Gpu]]) -> str:
    """The number formats of precisions on GPUs, in words."""
    return " and ".join(dict.fromkeys(_format_on(word, gpu) for word, gpu in timed))


def _distance(timed: Precision | Literal[""], job: Job, gpu: Gpu) -> float:
    """The sd that the precision of a timing on a GPU adds; infinite if it says nothing."""
    found = _format_on(timed or job.precision, gpu), _format_on(job.precision, gpu)
    return precision_sd(*found) if carries(*found) else math.inf


def _format_on(wanted: Precision, gpu: Gpu) -> str:
    """The number format of a job on a GPU, also where the GPU lacks it."""
    return wanted if wanted in LOW_PRECISIONS else precision_on(wanted, gpu) or wanted


def _timings(
    job: Job,
    types: Iterable[InstanceType],
    gpus: Mapping[str, Gpu],
    achieved: Mapping[tuple[str, str], Achieved],
) -> tuple[tuple[Timing, ...], float, list[str]]:
    """The timings to plan with, the sd that their precision adds, and which are not used."""
    timed = {timing.gpu for timing in job.timings}
    on = tuple(each for each in types if each.gpu in timed) if timed else ()
    lacks = [_lack(timing, job, on, gpus) for timing in job.timings]
    sds = [
        math.inf if lack else _distance(timing.precision, job, gpus[timing.gpu])
        for timing, lack in zip(job.timings, lacks, strict=True)
    ]
    own = tuple(t for t, sd in zip(job.timings, sds, strict=True) if not sd)
    carried, known, remarks = [], [0.0], []
    for timing, sd, lack in zip(job.timings, sds, lacks, strict=True):
        if not sd:
            continue
        if own and not lack:
            remarks.append(_unused(timing, f"others are in {job.precision}"))
            continue
        gain = math.nan if math.isinf(sd) else _gain(job, timing, on, gpus, achieved)
        if math.isfinite(gain):
            carried.append(replace(timing, samples_per_s=timing.samples_per_s * gain))
            known.append(sd)
        else:
            nothing = f"it says nothing of {job.precision} there"
            remarks.append(_unused(timing, lack or nothing))
    return own or tuple(carried), max(known), remarks


def _unused(timing: Timing, why: str) -> str:
    stated = f" in {timing.precision}" if timing.precision else ""
    return f"the timing on {timing.gpus}x{timing.gpu}{stated} is not used: {why}"


def _lack(timing: Timing, job: Job, types: Sequence[InstanceType], gpus: Mapping[str, Gpu]) -> str:
    """That no machine has the timed GPU, or the GPU no such format; "" if they have.

    A timing was not taken in a format that its GPU lacks; without a precision it is in the job's.
    """
    if all(each.gpu != timing.gpu for each in types):
        return f"no machine of the catalog has the GPU {timing.gpu}"
    stated = timing.precision or job.precision
    if precision_on(stated, gpus[timing.gpu]):
        return ""
    return f"{timing.gpu} has no {'16-bit arithmetic' if stated == 'mixed' else stated}"


def _gain(
    job: Job,
    timing: Timing,
    types: Sequence[InstanceType],
    gpus: Mapping[str, Gpu],
    achieved: Mapping[tuple[str, str], Achieved],
) -> float:
    """By the formulas, speed in the job's precision over that in the timing's; nan if unknown."""

    def slower(precision: Precision) -> float:
        untimed = replace(job, precision=precision, timings=(), calibration=None)
        columns = machine_columns(untimed, types, gpus, achieved)
        return times_slower(untimed, columns, tuple(each.gpu for each in types), timing)

    return slower(job.precision) / slower(timing.precision or job.precision)


def _calibration(
    job: Job, gpus: Mapping[str, Gpu]
) -> tuple[Calibration | None, float, tuple[str, ...]]:
    """The calibration to plan with, the sd that its precision adds, and whether it is not used."""
    own = job.calibration
    if own is None:
        return None, 0.0, ()
    timed = [gpus[name] for name, _ in own.gpus if name in gpus]
    sd = max((_distance(own.precision, job, gpu) for gpu in timed), default=0.0)
    if math.isfinite(sd):
        return own, sd, ()
    why = f"its runs in {own.precision} say nothing of {job.precision}"
    return None, 0.0, (f"calibration is not used: {why}; run recommend calibrate again",)
