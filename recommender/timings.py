"""Measured speeds meet the catalog: GPU names as it spells them, instance types by their GPUs."""

from collections.abc import Iterable
from dataclasses import replace

from catalogs.schema import InstanceType
from recommender.errors import UsageError
from recommender.job import Job, Timing
from recommender.text import unknown


def on_catalog(job: Job, gpus: Iterable[str], types: Iterable[InstanceType]) -> Job:
    """Complete a job's timings from the catalog; unknown GPUs and types are refused by name."""
    if not job.timings:
        return job
    names = {name.lower(): name for name in gpus}
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
    if problems:
        raise UsageError(*problems)
    return replace(job, timings=tuple(found))


def _refusal(timing: Timing, gpus: Iterable[str], machines: Iterable[InstanceType]) -> str:
    if timing.instance_type:
        choices = [machine.instance_type for machine in machines]
        listing = "recommend catalog lists the instance types"
        return f"measured: {unknown('instance type', timing.instance_type, choices, listing)}"
    return f"measured: {unknown('GPU', timing.gpu, gpus)}"
