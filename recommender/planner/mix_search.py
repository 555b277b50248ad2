"""The search over clusters of several machine types, which follows that over single types."""

from dataclasses import replace
from functools import cached_property

import numpy as np

from recommender.catalogs.frozen import dataclass
from recommender.market.sites import SitePools
from recommender.optimize.columns import Cluster
from recommender.optimize.confirm import confirm_open
from recommender.optimize.search import search_mixes, simulate_ranked
from recommender.optimize.search_state import EPSILON, SearchState, ranking_key
from recommender.optimize.space import Space
from recommender.planner.mix_bounds import MixRegions, mix_lower_bound, mix_regions
from recommender.planner.problem import Problem
from recommender.planner.single_type_search import PROOF, SearchCap, SingleTypeSearch

MIX_REGIONS = 4  # regions in which mixes are tried, unless a proof is requested
LIKELY_TYPES = 3  # spot types of the best clusters, around which the likely mixes are tried
LIKELY = SearchCap(100)
MIX_PAIRS = 500_000  # of offers in the regions tried under quotas: all three clouds have 400,000
MIXES = SearchCap(600, 200)
MIXES_QUOTAS = SearchCap(600, 600, 100)  # on 12 problems, 1,500 sets found nothing better
MIXES_LAST = SearchCap(100, 60)  # where no cluster of one type meets the limits, a mix seldom does
MIXES_LAST_QUOTAS = SearchCap(60, 100)  # but under quotas; those found were in the first 40
# Without a deadline a mix seldom costs less than its best machine alone, and bounds take longer.
MIXES_LAST_SETS_BY_COST = 20


@dataclass(frozen=True, slots=True)
class LeadingSpot:
    """A cluster of spot machines of one type, and the offer that it tries first."""

    kind: int
    machines: int
    row: int


