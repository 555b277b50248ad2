"""Candidates for an answer's first three plans besides those that its search ranked."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from recommender.optimize.columns import Cluster, Columns
from recommender.optimize.search_state import Candidate, SearchState, ranking_key
from recommender.optimize.space import OBJECT_STORE
from recommender.plan.effort import risk_usd, screened_cost_usd
from recommender.plan.limits import Limits
from recommender.planner.baselines import best_of_each_kind
from recommender.planner.plan_builder import Evaluated, meets
from recommender.planner.ranking import HORIZON_S, KIND_PLANS, kind_of
from recommender.planner.search import PlanSearch, within_horizon
from recommender.planner.single_type_search import BASELINE, Only, SearchCap

TIMES_FASTEST = (2.5, 8.0, 25.0)  # times the fastest: the cheapest plan within each is looked at
ESTIMATED, ESTIMATED_EACH = 6, 2  # kinds that are worth most by estimates, and clusters of each
WORTH_BUILDING = 0.3  # what costs more than the best of these by so much is no tie
SHORT_SEARCH = SearchCap(100)  # plans simulated for each
KINDS = 4  # kinds looked at for the cheapest
HIGH_CHANCE = 0.98  # a chance that needs no improvement
ONE_ON_DEMAND: tuple[Only, ...] = ("one GPU on demand", "on_demand")


def plans_to_choose(search: PlanSearch, shown: Sequence[Evaluated]) -> list[Evaluated]:
    """All plans that were simulated and meet the limits; those of the table have labels."""
    known = dict(search.builder.built) | {each.candidate: each for each in shown}
    by_time = search.problem.limits.goal == "time"
    others = _slower(search, shown) if by_time else _safest_on_demand(search, search.problem.limits)
    for candidate in (*reference_candidates(search), *others):
        known.setdefault(candidate, search.builder.build(candidate))
    limits = search.problem.limits
    if limits.objective not in ("cost", "time"):
        known |= {each.candidate: each for each in _worth_most(search)}
    found = [each for each in known.values() if meets(each.plan, limits)]
    # With the objective "cost" the cheapest is shown however long it takes.
    return found if limits.objective == "cost" else _within_horizon(found)


def reference_candidates(search: PlanSearch) -> list[Candidate]:
    """Candidates besides the plans of the search: the baselines, one machine on demand.

    And of each search what is worth most: the cheapest of its kind may take twice as long for cents
    less.
    """
    limits = search.problem.limits
    one = replace(limits, max_machines=1, objective="cost")
    single = [search.single_type.search(one, only, BASELINE) for only in ONE_ON_DEMAND]
    on_demand = search.single_type.search_or_relaxed(limits, "on_demand")
    searched = [state for state in (*single, on_demand, search.single_type.own) if state.incumbents]
    return [
        *(state.best_candidate() for state in single if state.incumbents),
        *(rival.candidate for *_, rival in best_of_each_kind(search)),
        *(_best_by_value(search, state) for state in searched),
    ]


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


def _worth_most(search: PlanSearch) -> list[Evaluated]:
    """What is worth most by its estimate, of some kinds, whether or not a search has met it.

    A search follows what may be the best by the goal, and its paths decide what else it meets.
    """
    kinds: dict[object, list[Candidate]] = {}
    for estimate in _by_estimated_value(search):
        alike = kinds.setdefault(machines_of(search, estimate), [])
        if len(kinds) > ESTIMATED:
            break
        alike.append(estimate)
    firsts = [each for alike in kinds.values() for each in alike[:ESTIMATED_EACH]]
    found = search.single_type.of_clusters([Cluster(c.site, c.entries, c.counts) for c in firsts])
    met: dict[object, list[Candidate]] = {}
    most = min((_total_usd(search, each) for each in found), default=0.0) * (1.0 + WORTH_BUILDING)
    near = [each for each in found if _total_usd(search, each) <= most]
    for each in sorted(near, key=lambda each: _total_usd(search, each)):
        met.setdefault(machines_of(search, each), []).append(each)
    best = (search.builder.meeting(alike[:KIND_PLANS]) for alike in met.values())
    return [each for some in best for each in islice(some, 1)]


def machines_of(search: PlanSearch, candidate: Candidate) -> tuple[object, ...]:
    """The kind of a plan, with the names of its machines: two small ones are no large one."""
    pools = search.builder.pools_of(candidate)
    return *kind_of(search.builder, candidate), *(pool.type.instance_type for pool in pools)


def _by_estimated_value(search: PlanSearch) -> list[Candidate]:
    """Clusters that may meet the limits by their estimates, those worth most first.

    The master program has estimates of all; single machines, the least work, have their own.
    """
    program = search.single_type.program
    if program is None:
        return []
    tables = (search.single_type.single_machines(), (program.clusters, program.estimates))
    found = [each for some in filter(None, tables) for each in _estimated(search, *some)]
    return [one for _, one in sorted(found, key=lambda each: each[0])]


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


def _within_horizon(plans: list[Evaluated]) -> list[Evaluated]:
    """None beyond the horizon where there are others."""
    return [each for each in plans if each.plan.estimate.time.trimmed_mean <= HORIZON_S] or plans


def _safest_on_demand(search: PlanSearch, limits: Limits) -> list[Candidate]:
    """The cheapest plan on demand that is as good as sure to be in time: the safest may be it."""
    if limits.deadline_s is None or limits.confidence >= HIGH_CHANCE:
        return []
    state = search.single_type.search(
        replace(limits, confidence=HIGH_CHANCE), "on_demand", BASELINE
    )
    return [state.best_candidate()] if state.incumbents else []


def _slower(search: PlanSearch, shown: Sequence[Evaluated]) -> list[Candidate]:
    """If speed is requested: the cheapest plans, and machines, in so many times the fastest."""
    limits = search.problem.limits
    if not shown:
        return []
    found: list[Candidate] = []
    for times in TIMES_FASTEST:
        due_s = shown[0].time_s * times
        if limits.deadline_s is None or due_s < limits.deadline_s:
            for asked in (replace(limits, max_machines=1), limits):
                found += _cheaper_within(search, asked, due_s, found)
    return [*found, *_cheapest_within_horizon(search, limits)]


def _cheapest_within_horizon(search: PlanSearch, limits: Limits) -> list[Candidate]:
    """The cheapest of some kinds within the horizon: the cheapest of all may take a year."""
    state = search.single_type.without_fallbacks(within_horizon(limits), cap=SHORT_SEARCH)
    return _first_of_each_kind(search, sorted(state.incumbents.values(), key=ranking_key))


def _first_of_each_kind(search: PlanSearch, ordered: Sequence[Candidate]) -> list[Candidate]:
    """The first of each of some kinds, in their order."""
    firsts: dict[object, Candidate] = {}
    for each in ordered:
        firsts.setdefault(kind_of(search.builder, each), each)
    return list(firsts.values())[:KINDS]


def _cheaper_within(
    search: PlanSearch, limits: Limits, due_s: float, known: Sequence[Candidate]
) -> list[Candidate]:
    """The cheapest plan by a deadline, if it is cheaper than those known to meet it."""
    under = replace(limits, deadline_s=due_s, objective="cost")
    below = min((each.cost_usd for each in known), default=float("inf"))
    state = search.single_type.without_fallbacks(under, cap=SHORT_SEARCH, below=below)
    found = [state.best_candidate()] if state.incumbents else []
    return [each for each in found if each.cost_usd < below]
