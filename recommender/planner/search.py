"""The searches of one answer: the best plans of a problem, under its own and other limits.

Everything that needs a search uses `PlanSearch`: the table, the baselines, the sensitivity to each
limit and the explanation of an infeasible problem.
"""

from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from recommender.catalogs.frozen import dataclass
from recommender.optimize.search_state import SearchState, Watch, key_of, ranking_key
from recommender.plan.limits import Choice, Limits
from recommender.plan.plan import Plan
from recommender.planner.mix_search import MixSearch
from recommender.planner.plan_builder import Evaluated, PlanBuilder, goal_value_of, meets
from recommender.planner.problem import Problem
from recommender.planner.ranking import HORIZON_S, Ranking, within_horizon
from recommender.planner.single_type_search import (
    BASELINE,
    FULL,
    PROOF,
    SearchCap,
    SingleTypeSearch,
)

if TYPE_CHECKING:
    from recommender.optimize.rated_clusters import RatedClusters
    from recommender.planner.quota_mixes import QuotaMixes

PATHS_ERROR = 0.02  # share by which a goal on the paths of a search may be off, about
MAX_BUILT = 8  # plans of a search built until one proves to be the best, or within the horizon


@dataclass(frozen=True)
class PlanSearch:
    """Searches one problem, under its own and other limits."""

    problem: Problem
    prove: bool = False  # search clusters and mixes as far as they go
    watch: Watch = field(default_factory=Watch)  # the search that runs now
    thorough: bool = False  # bound mixes as tightly as possible, where reasons are requested
    cap: SearchCap = FULL  # of clusters of one type, where nothing has to be proven
    others: "list[PlanSearch]" = field(default_factory=list)  # of other sites, made so far

    @cached_property
    def single_type(self) -> SingleTypeSearch:
        """Clusters of one machine type, under the problem's limits and others."""
        return SingleTypeSearch(self.problem, PROOF if self.prove else self.cap, self.watch)

    @cached_property
    def mixes(self) -> MixSearch:
        """Clusters of several machine types."""
        return MixSearch(self.single_type)

    @cached_property
    def quota_mixes(self) -> "QuotaMixes | None":
        """Mixes under other limits; None where quotas do not bind, as mixes seldom pay there."""
        if not self.problem.quotas_bind or self.problem.choice.mix == "no":
            return None
        from recommender.planner.quota_mixes import QuotaMixes  # most answers need none

        return QuotaMixes(self.problem)

    @cached_property
    def rated_clusters(self) -> "RatedClusters":
        """Clusters rated so far, for the limits of a refusal."""
        from recommender.optimize.rated_clusters import RatedClusters  # most answers need none

        return RatedClusters()

    @property
    def best(self) -> SearchState:
        """The search over clusters of one type and, where they may pay, of several."""
        return self.mixes.best

    @cached_property
    def builder(self) -> PlanBuilder:
        """Builds plans of candidates."""
        return PlanBuilder(self.problem, self.mixes.sites)

    def under(self, limits: Limits, cap: SearchCap = FULL) -> "PlanSearch":
        """A search of clusters of one type whose sites may be used under other limits.

        Fallbacks depend on the hourly limit. Candidates belong to the search that found them.
        """
        for each in (self, *self.others):
            serves = each.problem.site_space.serves(each.problem.choice, limits)
            as_far = each.cap.plans >= cap.plans and each.cap.secondary <= cap.secondary
            if serves and as_far:
                return each
        other = self.problem.under(limits)
        other = replace(other, choice=replace(other.choice, mix="no"))
        self.others.append(PlanSearch(other, cap=cap))
        return self.others[-1]

    def again(self, limits: Limits) -> SearchState:
        """This search under other limits, including mixes."""
        return PlanSearch(self.problem.under(limits)).best

    def best_unconstrained(self, aim: Literal["time", "cost"]) -> Evaluated | None:
        """The first plan of the table of the same problem with an objective but no limits.

        The cheapest within the horizon, because prices and spot laws say little about later times.
        """
        limits = Limits(objective=aim, max_machines=self.problem.limits.max_machines)
        state = self.single_type.search(limits, slack=PATHS_ERROR)
        if not state.incumbents:
            return None
        ranking = Ranking(self.builder.under(limits), 1, None)
        most = max(state.best_goal * (1.0 + PATHS_ERROR), ranking.quoted_below(state))
        if most > state.best_goal * (1.0 + PATHS_ERROR):
            state = self.single_type.search(limits, slack=most / state.best_goal - 1.0)
        near = {k: c for k, c in state.incumbents.items() if c.goal_value <= most}
        first = ranking.ranked(replace(state, incumbents=near), []).plans[0]
        if aim == "cost" and first.plan.estimate.time.p95 > HORIZON_S:
            sooner = self.single_type.without_fallbacks(cheapest_in_horizon(limits))
            within = sorted(sooner.incumbents.values(), key=ranking_key)
            return within_horizon([*map(self.builder.build, within[:MAX_BUILT]), first])[0]
        return self.builder.build(first.candidate)

    def replan(
        self, limits: Limits, known: Plan | None = None, cap: SearchCap = BASELINE
    ) -> Evaluated | None:
        """The first plan of one machine type under other limits; None if none beats a known one.

        Without mixes and with fewer plans than an answer, because it is needed for each limit that
        is tried.
        """
        builder = self.builder.under(limits)
        below = np.inf if known is None else goal_value_of(known, limits)
        state = _as_printed(self.single_type.search(limits, cap=cap, below=below), builder)
        if not state.incumbents:
            return None
        # Plans that meet the limits on the paths of a search may miss them on those printed.
        first = next(iter(Ranking(builder, 1, None).ranked(state, []).plans), None)
        return first if first is not None and meets(first.plan, limits) else None


def cheapest_in_horizon(limits: Limits) -> Limits:
    """Limits under which the cheapest plan ends within the horizon in 19 of 20 runs."""
    most_s = min(HORIZON_S, limits.deadline_s or HORIZON_S)
    return replace(limits, deadline_s=most_s, objective="cost", confidence=0.95)


def _as_printed(state: SearchState, builder: PlanBuilder) -> SearchState:
    """A search on few paths, what may be its best with the figures that are printed."""
    near = sorted(state.incumbents.values(), key=ranking_key)[:MAX_BUILT]
    near = [each for each in near if each.goal_value <= state.best_goal * (1.0 + PATHS_ERROR)]
    built = [builder.build(each) for each in near]
    printed = {
        key_of(each.candidate): replace(
            each.candidate,
            goal_value=goal_value_of(each.plan, builder.limits),
            cost_usd=each.cost_usd,
            time_s=each.time_s,
        )
        for each in built
    }
    return replace(state, incumbents=state.incumbents | printed)


def search_other_offers(problem: Problem, choice: Choice) -> tuple[SearchState, PlanBuilder]:
    """The best clusters of one type among other offers, and a builder of their plans."""
    other = problem.among(choice)
    state = SingleTypeSearch(other, BASELINE).search(problem.limits, cap=BASELINE)
    return state, PlanBuilder(other, other.single_type_sites)
