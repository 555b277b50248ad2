"""How certain the first place is: proven optimal, or the gap that bounds leave."""

from dataclasses import replace
from typing import Literal

from recommender.optimize.search_state import EPSILON
from recommender.plan.answer import Proof
from recommender.planner.mix_bounds import mix_lower_bound
from recommender.planner.plan_builder import Evaluated
from recommender.planner.search import PlanSearch


def proof_of(search: PlanSearch, lead: Evaluated | None = None) -> Proof:
    """How far below the best plan the goal of an unseen plan could be.

    If the best plan of the answer, `lead`, is not the one found but more expensive (without limits
    the frontier contains nothing that takes months), how far below that one.
    """
    state, single = search.best, search.single_type.own.gap()
    gap = _gap(search)
    mixes = _mixes_searched(search, gap)
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


def _mixes_searched(search: PlanSearch, gap: float) -> Literal["searched", "in part", "bounded"]:
    if not search.best.incumbents:
        return "in part" if gap > 0 and search.mixes.made else "searched"
    if not search.mixes.made:
        return "bounded" if search.problem.limits.max_machines > 1 else "searched"
    return "in part" if gap > search.single_type.own.gap() else "searched"


def _gap(search: PlanSearch) -> float:
    """How much better a plan could be than the best one, by the search and a quick bound.

    Where none was found, all is open unless it is proven that there is none.
    """
    state = search.best
    if not state.incumbents:
        return state.gap()
    of_one = replace(state, open_bound=search.single_type.own.open_bound).gap()
    if not search.mixes.made:
        return max(state.gap(), _mix_gap(search))
    if state.gap() <= of_one or search.problem.quotas_bind:  # which the quick bound leaves out
        return state.gap()
    return max(of_one, min(state.gap(), _mix_gap(search)))


def _mix_gap(search: PlanSearch) -> float:
    """How much better a mix could be than the best plan, by a bound that is quick."""
    best = search.best.best_goal
    least = search.mixes.lower_bound
    if search.thorough:
        least = max(least, mix_lower_bound(search.problem, best * (1.0 - EPSILON), True))
    return 0.0 if least >= best * (1.0 - EPSILON) else 1.0 - least / best
