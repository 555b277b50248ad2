"""Finds the smallest quota request that makes a plan possible."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

import numpy as np

from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import OWN
from recommender.market.account_quotas import quota_use
from recommender.market.offer_facts import Pool
from recommender.market.quota_rows import quota_market, regions_of
from recommender.optimize.candidate import Candidate, plans_of
from recommender.optimize.evaluate import path_inputs_of, values_of
from recommender.optimize.space import NONE, OBJECT_STORE, Site
from recommender.plan.limits import Choice
from recommender.plan.plan import Need, Plan
from recommender.planner.plan_builder import PlanBuilder, goal_value_of
from recommender.planner.problem import Problem
from recommender.text import exact

# Plans of one provider simulated on the paths of a search, and of these on those printed.
SCREENED, PROVIDER_PLANS = 200, 40


@dataclass(frozen=True, slots=True)
class _Draft:
    """So many machines of one type, and what they need of their quota."""

    amount: float
    usd_per_hour: float
    candidate: Candidate


def smallest_requests(problem: Problem) -> tuple[Plan, ...]:
    """For each provider with given quotas, the plan that needs least of a single quota; cheapest
    first.

    Clusters of one type, on demand unless spot is requested, whose fallback needs a second quota.
    """
    # A list across regions would need a quota in each.
    free = problem.among(replace(without_quotas(problem.choice), failover="zone"))
    builder = PlanBuilder(free, free.single_type_sites)
    found = []
    for place, site in enumerate(free.single_type_sites.sites):
        if site.provider in problem.facts.quotas.given:
            drafts = sorted(_drafts(problem, free, place), key=lambda d: (d.amount, d.usd_per_hour))
            plan = _smallest(builder, drafts)
            found += [] if plan is None else [plan]
    return tuple(sorted(found, key=lambda plan: plan.estimate.cost.mean))


def without_quotas(choice: Choice) -> Choice:
    """A choice whose clouds have no quotas; own machines keep their number."""
    return replace(choice, quotas=tuple(q for q in choice.quotas if q.provider == OWN))


def request_words(plan: Plan) -> str:
    """Which quota to request so that a plan can run."""
    (need,) = plan.needs
    return f'{exact(need.amount)} {_unit(need)} of "{need.name}" in {need.region}'


def needs_words(plan: Plan) -> str:
    """What a plan needs of each quota, in all its regions."""
    regions: dict[Need, list[str]] = {}
    for need in plan.needs:
        regions.setdefault(replace(need, region="", yours=None), []).append(need.region)
    return "; ".join(
        f"{'for its fallback ' if need.fallback else ''}"
        f'"{need.name}" ≥ {exact(need.amount)} {_unit(need)} in {", ".join(places)}'
        for need, places in regions.items()
    )


def _unit(need: Need) -> str:
    return {"vcpu": "vCPU", "gpu": "GPU" if need.amount == 1 else "GPUs"}.get(need.unit, need.unit)


def _smallest(builder: PlanBuilder, drafts: list[_Draft]) -> Plan | None:
    """The best plan of the least amount that leaves any."""
    able = _able(builder, drafts[:SCREENED])
    for _, alike in groupby(able[:PROVIDER_PLANS], key=lambda draft: draft.amount):
        met = builder.meeting(draft.candidate for draft in alike)
        plans = [evaluated.plan for evaluated in met]
        if plans:
            return min(plans, key=lambda plan: goal_value_of(plan, builder.limits))
    return None


def _able(builder: PlanBuilder, drafts: list[_Draft]) -> list[_Draft]:
    """Those that may meet the limits, on the paths of a search, within their error."""
    if not drafts:
        return []
    space, candidates = builder.space, [draft.candidate for draft in drafts]
    rows, plans = plans_of(candidates)  # all of one site
    inputs, allowed = path_inputs_of(space, space.sites[candidates[0].site].only(rows), plans)
    able = np.flatnonzero(allowed)
    values = values_of(space, inputs.take(able))
    return [drafts[i] for i in able[np.isfinite(values.goal_value)].tolist()]


def _drafts(problem: Problem, free: Problem, place: int) -> Iterator[_Draft]:
    """Possible requests to one provider: each number of each type, in its cheapest region."""
    sites, spot = free.single_type_sites, problem.choice.market == "spot"
    market = "spot" if spot else "on_demand"
    site, pools = sites.sites[place], sites.pools[place]
    alone = (len(regions_of(problem.facts, pool)) == 1 for pool in pools)  # one region, one need
    wanted = [e for e, one in enumerate(alone) if one and pools[e].market == market]
    wanted.sort(key=lambda entry: float(site.entries.usd_per_hour[entry]))
    cheapest = {pools[entry].kind: entry for entry in reversed(wanted)}
    for kind, entry in sorted(cheapest.items()):
        for n, step_s in enumerate(free.step_s[kind].tolist(), start=1):
            amount = _asked(problem, pools[entry], n)
            if amount and _may_meet_limits(free, site, entry, n, step_s):
                path = OBJECT_STORE if spot else NONE
                candidate = Candidate(place, (entry,), (n,), path, -1)
                yield _Draft(amount, n * float(site.entries.usd_per_hour[entry]), candidate)


def _asked(problem: Problem, pool: Pool, n: int) -> float:
    """What to ask for, in the provider's unit; 0 where the quota is enough or has no name."""
    quotas, market = problem.facts.quotas, quota_market(problem.facts, pool)
    region = regions_of(problem.facts, pool)[0]
    quota = quotas.quota(pool.type, market)
    if quota is None or quotas.most_machines(pool.type, market, region) >= n:
        return 0.0
    return n * quota_use(pool.type, quota.unit)


def _may_meet_limits(problem: Problem, site: Site, entry: int, n: int, step_s: float) -> bool:
    """Whether the cluster meets the hourly limit, and its bare work the others."""
    limits, usd_per_hour = problem.limits, n * float(site.entries.usd_per_hour[entry])
    most_s, most_usd, hourly_usd = (
        np.inf if most is None else most
        for most in (limits.deadline_s, limits.budget_usd, limits.hourly_usd)
    )
    if not np.isfinite(step_s) or usd_per_hour > hourly_usd:
        return False
    min_s = problem.steps_left * step_s  # half of the runs take longer
    meets = min_s <= most_s and min_s / 3600.0 * usd_per_hour <= most_usd
    return meets or limits.confidence < 0.5