@dataclass(frozen=True)
class MixSearch:
    """Searches mixes where they may pay; they must beat the clusters of one type."""

    single_type: SingleTypeSearch

    @property
    def problem(self) -> Problem:
        """The problem being searched."""
        return self.single_type.problem

    @property
    def made(self) -> bool:
        """Whether mixes are searched at all; without quotas they seldom pay."""
        mix = self.problem.choice.mix
        if mix == "no" or not self.problem.rows:
            return False
        if not self.single_type.own.incumbents:
            return bool(self._able)
        return mix == "yes" or self._in_full or self.problem.job.elastic or self._anchored

    @property
    def _in_full(self) -> bool:
        """Whether mixes are searched as far as they go: quotas bind, or a proof is requested."""
        return self.single_type.prove or self.problem.quotas_bind

    @property
    def _anchored(self) -> bool:
        """Whether spot machines may save to an on-demand machine of their cluster only."""
        return self.problem.choice.checkpoint_to == "anchor"

    @cached_property
    def _able(self) -> frozenset[str]:
        """Providers whose mixes could meet the limits, where no cluster of one type does."""
        from recommender.planner.mix_feasibility import able_providers  # most answers need none

        return able_providers(self.problem.space(self.problem.single_type_sites))

    @property
    def _cap(self) -> SearchCap:
        if self.single_type.prove:
            return PROOF
        return MIXES_QUOTAS if self.problem.quotas_bind else MIXES

    @cached_property
    def _regions(self) -> MixRegions:
        """Regions searched for mixes."""
        if not self.made:
            return MixRegions()
        most = None if self._in_full or self._anchored else MIX_REGIONS
        able = None if self.single_type.own.incumbents else self._able
        pairs = MIX_PAIRS if most is None and not self.single_type.prove else None
        return mix_regions(self.problem, self.single_type.own.cutoff, most, able, pairs)

    @cached_property
    def lower_bound(self) -> float:
        """Lower bound of any mix, by a quick bound; what would matter if none is below it."""
        best = self.single_type.own.best_goal
        return mix_lower_bound(self.problem, best * (1.0 - EPSILON), thorough=False)

    @property
    def _tries(self) -> bool:
        """Whether a few likely mixes are tried: none is ruled out, and none are searched."""
        if self.single_type.cap.secondary or self.problem.choice.mix == "no" or self.made:
            return False
        own = self.single_type.own
        return bool(own.incumbents) and self.lower_bound < own.best_goal * (1.0 - EPSILON)

    @cached_property
    def likely(self) -> list[Cluster]:
        """The mixes tried without being asked for."""
        if not self._tries:
            return []
        from recommender.optimize.likely_mixes import likely_mixes  # many answers need none

        space, first = self.problem.space(self.sites), len(self.problem.single_type_sites.sites)
        kinds = [(cluster.kind, cluster.machines) for cluster in self._leading]
        return likely_mixes(space, first, kinds)

    @cached_property
    def _leading(self) -> tuple[LeadingSpot, ...]:
        """The best clusters of spot machines of one type, one of each type."""
        sites, found = self.problem.single_type_sites, dict[int, LeadingSpot]()
        for each in sorted(self.single_type.own.incumbents.values(), key=ranking_key):
            entry = each.entries[0]
            pool = sites.pools[each.site][entry]
            if len(each.entries) == 1 and pool.spot and len(found) < LIKELY_TYPES:
                found.setdefault(pool.kind, LeadingSpot(pool.kind, each.counts[0], pool.rows[0]))
        return tuple(found.values())

    @cached_property
    def _likely_regions(self) -> SitePools:
        """The regions where the leading spot clusters are cheapest."""
        o = self.problem.catalog.offers
        chosen = {(o.provider[spot.row], o.region[spot.row]) for spot in self._leading}
        rows = [r for r in self.problem.rows if (o.provider[r], o.region[r]) in chosen]
        builder = self.problem.site_space.builder
        return builder.region_sites(rows, self.problem.single_type_sites)

    @cached_property
    def sites(self) -> SitePools:
        """All sites: those of single types first, then the regions where a mix may be better."""
        more = self._likely_regions if self._tries else self._regions.sites
        return self.problem.single_type_sites + more

    @cached_property
    def best(self) -> SearchState:
        """The search over clusters of one type and, where they may pay, of several."""
        if self.made:
            return self._searched()
        return self._tried() if self.likely else self.single_type.own

    def _tried(self) -> SearchState:
        """The search of one type, going on with the likely mixes."""
        single, space = self.single_type.own, self.problem.space(self.sites)
        state = single.going_on(LIKELY.plans, LIKELY.supports, LIKELY.patience)
        simulate_ranked(space, self.likely, state)
        confirm_open(space, state)
        # What it leaves open are mixes, which the quick bound covers.
        return replace(state, open_bound=single.open_bound)

    def _searched(self) -> SearchState:
        """The search of one type, going on with sets of several, as far as the limits allow."""
        watch, cap = self.single_type.watch, self._cap
        state = self.single_type.own.going_on(cap.plans, cap.supports, cap.patience)
        state.leave_open(self._regions.of_rest)
        space, start = self.problem.space(self.sites), len(self.problem.single_type_sites.sites)
        if state.incumbents and self.problem.quotas_bind:
            self._judge_safest(space, start, state)
        complete = bool(state.incumbents) or self._find_any(space, start, state)
        watch.show(state, may_stop=cap is PROOF)
        if state.incumbents or (self.single_type.prove and not complete):
            lower_bounds = self._regions.lower_bounds
            search_mixes(space, state, start, quick=cap is not PROOF, lower_bounds=lower_bounds)
        elif not complete:
            state.leave_open(0.0)
        watch.close()
        return state

    def with_safest(self, known: SearchState, sites: SitePools) -> SearchState:
        """The search of one type, the plans `known` of some sites, and the safest mixes there.

        Next to an answer, where any good plan does: sets of entries are not searched.
        """
        single, space = self.single_type.own, self.problem.space(sites)
        state = single.going_on(LIKELY.plans, LIKELY.supports, LIKELY.patience)
        state.incumbents |= known.incumbents
        state.best_goal = min((c.goal_value for c in state.incumbents.values()), default=np.inf)
        self._judge_safest(space, len(self.problem.single_type_sites.sites), state)
        confirm_open(space, state)
        return state

    def _judge_safest(self, space: Space, start: int, state: SearchState) -> None:
        """Mixes that use what quotas allow: cheaper than one type where a deadline is tight."""
        from recommender.planner.mix_feasibility import judge_safest  # most answers need none

        judge_safest(space, start, state)

    def _find_any(self, space: Space, start: int, state: SearchState) -> bool:
        """Find a mix where no plan is known; whether all were looked at."""
        from recommender.planner.mix_feasibility import find_any  # most answers need none

        last = MIXES_LAST_QUOTAS if self.problem.quotas_bind else MIXES_LAST
        by_cost = self.problem.limits.deadline_s is None
        sets = min(last.supports, MIXES_LAST_SETS_BY_COST) if by_cost else last.supports
        return find_any(space, start, state, last.plans, sets)

    @property
    def proven_infeasible(self) -> bool:
        """If no plan was found, whether the search excluded all of them."""
        return not np.isfinite(self.best.open_bound)
