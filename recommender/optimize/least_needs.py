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
from recommender.optimize.bounds.fallback import without_savings
from recommender.optimize.columns import NONE, Cluster, counts_table, fallback_rates
from recommender.optimize.evaluate import (
    Plans,
    Reduced,
    fallback_drafts_of,
    limits_met,
    plans_without_fallback,
    reduced,
    with_fallbacks,
)
from recommender.optimize.fallback_choices import fallback_choices
from recommender.optimize.renewal_rates import Rates, rates, with_fallback
from recommender.optimize.search_state import Candidate
from recommender.optimize.space import Site, Space, numbers_allowed
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


@dataclass(frozen=True, slots=True)
class _Drafts:
    """Plans of one site and the estimates of what they need; shape (plans,)."""

    index: int  # of the site
    rows: Ints  # the entries
    plans: Plans
    inputs: PathInputs
    needs: Floats  # (plans, blurs)
    chance: Floats  # that they meet the limits

    def candidate(self, row: int) -> Candidate:
        """One of the plans."""
        counts, plans = self.plans.counts[row], self.plans
        used = np.flatnonzero(counts)
        return Candidate(
            site=self.index,
            entries=tuple(int(self.rows[k]) for k in used),
            counts=tuple(int(counts[k]) for k in used),
            checkpoint_path=int(plans.checkpoint_path[row]),
            fallback=int(plans.fallback[row]),
        )


def least_needs(
    space: Space, step_s: Floats, clusters: Sequence[Cluster], limit: PathLimit | MeanLimit
) -> list[Need]:
    """The plans of some clusters that need least of a limit, on the paths of a search.

    Then of clusters with a few machines more or less than the best, as estimated and as simulated.
    A deadline of the space decides when fallbacks start, even if it is the limit in question.
    `step_s` has shape (kinds, machines).
    """
    found = _simulated(space, clusters, limit, SIMULATED)
    near = [*_first_clusters(found), *_first_clusters(_sorted(found))]
    more = _neighbours(space, step_s, clusters, near)
    return _sorted([*found, *_simulated(space, more, limit, SIMULATED_MORE)])


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
    """Clusters with a few machines more or less than some have."""
    more, done = dict[Cluster, None](), set(known)
    for each in near:
        site = space.sites[each.site].only(np.array(each.entries))
        allowed = 1 + np.flatnonzero(numbers_allowed(space, site, step_s)[0])
        numbers = allowed[abs(allowed - each.counts[0]) <= STEPS].tolist()
        more |= dict.fromkeys(replace(each, counts=(n,)) for n in numbers)
    return [each for each in more if each not in done]


def _simulated(
    space: Space, clusters: Sequence[Cluster], limit: PathLimit | MeanLimit, most: int
) -> list[Need]:
    """What the plans of the best estimates need, in their order; inf: never."""
    sites: dict[int, list[Cluster]] = {}
    for cluster in clusters:
        sites.setdefault(cluster.site, []).append(cluster)
    drafts = [part for mine in sites.values() for part in _drafts_of(space, mine, limit)]
    order = _by_estimate(space, drafts, limit)[:most] if drafts else NONE
    if not len(order):
        return []
    inputs = PathInputs.joined([each.inputs for each in drafts]).take(order)
    found = needs_of(space, inputs, limit)
    begin = np.cumsum([0, *(len(each.inputs) for each in drafts)])
    place = np.searchsorted(begin, order, side="right") - 1
    return [
        Need(
            float(found.value[i]),
            float(found.min_value[i]),
            float(found.goal_value[i]),
            drafts[place[i]].candidate(int(order[i] - begin[place[i]])),
        )
        for i in range(len(order))
    ]


def _by_estimate(space: Space, drafts: Sequence[_Drafts], limit: PathLimit | MeanLimit) -> Ints:
    """The order in which plans are simulated, without the hopeless ones."""
    needs = np.concatenate([each.needs for each in drafts])
    chance = np.concatenate([each.chance for each in drafts])
    spot = np.concatenate([each.inputs.spot_usd_per_hour for each in drafts]) > 0.0
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
    inputs = without_savings(space, inputs).without_fallback_bound()
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


@dataclass(frozen=True, slots=True)
class _Alone:
    """The allowed plans of one site's clusters without a fallback."""

    index: int
    rows: Ints
    site: Site
    plans: Plans
    found: Reduced
    ok: Ints  # which of these are allowed
    rated: Rates  # of the allowed ones


def _drafts_of(
    space: Space, clusters: Sequence[Cluster], limit: PathLimit | MeanLimit
) -> list[_Drafts]:
    """The plans of a site's clusters without and with each fallback worth trying."""
    index, (rows, counts) = clusters[0].site, counts_table(clusters)
    site = space.sites[index].only(rows)
    plans = plans_without_fallback(space, site, counts)
    found = reduced(space, site, plans)
    ok = np.flatnonzero(found.allowed)
    if not len(ok):
        return []
    inputs = found.inputs.take(ok)
    alone = _Alone(index, rows, site, plans.take(ok), found, ok, rates(inputs))
    own = _Drafts(index, rows, alone.plans, inputs, *_needed(space, alone.rated, limit))
    return [own, *_with_fallbacks(space, alone, limit)]


def _with_fallbacks(space: Space, alone: _Alone, limit: PathLimit | MeanLimit) -> list[_Drafts]:
    """Plans with each fallback worth trying."""
    site, found, fall = alone.site, alone.found, alone.site.fallbacks
    if space.limits.deadline_s is None or not len(fall):
        return []
    choices = fallback_choices(fall, found.step_s[alone.ok], space.steps_left)
    plans, of = with_fallbacks(space, site, alone.plans, choices)
    inputs, allowed = fallback_drafts_of(space, site, plans.fallback, alone.ok[of], found)
    some = np.flatnonzero(allowed)
    if not len(some):
        return []
    plans, inputs, of = plans.take(some), inputs.take(some), of[some]
    terms = fallback_rates(space, site, found, alone.ok[of], plans.fallback)
    needed = _needed(space, with_fallback(alone.rated.take(of), terms), limit)
    return [_Drafts(alone.index, alone.rows, plans, inputs, *needed)]


def _needed(space: Space, found: Rates, limit: PathLimit | MeanLimit) -> tuple[Floats, Floats]:
    """What plans need of a limit, by their estimates, and the chance that they meet them all."""
    met = np.ones(found.usd.shape, dtype=bool)
    figures = {DEADLINE.name: found.time_s, BUDGET.name: found.usd}  # others have no estimates
    for each, most in space.limits.given(PATH_LIMITS):
        if each != limit and each.name in figures:
            met &= figures[each.name] <= most
    chance, sure = found.mean(met), space.limits.confidence
    if isinstance(limit, PathLimit):
        ordered = found.ordered(np.where(met, figures.get(limit.name, 0.0), np.inf))
        needs = [ordered.quantile(sure - blur) for blur in BLURS]
        asked = space.limits.value(limit)
        if asked is not None and limit.name in figures:
            met &= figures[limit.name] <= asked
            chance = found.mean(met)
    else:
        lost = found.mean(found.lost)
        needs = [np.where(chance >= sure - blur, lost, np.inf) for blur in BLURS]
    return np.stack(needs, axis=1), chance
