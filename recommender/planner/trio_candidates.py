"""Candidates for an answer's first three plans besides those that its search ranked."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice

import numpy as np

from recommender.catalogs.frozen import dataclass
from recommender.optimize.columns import Cluster, Columns
from recommender.optimize.search_state import Candidate, SearchState
from recommender.optimize.space import OBJECT_STORE
from recommender.plan.effort import risk_usd, screened_cost_usd
from recommender.plan.limits import Limits
from recommender.planner.baselines import best_of_each_kind
from recommender.planner.plan_builder import Evaluated, meets
from recommender.planner.ranking import HORIZON_S, KIND_PLANS, is_detour, kind_of, within_horizon
from recommender.planner.search import PlanSearch, cheapest_in_horizon
from recommender.planner.single_type_search import BASELINE, Only

# Times the fastest: the cheapest plans within each are looked at.
TIMES_FASTEST = (1.5, 2.5, 5.0, 10.0, 25.0)
ESTIMATED, ESTIMATED_EACH = 6, 2  # kinds that are worth most by estimates, and clusters of each
WORTH_BUILDING = 0.3  # what costs more than the best of these by so much is no tie
KINDS = 3  # kinds looked at for the cheapest
HIGH_CHANCE = 0.98  # a chance that needs no improvement
ONE_ON_DEMAND: tuple[Only, ...] = ("one GPU on demand", "on_demand")


@dataclass(frozen=True)
class TrioCandidates:
    """Candidates for the first three plans of the answer to one search."""

    search: PlanSearch

    @cached_property
    def worth_most(self) -> list[Candidate]:
        """Under a deadline, where cost alone is not what counts: what is worth most by estimates.

        Simulated, whether or not the search has met it.
        """
        limits = self.search.problem.limits
        by_value = limits.goal == "cost" and limits.objective == "auto"
        return _simulated(self.search, ()) if by_value and self.search.best.incumbents else []

    @cached_property
    def references(self) -> list[Candidate]:
        """Candidates besides the plans of the search: the baselines, one machine on demand.

        And of each search what is worth most: the cheapest of its kind may take twice as long for
        cents less.
        """
        search, limits = self.search, self.search.problem.limits
        one = replace(limits, max_machines=1, objective="cost")
        single = [search.single_type.search(one, only, BASELINE) for only in ONE_ON_DEMAND]
        on_demand = search.single_type.search_or_relaxed(limits, "on_demand")
        every = (*single, on_demand, search.single_type.own)
        return [
            *(state.best_candidate() for state in single if state.incumbents),
            *(rival.candidate for *_, rival in best_of_each_kind(search)),
            *(_best_by_value(search, state) for state in every if state.incumbents),
        ]

    def plans(self, shown: Sequence[Evaluated]) -> list[Evaluated]:
        """All plans that were simulated and meet the limits; those of the table have labels."""
        search, limits = self.search, self.search.problem.limits
        known = dict(search.builder.built) | {each.candidate: each for each in shown}
        times_s = _longer_times(limits, shown) if limits.goal == "time" else ()
        found = _simulated(search, times_s) if times_s else self.worth_most
        others = [*self.references, *_safest_on_demand(search, limits)]
        for candidate in (*others, *_cheapest_within(search, found, times_s)):
            known.setdefault(candidate, search.builder.build(candidate))
        if limits.objective not in ("cost", "time"):
            known |= {each.candidate: each for each in _worth_most(search, found)}
        meeting = [each for each in known.values() if meets(each.plan, limits)]
        meeting = [e for e in meeting if e in shown[:1] or not is_detour(e.plan)] or meeting
        # With the objective "cost" the cheapest is shown however long it takes.
        return meeting if limits.objective == "cost" else within_horizon(meeting)


def _best_by_value(search: PlanSearch, state: SearchState) -> Candidate:
    """The plan of a search that costs least with a person's work and waiting."""
    return min(state.incumbents.values(), key=lambda each: _total_usd(search, each))


def _total_usd(search: PlanSearch, candidate: Candidate) -> float:
    """Money, a person's work and waiting, by what the search knows of a plan."""
    pools, machines = search.builder.pools_of(candidate), sum(candidate.counts)
    gpus = sum(n * p.type.gpus for n, p in zip(candidate.counts, pools, strict=True))
    spot = any(pool.spot for pool in pools)
    urgent = search.problem.limits.goal == "time"
    return screened_cost_usd(candidate.cost_usd, candidate.time_s, gpus, machines, spot, urgent)


def _simulated(search: PlanSearch, times_s: Sequence[float]) -> list[Candidate]:
    """What is worth most by its estimate and what is cheapest in each of some times, simulated.

    Whether or not the search has met it: that follows what may be the best by the goal, and its
    paths decide what else it meets.
    """
    by_value = [one for _, one in _estimates(search)]
    by_cost = sorted(by_value, key=lambda each: each.cost_usd)
    chosen = [
        *_first_of_each(by_value, lambda one: machines_of(search, one), ESTIMATED),
        *(each for some in _within_each(search, by_cost, times_s) for each in some),
    ]
    return search.single_type.of_clusters(list(dict.fromkeys(map(_cluster_of, chosen))))


