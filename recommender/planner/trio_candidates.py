"""Plans that an answer's first three are chosen of, beside those that its search ranked."""

from collections.abc import Sequence
from dataclasses import replace

from recommender.optimize.search_state import Candidate, SearchState, ranking_key
from recommender.plan.effort import screened_cost_usd
from recommender.plan.limits import Limits
from recommender.planner.baselines import best_of_each_kind
from recommender.planner.plan_builder import Evaluated, keeps
from recommender.planner.ranking import HORIZON_S, kind_of
from recommender.planner.search import PlanSearch, within_horizon
from recommender.planner.single_type_search import BASELINE, Only, SearchCap

TIMES_FASTEST = (2.5, 8.0, 25.0)  # times the fastest: the cheapest plan within each is looked at
SHARE_OF_P95 = 0.4  # of what 95 % of the runs of the cheapest plan keep: the same for one machine
COST_SLACK = 0.2  # beyond the cheapest such machine: others are looked at up to this share
SHORT_SEARCH = SearchCap(100)  # plans followed for each
KINDS = 4  # kinds looked at for the cheapest
HIGH_CHANCE = 0.98  # chance from which on nobody asks for more
ONE_ON_DEMAND: tuple[Only, ...] = ("one GPU on demand", "on_demand")


def plans_to_choose(search: PlanSearch, shown: Sequence[Evaluated]) -> list[Evaluated]:
    """All plans that were simulated and keep the limits; those of the table have labels."""
    known = dict(search.builder.built) | {each.candidate: each for each in shown}
    others = (_slower if search.problem.limits.goal == "time" else _faster)(search, shown)
    for candidate in (*reference_candidates(search), *others):
        known.setdefault(candidate, search.builder.build(candidate))
    limits = search.problem.limits
    found = [each for each in known.values() if keeps(each.plan, limits)]
    # Who asks for the least cost alone is told it, however long it takes.
    return found if limits.objective == "cost" else _within_horizon(found)


def reference_candidates(search: PlanSearch) -> list[Candidate]:
    """Plans that are looked at beside those of the search: the baselines, one machine on demand.

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


def _within_horizon(plans: list[Evaluated]) -> list[Evaluated]:
    """None beyond the horizon where there are others."""
    return [each for each in plans if each.plan.estimate.time.trimmed_mean <= HORIZON_S] or plans


def _faster(search: PlanSearch, shown: Sequence[Evaluated]) -> list[Candidate]:
    """Where money is saved: single machines that are clearly sooner than the cheapest plan.

    Otherwise the paths of the search would decide whether one that costs little more is met. The
    best by value of some kinds: what is a tie with the best has to be met to be called one.
    """
    limits = search.problem.limits
    if not shown or limits.objective == "cost":
        return []
    due_s = shown[0].plan.estimate.time.p95 * SHARE_OF_P95
    under = replace(limits, max_machines=1, deadline_s=due_s, objective="cost")
    state = search.single_type.without_fallbacks(under, cap=SHORT_SEARCH, slack=COST_SLACK)
    ordered = sorted(state.incumbents.values(), key=lambda each: _total_usd(search, each))
    return [*_first_of_each_kind(search, ordered), *_safest_on_demand(search, limits)]


def _safest_on_demand(search: PlanSearch, limits: Limits) -> list[Candidate]:
    """The cheapest plan on demand that is as good as sure to be in time: the safest may be it."""
    if limits.deadline_s is None or limits.confidence >= HIGH_CHANCE:
        return []
    state = search.single_type.search(
        replace(limits, confidence=HIGH_CHANCE), "on_demand", BASELINE
    )
    return [state.best_candidate()] if state.incumbents else []


def _slower(search: PlanSearch, shown: Sequence[Evaluated]) -> list[Candidate]:
    """Where speed is asked for: the cheapest plans, and machines, in so many times the fastest."""
    limits = search.problem.limits
    if not shown:
        return []
    one, found = replace(limits, max_machines=1), []
    for times in TIMES_FASTEST:
        due_s = shown[0].time_s * times
        if limits.deadline_s is None or due_s < limits.deadline_s:
            found += [_cheapest_within(search, asked, due_s) for asked in (limits, one)]
    return [
        *(each for each in found if each is not None),
        *_cheapest_within_horizon(search, limits),
    ]


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


def _cheapest_within(search: PlanSearch, limits: Limits, due_s: float) -> Candidate | None:
    under = replace(limits, deadline_s=due_s, objective="cost")
    state = search.single_type.without_fallbacks(under, cap=SHORT_SEARCH)
    return state.best_candidate() if state.incumbents else None
