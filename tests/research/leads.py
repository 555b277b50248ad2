"""The plan that leads the answer to a question on the shipped catalog, for studies that compare."""

from dataclasses import dataclass
from datetime import UTC, datetime

from recommender.catalogs.catalog import Catalog
from recommender.job.jobfile import find_job
from recommender.plan.limits import Choice, Limits, Progress
from recommender.plan.plan import Plan
from recommender.planner.baselines import proof_of
from recommender.planner.plan_builder import goal_value_of, has_derived_price
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import planning_problem
from recommender.planner.ranking import ranked_plans

NOW = datetime(2026, 11, 23, tzinfo=UTC)
SEED = 7
NEW = Progress()  # a job that has not begun


@dataclass(frozen=True, slots=True)
class Lead:
    """The first plan of an answer and what is said of it."""

    plan: str
    instances: tuple[str, ...]
    regions: tuple[str, ...]
    usd: float
    time_s: float
    p95_s: float
    p95_usd: float
    goal: float  # cost or time
    chance: float
    fallback: bool
    mixed: bool  # several machine types or markets
    derived: bool  # at a price that nobody quoted
    proven: bool  # among clusters of one machine type


def search_of(
    preset: str, limits: Limits, choice: Choice, catalog: Catalog, progress: Progress = NEW
) -> PlanPool:
    """The search behind an answer."""
    job = find_job(preset)
    return PlanPool(planning_problem(job, limits, choice, catalog, progress, NOW, SEED))


def lead_of(
    preset: str, limits: Limits, choice: Choice, catalog: Catalog, progress: Progress = NEW
) -> Lead | None:
    """The plan that leads; None where none meets the limits."""
    return first_of(search_of(preset, limits, choice, catalog, progress))


def first_of(search: PlanPool) -> Lead | None:
    """The plan that leads the answer of a search."""
    ranked = ranked_plans(search, 1).plans
    if not ranked:
        return None
    plan, limits = ranked[0].plan, search.problem.limits
    estimate = plan.estimate
    return Lead(
        plan=words(plan),
        instances=tuple(sorted({m.instance_type for m in plan.machines})),
        regions=tuple(sorted({m.region for m in plan.machines} | {s.region for s in plan.sites})),
        usd=estimate.cost.mean,
        time_s=estimate.time.trimmed_mean,
        p95_s=estimate.time.p95,
        p95_usd=estimate.cost.p95,
        goal=goal_value_of(plan, limits),
        chance=estimate.chance,
        fallback=plan.fallback is not None,
        mixed=len(plan.machines) > 1,
        derived=has_derived_price(plan),
        proven=proof_of(search).status == "optimal",
    )


def words(plan: Plan) -> str:
    """The machines of a plan: "2x p4d.24xlarge spot, else 1x p5.48xlarge"."""
    said = " + ".join(f"{m.count}x {m.instance_type} {m.market}" for m in plan.machines)
    if plan.fallback is None:
        return said
    return (
        said
        + ", else "
        + " + ".join(f"{m.count}x {m.instance_type}" for m in plan.fallback.machines)
    )
