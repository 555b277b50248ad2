"""What the leading plan takes with other software or in 8 bits, if a job states neither."""

from dataclasses import replace

import numpy as np

from recommender.job.derive import TRANSFORMERS
from recommender.job.job import Job
from recommender.performance.clusters import clusters_of
from recommender.performance.gpu_speed import precision_on
from recommender.performance.machines import machine_columns
from recommender.performance.step import steps
from recommender.plan.plan import Plan
from recommender.planner.problem import Problem

STACK_WORTH_SAYING = 0.1  # share by which the time must differ
FP8_WORTH_SAYING = 0.05


def stacks_s(problem: Problem, plan: Plan) -> tuple[float | None, float | None]:
    """The plan's median time with `--stack typical` and `--stack tuned`.

    None if it is about the same, or unknown.
    """
    job = problem.job
    if "stack" not in job.assumed:
        return None, None
    script, recipe = (
        _other_s(problem, plan, other, STACK_WORTH_SAYING)
        for other in (job.as_script, job.as_recipe)
    )
    return script, recipe


def fp8_s(problem: Problem, plan: Plan) -> float | None:
    """The plan's median time with `--precision fp8`; None if nothing is gained, or unknown.

    Software trains linear layers in 8 bits, of all weights (Transformer Engine, torchao's float8;
    read 2026-11): no convolutions and no frozen weights under adapters.
    """
    job, gpus = problem.job, problem.catalog.gpus
    trains = job.family in TRANSFORMERS and job.method == "full"
    used = (gpus.get(each.gpu) for each in plan.machines)
    if not trains or not all(gpu is not None and precision_on("fp8", gpu) for gpu in used):
        return None
    found = _other_s(problem, plan, replace(job, precision="fp8"), FP8_WORTH_SAYING)
    return found if found is not None and found < plan.estimate.time.p50 else None


def _other_s(problem: Problem, plan: Plan, other: Job, least: float) -> float | None:
    """The plan's median time as another job; None if it differs by less, or is unknown.

    Only its work gets shorter or longer: start-up, waits and restarts stay.
    """
    job, time = problem.job, plan.estimate.time.p50
    if job.sync != "allreduce" or job.timings or job.calibration:
        return None
    ratio = _step_s(problem, plan, other) / _step_s(problem, plan, job)
    found = time + plan.estimate.split.work_s * (ratio - 1.0)
    differs = np.isfinite(found) and abs(found / time - 1.0) >= least
    return float(found) if differs else None


def _step_s(problem: Problem, plan: Plan, job: Job) -> float:
    """Seconds of a step on all machines of a plan; infinite if they cannot run it."""
    counts: dict[tuple[str, str], int] = {}
    for each in plan.machines:
        key = each.provider, each.instance_type
        counts[key] = counts.get(key, 0) + each.count
    catalog = problem.catalog
    types = tuple(catalog.instance_types[key] for key in counts)
    columns = machine_columns(job, types, catalog.gpus, catalog.achieved)
    fleet = clusters_of(columns, np.array([list(counts.values())], dtype=np.int64))
    return float(steps(job, columns, fleet).step_s[0])
