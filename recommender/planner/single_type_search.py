"""Searches over clusters of one machine type, under a problem's own and other limits.

Results are cached. The problem's own search always runs first, unless all are secondary: it decides
how far those under other limits go, so no answer depends on the order of the questions.
"""

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import chain
from typing import Literal

import numpy as np

from recommender.arrays import Bools, Floats
from recommender.catalogs.frozen import dataclass
from recommender.market.sites import SitePools
from recommender.optimize.columns import (
    Cluster,
    Columns,
    clusters_by_estimate,
    clusters_near_frontier,
    columns_of,
    promising_clusters,
)
from recommender.optimize.frontier import frontier_candidates
from recommender.optimize.master_program import MasterProgram, master_program
from recommender.optimize.search import SingleQueue, search_singles, simulate_ranked, single_queue
from recommender.optimize.search_state import (
    Candidate,
    Screened,
    SearchState,
    Watch,
    ranking_key,
)
from recommender.optimize.space import Entries, Masks, Space
from recommender.plan.limits import Aim, Limits
from recommender.planner.problem import Problem
from recommender.planner.ranking import KNEE

RANKED_FIRST = 12  # clusters ranked first by the master program: simulated before the exact search
MAX_RANKED_FIRST = 40  # if none of them meets the limits; under an overhead limit always
# If the answer itself took more plans than this, searches under other limits simulate fewer.
MAX_PLANS_UNCAPPED = 600
CAPPED_PLANS = 200
# Simulated where a plan is known and only a better one is looked for: with 200 one of 40 refusals
# named a plan of 143 USD in place of one of 85 (2026-11).
MAX_PLANS_TO_BEAT = 500
OF_EACH_TYPE = 3  # clusters, where estimates are all that chooses


@dataclass(frozen=True, slots=True)
class SearchCap:
    """How far a search goes before it stops with a gap."""

    plans: int  # simulated at most
    supports: int = 100_000  # sets of entries tried at most, for mixes
    patience: int = 10**9  # and while the gap they leave may close
    secondary: bool = False  # for plans shown next to the answer, which need no proof


FULL = SearchCap(3000)
BASELINE = SearchCap(1000, secondary=True)  # most need fewer than 100
ESTIMATED = SearchCap(0, secondary=True)  # for what is said only if estimates show a plan
SHORT = SearchCap(48, secondary=True)  # of these, before they go by estimates
QUICK = SearchCap(200, secondary=True)  # for limits that are only tried
PROOF = SearchCap(10**9, 10**9)  # until the proof is done or the user stops it

Only = Literal["any", "on_demand", "spot", "one GPU", "one GPU on demand", "big"]
# Which entries a search may use, by entries and GPUs per machine.
ALLOWED: dict[Only, Callable[[Entries, Floats], Bools]] = {
    "any": lambda entries, gpus: gpus > 0,
    "on_demand": lambda entries, gpus: ~entries.spot,
    "spot": lambda entries, gpus: entries.spot,
    "one GPU": lambda entries, gpus: gpus == 1,
    "one GPU on demand": lambda entries, gpus: (gpus == 1) & ~entries.spot,
    "big": lambda entries, gpus: gpus >= 8,
}


Estimated = tuple[Sequence[Cluster], Columns]  # clusters and their estimates


@dataclass(frozen=True, slots=True)
class CachedSearch:
    """A finished search and its effort; it answers requests for no more."""

    state: SearchState
    plans: int
    slack: float


@dataclass(frozen=True, slots=True)
class Request:
    """One search: its limits, its entries, and its effort."""

    limits: Limits
    masks: Masks
    cap: SearchCap
    max_plans: int  # those of the cap, or fewer
    slack: float = 0.0  # plans slower than the fastest by up to this share are kept as well
    below: float = np.inf  # only plans whose goal is less matter

    def short(self) -> "Request":
        """A short search for the best plan only, before one by estimates."""
        most = min(self.max_plans, SHORT.plans)
        return Request(self.limits, self.masks, SHORT, most)


