"""Relaxes limits one at a time, by as little as makes a plan possible.

Plans without a fallback have the same outcome under every limit. So the plans found without a limit
show how little of it is enough, and no search is wasted on limits that nothing meets.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.frozen import dataclass
from recommender.inputs.limits import as_typed, rounded_up
from recommender.optimize.bounds.fallback import without_savings
from recommender.optimize.evaluate import limits_met, path_inputs_of
from recommender.optimize.search_state import Candidate, SearchState, ranking_key
from recommender.optimize.space import Space
from recommender.plan.limits import DEADLINE, LIMITS, Aim, Limit, Limits, MeanLimit, PathLimit
from recommender.plan.plan import Plan
from recommender.planner.plan_builder import Evaluated, plans_of
from recommender.planner.search import PlanSearch
from recommender.planner.sensitivity import TRIES
from recommender.planner.single_type_search import BASELINE, QUICK, SHORT, Only, SearchCap
from recommender.risk.run_statistics import quantiles

SUGGESTED_MARGIN = 1.03  # a suggested limit is this much wider than what its plan needs on the day
WIDENING = 1.15  # and is widened by this factor while no plan meets it
MAX_WIDENINGS = 6  # times at most
# Then plans are looked for that need so much less, coarse steps first. Estimates may miss a plan
# that needs a little less, and find one of other clusters that needs less still: so the last step.
TIGHTER = 1.5, 1.15, 1.04, 1.15
CLOSE = 1.08  # rates this close to each other count as equal
CHECKED = 3  # plans simulated again, and last questions
ASKED_BELOW, ASKED = 1.12, SearchCap(1000)  # a last question asks for so much less
EITHER: tuple[Only, ...] = ("any", "on_demand")
MIN_SURE, SURE_STEP = 50, 5  # per cent: the chances tried where a surer one leaves no plan
# A deadline that is so many times as long, and beyond a week, is no advice next to another limit:
# then the other limit is what to change.
FAR_DEADLINE, WEEK_S = 4.0, 7 * 86400.0


@dataclass(frozen=True, slots=True)
class Relaxed:
    """One limit, relaxed by as little as makes a plan possible."""

    limit: Limit | None  # None: the chance that all are met
    typed: str  # "--deadline 9h40m"
    limits: Limits
    plan: Plan
    candidate: Candidate | None = None  # what the plan was built of

    def is_far(self, asked: Limits) -> bool:
        """Whether it is a deadline too far from the requested one to be advice; never if alone."""
        alone = len(list(asked.given(LIMITS))) == 1
        due_s = self.limits.deadline_s or 0.0
        return self.limit == DEADLINE and not alone and due_s > horizon_s(asked)


def horizon_s(asked: Limits) -> float:
    """The longest deadline that is suggested next to other limits."""
    return max(FAR_DEADLINE * (asked.deadline_s or 0.0), WEEK_S)


def each_relaxed(limits: Limits, search: PlanSearch) -> list[Relaxed]:
    """Each limit relaxed alone, if that makes a plan possible; the confidence comes last."""
    found = [relaxed(limit, limits, search) for limit, _ in limits.given(LIMITS)]
    found.append(_lower_confidence(limits, search))
    return [each for each in found if each is not None]


def relaxed(
    limit: Limit, limits: Limits, search: PlanSearch, known: Relaxed | None = None
) -> Relaxed | None:
    """The smallest value of one limit that makes a plan possible, checked by planning again.

    If a short search finds none, a plan that is known to meet the other limits gives the start.
    """
    if isinstance(limit, PathLimit | MeanLimit):
        here = search.under(limits, BASELINE)
        start = None if known is None else _known_start(limit, known, search, here)
        found = _LeastValue(limit, limits, here, search.problem.limits).found(start)
    else:
        found = _least_rate(limit, limits, search, known)
    if found is None:
        return None
    progress = search.problem.progress
    value = rounded_up(limit, found.value, progress)
    typed, looser = as_typed(limit, value, progress), limits.with_value(limit, value)
    return Relaxed(limit, typed, looser, found.plan, found.candidate)


@dataclass(frozen=True, slots=True)
class _Found:
    """A value of a limit, and a plan that meets it."""

    value: float
    plan: Plan
    candidate: Candidate | None = None  # what the plan was built of


def _least_rate(
    limit: Limit, limits: Limits, search: PlanSearch, known: Relaxed | None
) -> _Found | None:
    """About the least price per hour that leaves a plan, by bisection, and the plan.

    Each rate allows other fallbacks, so candidates of one are none of another.
    """
    free = replace(limits.with_value(limit, None), objective=limit.aim)
    first = plan_meeting(free, search) or _searched(free, search) or known
    if first is None:
        return None
    plan = first.plan
    low, value = limits.value(limit) or 0.0, limit.of_plan(plan)
    while value > CLOSE * low:
        middle = (low * value) ** 0.5
        tighter = plan_meeting(limits.with_value(limit, middle), search)
        if tighter is None:
            low = middle
        else:
            plan, value = tighter.plan, limit.of_plan(tighter.plan)
    for _ in range(CHECKED):
        asked = value / ASKED_BELOW
        if asked <= (limits.value(limit) or 0.0):
            break
        tighter = _searched(limits.with_value(limit, asked), search)
        if tighter is None:
            break
        plan, value = tighter.plan, limit.of_plan(tighter.plan)
    return _Found(value, plan)


@dataclass(frozen=True, slots=True)
class _Start:
    """A value of a limit that may leave a plan, and plans that need about as much."""

    value: float
    candidates: list[Candidate]


def _known_start(
    limit: Limit, known: Relaxed, search: PlanSearch, here: PlanSearch
) -> _Start | None:
    """What the plan of another relaxed limit needs; it is a plan of the same sites only."""
    if known.candidate is None:
        return None
    same_sites = search.under(known.limits, BASELINE) is here
    needed = limit.of_plan(known.plan) * SUGGESTED_MARGIN
    return _Start(needed, [known.candidate] if same_sites else [])


@dataclass(frozen=True, slots=True)
class _Met:
    """A value of a limit that leaves a plan, the plan, and a lower value that leaves none."""

    value: float
    plan: Evaluated
    below: float


@dataclass(frozen=True, slots=True)
class _LeastValue:
    """Looks for the least value of one limit that leaves a plan while the others hold."""

    limit: PathLimit | MeanLimit
    limits: Limits  # of which this one has the requested value
    search: PlanSearch  # whose sites may be used under them
    asked: Limits  # of the question

    def found(self, start: _Start | None) -> _Found | None:
        """About the least value, and its plan; a start helps where the estimates find none."""
        start = self._needed() or start or self._start_of_mixes()
        if start is None:
            return None
        met = self._widened(start)
        if met is None:
            return self._far(start)
        met = self._narrowed(met)
        if isinstance(self.limit, PathLimit) and not self._alone:
            met = self._asked_again(met)
        return _Found(met.value, met.plan.plan, met.plan.candidate)

    @property
    def _alone(self) -> bool:
        """No other limit was stated: plans that use least of one may be far over another."""
        return [each for each, _ in self.asked.given(LIMITS)] == [self.limit]

    @property
    def _first_of_several(self) -> bool:
        """Whether others are loosened after a deadline: the minimum deadline needs most of them."""
        only = [each for each, _ in self.limits.given(LIMITS)] == [self.limit] == [DEADLINE]
        return only and not self._alone

    @property
    def _most(self) -> float:
        """The largest value that is advice."""
        last = self.limit == DEADLINE and not self._alone and not self._first_of_several
        return horizon_s(self.asked) if last else np.inf

    def _at(self, value: float) -> Limits:
        return self.limits.with_value(self.limit, value)

    def _plan_within(self, value: float) -> Evaluated | None:
        """A plan that meets the limits; where one was stated, of those that use least of it too."""
        limits = self._at(value)
        plan = plan_meeting(limits, self.search, not self._first_of_several)
        if plan is None and self._alone:
            return _extreme_plan(self.limit, limits, self.search)
        return plan

    def _widened(self, start: _Start) -> _Met | None:
        """A value that leaves a plan, from one that may; none beyond what is advice."""
        below, value = self.limits.value(self.limit) or 0.0, min(start.value, self._most)
        candidates = [] if self._first_of_several else start.candidates
        for number in range(MAX_WIDENINGS):
            plan = self._plan_within(value) or _first(candidates, self._at(value), self.search)
            if plan is None and not number:
                plan = _searched(self._at(value), self.search)
            if plan is not None:
                return _Met(value, plan, below)
            if value >= self._most:
                break
            below, value = value, min(value * WIDENING, self._most)
        return None

    def _far(self, start: _Start) -> _Found | None:
        """A plan that meets the limit at a value beyond what is advice."""
        if start.value <= self._most:
            return None
        plan = _first(start.candidates, self._at(start.value), self.search)
        return None if plan is None else _Found(start.value, plan.plan, plan.candidate)

    def _narrowed(self, met: _Met) -> _Met:
        """A plan that needs less, step by step, as long as one is found.

        What a plan itself needs may be far less than the value at which it was found.
        """
        met = self._as_needed(met)
        for factor in TIGHTER if isinstance(self.limit, PathLimit) else ():
            while tighter := self._tighter(met, factor):
                met = tighter
        return met

    def _tighter(self, met: _Met, factor: float) -> _Met | None:
        """A plan that needs so much less than another."""
        value = met.value / factor
        plan = self._plan_within(value) if value > met.below else None
        return None if plan is None else self._as_needed(_Met(value, plan, met.below))

    def _asked_again(self, met: _Met) -> _Met:
        """A smaller value that leaves a plan if it is asked for as a question of its own.

        Its master program may rank first what estimates leave out next to another limit.
        """
        for _ in range(CHECKED):
            value = met.value / ASKED_BELOW
            if value <= (self.limits.value(self.limit) or 0.0):
                break
            own = PlanSearch(self.search.problem.under(self._at(value)), cap=ASKED).single_type.own
            ordered = sorted(own.incumbents.values(), key=ranking_key)
            plan = _first(ordered, self._at(value), self.search, TRIES)
            if plan is None:
                break
            met = self._as_needed(_Met(value, plan, met.below))
        return met

    def _as_needed(self, met: _Met) -> _Met:
        """What the plan that was found needs of the limit itself, if that is less."""
        margin = SUGGESTED_MARGIN if isinstance(self.limit, PathLimit) else 1.0
        requested = self.limits.value(self.limit) or 0.0
        need = max(self.limit.of_plan(met.plan.plan) * margin, requested)
        if need >= met.value:
            return met
        plan = _first([met.plan.candidate], self._at(need), self.search)
        return met if plan is None else _Met(need, plan, met.below)

    def _start_of_mixes(self) -> _Start | None:
        """What mixes need by their estimates, where no cluster of one type will do."""
        mixes = self.search.quota_mixes
        if mixes is None or not isinstance(self.limit, PathLimit):
            return None
        need = mixes.least(self.limit, self.limits)
        return None if need is None else _Start(need * SUGGESTED_MARGIN, [])

    def _needed(self) -> _Start | None:
        """What the plan that needs least, of those met without the limit, needs; and this plan."""
        free = self.limits.with_value(self.limit, None)
        candidates = self._without_the_limit(free)
        if not candidates:
            return None
        need = _needs(self.limit, free, candidates, self.search)
        order = np.argsort(need, kind="stable").tolist()
        ordered = [candidates[place] for place in order if np.isfinite(need[place])]
        # What meets the other limits on the paths of a search may miss them on those printed.
        sure = _first(ordered, free, self.search, TRIES)
        if sure is None:
            return None
        return _Start(self.limit.of_plan(sure.plan) * SUGGESTED_MARGIN, [sure.candidate])

    def _without_the_limit(self, free: Limits) -> list[Candidate]:
        """Plans that may meet the other limits, and of which some may need little of this one."""
        # The fastest may all be over the budget, as in `plan_meeting`.
        aim = self.limit.aim
        aims: tuple[Aim, ...] = (aim,) if free.budget_usd is None else (aim, "cost")
        tried = [replace(free, objective=aim) for aim in dict.fromkeys(aims)]
        single_type = self.search.single_type
        if next(free.given(LIMITS), None) is not None:
            return [each for limits in tried for each in single_type.by_estimate(limits)]
        # Made for the fastest and the cheapest as well. These may be spot plans of a wide span;
        # others are surer.
        best = (best_of(single_type.search(one, only, QUICK)) for one in tried for only in EITHER)
        return [each for each in best if each is not None]


def _lower_confidence(limits: Limits, search: PlanSearch) -> Relaxed | None:
    """A plan that meets all limits with a lower chance, as high as one can be."""
    sure, wider, best = limits.confidence, limits, None
    chances = [c / 100 for c in range(MIN_SURE, 100, SURE_STEP) if c / 100 < sure]
    low, high = 0, len(chances)  # nothing is known of the chances from low on, nor below high
    while low < high:
        middle = (low + high) // 2 if best else low
        tried = replace(limits, confidence=chances[middle])
        plan = plan_meeting(tried, search)
        if plan is None:
            high = middle
            continue
        low, wider, best = middle + 1, tried, plan
    if best is None:
        return None
    return Relaxed(None, f"--confidence {wider.confidence:g}", wider, best.plan)


def plan_meeting(limits: Limits, search: PlanSearch, surest: bool = True) -> Evaluated | None:
    """Find a plan that meets the limits; the fastest come first, and may all exceed the budget.

    It is one of the most likely by their estimates, or of the best; if none of the first ones meets
    them, more are simulated.
    """
    search = search.under(limits, BASELINE)
    too_fast = limits.budget_usd is not None and limits.goal == "time"
    aims = (replace(limits, objective="cost"), limits) if too_fast else (limits,)
    for aim in aims:
        found = _first(search.single_type.by_estimate(aim, surest), aim, search)
        if found is not None:
            return found
    return None if search.quota_mixes is None else search.quota_mixes.meeting(limits)


def _searched(limits: Limits, search: PlanSearch) -> Evaluated | None:
    """A plan that meets the limits, by their bounds: where the estimates find none."""
    search = search.under(limits, BASELINE)
    found = search.single_type.search(limits, cap=QUICK).incumbents.values()
    return _first(sorted(found, key=ranking_key), limits, search, TRIES)


def _extreme_plan(limit: Limit, limits: Limits, search: PlanSearch) -> Evaluated | None:
    """A plan that meets a limit, of those that use least of it: right where no other binds.

    The cheapest plans are mostly late where the deadline is the question.
    """
    aim = replace(limits, objective=limit.aim)
    found = search.single_type.search(aim, cap=SHORT).incumbents.values()
    return _first(sorted(found, key=ranking_key), aim, search)


def _first(
    candidates: Sequence[Candidate], limits: Limits, search: PlanSearch, tries: int = CHECKED
) -> Evaluated | None:
    """The first of a few plans that meets the limits in the printed figures."""
    builder = search.builder if search.quota_mixes is None else search.quota_mixes.builder
    return next(builder.under(limits).meeting(islice(candidates, tries)), None)


def _needs(
    limit: PathLimit | MeanLimit, free: Limits, found_plans: Sequence[Candidate], search: PlanSearch
) -> Floats:
    """What plans need of a limit to meet all with the requested chance; inf: never."""
    problem = search.problem
    space = replace(problem.space(problem.single_type_sites), limits=free)
    need = np.full(len(found_plans), np.inf)
    for index in sorted({each.site for each in found_plans}):
        mine = [number for number, each in enumerate(found_plans) if each.site == index]
        need[mine] = _needs_at(space, index, [found_plans[number] for number in mine], limit)
    return need


def _needs_at(
    space: Space, index: int, found_plans: Sequence[Candidate], limit: PathLimit | MeanLimit
) -> Floats:
    """Needs of plans at one site, shape (plans,), from the simulations that the search made."""
    rows, plans = plans_of(found_plans)
    inputs, _ = path_inputs_of(space, space.sites[index].only(rows), plans)
    inputs = inputs.earlier(np.array([each.early_s for each in found_plans]))
    simulated = without_savings(space, inputs).without_fallback_bound(plans.fallback >= 0)
    found = space.cache.outcomes(simulated, space.limits.deadline_s)
    met, sure = limits_met(space.limits, found), space.limits.confidence
    if isinstance(limit, PathLimit):
        figures = np.where(met, limit.of_paths(found), np.inf)
        return np.array([quantiles(each, sure)[0] for each in figures])
    return np.where(met.mean(axis=1) >= sure - 1e-12, limit.of_means(found), np.inf)


def best_of(state: SearchState) -> Candidate | None:
    """The best plan of a search, if it found one."""
    return min(state.incumbents.values(), key=ranking_key, default=None)
