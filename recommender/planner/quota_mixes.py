"""Mixes under quotas that meet limits other than the requested ones.

Where quotas leave few machines of each type, the fastest plan is a mix of several. A refusal that
looked at clusters of one type only would name a deadline as the minimum that a mix need not have.
"""

from dataclasses import replace
from functools import cached_property
from itertools import islice

import numpy as np

from recommender.catalogs.frozen import dataclass
from recommender.market.sites import SitePools
from recommender.optimize.columns import Cluster
from recommender.optimize.mixed_columns import mixes_under_quotas
from recommender.optimize.safest_mixes import EstimatedMixes, estimated_mixes
from recommender.optimize.search import simulate_ranked
from recommender.optimize.search_state import Candidate, SearchState
from recommender.plan.limits import PATH_LIMITS, Limits
from recommender.planner.mix_bounds import mix_regions
from recommender.planner.mix_feasibility import SAFEST_MIXES
from recommender.planner.mix_search import MIX_PAIRS
from recommender.planner.plan_builder import Evaluated, PlanBuilder
from recommender.planner.problem import Problem
from recommender.planner.single_type_search import QUICK, surest_first

# Estimates that miss a limit by more are not simulated: 2 of 2,313 such mixes met it, and none of
# 466 that missed it by 5 to 15 % (docs/research/mixes.md).
HOPELESS = 1.15
TRIED = 6  # of those simulated, built until one meets the limits in the printed figures


@dataclass(frozen=True)
class QuotaMixes:
    """The surest mixes under quotas, estimated once and simulated under each limit tried."""

    problem: Problem

    @cached_property
    def sites(self) -> SitePools:
        """All sites: those of single types first, then regions."""
        regions = mix_regions(self.problem, np.inf, None, None, MIX_PAIRS)
        return self.problem.single_type_sites + regions.sites

    @cached_property
    def builder(self) -> PlanBuilder:
        """Builds plans of their candidates, and of those of single types."""
        return PlanBuilder(self.problem, self.sites)

    @cached_property
    def _estimated(self) -> EstimatedMixes | None:
        first = len(self.problem.single_type_sites.sites)
        return estimated_mixes(self.problem.space(self.sites), first)

    @cached_property
    def _on_demand(self) -> list[Cluster]:
        """Mixes that have nothing to wait for later: surer than their estimates."""
        space = self.problem.space(self.problem.single_type_sites)
        mixes = (
            mix for place in range(len(space.sites)) for mix in mixes_under_quotas(space, place)
        )
        return [m for m in mixes if not space.sites[m.site].entries.spot[list(m.entries)].any()]

    @cached_property
    def clusters(self) -> list[Cluster]:
        """The quickest and the cheapest of both markets, and those on demand alone."""
        mixes = self._estimated
        both = [] if mixes is None else mixes.quickest_and_cheapest()
        return list(dict.fromkeys([*both, *self._on_demand]))

    def meeting(self, limits: Limits) -> Evaluated | None:
        """A mix that meets the limits, of those most likely to."""
        if next(limits.given(PATH_LIMITS), None) is None:
            return None
        clusters = [*self._of_both_markets(limits), *self._on_demand]
        found = islice(self._simulated(clusters, limits), TRIED)
        return next(self.builder.under(limits).meeting(found), None)

    def _of_both_markets(self, limits: Limits) -> list[Cluster]:
        """Those of the best estimates, unless all seem too slow or too expensive by far."""
        mixes = self._estimated
        # They are estimated at the requested chance: of a lower one they say less.
        as_sure = limits.confidence >= self.problem.limits.confidence
        if mixes is None or (as_sure and mixes.least_excess(limits) > HOPELESS):
            return []
        return mixes.in_order(limits)[:SAFEST_MIXES]

    def _simulated(self, clusters: list[Cluster], limits: Limits) -> list[Candidate]:
        """Plans that meet the limits within the error of the search paths, the surest first."""
        space = replace(self.problem.space(self.sites), limits=limits)
        # None is simulated on the printed paths: these decide when the plan is built.
        state = SearchState(slack=0.0, max_plans=QUICK.plans, printed_plans=QUICK.plans)
        simulate_ranked(space, clusters, state)
        found = [each for each in state.waiting if not each.beaten]
        return [each.candidate for each in sorted(found, key=surest_first)]