def _worth_most(search: PlanSearch, found: Sequence[Candidate]) -> list[Evaluated]:
    """Of each kind of machines the plan worth most, if it may be a tie with the best of all."""
    most = min((_total_usd(search, each) for each in found), default=0.0) * (1.0 + WORTH_BUILDING)
    met: dict[object, list[Candidate]] = {}
    near = [each for each in found if _total_usd(search, each) <= most]
    for each in sorted(near, key=lambda each: _total_usd(search, each)):
        met.setdefault(machines_of(search, each), []).append(each)
    best = (search.builder.meeting(alike[:KIND_PLANS]) for alike in met.values())
    return [each for some in best for each in islice(some, 1)]


def machines_of(search: PlanSearch, candidate: Candidate) -> tuple[object, ...]:
    """The kind of a plan, with the names of its machines: two small ones are no large one."""
    pools = search.builder.pools_of(candidate)
    return *kind_of(search.builder, candidate), *(pool.type.instance_type for pool in pools)


def _estimates(search: PlanSearch) -> list[tuple[float, Candidate]]:
    """Clusters that may meet the limits and their generalised cost, the cheapest first.

    The master program has estimates of most; single machines, the least work, have their own.
    """
    program = search.single_type.program
    if program is None:
        return []
    tables = [search.single_type.single_machines(), (program.clusters, program.estimates)]
    if search.problem.limits.goal == "time":  # the program has the fastest, not those between
        tables.append(search.single_type.near_frontier())
    found = [each for some in filter(None, tables) for each in _estimated(search, *some)]
    best: dict[Cluster, tuple[float, Candidate]] = {}  # with its best checkpoint path
    for total_usd, one in sorted(found, key=lambda each: each[0]):
        best.setdefault(_cluster_of(one), (total_usd, one))
    return list(best.values())


def _cluster_of(one: Candidate) -> Cluster:
    return Cluster(one.site, one.entries, one.counts)


def _estimated(
    search: PlanSearch, clusters: Sequence[Cluster], columns: Columns
) -> Iterator[tuple[float, Candidate]]:
    """Clusters that may meet the limits, and what each costs, all counted, by estimates."""
    limits = search.problem.limits
    c = columns.take(np.isfinite(columns.goal_value))
    due_s = np.inf if limits.deadline_s is None else limits.deadline_s
    mean_usd = c.usd if limits.goal == "time" else c.goal_value
    time_s, late_s = (np.minimum(each, due_s) for each in (c.time_s, c.time_quantile_s))
    for row, number in enumerate(c.cluster.tolist()):
        usd, usual_s, cluster = float(mean_usd[row]), float(time_s[row]), clusters[number]
        place = cluster.site, cluster.entries, cluster.counts
        one = Candidate(*place, OBJECT_STORE, -1, cost_usd=usd, time_s=usual_s)
        more_usd, more_h = c.usd_quantile[row] - usd, (late_s[row] - usual_s) / 3600.0
        yield _total_usd(search, one) + risk_usd(more_usd, more_h), one


def _safest_on_demand(search: PlanSearch, limits: Limits) -> list[Candidate]:
    """The cheapest plan on demand that is as good as sure to be in time: the safest may be it."""
    if limits.deadline_s is None or limits.confidence >= HIGH_CHANCE:
        return []
    state = search.single_type.search(
        replace(limits, confidence=HIGH_CHANCE), "on_demand", BASELINE
    )
    return [state.best_candidate()] if state.incumbents else []


def _longer_times(limits: Limits, shown: Sequence[Evaluated]) -> Sequence[float]:
    """If speed is requested, the times in which the cheapest plan is looked at too.

    The last is the horizon: the cheapest of all may take a year.
    """
    horizon_s = cheapest_in_horizon(limits).deadline_s or HORIZON_S
    times = TIMES_FASTEST if shown else ()
    return sorted({min(shown[0].time_s * factor, horizon_s) for factor in times} | {horizon_s})


def _within_each(
    search: PlanSearch, ordered: Sequence[Candidate], times_s: Sequence[float]
) -> Iterator[list[Candidate]]:
    """The first plans that end in each time, single machines apart, of some kinds each."""
    for due_s in times_s:
        in_time = [each for each in ordered if each.time_s <= due_s]
        single = [each for each in in_time if sum(each.counts) == 1]
        for plans in (single, in_time):
            yield _first_of_each(plans, lambda one: kind_of(search.builder, one), KINDS, 1)


def _cheapest_within(
    search: PlanSearch, found: Sequence[Candidate], times_s: Sequence[float]
) -> list[Candidate]:
    """The cheapest plan in each time, and of each kind the cheapest within the horizon."""
    ordered = sorted(found, key=lambda each: each.cost_usd)
    within = list(_within_each(search, ordered, times_s))
    return [*(each for some in within for each in some[:1]), *chain(*within[-1:])]


def _first_of_each(
    ordered: Sequence[Candidate],
    kind: Callable[[Candidate], object],
    kinds: int,
    of_each: int = ESTIMATED_EACH,
) -> list[Candidate]:
    """The first plans of each of so many kinds, kind by kind."""
    firsts: dict[object, list[Candidate]] = {}
    for one in ordered:
        alike = firsts.setdefault(kind(one), [])
        if len(firsts) > kinds:
            break
        alike.append(one)
    return [one for alike in firsts.values() for one in alike[:of_each]]
