"""What the leading plan takes with a vendor's recipe, if a job does not say its software."""

from dataclasses import replace

import numpy as np

from recommender.job.job import Job
from recommender.performance.clusters import clusters_of
from recommender.performance.machines import machine_columns
from recommender.performance.step import steps
from recommender.plan.plan import Plan
from recommender.planner.problem import Problem

WORTH_SAYING = 0.2  # share by which the time must differ


def recipe_s(problem: Problem, plan: Plan) -> float | None:
    """The plan's median time with `--stack tuned`; None if it is about the same, or unknown.

    Only its work gets shorter: start-up, waits and restarts stay.
    """
    job, time = problem.job, plan.estimate.time.p50
    if "stack" not in job.assumed or job.sync != "allreduce" or job.timings or job.calibration:
        return None
    tuned = replace(job, stack="tuned", assumed=tuple(n for n in job.assumed if n != "stack"))
    ratio = _step_s(problem, plan, tuned) / _step_s(problem, plan, job)
    found = time + plan.estimate.split.work_s * (ratio - 1.0)
    differs = np.isfinite(found) and abs(found / time - 1.0) >= WORTH_SAYING
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
