"""Builds printable plans from candidates of the search: simulated again, and itemised."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property

import numpy as np

from recommender.catalogs.frozen import dataclass
from recommender.market.offer_facts import Pool
from recommender.market.sites import SitePools
from recommender.optimize.candidate import Candidate, plans_of
from recommender.optimize.chance import enough
from recommender.optimize.evaluate import Plans, Reduced, reduced, values_of
from recommender.optimize.overhead_limit import switched_in_time
from recommender.optimize.space import OBJECT_STORE, Site, Space
from recommender.optimize.thresholds import with_thresholds
from recommender.plan.as_run import ELSEWHERE
from recommender.plan.limits import MEAN_LIMITS, RATE_LIMITS, Limits
from recommender.plan.plan import Plan
from recommender.planner.as_run import as_run
from recommender.planner.plan_details import PlanDetails
from recommender.planner.problem import PRINTED, Problem
from recommender.risk.path_inputs import PathInputs

SAME_CHANCE = 0.005  # chances that are printed alike, in whole points
SAME_FIGURE = 0.002  # share by which costs and times may differ that people read as the same


@dataclass(frozen=True)
class Evaluated:
    """A candidate of the search, its simulation inputs, and the plan built from it."""

    candidate: Candidate
    inputs: PathInputs = field(compare=False)  # one row
    plan: Plan = field(compare=False)

    @property
    def cost_usd(self) -> float:
        """The expected cost."""
        return self.plan.estimate.cost.mean

    @property
    def time_s(self) -> float:
        """The trimmed mean time."""
        return self.plan.estimate.time.trimmed_mean

    def against(self, baseline: Plan | None) -> "Evaluated":
        """The plan with its saving against one without spot."""
        return replace(self, plan=replace(self.plan, saving=saving(self.plan, baseline)))


def are_duplicates(one: Plan, other: Plan) -> bool:
    """Whether two plans rent the same machines in the same places, and their figures are alike."""
    if (one.machines, one.sites, one.fallback) != (other.machines, other.sites, other.fallback):
        return False
    mine, others = one.estimate, other.estimate
    pairs = (mine.cost.mean, others.cost.mean), (mine.time.p50, others.time.p50)
    alike = all(abs(a - b) <= SAME_FIGURE * max(a, b) for a, b in pairs)
    return alike and abs(mine.chance - others.chance) <= SAME_CHANCE


def ranks_in(table: Sequence[Evaluated]) -> dict[Candidate, int]:
    """The number of each plan of a table, from 1."""
    return {each.candidate: rank for rank, each in enumerate(table, 1)}


@dataclass(frozen=True)
class PlanBuilder:
    """Builds plans of the candidates of one set of sites, each once."""

    problem: Problem
    sites: SitePools
    other: Limits | None = None  # than the problem's limits
    built: dict[Candidate, Evaluated] = field(default_factory=dict)
    chosen: dict[Candidate, Reduced] = field(default_factory=dict)  # with their policies

    def under(self, limits: Limits) -> "PlanBuilder":
        """A builder for other limits, whose deadline decides when a fallback starts."""
        return PlanBuilder(self.problem, self.sites, limits)

    @property
    def limits(self) -> Limits:
        """The limits under which its plans are simulated."""
        return self.other or self.problem.limits

    def build(self, candidate: Candidate) -> Evaluated:
        """The whole plan, with figures from the printed paths."""
        if candidate not in self.built:
            details = self.details(candidate)
            self.built[candidate] = Evaluated(candidate, details.inputs, details.plan())
        return self.built[candidate]

    def in_full(self, evaluated: Evaluated) -> Evaluated:
        """A printed plan, with what it comes to as tools run it that cannot do all of it."""
        plan, details = evaluated.plan, self.details(evaluated.candidate)
        stored = details
        if plan.checkpointing.path in ELSEWHERE:
            stored = self.details(replace(evaluated.candidate, checkpoint_path=OBJECT_STORE))
            plan = replace(plan, in_bucket=stored.checkpointing())
        if plan.fallback is not None:
            fallback = replace(plan.fallback, step=details.fallback_step())
            plan = replace(plan, fallback=fallback)
        return replace(evaluated, plan=replace(plan, as_run=as_run(plan, details, stored)))

    def meeting(self, candidates: Iterable[Candidate]) -> Iterator[Evaluated]:
        """The plans of those candidates that also meet the limits on the printed paths."""
        built = map(self.build, candidates)
        return (evaluated for evaluated in built if meets(evaluated.plan, self.limits))

    def pools_of(self, candidate: Candidate) -> tuple[Pool, ...]:
        """The pool behind each entry of a candidate."""
        pools = self.sites.pools[candidate.site]
        return tuple(pools[entry] for entry in candidate.entries)

    def _fallback_of(self, candidate: Candidate) -> tuple[Pool, ...]:
        """The pool behind the fallback of a candidate, if it has one."""
        row = candidate.fallback
        return () if row < 0 else (self.sites.fallbacks[candidate.site][row],)

    @cached_property
    def space(self) -> Space:
        """The plan space of its sites under its limits."""
        return replace(self.problem.space(self.sites), limits=self.limits)

    def details(self, candidate: Candidate) -> PlanDetails:
        """The parts of a candidate's plan, each computed at first use."""
        self.prepare([candidate])
        site, row = self._row_of(candidate)
        return PlanDetails(
            problem=self.problem,
            space=self.space,
            candidate=candidate,
            site=site,
            pools=self.pools_of(candidate),
            fallback_pools=self._fallback_of(candidate),
            row=row,
            reduced=self.chosen[candidate],
        )

    def prepare(self, candidates: Iterable[Candidate]) -> None:
        """Choose the policies of some plans, all at once: when each goes on demand and back.

        On the printed paths, as early as an overhead limit requires.
        """
        new = [each for each in dict.fromkeys(candidates) if each not in self.chosen]
        if not new:
            return
        last = [reduced(self.space, *self._row_of(each)) for each in new]
        early = [each.inputs.earlier(np.array([self._early_s(each.inputs)])) for each in last]
        found = with_thresholds(self.space, PathInputs.joined(early), np.arange(len(new)))
        for number, (candidate, each) in enumerate(zip(new, last, strict=True)):
            self.chosen[candidate] = replace(each, inputs=found.take(np.array([number])))

    def _row_of(self, candidate: Candidate) -> tuple[Site, Plans]:
        """A candidate as the only plan of the entries that it uses."""
        entries, row = plans_of([candidate])
        return self.sites.sites[candidate.site].only(entries), row

    def _early_s(self, last: PathInputs) -> float:
        """How much earlier the fallback starts, if the overhead limit requires it."""
        if self.limits.max_overhead is None or last.fallback_speed[0] <= 0.0:
            return 0.0
        space = self.space.on_printed_paths()
        return float(switched_in_time(space, last, values_of(space, last))[1][0])


