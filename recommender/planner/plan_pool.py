"""The plans of one problem: every part of an answer is a selection of its pool.

The table, the baselines, the sensitivity to each limit, the explanation of a refusal and the data
of a report ask for plans under some limits and of some kind; nothing else simulates plans to choose
them.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from functools import cached_property, partial
from typing import Literal

import numpy as np

from recommender.arrays import Bools, Floats
from recommender.catalogs.frozen import dataclass
from recommender.market.sites import SitePools
from recommender.optimize.candidate import Candidate, Cluster
from recommender.optimize.mixes import TYPES, Points, best_mixes, mixes_of, on_demand_mixes
from recommender.optimize.pool import ANY, CHOSEN, NEXT_TO, Among, Pool, Selection
from recommender.optimize.space import Entries, Masks
from recommender.optimize.watch import Watch
from recommender.plan.limits import Choice, Limits
from recommender.plan.plan import Plan
from recommender.planner.mix_regions import mix_regions, searched_in_full
from recommender.planner.plan_builder import Evaluated, PlanBuilder, goal_value_of
from recommender.planner.problem import Problem

Only = Literal["any", "uninterrupted", "on_demand", "spot", "one GPU", "one GPU on demand", "big"]
# Which entries a selection may use, by entries and GPUs per machine.
ALLOWED: dict[Only, Callable[[Entries, Floats], Bools]] = {
    "any": lambda entries, gpus: gpus > 0,
    "uninterrupted": lambda entries, gpus: ~entries.spot,
    "on_demand": lambda entries, gpus: ~(entries.spot | entries.booked),
    "spot": lambda entries, gpus: entries.spot,
    "one GPU": lambda entries, gpus: gpus == 1,
    "one GPU on demand": lambda entries, gpus: (gpus == 1) & ~(entries.spot | entries.booked),
    "big": lambda entries, gpus: gpus >= 8,
}
LIKELY = 3  # kinds of spot machines around which mixes are looked for
MIXES = 30  # of them simulated at once
BUILT = 12  # plans built until one meets the limits in the printed figures


@dataclass(frozen=True)
class PlanPool:
    """The plans of one problem, under its own and other limits."""

    problem: Problem
    prove: bool = False  # simulate everything that the bound does not exclude
    watch: Watch = field(default_factory=Watch)  # the search that runs now
    points: dict[Limits, list[Points]] = field(default_factory=dict)  # mixes, by other limits

    @cached_property
    def pool(self) -> Pool:
        """Clusters of one type, rated and simulated."""
        sites = self.problem.single_type_sites
        return Pool(self.problem.space(sites), self.problem.step_s, self.watch)

    @cached_property
    def _of_one_type(self) -> Selection:
        """The plans of one type under the problem's own limits."""
        limits = self.problem.limits
        return self.pool.proven(limits) if self.prove else self.pool.select(limits)

    @cached_property
    def best(self) -> Selection:
        """The plans under the problem's own limits."""
        return self._with_mixes(self._of_one_type, self.problem.limits)

    @cached_property
    def mixes(self) -> Pool:
        """Clusters of several types or markets of one region, rated and simulated."""
        return Pool(self.problem.space(self.sites), self.problem.step_s, self.watch, self._listed)

    def _with_mixes(self, found: Selection, limits: Limits) -> Selection:
        """Plans with the mixes that may be better; under other limits where they often pay."""
        if self.problem.choice.mix == "no" or limits.max_machines < 2:
            return found
        if limits != self.problem.limits and not searched_in_full(self.problem):
            return found
        return found.with_others(self.mixes.select(limits, first=MIXES, below=found.goal))

    @cached_property
    def _leading(self) -> dict[int, tuple[str, str]]:
        """The spot types of the best plans, and the region where each is tried first.

        Under an overhead limit those of the best without it too: next to on-demand machines that
        train on they lose less.
        """
        found = self._leading_of(self._of_one_type, LIKELY)
        if self.problem.limits.max_overhead is not None:
            free = replace(self.problem.limits, max_overhead=None)
            found = self._leading_of(self.pool.select(free, first=2 * NEXT_TO), 2 * LIKELY) | found
        return found

    def _leading_of(self, selection: Selection, most: int) -> dict[int, tuple[str, str]]:
        pools, offers = self.problem.single_type_sites.pools, self.problem.catalog.offers
        found: dict[int, tuple[str, str]] = {}
        for plan in selection.plans:
            first = pools[plan.site][plan.entries[0]]
            if first.spot and len(found) < most:
                row = first.rows[0]
                found.setdefault(first.kind, (offers.provider[row], offers.region[row]))
        return found

    @cached_property
    def sites(self) -> SitePools:
        """All sites: those of single types first, then regions in which mixes are sought."""
        if self.problem.choice.mix == "no" or self.problem.limits.max_machines < 2:
            return self.problem.single_type_sites
        regions = mix_regions(self.problem, set(self._leading.values()))
        return self.problem.single_type_sites + regions

    def _listed(self, limits: Limits) -> list[Cluster]:
        """The mixes listed under some limits."""
        hourly, overhead = limits.hourly_usd, limits.max_overhead
        free = replace(limits.of_size, hourly_usd=hourly, max_overhead=overhead)
        if free not in self.points:
            self.points[free] = self._points(free)
        return best_mixes(self.points[free], limits)

    def _points(self, free: Limits) -> list[Points]:
        """The mixes that are among the best under some deadline or budget."""
        in_full, step_s = searched_in_full(self.problem), self.problem.step_s
        first, last = len(self.problem.single_type_sites.sites), len(self.sites.sites)
        limits = replace(free, deadline_s=self.problem.limits.deadline_s)
        space = replace(self.problem.space(self.sites), limits=limits)
        types = TYPES if in_full else 2
        found = mixes_of(space, range(first, last), step_s, types, set(self._leading))
        return [*found, *(on_demand_mixes(space, range(first), step_s) if in_full else ())]

    @cached_property
    def builder(self) -> PlanBuilder:
        """Builds plans of candidates."""
        return PlanBuilder(self.problem, self.sites)

    def select(self, limits: Limits, only: Only = "any", first: int = NEXT_TO) -> Selection:
        """The best plans of a kind under some limits, next to those of the answer."""
        if only == "any" and limits == self.problem.limits:
            return self.best
        found = self.pool.select(limits, self.among(only), first)
        return self._with_mixes(found, limits) if only == "any" else found

    def among(self, only: Only) -> Among:
        """The entries of a kind."""
        if only == "any":
            return ANY
        gpus = self.problem.columns.gpus
        return Among(
            only,
            tuple(
                ALLOWED[only](site.entries, gpus[site.entries.kind])
                for site in self.problem.single_type_sites.sites
            ),
        )

    @property
    def providers(self) -> tuple[str, ...]:
        """All providers, those with the best rated plans first."""
        sites, plans = self.problem.single_type_sites.sites, self.pool.plans(self.problem.limits)
        least = dict.fromkeys((site.provider for site in sites), np.inf)
        for number, table in enumerate(self.pool.tables):
            goal = float(plans.goal_value[plans.table == number].min(initial=np.inf))
            least[table.site.provider] = min(least[table.site.provider], goal)
        return tuple(sorted(least, key=lambda each: least[each]))

    def of_provider(self, provider: str) -> Selection:
        """The best plans of one provider."""
        sites = self.problem.single_type_sites.sites
        masks = tuple(np.full(len(site.entries), site.provider == provider) for site in sites)
        return self.pool.select(self.problem.limits, Among(f"of {provider}", masks), NEXT_TO)

    def at_quoted_prices(self) -> Selection:
        """The best plans whose prices were all quoted."""
        pools, derived = self.problem.single_type_sites.pools, self.problem.is_derived
        masks: Masks = tuple(np.array([not derived(p) for p in site], dtype=bool) for site in pools)
        return self.pool.select(self.problem.limits, Among("quoted", masks), NEXT_TO)

    def select_or_relaxed(self, limits: Limits, only: Only = "any") -> Selection:
        """Plans under the limits; if none meets them, under the deadline alone, else under none."""
        size, found = limits.of_size, self.select(limits, only)
        if not found.plans and limits.deadline_s is not None:
            due_s, sure = limits.deadline_s, limits.confidence
            in_time = replace(size, deadline_s=due_s, confidence=sure)
            found = self.select(in_time, only)
        if found.plans:
            return found
        aim: Literal["time", "cost"] = "time" if limits.deadline_s is not None else "cost"
        return self.select(replace(size, objective=aim, confidence=0.0), only)

    def first_meeting(self, plans: Iterable[Candidate], limits: Limits) -> Evaluated | None:
        """The first of some plans that meets limits in the printed figures."""
        return next(self.meeting(plans, limits), None)

    def meeting(self, plans: Iterable[Candidate], limits: Limits) -> Iterator[Evaluated]:
        """Those of the first plans that meet limits in the printed figures."""
        builder = self.builder if limits == self.problem.limits else self.builder.under(limits)
        return builder.meeting(each for each, _ in zip(plans, range(BUILT), strict=False))

    def replan(self, limits: Limits, known: Plan | None = None) -> Evaluated | None:
        """The best plan under other limits, as printed; None if a known one is as good."""
        found = list(self.meeting(self.select(limits, first=CHOSEN).plans[:4], limits))
        goal = partial(_goal, limits=limits)
        best = min(found, key=goal, default=None)
        if best is None or (known is not None and goal(best) >= goal_value_of(known, limits)):
            return None
        return best


def _goal(each: Evaluated, limits: Limits) -> float:
    return goal_value_of(each.plan, limits)


def best_among_other_offers(problem: Problem, choice: Choice) -> tuple[Selection, PlanBuilder]:
    """The best plans among other offers, and a builder of their plans."""
    other = PlanPool(problem.among(choice))
    return other.best, other.builder
