"""The least value of one limit that leaves a plan while the others hold.

What a plan needs of a limit is read off its simulated runs (`optimize/least_needs.py`): those on
the paths of a search choose the plans that are simulated on the printed paths, which decide.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.frozen import dataclass
from recommender.optimize.evaluate import path_inputs_of
from recommender.optimize.least_needs import Need, Needs, least_needs, needs_of
from recommender.optimize.search_state import Candidate
from recommender.optimize.space import Space
from recommender.plan.limits import (
    BUDGET,
    DEADLINE,
    LIMITS,
    Aim,
    Limits,
    MeanLimit,
    PathLimit,
)
from recommender.plan.plan import Plan
from recommender.planner.plan_builder import Evaluated, plans_of
from recommender.planner.plans_under_limits import CHECKED, first_meeting, plan_meeting
from recommender.planner.search import PlanSearch

SUGGESTED_MARGIN = 1.01  # a suggested limit is this much wider than what its plan needs on the day
# Plans simulated on the printed paths: of the least need on those of a search, and of those that
# may need as little.
PRINTED_FIRST, PRINTED_NEXT = 10, 6
OF_SAME_MACHINES = 3  # of these
BEST_PRINTED = 24  # plans of the least cost or time: near a deadline many fall a little short
# So many at a time, until costs and times on the paths of a search are so many times the best: on
# the printed paths they differ by a few per cent.
AT_ONCE, CLEARLY_WORSE = 8, 1.1
HUGE = 1e18  # USD or seconds: less than what never happens
ROUNDING = 1e-9
BOTH_AIMS: tuple[Aim, ...] = ("time", "cost")


@dataclass(frozen=True, slots=True)
class Met:
    """A value of a limit, and a plan that meets it."""

    value: float
    candidate: Candidate  # what the plan is built of


@dataclass(frozen=True, slots=True)
class Tried:
    """What some plans need at one value of a limit."""

    met: Met | None  # a value that one of them meets
    need: float  # the least of any of them
    plans: list[Candidate]  # those that need least first


@dataclass(frozen=True)
class LeastValue:
    """Looks for the least value of one limit that leaves a plan while the others hold."""

    limit: PathLimit | MeanLimit
    limits: Limits  # of which this one has the requested value
    search: PlanSearch  # whose sites may be used under them

    def within(self, value: float | None, known: Sequence[Candidate] = ()) -> Met | None:
        """About the least value up to one, with fallbacks as under that one; None: without it."""
        limits = self._at(value)
        if limits.max_overhead is None or value is None:
            most = np.inf if value is None else value
            return self.least_of([*self.likely(value, most), *known], value).met
        plan = plan_meeting(limits, self.search)  # fallbacks may have to start early
        if plan is None:
            return None
        return self._as_needed(plan.candidate, self.limit.of_plan(plan.plan), value)

    def built(self, met: Met) -> Evaluated | None:
        """The plan of a value; None if it misses the limits after all."""
        return first_meeting([met.candidate], self._at(met.value), self.search)

    def likely(self, value: float | None, most: float = np.inf) -> list[Candidate]:
        """Plans that may need least of the limit, and no more than `most`.

        With fallbacks as under some value.
        """
        return _to_print(self._space, self._needs_under(self._at(value), self.limit), most)

    def least_of(self, tried: Sequence[Candidate], most: float | None) -> Tried:
        """The plan that needs least of the limit on the printed paths, if no more than allowed."""
        needs = self._needs_printed(tried, self._at(most))
        order = np.argsort(needs, kind="stable").tolist()
        found = (self._as_needed(tried[row], float(needs[row]), most) for row in order[:CHECKED])
        met = next((each for each in found if each is not None), None)
        return Tried(met, float(needs.min(initial=np.inf)), [tried[row] for row in order])

    def _needs_printed(self, candidates: Sequence[Candidate], limits: Limits) -> Floats:
        """What plans need of the limit on the printed paths; inf where they miss the others."""
        space = replace(self._space, limits=limits).on_printed_paths()
        return _needs(self.limit, space, candidates).value

    def half_without_limits(self) -> float:
        """What half of the runs need where no other limit holds; 0 if nothing is known."""
        half = min(self.limits.confidence, 0.5)
        alone = replace(self.limits, deadline_s=None, budget_usd=None, max_overhead=None)
        needs = self._needs_under(replace(alone, confidence=half), self.limit)
        return needs[0].value if needs else 0.0

    def best_plan(self, known: Sequence[Candidate]) -> Plan | None:
        """The best plan within the value, of those that need least of what is minimised.

        A known one is among those tried.
        """
        limit = DEADLINE if self.limits.goal == "time" else BUDGET
        free, most = self.limits.with_value(limit, None), self.limits.value(limit) or HUGE
        found = self._needs_under(free, limit, BOTH_AIMS)
        able = sorted(
            (each for each in found if each.min_value <= most), key=lambda need: need.goal_value
        )
        sure = [each for each in able if each.value <= most]
        both = (_few_of_each(self._space, each)[:BEST_PRINTED] for each in (able, sure))
        goals = {each.candidate: each.goal_value for each in able} | dict.fromkeys(known, 0.0)
        tried = sorted(dict.fromkeys(chain(*both, known)), key=lambda each: goals[each])
        met: list[tuple[float, Candidate]] = []  # with their goals on the printed paths
        for some in (tried[at : at + AT_ONCE] for at in range(0, len(tried), AT_ONCE)):
            if met and goals[some[0]] > CLEARLY_WORSE * min(goal for goal, _ in met):
                break
            met += self._meeting_printed(some, limit, most)
        ordered = [candidate for _, candidate in sorted(met, key=lambda each: each[0])]
        best = first_meeting(ordered, self.limits, self.search)
        return None if best is None else best.plan

    def _meeting_printed(
        self, tried: Sequence[Candidate], limit: PathLimit | MeanLimit, most: float
    ) -> Iterator[tuple[float, Candidate]]:
        """Plans that need no more than `most` on the printed paths, with their goals."""
        space = replace(self._space, limits=self.limits.with_value(limit, None)).on_printed_paths()
        needs = _needs(limit, space, tried)
        for row in np.flatnonzero(np.isfinite(needs.value) & (needs.value <= most)).tolist():
            yield float(needs.goal_value[row]), tried[row]

    def _at(self, value: float | None) -> Limits:
        return self.limits.with_value(self.limit, value)

    def _as_needed(self, candidate: Candidate, need: float, most: float | None) -> Met | None:
        """A plan at what it needs, or else, if its fallback then starts too early, at the most."""
        margin = SUGGESTED_MARGIN if isinstance(self.limit, PathLimit) else 1.0
        value = max(need * margin, self.limits.value(self.limit) or 0.0)
        for each in [value] if most is None else [value, most]:
            met = Met(each, candidate)
            if np.isfinite(each) and (most is None or each <= most) and self._leaves(met):
                return met
        return None

    def _leaves(self, met: Met) -> bool:
        """Whether the plan meets the limits on the printed paths."""
        if self.limits.max_overhead is not None:  # its fallback may have to start earlier
            return self.built(met) is not None
        need = self._needs_printed([met.candidate], self._at(met.value))[0]
        return bool(need <= met.value * (1.0 + ROUNDING))

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
        space, known = replace(self._space, limits=limits), self.search.rated_clusters
        return least_needs(space, step_s, clusters, limit, known)

    @cached_property
    def _space(self) -> Space:
        mixes, problem = self.search.quota_mixes, self.search.problem
        return problem.space(problem.single_type_sites if mixes is None else mixes.sites)


def _to_print(space: Space, needs: Sequence[Need], most: float) -> list[Candidate]:
    """The plans that may need least on the printed paths: their chance may be less or more."""
    able = [each for each in needs if each.min_value <= most]
    others = sorted(able, key=lambda need: need.min_value)
    first = _few_of_each(space, [each for each in able if each.value <= most])[:PRINTED_FIRST]
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


def _needs(limit: PathLimit | MeanLimit, space: Space, candidates: Sequence[Candidate]) -> Needs:
    """What plans need of a limit, on the paths of a space; inf where they miss the others."""
    found = Needs.blank(len(candidates))
    for index in sorted({each.site for each in candidates}):
        mine = [number for number, each in enumerate(candidates) if each.site == index]
        rows, plans = plans_of([candidates[number] for number in mine])
        inputs, _ = path_inputs_of(space, space.sites[index].only(rows), plans)
        found.put(mine, needs_of(space, inputs, limit))
    return found
