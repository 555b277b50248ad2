"""Gives a plan another fallback than the search: a cheaper one, or one with a smaller quota.

A search tries a few fallbacks of each cluster, the cheapest of some speeds. Of the best plan all
are tried that none beats.

The search looks for the least cost. So the fallback of three machines may be sixteen with older
GPUs, because these do the work for a little less. But their quota has to be requested and kept, for
the few runs that need a fallback. Where a smaller one costs little more, that is better.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from recommender.arrays import Bools, Ints
from recommender.catalogs.frozen import dataclass
from recommender.optimize.evaluate import Plans, Values, path_inputs_of, values_of
from recommender.optimize.fallback_choices import SLOWEST
from recommender.optimize.search_state import Candidate
from recommender.plan.effort import HOUR_USD, ONE_MACHINE, fallback_quota_h, quota_h
from recommender.planner.plan_builder import Evaluated, PlanBuilder, goal_value_of, plans_of
from recommender.planner.quota_needs import quota_of
from recommender.planner.search import PATHS_ERROR

# Share of the goal: another fallback that gains less is not worth its other quota. Of 14 best plans
# two gained 1.5 and 4.4 %, the others nothing (2026-11-26).
MIN_GAIN = 0.005
TRIED = 2  # of each, how many are simulated on the printed paths


def with_cheapest_fallback(builder: PlanBuilder, plan: Evaluated) -> Evaluated:
    """The plan with the best fallback by the goal, if it is one that the search does not try."""
    if plan.plan.fallback is None:
        return plan
    limits, now = builder.limits, plan.candidate
    found = _with_each(builder, now, np.append(now.fallback, _others(builder, plan)))
    goals = found.values.goal_value
    order = np.lexsort((goals, ~found.values.meets_limits))
    better = order[goals[order] < goals[0]][:TRIED].tolist()  # by how much, the printed paths say
    met = builder.meeting(found.candidate(now, place) for place in better)
    best = min(met, key=lambda each: goal_value_of(each.plan, limits), default=plan)
    gains = goal_value_of(best.plan, limits) < goal_value_of(plan.plan, limits) * (1.0 - MIN_GAIN)
    return best.labelled(*plan.plan.labels) if gains else plan


def with_smaller_fallback(builder: PlanBuilder, plan: Evaluated, max_usd: float) -> Evaluated:
    """The plan with the fallback that is worth most, its quota counted, up to a cost."""
    fallback = plan.plan.fallback
    if fallback is None or not fallback_quota_h(plan.plan):
        return plan
    if fallback.gpus <= max(plan.plan.gpus, ONE_MACHINE):
        return plan
    found = builder.meeting(_smaller(builder, plan, max_usd))
    cheap = (each for each in found if each.cost_usd <= max_usd)
    return next(cheap, plan).labelled(*plan.plan.labels)


def _smaller(builder: PlanBuilder, plan: Evaluated, max_usd: float) -> Iterator[Candidate]:
    """The plan with fallbacks with smaller quotas that may meet the limits, best value first."""
    now, rows = plan.candidate, _others(builder, plan)
    sites, facts = builder.with_all_fallbacks(plan.candidate.site), builder.problem.facts
    fall = sites.sites[0].fallbacks
    gpus = fall.count * builder.space.columns.gpus[fall.kind]

    def quota(row: int) -> tuple[str, float]:
        return quota_of(facts, sites.fallbacks[0][row], int(fall.count[row]))

    name, most = quota(now.fallback)
    less = [other != name or amount < most for other, amount in map(quota, rows.tolist())]
    rows = rows[np.array(less, dtype=bool) & (gpus[rows] < gpus[now.fallback])]
    tried = np.append(now.fallback, rows)
    found = _with_each(builder, now, tried)
    best = _by_value(found, gpus[tried], max_usd / plan.cost_usd)
    yield from (found.candidate(now, place) for place in best[:TRIED].tolist())


def _others(builder: PlanBuilder, plan: Evaluated) -> Ints:
    """Other fallbacks of a plan's site, those of the search or those that none beats.

    Without those that are far slower than the plan.
    """
    now, work_s = plan.candidate, float(plan.inputs.work_s[0])
    step_s = builder.with_all_fallbacks(now.site).sites[0].fallbacks.step_s
    fast: Bools = step_s * builder.space.steps_left <= work_s / SLOWEST
    fast[now.fallback] = False
    return np.flatnonzero(fast)


@dataclass(frozen=True, slots=True)
class _Found:
    """A plan with each of some fallbacks, on the paths of a search."""

    rows: Ints
    values: Values

    def candidate(self, plan: Candidate, place: int) -> Candidate:
        """The plan with one of them."""
        v = self.values
        return replace(
            plan,
            fallback=int(self.rows[place]),
            goal_value=float(v.goal_value[place]),
            cost_usd=float(v.cost_usd[place]),
            time_s=float(v.time_s[place]),
            chance=float(v.chance[place]),
            printed=False,
            early_s=0.0,
        )


def _with_each(builder: PlanBuilder, plan: Candidate, rows: Ints) -> _Found:
    entries, one = plans_of([plan])
    site = builder.with_all_fallbacks(plan.site).sites[0].only(entries)
    counts = np.repeat(one.counts, len(rows), axis=0)
    plans = Plans(counts, np.repeat(one.checkpoint_path, len(rows)), rows)
    inputs, allowed = path_inputs_of(builder.space, site, plans)
    return _Found(rows, values_of(builder.space, inputs.without_fallback_bound(), allowed))


def _by_value(found: _Found, gpus: Ints, most: float) -> Ints:
    """Fallbacks better than the first, their quotas counted, that cost at most so much more.

    Those that surely do on the paths of a search, and meet the limits on them, come first.
    """
    values, now_usd = found.values, float(found.values.cost_usd[0])
    usd = np.where(np.isfinite(values.goal_value), values.cost_usd, np.inf)
    total = usd + HOUR_USD * np.array([quota_h(number) for number in gpus.tolist()])
    worth: Bools = (usd <= now_usd * most * (1.0 + PATHS_ERROR)) & (total < total[0])
    order = np.lexsort((total, ~values.meets_limits | (usd > now_usd * most)))
    return np.asarray(order[worth[order]])
