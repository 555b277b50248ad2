"""Whether a plan under an overhead limit is beaten in cost and in time by one that meets it too.

The first, by any plan of the same question without the limit (the others are the best of their
kind, which the first may well beat).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from recommender.planner.plan_builder import Evaluated, meets
from recommender.planner.plan_pool import PlanPool
from recommender.planner.ranking import ranked_plans

BEATS = 1e-3  # share by which both figures must be less
ASKED = 20  # plans of the question without the limit
TRIED = 40  # and of its search, those simulated again that look as if they beat a plan


def beaten(search: PlanPool, plans: Sequence[Evaluated]) -> str:
    """What beats one of an answer's plans, in words; "" if nothing does."""
    if search.problem.limits.max_overhead is None:
        return ""
    return "; ".join(_by_plans_without_the_limit(search, plans[:1]))


def _beats(cost_usd: float, time_s: float, plan: Evaluated) -> bool:
    cheaper = cost_usd < plan.cost_usd * (1.0 - BEATS)
    return cheaper and time_s < plan.time_s * (1.0 - BEATS)


def _words(plan: Evaluated) -> str:
    machines = " + ".join(f"{m.count}x {m.instance_type} {m.market}" for m in plan.plan.machines)
    overhead = plan.plan.estimate.overhead
    return f"{machines} ({plan.cost_usd:.6g} USD, {plan.time_s / 3600:.3g} h, {overhead:.1%})"


def _by_plans_without_the_limit(search: PlanPool, plans: Sequence[Evaluated]) -> Iterator[str]:
    asked = search.problem.limits
    free = PlanPool(search.problem.under(replace(asked, max_overhead=None)))
    others = list(ranked_plans(free, ASKED).plans)
    slowest = max((plan.time_s for plan in plans), default=0.0)
    dearest = max((plan.cost_usd for plan in plans), default=0.0)
    promising = [
        candidate
        for candidate in free.best.plans
        if candidate.cost_usd < dearest and candidate.time_s < slowest
    ]
    promising.sort(key=lambda candidate: candidate.goal_value)
    built = map(free.builder.build, promising)
    others += islice((each for each in built if meets(each.plan, asked)), TRIED)
    for plan in plans:
        for other in others:
            if _beats(other.cost_usd, other.time_s, plan) and meets(other.plan, asked):
                yield f"{_words(plan)} by {_words(other)}"
                break
