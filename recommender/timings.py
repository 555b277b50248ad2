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
    problems += [said for each in found for said in _impossible(job, each, known[each.gpu])]
    if problems:
        raise UsageError(*problems)
    return replace(job, timings=tuple(found))


def _impossible(job: Job, timing: Timing, gpu: Gpu) -> list[str]:
    """A speed that no arithmetic unit of the GPUs could reach: a slip in the number or its unit."""
    peaks = (gpu.peak_fp32_tflops, gpu.peak_fp16_tflops, gpu.peak_bf16_tflops, gpu.peak_fp8_tflops)
    peak = max((peak for peak in peaks if peak), default=0.0) * 1e12 * timing.gpus
    times = timing.samples_per_s * job.flop_per_sample / peak if peak else 0.0
    if times <= MOST_OF_PEAK:
        return []
    said = f"{timing.gpus}x{gpu.gpu}: {timing.samples_per_s:.3g} samples/s"
    return [f"measured: {said} is {times:.3g} x the vendor's peak; check the number and its unit"]


def _refusal(timing: Timing, gpus: Iterable[str], machines: Iterable[InstanceType]) -> str:
    if timing.instance_type:
        choices = [machine.instance_type for machine in machines]
        listing = "recommend catalog lists the instance types"
        return f"measured: {unknown('instance type', timing.instance_type, choices, listing)}"
    return f"measured: {unknown('GPU', timing.gpu, gpus)}"