def meets(plan: Plan, limits: Limits) -> bool:
    """Whether a plan meets its limits often enough, as far as its chance is known."""
    of_all = (*RATE_LIMITS, *MEAN_LIMITS)
    within = all(limit.allows(limit.of_plan(plan), most) for limit, most in limits.given(of_all))
    return within and plan.estimate.chance >= enough(limits, PRINTED)


def goal_value_of(plan: Plan, limits: Limits) -> float:
    """The printed figure that is minimised under the limits: time or cost."""
    estimate = plan.estimate
    return estimate.time.trimmed_mean if limits.goal == "time" else estimate.cost.mean


def has_derived_price(plan: Plan) -> bool:
    """Whether the price of some of its machines was derived, not quoted."""
    return any(m.price_kind == "derived" for m in plan.machines)


def is_on_demand_only(plan: Plan) -> bool:
    """Whether all its machines are on demand."""
    return all(m.market == "on_demand" for m in plan.machines)


def is_uninterrupted(plan: Plan) -> bool:
    """Whether none of its machines is on spot: on demand or booked."""
    return all(m.market != "spot" for m in plan.machines)


def best_on_demand(plans: Iterable[Plan], limits: Limits) -> Plan | None:
    """The best of some plans without spot, of those that meet the limits if any does."""
    found = [plan for plan in plans if is_on_demand_only(plan)]
    meeting = [plan for plan in found if meets(plan, limits)]
    return min(meeting or found, key=lambda plan: goal_value_of(plan, limits), default=None)


def saving(plan: Plan, baseline: Plan | None) -> float | None:
    """Share of the cost that a plan saves against one without spot."""
    if baseline is None:
        return None
    return 1.0 - plan.estimate.cost.mean / baseline.estimate.cost.mean
