"""What plans need of one limit while the others hold, the least of it first.

A plan's time and cost on a path do not depend on a limit, except that its fallback starts in time
for the deadline. So one simulation shows how much of a limit it needs: the quantile, at the
requested chance, of its figure over the paths on which it meets the others. Closed-form estimates
(`renewal_rates.py`) choose the plans that are simulated.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.optimize.columns import NONE, Cluster
from recommender.optimize.evaluate import limits_met
from recommender.optimize.rated_clusters import RatedClusters, RatedPlans
from recommender.optimize.search_state import Candidate
from recommender.optimize.space import Space, numbers_allowed
from recommender.plan.limits import BUDGET, DEADLINE, MEAN_LIMITS, PATH_LIMITS, MeanLimit, PathLimit
from recommender.risk.path_inputs import PathInputs
from recommender.risk.run_statistics import Outcomes, trimmed_mean

# Simulated by their estimates: in ten refusals of two limits (2026-11-26) the plan that needs least
# of 1,700 was among the first 72.
SIMULATED = 240
ON_DEMAND_FIRST = 24  # of them without spot: surer than their estimates, others are less sure
REFINED, STEPS = 6, 3  # so many of the best are tried with so many machines more and less
SIMULATED_MORE = 120  # of these
# Scenarios are few: estimates are compared at chances that are less by so much, in this order.
BLURS = (0.03, 0.1)
CHANCE_ERRORS = 1.5  # standard errors by which a chance on the paths of a search may be short
HOPELESS = 0.5  # a plan whose estimated chance is short by more is not simulated


@dataclass(frozen=True, slots=True)
class Need:
    """A plan, and what it needs of a limit to meet all with the requested chance."""

    value: float
    min_value: float  # the same within the error of the chance on the paths of a search
    goal_value: float  # what is minimised, on the paths of a search
    candidate: Candidate


def least_needs(
    space: Space,
    step_s: Floats,
    clusters: Sequence[Cluster],
    limit: PathLimit | MeanLimit,
    known: RatedClusters,
) -> list[Need]:
    """The plans of some clusters that need least of a limit, on the paths of a search.

    Then of clusters with more or fewer machines than the best, as estimated and as simulated.
    A deadline of the space decides when fallbacks start, even if it is the limit in question.
    `step_s` has shape (kinds, machines). Clusters that are `known` are not rated again.
    """
    found = _simulated(space, clusters, limit, known, SIMULATED)
    near = [*_first_clusters(found), *_first_clusters(_sorted(found))]
    more = _neighbours(space, step_s, clusters, near)
    return _sorted([*found, *_simulated(space, more, limit, known, SIMULATED_MORE)])


def _sorted(needs: Sequence[Need]) -> list[Need]:
    """Those that may meet the other limits, the least need first."""
    return sorted((n for n in needs if np.isfinite(n.min_value)), key=lambda need: need.value)


def _first_clusters(needs: Sequence[Need]) -> list[Cluster]:
    """The first clusters of one entry of some plans."""
    plans = (need.candidate for need in needs)
    clusters = dict.fromkeys(Cluster(p.site, p.entries, p.counts) for p in plans)
    return [each for each in clusters if len(each.entries) == 1][:REFINED]


def _neighbours(
    space: Space, step_s: Floats, known: Sequence[Cluster], near: Sequence[Cluster]
) -> list[Cluster]:
    """Clusters with a few machines more or less than some have, or with half or twice as many."""
    more, done = dict[Cluster, None](), set(known)
    for each in near:
        site, count = space.sites[each.site].only(np.array(each.entries)), each.counts[0]
        allowed = 1 + np.flatnonzero(numbers_allowed(space, site, step_s)[0])
        near_by = (abs(allowed - count) <= STEPS) | np.isin(allowed, (count // 2, 2 * count))
        more |= dict.fromkeys(replace(each, counts=(n,)) for n in allowed[near_by].tolist())
    return [each for each in more if each not in done]


def _simulated(
    space: Space,
    clusters: Sequence[Cluster],
    limit: PathLimit | MeanLimit,
    known: RatedClusters,
    most: int,
) -> list[Need]:
    """What the plans of the best estimates need, in their order; inf: never."""
    rated = list(known.plans_of(space, clusters))
    order = _by_estimate(space, rated, limit)[:most] if rated else NONE
    if not len(order):
        return []
    begin = np.cumsum([0, *(len(each.inputs) for each in rated)])
    place = np.searchsorted(begin, order, side="right") - 1
    rows = order - begin[place]
    inputs = PathInputs.joined([each.inputs for each in rated]).take(order)
    found = needs_of(space, inputs, limit)
    return [
        Need(
            float(found.value[i]),
            float(found.min_value[i]),
            float(found.goal_value[i]),
            rated[place[i]].candidate(int(rows[i])),
        )
        for i in range(len(order))
    ]


def _by_estimate(space: Space, rated: Sequence[RatedPlans], limit: PathLimit | MeanLimit) -> Ints:
    """The order in which plans are simulated, without the hopeless ones."""
    estimates = [_estimated_needs(space, each, limit) for each in rated]
    needs, chance = (np.concatenate(each) for each in zip(*estimates, strict=True))
    spot = np.concatenate([each.inputs.spot_usd_per_hour for each in rated]) > 0.0
    # A value that is asked for is met or not: then the surest come first.
    asked = space.limits.value(limit) is not None
    order = np.lexsort((*needs.T[::-1], -chance) if asked else (-chance, *needs.T[::-1]))
    order = order[chance[order] >= space.limits.confidence - HOPELESS]
    sure = order[~spot[order]][:ON_DEMAND_FIRST]
    return np.concatenate([sure, order[~np.isin(order, sure)]])


@dataclass(frozen=True, slots=True)
class Needs:
    """What plans need of a limit; shape (plans,); inf: they meet the other limits too seldom."""

    value: Floats
    min_value: Floats  # within the error of the chance
    goal_value: Floats

    @staticmethod
    def blank(plans: int) -> "Needs":
        """Needs to be set."""
        return Needs(*np.full((3, plans), np.inf))

    def put(self, rows: Sequence[int], found: "Needs") -> None:
        """Set what some plans need."""
        for name in self.__slots__:
            getattr(self, name)[rows] = getattr(found, name)


def needs_of(space: Space, inputs: PathInputs, limit: PathLimit | MeanLimit) -> Needs:
    """What plans need of a limit, by simulation."""
    limits = space.limits.with_value(limit, None)
    # What any fallback could save is not needed: so plans are equal under every deadline or none.
    never, even = np.full(len(inputs), np.inf), np.ones(len(inputs))
    inputs = replace(inputs, best_fallback_usd_per_hour=never, best_fallback_speed=even)
    found = space.cache.outcomes(inputs, space.limits.deadline_s)
    met, sure = limits_met(limits, found), limits.confidence
    error = CHANCE_ERRORS * np.sqrt(sure * (1.0 - sure) / space.cache.path_count)
    means = _means_met(space, found, limit)

    def at(share: float) -> Floats:
        if isinstance(limit, PathLimit):
            figures = _quantiles(np.where(met, limit.of_paths(found), np.inf), share)
        else:
            enough = met.mean(axis=1) >= share - 1e-12
            figures = np.where(enough, limit.of_means(found), np.inf)
        return np.where(means, figures, np.inf)

    by_time = space.limits.goal == "time"
    goals = trimmed_mean(found.time_s) if by_time else found.expected_usd
    return Needs(at(sure), at(max(sure - error, 0.0)), goals)


def _means_met(space: Space, found: Outcomes, but: PathLimit | MeanLimit) -> Floats:
    ok = np.ones(len(found.time_s), dtype=bool)
    for limit, most in space.limits.given(MEAN_LIMITS):
        if limit != but:
            ok &= limit.of_means(found) <= most
    return ok


def _quantiles(values: Floats, share: float) -> Floats:
    """The smallest value that at least this share of each row does not exceed."""
    place = max(int(np.ceil(share * values.shape[1] - 1e-9)), 1) - 1
    return np.asarray(np.partition(values, place, axis=1)[:, place])


def _estimated_needs(
    space: Space, rated: RatedPlans, limit: PathLimit | MeanLimit
) -> tuple[Floats, Floats]:
    """What plans need of a limit by their estimates, (plans, blurs), and their chance of all."""
    found, sure = rated.rates(space.limits.deadline_s), space.limits.confidence
    met = np.ones(found.usd.shape, dtype=bool)
    figures = {DEADLINE.name: found.time_s, BUDGET.name: found.usd}  # others have no estimates
    for each, most in space.limits.given(PATH_LIMITS):
        if each != limit and each.name in figures:
            met &= figures[each.name] <= most
    needed, asked = np.where(met, figures.get(limit.name, 0.0), np.inf), space.limits.value(limit)
    if isinstance(limit, PathLimit) and asked is not None and limit.name in figures:
        met &= figures[limit.name] <= asked
    chance = found.mean(met)
    if not isinstance(limit, PathLimit):
        lost = found.mean(found.lost)
        return np.stack([np.where(chance >= sure - b, lost, np.inf) for b in BLURS], axis=1), chance
    some = np.flatnonzero(chance >= sure - HOPELESS)
    ordered = found.take(some).ordered(needed[some])
    needs = np.full((len(chance), len(BLURS)), np.inf)
    needs[some] = np.stack([ordered.quantile(sure - blur) for blur in BLURS], axis=1)
    return needs, chance
