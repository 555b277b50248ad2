"""The Pareto frontier of cost and time of the simulated plans that meet the limits.

The position of a plan is its mean cost and its median time, as printed in tables.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from typing import TypeVar

from recommender.catalogs.frozen import dataclass
from recommender.plan.limits import HOURLY, MAX_OVERHEAD, Limits
from recommender.plan.report_data import PlanFigures, SimulatedPlan

MIN_DIFFERENCE = 0.02  # plans closer than this in cost or time are not a choice
Each = TypeVar("Each")
Figures = Callable[[Each], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class FrontierPoint(PlanFigures):
    """One plan of the frontier."""

    chance: float  # all limits met


@dataclass(frozen=True, slots=True)
class Frontier:
    """The frontier, cheapest first, and the number of plans it was selected from."""

    points: tuple[FrontierPoint, ...]
    simulated: int
    meeting: int  # of these, that meet the limits


def chance_of(plan: SimulatedPlan, limits: Limits) -> float:
    """The chance that a plan meets deadline and budget, by its simulated runs.

    It is 0 if the plan exceeds the hourly limit at some moment, or the overhead limit.
    """
    hourly_usd, overhead = limits.hourly_usd, limits.max_overhead
    if hourly_usd is not None and not HOURLY.allows(plan.max_usd_per_hour, hourly_usd):
        return 0.0
    if overhead is not None and not MAX_OVERHEAD.allows(plan.overhead, overhead):
        return 0.0
    due, most = limits.deadline_s, limits.budget_usd
    met = sum(
        (due is None or time <= due) and (most is None or cost <= most)
        for time, cost in zip(plan.time_s, plan.cost_usd, strict=True)
    )
    return min(plan.weight * met / len(plan.time_s), 1.0)


def frontier_of(plans: Sequence[SimulatedPlan], limits: Limits) -> Frontier:
    """Select the plans that meet the limits and that no other plan beats in cost and time."""
    chances = [chance_of(plan, limits) for plan in plans]
    meeting = [i for i, chance in enumerate(chances) if chance >= limits.confidence - 1e-12]
    best = unbeaten(meeting, lambda i: cost_and_time(plans[i]))
    shown = [each.name for each in fields(PlanFigures)]
    points = tuple(
        FrontierPoint(chance=chances[i], **{name: getattr(plans[i], name) for name in shown})
        for i in best
    )
    return Frontier(points, len(plans), len(meeting))


def cost_and_time(plan: PlanFigures) -> tuple[float, float]:
    """The mean cost and median time by which plans are compared."""
    return plan.cost.mean, plan.time.p50


def unbeaten(among: Iterable[Each], figures: Figures[Each]) -> Iterator[Each]:
    """Select, in order of cost, the plans that are faster than all cheaper ones."""
    best_s = float("inf")
    for each in sorted(among, key=figures):
        time_s = figures(each)[1]
        if time_s < best_s:
            best_s = time_s
            yield each


def distinct(curve: Iterable[Each], figures: Figures[Each]) -> list[Each]:
    """Plans from the cheapest on that are a choice: clearly faster, or as cheap and faster."""
    kept: list[Each] = []
    group_usd = 0.0  # the cheapest of those that cost as much as the last one kept
    for each in curve:
        usd, time_s = figures(each)
        if kept and time_s > figures(kept[-1])[1] * (1.0 - MIN_DIFFERENCE):
            continue
        if kept and usd <= group_usd * (1.0 + MIN_DIFFERENCE):
            kept[-1] = each
        else:
            group_usd = usd
            kept.append(each)
    return kept
