"""Runs whose time or cost was published, and current estimates for the same GPUs."""

import csv
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.resources import as_file, files
from math import exp, log

from recommender.api.calls import recommend
from recommender.arrays import Z_90
from recommender.catalogs.catalog import Catalog
from recommender.job.job import Job
from recommender.job.jobfile import find_job
from recommender.plan.limits import Choice, Limits
from recommender.plan.plan import Plan

HERE = files("tests.research.first_answers")
NOW = datetime(2026, 11, 21, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """One row of published_costs.csv."""

    job: str  # a preset, or a file of jobs/
    gpus: str
    machine: str  # one of the same GPUs in the catalog
    stack: str  # "tuned" where the software is the authors' own, tuned for these GPUs
    hours: float
    usd: float | None  # None where the source states the time alone
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class Estimated:
    """The estimate for a published run: training on its machine, and the current cheapest plan."""

    hours: float  # steps alone: no start-up, no waiting
    hours_p05: float
    hours_p95: float
    usd: float  # on demand, on the same machine
    cheapest: Plan

    def holds(self, run: PublishedRun) -> bool:
        """Whether the published time lies inside the estimated span."""
        return self.hours_p05 <= run.hours <= self.hours_p95

    def error(self, run: PublishedRun) -> float:
        """The natural logarithm of estimated over published hours."""
        return log(self.hours / run.hours)


def published_runs() -> tuple[PublishedRun, ...]:
    """All rows of published_costs.csv."""
    rows = csv.DictReader(HERE.joinpath("published_costs.csv").read_text("utf-8").splitlines())
    return tuple(
        PublishedRun(
            job=row["job"],
            gpus=row["gpus"],
            machine=row["machine"],
            stack=row["stack"],
            hours=float(row["hours"]),
            usd=float(row["usd"]) if row["usd"] else None,
            source=row["source"],
            date=row["date"],
        )
        for row in rows
    )


def estimate_of(run: PublishedRun, catalog: Catalog) -> Estimated:
    """What the recommender tells of a published run."""
    job = _job(run)
    same = Choice(instances=(run.machine,), market="on_demand")
    plan = recommend(job, Limits(max_machines=1), same, catalog=catalog, now=NOW).plans[0]
    cheap = recommend(job, Limits(objective="cost"), catalog=catalog, now=NOW).plans[0]
    hours = job.samples / job.global_batch * plan.estimate.step.step_s / 3600.0
    spread = exp(Z_90 * plan.estimate.speed_sigma)
    return Estimated(hours, hours / spread, hours * spread, hours * plan.usd_per_hour, cheap)


def _job(run: PublishedRun) -> Job:
    if not run.job.endswith(".yaml"):
        return replace(find_job(run.job), stack=run.stack)
    with as_file(HERE.joinpath("jobs").joinpath(run.job)) as path:
        return replace(find_job(str(path)), stack=run.stack)
