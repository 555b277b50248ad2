"""How certain the first place is: proven optimal, or the gap that bounds leave."""

from dataclasses import replace

from recommender.optimize.search_state import EPSILON
from recommender.plan.answer import Mixes, Proof
from recommender.planner.mix_bounds import mix_lower_bound
from recommender.planner.plan_builder import Evaluated
from recommender.planner.search import PlanSearch


def proof_of(search: PlanSearch, lead: Evaluated | None = None) -> Proof:
    """How far below the best plan the goal of an unseen plan could be.

    If the best plan of the answer, `lead`, is not the one found but more expensive (without limits
    the frontier contains nothing that takes months), how far below that one.
    """
    state, single = search.best, _one_type_gap(search)
    gap, mixes = _gap(search, single)
    if lead is not None and state.incumbents:
        found = search.builder.build(state.best_candidate())
        left = min(1.0, found.cost_usd / lead.cost_usd)
        single, gap = 1.0 - left * (1.0 - single), 1.0 - left * (1.0 - gap)
    return Proof(
        status="gap" if gap > 0 else "optimal",
        gap=gap,
        one_type_gap=min(single, gap),
        method="search",
        plans_evaluated=state.plans_evaluated,
        mixes=mixes,
        mixes_tried=len(search.mixes.likely),
    )


def _one_type_gap(search: PlanSearch) -> float:
    """How much better than the best plan, which may be a mix, one of a single type could be."""
    own = search.single_type.own
    if not search.best.incumbents:
        return own.gap()
    return replace(search.best, open_bound=own.open_bound).gap()


def _gap(search: PlanSearch, one_type_gap: float) -> tuple[float, Mixes]:
    """How much better a plan could be than the best one, and how mixes were looked at.

    Where none was found, all is open unless it is proven that there is none.
    """
    state = search.best
    gap = state.gap()
    if not state.incumbents:
        return gap, "in part" if gap > 0 and search.mixes.made else "searched"
    if not search.mixes.made:
        several = search.problem.limits.max_machines > 1
        return max(gap, _mix_gap(search)), "bounded" if several else "searched"
    if gap <= one_type_gap:
        return gap, "searched"
    if search.problem.quotas_bind:  # which the quick bound leaves out
        return gap, "in part"
    bounded = max(one_type_gap, min(gap, _mix_gap(search)))
    return bounded, "in part" if bounded > one_type_gap else "bounded"


def _mix_gap(search: PlanSearch) -> float:
    """How much better a mix could be than the best plan, by a bound that is quick."""
    best = search.best.best_goal
    least = search.mixes.lower_bound
    if search.thorough:
        least = max(least, mix_lower_bound(search.problem, best * (1.0 - EPSILON), True))
    return 0.0 if least >= best * (1.0 - EPSILON) else 1.0 - least / best
