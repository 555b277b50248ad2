"""Gives a plan a fallback with a smaller quota if that costs little more.

The search looks for the least cost. So the fallback of three machines may be sixteen with older
GPUs, because these do the work for a little less. But their quota has to be requested and kept, for
the few runs that need a fallback.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from recommender.arrays import Bools, Ints
from recommender.optimize.evaluate import Plans, Values, path_inputs_of, values_of
from recommender.optimize.fallback_choices import SLOWEST
from recommender.optimize.search_state import Candidate
from recommender.optimize.space import Site, Space
from recommender.plan.effort import HOUR_USD, ONE_MACHINE, fallback_quota_h, quota_h
from recommender.planner.plan_builder import Evaluated, PlanBuilder, plans_of
from recommender.planner.quota_needs import quota_of

FEW = 2  # times the GPUs of the plan: fallbacks of no more are tried before others
TRIED = 2  # of each, how many are simulated on the printed paths
PATHS_ERROR = 0.02  # share by which a cost on the paths of a search may be off, about


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
    now, space = plan.candidate, builder.space
    sites = builder.with_all_fallbacks(now.site)
    entries, _ = plans_of([now])
    site = sites.sites[0].only(entries)
    fall, step_s = site.fallbacks, float(plan.inputs.work_s[0]) / space.steps_left
    gpus = fall.count * space.columns.gpus[fall.kind]
    quotas = [
        quota_of(builder.problem.facts, pool, count)
        for pool, count in zip(sites.fallbacks[0], fall.count.tolist(), strict=True)
    ]
    name, most = quotas[now.fallback]
    smaller = np.array([other != name or amount < most for other, amount in quotas])
    smaller &= (gpus < gpus[now.fallback]) & (fall.step_s <= step_s / SLOWEST)
    few = gpus <= FEW * max(plan.plan.gpus, ONE_MACHINE)
    for some in (smaller & few, smaller & ~few):
        rows = np.append(now.fallback, np.flatnonzero(some))
        values = _values(space, site, now, rows)
        best = _by_value(values, gpus[rows], max_usd / plan.cost_usd)
        for row in islice(rows[best].tolist(), TRIED):
            yield replace(now, fallback=row, printed=False, early_s=0.0)


def _values(space: Space, site: Site, candidate: Candidate, rows: Ints) -> Values:
    """A plan with each of some fallbacks, on the paths of a search."""
    _, one = plans_of([candidate])
    counts = np.repeat(one.counts, len(rows), axis=0)
    plans = Plans(counts, np.repeat(one.checkpoint_path, len(rows)), rows)
    inputs, allowed = path_inputs_of(space, site, plans)
    return values_of(space, inputs.without_fallback_bound(), allowed)


def _by_value(values: Values, gpus: Ints, most: float) -> Ints:
    """Fallbacks better than the first, their quotas counted, that cost at most so much more.

    Those that surely do on the paths of a search, and meet the limits on them, come first.
    """
    usd = np.where(np.isfinite(values.goal_value), values.cost_usd, np.inf) / values.cost_usd[0]
    total = usd * values.cost_usd[0] + HOUR_USD * np.array([quota_h(n) for n in gpus.tolist()])
    worth: Bools = (usd <= most * (1.0 + PATHS_ERROR)) & (total < total[0])
    order = np.lexsort((total, ~values.meets_limits | (usd > most)))
    return np.asarray(order[worth[order]])
