"""The Python API: questions as on the command line, answers as objects.

answer = recommend("resnet50-imagenet", deadline="24h")
print(answer)
answer.sensible, answer.to_dict(), answer.to_pandas()

A function imports what it alone needs, so that `from recommender import recommend` is quick.
"""

from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import datetime
from importlib import import_module
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.store import Store, default_root, newest_good
from recommender.errors import UsageError
from recommender.inputs.limits import parse_limit
from recommender.inputs.units import deadline_moment, parse_comparison, parse_duration
from recommender.inputs.units.times import now as clock_now
from recommender.job.job import Job
from recommender.job.jobfile import find_job
from recommender.optimize.watch import Watch
from recommender.plan.answer import Answer
from recommender.plan.limits import BUDGET, DEADLINE, HOURLY, Choice, Limits, Progress
from recommender.plan.plan import Plan
from recommender.planner.options import AnswerOptions
from recommender.planner.problem import planning_problem
from recommender.planner.recommend import recommend as answer_of
from recommender.report.answer_frame import PlanRequest
from recommender.risk.random_numbers import SEED

if TYPE_CHECKING:
    from recommender.plan.simulation import Simulation
    from recommender.report.backtest import PolicyResult

Amount = str | float | None  # a limit as it is typed; a number is in USD


@dataclass(frozen=True, slots=True)
class AnswerWithRequest(Answer):
    """An answer together with its question."""

    request: PlanRequest | None = None

    def __repr__(self) -> str:
        """What `recommend` prints: three plans, their cost, time and chance, and what to do."""
        from recommender.report.short_forms import short_text

        assert self.request is not None  # `recommend` sets it
        return short_text(self, self.request).rstrip()

    def _repr_html_(self) -> str:
        """What a notebook shows: these plans as a table."""
        from recommender.report.html.short_table import short_table

        assert self.request is not None
        return short_table(self, self.request)

    def to_dict(self) -> dict[str, Any]:
        """Return the document of `recommend ... --json` (schema recommend.plan/v1)."""
        from recommender.report.json_output import document

        assert self.request is not None  # `recommend` sets it
        return document(self, self.request)

    def to_pandas(self) -> Any:
        """Return a DataFrame, one row per plan (USD, seconds, shares); needs pandas."""
        pandas = import_module("pandas")
        return pandas.DataFrame.from_records(
            [plan_row(rank, plan) for rank, plan in enumerate(self.plans, 1)], index="rank"
        )


def recommend(
    job: Job | str | PathLike[str],
    limits: Limits = Limits(),  # noqa: B008 (frozen)
    choice: Choice = Choice(),  # noqa: B008 (frozen)
    *,
    deadline: str | None = None,
    budget: Amount = None,
    hourly: Amount = None,
    catalog: Catalog | None = None,
    progress: Progress = Progress(),  # noqa: B008 (frozen)
    seed: int = SEED,
    now: datetime | None = None,
    watch: Watch | None = None,
    **options: Any,
) -> AnswerWithRequest:
    """Rank the plans that meet the limits; if none does, the answer says so.

    `job` is a preset, a job file, or a `Job`. `deadline` is written as on the command line ("24h",
    "tomorrow 08:00"); `budget` and `hourly` are USD, as numbers or text. They override `limits`.
    `catalog` defaults to the newest valid version in the user's store, or else to the shipped
    snapshot; `Answer.warnings` names a version that could not be used. `load_catalog(folder)` loads
    another catalog. `now`, for the ages of prices, defaults to the clock. `watch` reports the
    running search to another thread, and can end a proof early. Further `options` are those of
    `AnswerOptions`: `compare`, `top`, `prove`, `verify`, `explain`, `worth`, `save_lp` and others.

    Raises:
        UsageError: the job is not found or a limit cannot be read.
    """
    job, (catalog, skipped) = _job(job), _catalog(catalog)
    limited = limits_of(limits, deadline, budget, hourly, progress)
    found = answer_of(
        job, limited, choice, AnswerOptions(**options), catalog=catalog, progress=progress,
        seed=seed, now=now, watch=watch,
    )  # fmt: skip
    found = replace(found, warnings=(*skipped, *found.warnings))
    request = PlanRequest(job, limited, choice, progress, catalog.version)
    values = {each.name: getattr(found, each.name) for each in fields(found)}
    return AnswerWithRequest(**values, request=request)


