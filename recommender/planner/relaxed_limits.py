"""Relaxes limits one at a time, by as little as makes a plan possible.

What a plan needs of a limit is read off its simulated runs (`optimize/least_needs.py`), so the
least need is the smallest value that works. Only where fallbacks start at other moments under
another value, several values are tried: under a deadline, and with an overhead limit.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.frozen import dataclass
from recommender.inputs.limits import as_typed, rounded_up
from recommender.optimize.evaluate import path_inputs_of
from recommender.optimize.least_needs import Need, least_needs, needs_of
from recommender.optimize.search_state import Candidate, SearchState, ranking_key
from recommender.optimize.space import Space
from recommender.plan.limits import (
    BUDGET,
    DEADLINE,
    LIMITS,
    Aim,
    Limit,
    Limits,
    MeanLimit,
    PathLimit,
)
from recommender.plan.plan import Plan
from recommender.planner.plan_builder import Evaluated, goal_value_of, plans_of
from recommender.planner.search import PlanSearch
from recommender.planner.sensitivity import TRIES
from recommender.planner.single_type_search import BASELINE, ESTIMATED, QUICK

SUGGESTED_MARGIN = 1.01  # a suggested limit is this much wider than what its plan needs on the day
# Plans simulated on the printed paths: of the least need on those of a search, and of those that
# may need as little.
PRINTED_FIRST, PRINTED_NEXT = 10, 6
OF_SAME_MACHINES = 3  # of these
BEST_PRINTED = 24  # plans of the least cost or time: near a deadline many fall a little short
HUGE = 1e18  # USD or seconds: less than what never happens
CLOSE = 1.08  # rates this close to each other count as equal,
CLOSER = 1.02  # and deadlines
CHECKED = 3  # plans simulated again, and last questions of a price per hour
ASKED_BELOW = 1.12  # each of which asks for so much less
BOTH_AIMS: tuple[Aim, ...] = ("time", "cost")
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
    """The smallest value of one limit that makes a plan possible, checked in printed figures.

    A plan that is known to meet the other limits is among those tried.
    """
    if isinstance(limit, PathLimit | MeanLimit):
        here = search.under(limits, BASELINE)
        found = _LeastValue(limit, limits, here, search.problem.limits).found(known)
    else:
        found = _least_rate(limit, limits, search, known)
    if found is None:
        return None
    progress = search.problem.progress
    value = rounded_up(limit, found.value, progress)
    typed, looser = as_typed(limit, value, progress), limits.with_value(limit, value)
    return Relaxed(limit, typed, looser, found.plan, found.candidate)


def best_within(looser: Relaxed, search: PlanSearch) -> Plan | None:
    """About the best plan under limits of which one was loosened."""
    limits, here = looser.limits, search.under(looser.limits, BASELINE)
    known, cap = None if looser.candidate is None else looser.plan, BASELINE
    if isinstance(looser.limit, PathLimit) and limits.max_overhead is None:
        least = _LeastValue(looser.limit, limits, here, limits)
        known, cap = least.best_within() or known, ESTIMATED
    found = here.replan(limits, known, cap)
    return known if found is None else found.plan


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
class _Met:
    """A value of a limit that leaves a plan, and the plan."""

    value: float
    plan: Evaluated

    @property
    def found(self) -> _Found:
        """The value and the plan without its simulation."""
        return _Found(self.value, self.plan.plan, self.plan.candidate)


@dataclass(frozen=True, slots=True)
class _Tried:
    """What was found at one value of a limit: a plan that meets it, if any, and a clue."""

    met: _Met | None
    least: float = np.inf  # that any of the plans needs, on the paths of a search


@dataclass(frozen=True, slots=True)
class _LeastValue:
    """Looks for the least value of one limit that leaves a plan while the others hold."""

    limit: PathLimit | MeanLimit
    limits: Limits  # of which this one has the requested value
    search: PlanSearch  # whose sites may be used under them
    asked: Limits  # of the question

    def found(self, known: Relaxed | None) -> _Found | None:
        """About the least value, and its plan; a known one is tried with the others."""
        free = self.limits.with_value(self.limit, None)
        met = self._least_of_needs(free, self._usable(known)).met
        if isinstance(self.limit, MeanLimit) or not self._moves_fallbacks:
            return None if met is None else met.found
        far = met
        if met is None or met.value > (self._most or np.inf):
            met = self._plan_within(self._most).met
        if met is not None:
            return self._narrowed(met).found
        return None if far is None else far.found

    def best_within(self) -> Plan | None:
        """The best plan within the value, of those that need least of what is minimised."""
        limit = DEADLINE if self.limits.goal == "time" else BUDGET
        free, most = self.limits.with_value(limit, None), self.limits.value(limit) or HUGE
        found = self._needs_under(free, limit, BOTH_AIMS)
        able = sorted(
            (each for each in found if each.min_value <= most), key=lambda need: need.goal_value
        )
        sure = [each for each in able if each.value <= most]
        both = (_few_of_each(self._space, each)[:BEST_PRINTED] for each in (able, sure))
        tried = list(dict.fromkeys(chain(*both)))
        space = replace(self._space, limits=free).on_printed_paths()
        needs = _needs(limit, space, tried)
        met = [
            each
            for each, need in zip(tried, needs, strict=True)
            if np.isfinite(need) and need <= most
        ]
        goal = {each.candidate: each.goal_value for each in able}
        met.sort(key=lambda candidate: goal[candidate])
        plans = [each.plan for each in islice(_meeting(met, self.limits, self.search), 2)]
        return min(plans, key=lambda plan: goal_value_of(plan, self.limits), default=None)

    @property
    def _moves_fallbacks(self) -> bool:
        """Whether fallbacks start at other moments under another value.

        They start in time for the deadline, and early enough for an overhead limit.
        """
        return self.limit == DEADLINE or self.limits.max_overhead is not None

    @property
    def _most(self) -> float | None:
        """The largest value that is advice; None: any."""
        alone = [each for each, _ in self.asked.given(LIMITS)] == [self.limit]
        return None if alone or self.limit != DEADLINE else horizon_s(self.asked)

    def _at(self, value: float | None) -> Limits:
        return self.limits.with_value(self.limit, value)

    def _least_of_needs(self, limits: Limits, known: Sequence[Candidate] = ()) -> _Tried:
        """The plan that needs least of the limit, with fallbacks as under some limits."""
        needs = self._needs_under(limits, self.limit)
        most = limits.value(self.limit)
        tried = [*_to_print(self._space, needs, np.inf if most is None else most), *known]
        space = replace(self._space, limits=limits).on_printed_paths()
        printed = _needs(self.limit, space, tried)
        rows = np.argsort(printed, kind="stable")[:CHECKED].tolist()
        found = (self._as_needed(tried[row], float(printed[row]), most) for row in rows)
        met = next((each for each in found if each is not None), None)
        return _Tried(met, needs[0].value if needs else np.inf)

    def _as_needed(self, candidate: Candidate, need: float, most: float | None) -> _Met | None:
        """A plan at what it needs, or else, if its fallback then starts too early, at the most."""
        margin = SUGGESTED_MARGIN if isinstance(self.limit, PathLimit) else 1.0
        value = max(need * margin, self.limits.value(self.limit) or 0.0)
        values = [value] if most is None else [value, most]
        for each in values:
            if np.isfinite(each) and (most is None or each <= most):
                plan = _first([candidate], self._at(each), self.search)
                if plan is not None:
                    return _Met(each, plan)
        return None

    def _needs_under(
        self, limits: Limits, limit: PathLimit | MeanLimit, aims: tuple[Aim, ...] = ()
    ) -> list[Need]:
        """Plans that need least of a limit, those of several types under quotas among them."""
        others = [each for each, _ in limits.given(LIMITS) if each != limit]
        aims = aims or (BOTH_AIMS if others else (limit.aim,))
        clusters = self.search.single_type.promising(limits, aims)
        mixes = self.search.quota_mixes
        clusters += [] if mixes is None else mixes.clusters
        step_s = self.search.problem.step_s[:, : limits.max_machines]
        return least_needs(replace(self._space, limits=limits), step_s, clusters, limit)

    @property
    def _space(self) -> Space:
        mixes, problem = self.search.quota_mixes, self.search.problem
        return problem.space(problem.single_type_sites if mixes is None else mixes.sites)

    def _usable(self, known: Relaxed | None) -> list[Candidate]:
        """The plan of another relaxed limit, if it is one of the same sites."""
        if known is None or known.candidate is None:
            return []
        same_sites = self.search.under(known.limits, BASELINE) is self.search
        return [known.candidate] if same_sites else []

    def _plan_within(self, value: float | None) -> _Tried:
        """A plan that meets the limits at some value, and what it needs."""
        limits = self._at(value)
        if limits.max_overhead is None:
            return self._least_of_needs(limits)
        plan = plan_meeting(limits, self.search)  # fallbacks may have to start early
        if plan is None:
            return _Tried(None)
        return _Tried(self._as_needed(plan.candidate, self.limit.of_plan(plan.plan), value))

    def _narrowed(self, met: _Met) -> _Met:
        """A smaller value that leaves a plan: fallbacks start the earlier.

        By bisection, but where the plans of one value need a little more, that is tried next.
        """
        low = max(self.limits.value(self.limit) or 0.0, self._least_alone)
        clue = np.inf
        while met.value > CLOSER * low:
            inside = low * CLOSER < clue < met.value / SUGGESTED_MARGIN
            middle = clue if inside else (low * met.value) ** 0.5
            tried = self._plan_within(middle)
            if tried.met is None:
                low, clue = middle, tried.least * SUGGESTED_MARGIN
            else:
                met, clue = tried.met, tried.met.value / CLOSER if inside else np.inf
        return met

    @property
    def _least_alone(self) -> float:
        """What half of the runs need where no other limit holds; 0 if nothing is known."""
        half = min(self.limits.confidence, 0.5)
        alone = replace(self.limits, deadline_s=None, budget_usd=None, max_overhead=None)
        alone = replace(alone, confidence=half)
        needs = self._needs_under(alone, self.limit)
        return needs[0].value if needs else 0.0


def _to_print(space: Space, needs: Sequence[Need], most: float) -> list[Candidate]:
    """The plans that may need least on the printed paths: their chance may be less or more."""
    likely = [each for each in needs if each.value <= most]
    others = sorted(
        (each for each in needs if each.min_value <= most), key=lambda need: need.min_value
    )
    first = _few_of_each(space, likely)[:PRINTED_FIRST]
    rest = [each for each in _few_of_each(space, others) if each not in first]
    return [*first, *rest[:PRINTED_NEXT]]


def _few_of_each(space: Space, needs: Sequence[Need]) -> list[Candidate]:
    """The first plans of the same machines: others differ in where they are, and little else."""
    seen: Counter[tuple[bytes, tuple[int, ...]]] = Counter()
    kept = []
    for plan in (need.candidate for need in needs):
        e, rows = space.sites[plan.site].entries, list(plan.entries)
        alike = e.kind[rows].tobytes() + e.spot[rows].tobytes(), plan.counts
        seen[alike] += 1
        if seen[alike] <= OF_SAME_MACHINES:
            kept.append(plan)
    return kept


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


def plan_meeting(limits: Limits, search: PlanSearch) -> Evaluated | None:
    """Find a plan that meets the limits; the fastest come first, and may all exceed the budget.

    It is one of the most likely by their estimates, or of the best; if none of the first ones meets
    them, more are simulated.
    """
    search = search.under(limits, BASELINE)
    too_fast = limits.budget_usd is not None and limits.goal == "time"
    aims = (replace(limits, objective="cost"), limits) if too_fast else (limits,)
    for aim in aims:
        found = _first(search.single_type.by_estimate(aim), aim, search)
        if found is not None:
            return found
    return None if search.quota_mixes is None else search.quota_mixes.meeting(limits)


def _searched(limits: Limits, search: PlanSearch) -> Evaluated | None:
    """A plan that meets the limits, by their bounds: where the estimates find none."""
    search = search.under(limits, BASELINE)
    found = search.single_type.search(limits, cap=QUICK).incumbents.values()
    return _first(sorted(found, key=ranking_key), limits, search, TRIES)


def _first(
    candidates: Sequence[Candidate], limits: Limits, search: PlanSearch, tries: int = CHECKED
) -> Evaluated | None:
    """The first of a few plans that meets the limits in the printed figures."""
    return next(_meeting(candidates[:tries], limits, search), None)


def _meeting(
    candidates: Sequence[Candidate], limits: Limits, search: PlanSearch
) -> Iterator[Evaluated]:
    """The plans of the first candidates that meet the limits in the printed figures."""
    builder = search.builder if search.quota_mixes is None else search.quota_mixes.builder
    return builder.under(limits).meeting(candidates[:TRIES])


def _needs(limit: PathLimit | MeanLimit, space: Space, candidates: Sequence[Candidate]) -> Floats:
    """What plans need of a limit, on the paths of a space; inf where they miss the others."""
    needs = np.full(len(candidates), np.inf)
    for index in sorted({each.site for each in candidates}):
        mine = [number for number, each in enumerate(candidates) if each.site == index]
        rows, plans = plans_of([candidates[number] for number in mine])
        inputs, _ = path_inputs_of(space, space.sites[index].only(rows), plans)
        needs[mine] = needs_of(space, inputs, limit).value
    return needs


def best_of(state: SearchState) -> Candidate | None:
    """The best plan of a search, if it found one."""
    return min(state.incumbents.values(), key=ranking_key, default=None)
