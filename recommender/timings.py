"""Measured speeds meet the catalog: GPU names as it spells them, instance types by their GPUs."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from catalogs.schema import Gpu, InstanceType
from recommender.errors import UsageError
from recommender.job import Job, Timing
from recommender.text import unknown

MOST_OF_PEAK = 2.0  # FLOP of a sample are an estimate


def on_catalog(job: Job, known: Mapping[str, Gpu], types: Iterable[InstanceType]) -> Job:
    """Complete a job's timings from the catalog; unknown GPUs and types are refused by name."""
    if not job.timings:
        return job
    names = {name.lower(): name for name in known}
    machines = {t.instance_type.lower(): t for t in types if t.gpus}
    found: list[Timing] = []
    problems: list[str] = []
    for timing in job.timings:
        machine = machines.get(timing.instance_type.lower())
        if timing.instance_type and machine:
            gpus_in_all = timing.machines * machine.gpus
            name = machine.instance_type
            found.append(replace(timing, gpu=machine.gpu, gpus=gpus_in_all, instance_type=name))
        elif not timing.instance_type and timing.gpu.lower() in names:
            found.append(replace(timing, gpu=names[timing.gpu.lower()]))
        else:
            problems.append(_refusal(timing, names.values(), machines.values()))
    said = (above_peak(job, t.samples_per_s, known[t.gpu], t.gpus) for t in found)
    problems += [f"measured: {why}" for why in said if why]
    if problems:
        raise UsageError(*problems)
    return replace(job, timings=tuple(found))


def above_peak(job: Job, samples_per_s: float, gpu: Gpu, gpus: int) -> str:
    """Say so of a speed that no arithmetic unit of the GPUs could reach; empty where one could.

    It is a slip in the number or its unit.
    """
    peaks = (gpu.peak_fp32_tflops, gpu.peak_fp16_tflops, gpu.peak_bf16_tflops, gpu.peak_fp8_tflops)
    peak = max((peak for peak in peaks if peak), default=0.0) * 1e12 * gpus
    times = samples_per_s * job.flop_per_sample / peak if peak else 0.0
    if times <= MOST_OF_PEAK:
        return ""
    said = f"{gpus}x{gpu.gpu}: {samples_per_s:.3g} samples/s"
    return f"{said} is {times:.3g} x the vendor's peak; check the number and its unit"


def _refusal(timing: Timing, gpus: Iterable[str], machines: Iterable[InstanceType]) -> str:
    if timing.instance_type:
        choices = [machine.instance_type for machine in machines]
        listing = "recommend catalog lists the instance types"
        return f"measured: {unknown('instance type', timing.instance_type, choices, listing)}"
    return f"measured: {unknown('GPU', timing.gpu, gpus)}"