@dataclass(frozen=True)
class SingleTypeSearch:
    """Searches clusters of one type for one problem, under its own and other limits."""

    problem: Problem
    cap: SearchCap = FULL  # of the search under the problem's own limits
    watch: Watch = field(default_factory=Watch)  # the search that runs now
    cached: dict[tuple[Limits, Only, float], CachedSearch] = field(default_factory=dict)
    queues: dict[Limits, SingleQueue] = field(default_factory=dict)

    @property
    def prove(self) -> bool:
        """Whether to search as far as it goes."""
        return self.cap == PROOF

    @cached_property
    def own(self) -> SearchState:
        """The search under the problem's limits."""
        masks = self._masks("any")
        request = Request(self.problem.limits, masks, self.cap, self.cap.plans, slack=KNEE)
        return self._cached_search(request, "any")

    def search(
        self,
        limits: Limits,
        only: Only = "any",
        cap: SearchCap = FULL,
        slack: float = 0.0,
        below: float = np.inf,
    ) -> SearchState:
        """Search clusters of one type under other limits, or among some entries (`ALLOWED`).

        If the best plan of the problem itself is among them, it is the best of them. Where a plan
        is known, only those with a goal `below` its own have to be looked for.
        """
        masks = self._masks(only)
        if not self.cap.secondary:
            own = self.own
            repeated = limits == self.problem.limits and bool(own.incumbents)
            if repeated and own.best_candidate().allowed_by(masks):
                kept = {k: c for k, c in own.incumbents.items() if c.allowed_by(masks)}
                return replace(own, incumbents=kept)
        known = self.cached.get((limits, only, below))
        if known is not None and known.plans >= cap.plans and known.slack >= slack:
            return known.state
        request = Request(limits, masks, cap, self._max_plans(cap), slack, below)
        return self._cached_search(request, only)

    def search_or_relaxed(self, limits: Limits, only: Only = "any") -> SearchState:
        """Plans under the limits; if none meets them, under the deadline alone, else under none."""
        found = self.search(limits, only, BASELINE)
        if found.incumbents:
            return found
        most = limits.max_machines
        if limits.deadline_s is not None:
            in_time = Limits(limits.deadline_s, max_machines=most, confidence=limits.confidence)
            found = self.search(in_time, only, BASELINE)
            if found.incumbents:
                return found
        aim: Literal["time", "cost"] = "time" if limits.deadline_s is not None else "cost"
        return self.search(Limits(objective=aim, max_machines=most, confidence=0.0), only, BASELINE)

    def among(self, masks: Masks, cap: SearchCap, below: float = np.inf) -> SearchState:
        """Clusters of some entries per site under the problem's limits, below a goal."""
        limits, most = self.problem.limits, self._max_plans(cap)
        return self._clusters(Request(limits, masks, cap, most, below=below))

    def without_fallbacks(
        self,
        limits: Limits,
        masks: Masks | None = None,
        cap: SearchCap = FULL,
        slack: float = 0.0,
    ) -> SearchState:
        """Clusters of one type without fallbacks: fewer plans, faster to search."""
        state = SearchState(slack=slack, max_plans=cap.plans)
        space = self._space(limits, cap, fallbacks=False)
        if cap.secondary:
            self._simulate_by_estimate(space, masks, state)
        if not state.incumbents:
            step_s = self.problem.step_s[:, : limits.max_machines]
            search_singles(space, state, masks, single_queue(space, step_s))
        return state

    def by_estimate(self, limits: Limits) -> list[Candidate]:
        """Plans of the clusters with the most likely estimates that may meet other limits.

        They are selected on the search paths, within their error, the surest first; the printed
        paths decide.
        """
        quick = QUICK.plans
        state = SearchState(slack=0.0, max_plans=quick, printed_plans=quick)  # none on the printed
        space = replace(self.problem.space(self.problem.single_type_sites), limits=limits)
        self._simulate_by_estimate(space, None, state, surest=True)
        found = [each for each in state.waiting if not each.beaten]
        return [each.candidate for each in sorted(found, key=surest_first)]

    def promising(self, limits: Limits, aims: Sequence[Aim]) -> list[Cluster]:
        """Clusters that are good at some price of time, and by each of some aims."""
        space = replace(self.problem.space(self.problem.single_type_sites), limits=limits)
        step_s = self.problem.step_s[:, : limits.max_machines]
        each = (replace(space, limits=replace(limits, objective=aim)) for aim in aims)
        found = (promising_clusters(one, step_s, of_each=OF_EACH_TYPE) for one in each)
        return list(dict.fromkeys(chain(*found)))

    def frontier(self, limits: Limits) -> list[Candidate]:
        """Plans without fallbacks that no other promising one beats in cost and time."""
        space = self._space(limits, QUICK, fallbacks=False)
        step_s = self.problem.step_s[:, : limits.max_machines]
        return frontier_candidates(space, clusters_near_frontier(space, step_s))

    def single_machines(self) -> Estimated | None:
        """Promising single machines and their estimates; None where none can train the job."""
        one = replace(self.problem.limits, max_machines=1)
        space = replace(self.problem.space(self.problem.single_type_sites), limits=one)
        return _estimated(space, promising_clusters(space, self.problem.step_s[:, :1]))

    def near_frontier(self) -> Estimated | None:
        """Clusters near the frontier of cost and time, and their estimates; None if none train."""
        space = self.problem.space(self.problem.single_type_sites)
        step_s = self.problem.step_s[:, : space.limits.max_machines]
        return _estimated(space, clusters_near_frontier(space, step_s))

    def of_clusters(self, clusters: Sequence[Cluster]) -> list[Candidate]:
        """The plans of some clusters that may meet the limits: the printed paths decide."""
        quick = QUICK.plans
        state = SearchState(slack=np.inf, max_plans=quick, printed_plans=quick)
        simulate_ranked(self.problem.space(self.problem.single_type_sites), clusters, state)
        return [each.candidate for each in state.waiting if not each.beaten]

    @cached_property
    def program(self) -> MasterProgram | None:
        """The master program of the question; None if no cluster can train the job."""
        space = self.problem.space(self.problem.single_type_sites)
        step_s = self.problem.step_s[:, : space.limits.max_machines]
        return master_program(space, promising_clusters(space, step_s))

    def _max_plans(self, cap: SearchCap) -> int:
        """Where the problem's own search had to follow many plans, those next to it do less."""
        capped = not self.cap.secondary and self.own.plans_evaluated > MAX_PLANS_UNCAPPED
        return min(cap.plans, CAPPED_PLANS) if capped else cap.plans

    def _masks(self, only: Only) -> Masks:
        gpus = self.problem.columns.gpus
        sites = self.problem.single_type_sites.sites
        return tuple(ALLOWED[only](site.entries, gpus[site.entries.kind]) for site in sites)

    def _cached_search(self, request: Request, only: Only) -> SearchState:
        """A search that is made and cached."""
        found = self._clusters(request)
        if only == "any" and found.exhausted and not found.incumbents:
            # Cheap spot plans used the cap up: on-demand ones cost more and may still do.
            reliable = self._clusters(replace(request, masks=self._masks("on_demand")))
            found = replace(
                reliable,
                open_bound=min(found.open_bound, reliable.open_bound),
                plans_evaluated=found.plans_evaluated + reliable.plans_evaluated,
                max_plans=found.max_plans + reliable.max_plans,
            )
        key = request.limits, only, request.below
        self.cached[key] = CachedSearch(found, request.cap.plans, request.slack)
        return found

    def _clusters(self, request: Request) -> SearchState:
        """A search; next to the answer it goes by estimates where bounds would take long."""
        if request.cap not in (BASELINE, ESTIMATED):
            return self._exactly(request)
        state = SearchState(slack=0.0, max_plans=0)
        if request.limits.deadline_s is None or not self._any_spot(request.masks):
            state = self._exactly(request.short())
            if not state.exhausted:
                return state
        space = self._space(request.limits, BASELINE)
        self._simulate_by_estimate(space, request.masks, state)
        if state.incumbents or request.cap == ESTIMATED:
            return state
        most = request.max_plans if np.isinf(request.below) else MAX_PLANS_TO_BEAT
        return self._exactly(replace(request, max_plans=min(most, request.max_plans)))

    def _any_spot(self, masks: Masks) -> bool:
        """Whether spot may be used: with fallbacks under a deadline lower bounds are wide."""
        sites = self.problem.single_type_sites.sites
        both = zip(masks, sites, strict=True)
        return any(bool((mask & site.entries.spot).any()) for mask, site in both)

    def _exactly(self, request: Request) -> SearchState:
        """Clusters by their lower bounds, until none is left that could be better."""
        limits, cap = request.limits, request.cap
        slack = request.slack if limits.goal == "time" else 0.0
        state = SearchState(
            slack=slack,
            max_plans=request.max_plans,
            best_goal=request.below,
        )
        if limits.goal == "time" and limits.deadline_s is not None:
            # Fallbacks make many plans of a cluster and few of them faster: first those without.
            third = replace(cap, plans=cap.plans // 3)
            first = self.without_fallbacks(limits, request.masks, third, slack)
            state.begin_with(first)
        space, main = self._space(limits, cap), limits == self.problem.limits and not cap.secondary
        if main:
            self.watch.show(state, may_stop=cap is PROOF)
        queue = self._queue(space)
        if main and self.program is not None:
            queue = queue.without(self._simulate_first(space, self.program, request.masks, state))
        search_singles(space, state, request.masks, queue)
        self.watch.close()
        return state

    def _space(self, limits: Limits, cap: SearchCap, fallbacks: bool = True) -> Space:
        """Clusters of one type; next to the answer plans are compared on the paths of a search."""
        sites = self.problem.single_type_sites if fallbacks else self._sites_without_fallbacks
        space = replace(self.problem.space(sites), limits=limits)
        return replace(space, printed=None) if cap.secondary else space

    def _simulate_by_estimate(
        self, space: Space, masks: Masks | None, state: SearchState, surest: bool = False
    ) -> None:
        """Simulate the clusters of the best estimates; more while no plan meets the limits."""
        step_s = self.problem.step_s[:, : space.limits.max_machines]
        first = clusters_by_estimate(space, step_s, masks, surest)
        best, next_best = (
            list(chain(*some))
            for some in (first[:RANKED_FIRST], first[RANKED_FIRST:MAX_RANKED_FIRST])
        )
        state.allow_more_plans(SHORT.plans)
        simulate_ranked(space, best, state)
        if not state.incumbents and not any(each.meets_limits for each in state.waiting):
            simulate_ranked(space, next_best, state)

    def _simulate_first(
        self, space: Space, program: MasterProgram, masks: Masks, state: SearchState
    ) -> list[tuple[int, int, int]]:
        """Simulate what the program puts first; more of it while no plan meets the limits.

        In the end all of its on-demand clusters, mixes under quotas among them: what has nothing to
        wait for is the surest, though seldom what its estimates put first.
        """
        allowed = [c for c in program.first if masks[c.site][list(c.entries)].all()]
        simulate_ranked(space, allowed[:RANKED_FIRST], state)
        enough = state.incumbents and space.limits.max_overhead is None
        done = RANKED_FIRST if enough else MAX_RANKED_FIRST
        simulate_ranked(space, allowed[RANKED_FIRST:done], state)
        simulated = allowed[:done]
        if not state.incumbents:
            spot = [site.entries.spot for site in space.sites]
            sure = [c for c in allowed[done:] if not spot[c.site][list(c.entries)].any()]
            simulate_ranked(space, sure, state)
            simulated += sure
        singles = [c for c in simulated if len(c.entries) == 1]
        return [(c.site, c.entries[0], c.counts[0]) for c in singles]

    @cached_property
    def _sites_without_fallbacks(self) -> SitePools:
        all_sites = self.problem.single_type_sites
        sites = tuple(replace(site, fallbacks=site.fallbacks.none()) for site in all_sites.sites)
        return replace(all_sites, sites=sites)

    def _queue(self, space: Space) -> SingleQueue:
        """All clusters of one entry, made once for searches under the same limits.

        A tighter limit only raises lower bounds, so the problem's own queue does for it as well:
        clusters that cannot meet it are found, and dropped.
        """
        own, most = self.problem.limits, space.limits.max_machines
        as_many = replace(space.limits, max_machines=own.max_machines)
        if as_many.goal == own.goal:
            as_many = replace(as_many, objective=own.objective)
        if own in self.queues and most <= own.max_machines and as_many.tighter_than(own):
            known = self.queues[own]
            return known if most == own.max_machines else known.up_to(most)
        if space.limits not in self.queues:
            step_s = self.problem.step_s[:, : space.limits.max_machines]
            self.queues[space.limits] = single_queue(space, step_s)
        return self.queues[space.limits]


def surest_first(
    each: Screened,
) -> tuple[bool, float, tuple[float, int, int, float, tuple[int, ...]]]:
    """Sort key: what meets the limits on the paths of a search too first, then by its chance."""
    return not each.meets_limits, -each.candidate.chance, ranking_key(each.candidate)


def _estimated(space: Space, clusters: Sequence[Cluster]) -> Estimated | None:
    """Clusters with their estimates, if there are any."""
    return (clusters, columns_of(space, clusters)) if clusters else None