def simulate(
    job: Job | str | PathLike[str],
    limits: Limits = Limits(),  # noqa: B008 (frozen)
    choice: Choice = Choice(),  # noqa: B008 (frozen)
    *,
    deadline: str | None = None,
    budget: Amount = None,
    hourly: Amount = None,
    plan: int | None = None,
    machines: str | None = None,
    executor: str = "",
    runs: int = 10_000,
    seed: int = 7,
    catalog: Catalog | None = None,
    progress: Progress = Progress(),  # noqa: B008 (frozen)
    now: datetime | None = None,
) -> "Simulation":
    """Simulate a plan of the answer (by default the leading one), or the given machines.

    `machines` are written as after the job on the command line: "4x g6e.12xlarge spot". `executor`
    names an export target; the plan is also simulated as that target runs it.

    Raises:
        UsageError: there is no such plan, or none meets the limits.
    """
    from recommender.planner.simulate_plan import simulate_plan
    from recommender.simulation.simulate import SimulationOptions

    limited = limits_of(limits, deadline, budget, hourly, progress)
    moment = clock_now() if now is None else now
    problem = planning_problem(
        _job(job), limited, choice, _catalog(catalog)[0], progress, moment, SEED
    )
    which = plan if machines is None else parse_comparison(machines, "machines")
    found = simulate_plan(problem, which, SimulationOptions(runs, seed, executor=executor))
    if found.simulation is None:
        failed = None if found.answer is None else found.answer.infeasible
        why = () if failed is None else failed.binding
        raise UsageError(f"no plan meets the limits: {'; '.join(why) or 'see recommend()'}")
    return found.simulation


def backtest(
    *traces: str | PathLike[str],
    jobs: Sequence[str] = ("48h/52h/6m",),
    policies: Sequence[str] = ("on-demand", "greedy", "uniform-progress", "cost-optimal"),
    machines: int = 1,
    spot_usd: float = 0.9731,
    on_demand_usd: float = 3.06,
    past: float = 0.5,
    every: str = "4h",
) -> "list[PolicyResult]":
    """Replay fallback policies on recorded spot markets; one row per job setting and policy.

    Without `traces` the shipped sample is used. `jobs` are written as work/deadline/changeover,
    `machines` is how many must be up together, `past` the share of each trace that policies learn
    from. Default prices are those of the published comparison (Wu et al., NSDI 2024).

    Raises:
        UsageError: a trace or a setting cannot be read, or no trace has as many machines.
    """
    from recommender.inputs.workers import Workers
    from recommender.policies.backtest import run
    from recommender.policies.state import ModePrices
    from recommender.report.backtest import policy_results
    from recommender.simulation.backtest_work import (
        BacktestSettings,
        check_series,
        parse_task,
        work_of,
    )
    from recommender.traces.read import chosen
    from recommender.traces.sample import SAMPLE, trace_path

    settings = BacktestSettings(
        tasks=[parse_task(job, "jobs") for job in jobs],
        policies=policies,
        machines=machines,
        past_share=past,
        every_s=parse_duration(every, "every"),
        confidence=1.0,
        receivers_usd=0.0,
        move_usd=0.0,
    )
    series = chosen([trace_path(fspath(each)) for each in traces or (SAMPLE,)])
    check_series(series, settings)
    prices = [ModePrices(spot_usd, on_demand_usd)] * len(series)
    return policy_results(run(work_of(series, prices, settings), Workers()), by_trace=False)


def _job(job: Job | str | PathLike[str]) -> Job:
    return job if isinstance(job, Job) else find_job(fspath(job))


def _catalog(catalog: Catalog | None) -> tuple[Catalog, tuple[str, ...]]:
    if catalog is not None:
        return catalog, ()
    found = newest_good(Store(default_root()))
    return found.catalog, found.skipped


def limits_of(
    limits: Limits,
    deadline: str | None,
    budget: Amount,
    hourly: Amount,
    progress: Progress = Progress(),  # noqa: B008 (frozen)
) -> Limits:
    """Those given, with what was typed besides; a moment is the end, however long the job runs."""
    for limit, word in ((DEADLINE, deadline), (BUDGET, budget), (HOURLY, hourly)):
        if word is not None:
            limits = limits.with_value(limit, parse_limit(limit)(f"{word}", limit.name))
    if deadline is not None and deadline_moment(deadline, clock_now()) is not None:
        left_s = limits.deadline_s or 0.0
        limits = limits.with_value(DEADLINE, left_s + progress.elapsed_s)
    return limits


def plan_row(rank: int, plan: Plan) -> dict[str, Any]:
    """The figures of a plan by name: USD, seconds, shares."""
    from recommender.report.cells import counted, short_machines

    first, estimate = plan.machines[0], plan.estimate
    return {
        "rank": rank,
        "machines": short_machines(plan),
        "provider": first.provider,
        "region": plan.sites[0].region if plan.sites else first.region,
        "gpu": first.gpu,
        "gpus": plan.gpus,
        "fallback": "" if plan.fallback is None else counted(plan.fallback.machines),
        "cost_usd": estimate.cost.mean,
        "cost_usd_p05": estimate.cost.p05,
        "cost_usd_p50": estimate.cost.p50,
        "cost_usd_p95": estimate.cost.p95,
        "time_s_p05": estimate.time.p05,
        "time_s_p50": estimate.time.p50,
        "time_s_p95": estimate.time.p95,
        "chance": estimate.chance,
        "interruptions": estimate.interruptions,
        "usd_per_hour": plan.usd_per_hour,
    }
