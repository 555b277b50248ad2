"""The rank of one machine: whether it may be rented, can train, meets the limits, and how good it
is.

Each question is asked only if the previous one is answered with yes, and a no names the deciding
figure: the flag that excludes the machine, the memory it lacks, the limit it misses.
"""

from dataclasses import replace

import numpy as np

from recommender.catalogs.catalog import Catalog, in_regions
from recommender.errors import UsageError
from recommender.optimize.watch import Watch
from recommender.performance.clusters import clusters_of
from recommender.performance.step import why_infeasible
from recommender.plan.answer import Infeasible
from recommender.plan.limits import LIMITS, Limits
from recommender.plan.plan import Plan
from recommender.plan.standing import MachineStanding
from recommender.planner.blocking_flags import NARROWED, wider_choices
from recommender.planner.break_even import MachineChange, best_within_limits, is_on
from recommender.planner.current_setup import machine_named
from recommender.planner.infeasibility import infeasible
from recommender.planner.plan_builder import goal_value_of
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import Problem
from recommender.planner.ranking import Ranked, ranked_plans

RANKED_AMONG = 40  # plans among which the machine's rank is looked for
REGIONS_NAMED = 8  # regions that fit into one message
REASONS = 8  # at most so many reasons for offers that are left out


def standing(
    machine: str, problem: Problem, regions: tuple[str, ...] = (), watch: Watch | None = None
) -> MachineStanding:
    """Find the rank of a machine, in `regions` or anywhere, among all plans of a problem.

    Raises `UsageError` for a machine that no catalog knows.
    """
    known = machine_named(machine, problem.catalog)
    if isinstance(known, str):
        raise UsageError(known)
    name = known.instance_type
    own = problem.among(replace(problem.choice, instances=(name,), regions=regions))
    why = _not_offered(name, regions, problem.catalog)
    if why:
        return MachineStanding(name, "not offered", (why,))
    if not own.offers.allowed.rows:
        return MachineStanding(name, "not allowed", _not_allowed(own))
    unable = _unable(own)
    if unable:
        return MachineStanding(name, "cannot train", (unable,))
    return _among_all(problem, own, name, watch or Watch())


def _not_offered(name: str, regions: tuple[str, ...], catalog: Catalog) -> str:
    """Why the machine has no offer in the requested places; empty if it has one."""
    o = catalog.offers
    sold = sorted({o.region[row] for row in range(len(o)) if o.instance_type[row] == name})
    if any(region in sold for region in regions) or (sold and not regions):
        return ""
    if not sold:
        return "no provider offers it in this catalog"
    more = f" and {len(sold) - REGIONS_NAMED} more" if len(sold) > REGIONS_NAMED else ""
    return (
        f"it is not offered in {', '.join(regions)}, but in {', '.join(sold[:REGIONS_NAMED])}{more}"
    )


def _not_allowed(own: Problem) -> tuple[str, ...]:
    """The flags that leave the machine's offers out, or what its provider says of them."""
    flags = [
        f"{typed} leaves it out"
        for typed, flag, wider in wider_choices(own.choice, NARROWED)
        if flag not in ("--instance", "--region") and own.among(wider).offers.allowed.rows
    ]
    counts = [
        f"{count} offer{'s' * (count > 1)} of it left out: {reason}"
        for reason, count in own.offers.allowed.left_out
        if reason != "not among --instance"
    ]
    return tuple(flags or counts[:REASONS])


def _unable(own: Problem) -> str:
    """Why no number of these machines can train the job; empty where one can."""
    if np.isfinite(own.step_s).any():
        return ""
    most, columns = own.limits.max_machines, own.columns
    counts = np.zeros((1, len(columns.gpus)), dtype=np.int64)
    counts[0, 0] = most
    why = why_infeasible(own.job, columns, clusters_of(columns, counts), 0)
    return f"a cluster of {most} of them {why}" if why.startswith("needs ") else why


def _among_all(problem: Problem, own: Problem, name: str, watch: Watch) -> MachineStanding:
    """Its best plan against all plans, and what would make it win."""
    ranked = ranked_plans(PlanPool(problem, watch=watch), RANKED_AMONG)
    mine, reasons, rank = best_within_limits(own), tuple[str, ...](), None
    if mine is None:
        failed = infeasible(PlanPool(own))
        plan, reasons = _nearest(failed, problem.limits), failed.binding
    else:
        plan, rank = mine.plan, _rank(ranked, mine.plan, name, problem.limits)
    change = None if plan is None or rank == 1 else _change(problem, own, name, ranked)
    return MachineStanding(
        machine=name,
        standing="over limits" if mine is None else "behind" if change else "first",
        reasons=reasons,
        plan=plan,
        best=ranked.plans[0].plan if ranked.plans else None,
        rank=rank,
        compared=len(ranked.plans),
        price=None if change is None or plan is None else change.break_even("price", plan),
        speed=None if change is None or plan is None else change.break_even("speed", plan),
    )


def _nearest(failed: Infeasible, limits: Limits) -> Plan | None:
    """Of its fastest and its cheapest plan the one that exceeds the limits by less."""

    def excess(plan: Plan) -> float:
        return max(limit.of_plan(plan) / most for limit, most in limits.given(LIMITS))

    found = [plan for plan in (failed.fastest, failed.cheapest) if plan is not None]
    return min(found, key=excess, default=None)


def _change(problem: Problem, own: Problem, name: str, ranked: Ranked) -> MachineChange | None:
    """The machine in the requested places against the best plan on others, if there is one."""
    others = [each.plan for each in ranked.plans if not is_on(each.plan, name)]
    if not others:
        return None
    regions = own.choice.regions
    if regions:
        problem = problem.with_catalog(in_regions(problem.catalog, name, regions))
    own = problem.among(replace(problem.choice, instances=(name,)))
    least = min(goal_value_of(plan, problem.limits) for plan in others)
    return MachineChange(problem, name, own, least)


def _rank(ranked: Ranked, mine: Plan, name: str, limits: Limits) -> int | None:
    """How many plans are better, and one; None where all that were looked at are."""
    value = goal_value_of(mine, limits)
    better = [p for p in ranked.plans if goal_value_of(p.plan, limits) < value * (1.0 - 1e-9)]
    whole = len(better) == len(ranked.plans) and ranked.more > 0
    return None if whole and not is_on(ranked.plans[0].plan, name) else len(better) + 1
