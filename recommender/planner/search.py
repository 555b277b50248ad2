"""The searches behind one answer: the best plans of a problem, and of the same under other limits.

Everything that needs a search asks `PlanSearch`: the table, the baselines, the sensitivity to each
limit and the reasons of an infeasible problem. What was searched once is kept.
"""

from collections.abc import Callable, Iterable
from dataclasses import field, replace
from functools import cached_property
from itertools import chain
from typing import Literal

import numpy as np

from recommender.arrays import Bools, Floats
from recommender.catalogs.frozen import dataclass
from recommender.market.sites import SitePools
from recommender.optimize.columns import clusters_by_estimate, promising_clusters
from recommender.optimize.master_program import MasterProgram, master_program
from recommender.optimize.search import (
    SingleQueue,
    judge_first,
    search_mixes,
    search_singles,
    single_queue,
)
from recommender.optimize.search_state import (
    EPSILON,
    Candidate,
    SearchState,
    Watch,
    key_of,
    ranking_key,
)
from recommender.optimize.space import Entries, Masks, Space
from recommender.plan.answer import Proof
from recommender.plan.frontier import unbeaten
from recommender.plan.limits import Choice, Limits
from recommender.planner.plan_builder import Evaluated, PlanBuilder, goal_of, keeps
from recommender.planner.problem import Problem
from recommender.planner.ranking import HORIZON_S, KNEE, Ranked, Ranking

JUDGED = 12  # clusters that the master program puts first, judged before the exact search
HARD = 600  # plans followed for the answer itself, beyond which those next to it are hard too
BESIDE_HARD = 200  # plans followed for each of these
JUDGED_MOST = 40  # where none of them keeps the limits
MIX_REGIONS = 4  # regions in which mixes are tried, unless a proof is asked for
MIX_PAIRS = 500_000  # of offers in the regions tried under quotas: all three clouds have 400,000
NEAR = 0.25  # above the best goal: what quoted prices may still make the first of a table
BLUR = 0.05  # as above, by the error of the paths of a search
FEW = 8  # plans within the horizon built until one proves to be
PATHS_ERROR = 0.02  # share by which a goal on the paths of a search may be off, about
LADDER = 8  # deadlines tried between the fastest and the cheapest plan for the frontier


@dataclass(frozen=True, slots=True)
class Budget:
    """How far a search goes before it stops with a gap."""

    plans: int  # simulated at most
    supports: int = 100_000  # sets of entries tried at most, for mixes
    patience: int = 10**9  # and while the gap they leave is wide
    beside: bool = False  # whether for what stands next to the answer: nothing is proven of it


FULL = Budget(3000)
BASELINE = Budget(1000, beside=True)  # most need fewer than 100
GLANCE = Budget(48, beside=True)  # of these, before they go by estimates
QUICK = Budget(200, beside=True)  # for limits that are only tried
MIXES = Budget(600, 200)
MIXES_QUOTAS = Budget(600, 600, 100)  # on 12 problems, 1,500 sets found nothing better
PROOF = Budget(10**9, 10**9)  # until the proof is done, or who waits for it has enough
MIXES_LAST = Budget(100, 60)  # where no cluster of one type keeps the limits, a mix seldom does
MIXES_LAST_QUOTAS = Budget(100, 400)  # but under quotas; those found were among the first 40


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


@dataclass(frozen=True, slots=True)
class Kept:
    """A search that was made, and how far it went: it serves who asks for no more."""

    state: SearchState
    plans: int
    slack: float


@dataclass(frozen=True)
class PlanSearch:
    """Searches one problem, and the same problem under other limits."""

    problem: Problem
    prove: bool = False  # search clusters and mixes as far as they go
    watch: Watch = field(default_factory=Watch)  # the search that runs now
    thorough: bool = False  # bound mixes as tightly as is known, for who asks for reasons
    searched: dict[tuple[Limits, Only], Kept] = field(default_factory=dict)
    queues: dict[Limits, SingleQueue] = field(default_factory=dict)

    def search(self, limits: Limits, only: Only = "any", budget: Budget = FULL) -> SearchState:
        """Clusters of one type under other limits, or of some entries only (`ALLOWED`).

        Where the best plan of the problem itself is one of those asked for, it is the best of them.
        """
        if limits == self.problem.limits and self.single_type.incumbents:
            masks = self._masks(only)
            if self.single_type.best_candidate().allowed_by(masks):
                kept = {k: c for k, c in self.single_type.incumbents.items() if c.allowed_by(masks)}
                return replace(self.single_type, incumbents=kept)
        return self._search(limits, only, budget)

    def search_or_relaxed(self, limits: Limits, only: Only = "any") -> SearchState:
        """Plans under the limits; where none keeps them, the fastest or cheapest without limits."""
        found = self.search(limits, only, BASELINE)
        if found.incumbents:
            return found
        aim: Literal["time", "cost"] = "time" if limits.deadline_s is not None else "cost"
        free = Limits(objective=aim, max_machines=limits.max_machines, confidence=0.0)
        return self.search(free, only, BASELINE)

    @cached_property
    def single_type(self) -> SearchState:
        """The search over clusters of one type under the problem's limits."""
        budget = PROOF if self.prove else FULL
        return self._search(self.problem.limits, "any", budget, slack=KNEE)

    def _search(
        self, limits: Limits, only: Only, budget: Budget, slack: float = 0.0
    ) -> SearchState:
        """Clusters of one type; plans slower than the fastest by up to `slack` are kept as well."""
        known = self.searched.get((limits, only))
        if known is not None and known.plans >= budget.plans and known.slack >= slack:
            return known.state
        found = self._clusters(limits, self._masks(only), budget, slack)
        if only == "any" and found.exhausted and not found.incumbents:
            # Cheap spot plans used the budget up: on-demand ones cost more and may still do.
            reliable = self._clusters(limits, self._masks("on_demand"), budget, slack)
            found = replace(
                reliable,
                open_bound=min(found.open_bound, reliable.open_bound),
                plans_evaluated=found.plans_evaluated + reliable.plans_evaluated,
                max_plans=found.max_plans + reliable.max_plans,
            )
        self.searched[limits, only] = Kept(found, budget.plans, slack)
        return found

    def _masks(self, only: Only) -> Masks:
        gpus = self.problem.columns.gpus
        sites = self.problem.single_type_sites.sites
        return tuple(ALLOWED[only](site.entries, gpus[site.entries.kind]) for site in sites)

    def _clusters(
        self, limits: Limits, masks: Masks, budget: Budget, slack: float = 0.0
    ) -> SearchState:
        """A search; next to the answer it goes by estimates where bounds would take long."""
        if budget != BASELINE:
            return self._exactly(limits, masks, budget, slack)
        state = SearchState(slack=0.0, max_plans=0)
        if limits.deadline_s is None or not self._any_spot(masks):
            state = self._exactly(limits, masks, GLANCE)
            if not state.exhausted:
                return state
        self._judge_by_estimate(self._space(limits, BASELINE), masks, state)
        return state if state.incumbents else self._exactly(limits, masks, budget)

    def _any_spot(self, masks: Masks) -> bool:
        """Whether spot may be used: with fallbacks under a deadline lower bounds are wide."""
        sites = self.problem.single_type_sites.sites
        both = zip(masks, sites, strict=True)
        return any(bool((mask & site.entries.spot).any()) for mask, site in both)

    def _exactly(
        self,
        limits: Limits,
        masks: Masks,
        budget: Budget,
        slack: float = 0.0,
        below: float = np.inf,
    ) -> SearchState:
        """Clusters by their lower bounds, until none is left that could be better."""
        most = min(budget.plans, BESIDE_HARD) if self._is_hard else budget.plans
        state = SearchState(slack=slack if limits.goal == "time" else 0.0, max_plans=most)
        state.best_goal = below
        if limits.goal == "time" and limits.deadline_s is not None:
            # Fallbacks make many plans of a cluster and few of them faster: first those without.
            third = replace(budget, plans=budget.plans // 3)
            first = self.without_fallbacks(limits, masks, third, slack)
            state.best_goal, state.lead = min(below, first.best_goal), first.lead
            state.incumbents = dict(first.incumbents)
        space, own = self._space(limits, budget), limits == self.problem.limits
        if own and budget in (FULL, PROOF):
            self.watch.show(state, may_stop=budget is PROOF)
        queue = self._queue(space)
        if own and budget in (FULL, PROOF) and self.program is not None:
            queue = queue.without(self._judged_first(space, self.program, masks, state))
        search_singles(space, state, masks, queue)
        self.watch.close()
        return state

    def _space(self, limits: Limits, budget: Budget, fallbacks: bool = True) -> Space:
        """Clusters of one type; next to the answer plans are compared on the paths of a search."""
        sites = self.problem.single_type_sites if fallbacks else self._sites_without_fallbacks
        space = replace(self.problem.space(sites), limits=limits)
        return replace(space, printed=None) if budget.beside else space

    def _judge_by_estimate(
        self, space: Space, masks: Masks | None, state: SearchState, surest: bool = False
    ) -> None:
        """Judge the clusters of the best estimates; more of them while no plan keeps the limits."""
        step_s = self.problem.step_s[:, : space.limits.max_machines]
        first = clusters_by_estimate(space, step_s, masks, surest)
        best, next_best = (
            list(chain(*some)) for some in (first[:JUDGED], first[JUDGED:JUDGED_MOST])
        )
        state.max_plans += GLANCE.plans
        judge_first(space, best, state)
        if not state.incumbents and not any(each.kept for each in state.waiting):
            judge_first(space, next_best, state)

    def by_estimate(self, limits: Limits, surest: bool = False) -> list[Candidate]:
        """Plans of the clusters of the best or surest estimates that may keep other limits.

        They may by the paths of a search, within their error: those printed decide.
        """
        quick = QUICK.plans
        state = SearchState(slack=0.0, max_plans=quick, plans_followed=quick)  # none on the printed
        space = replace(self.problem.space(self.problem.single_type_sites), limits=limits)
        self._judge_by_estimate(space, None, state, surest)
        return [each.candidate for each in state.waiting if not each.beaten]

    @cached_property
    def program(self) -> MasterProgram | None:
        """The master program of the question; None where no cluster can train the job."""
        space = self.problem.space(self.problem.single_type_sites)
        step_s = self.problem.step_s[:, : space.limits.max_machines]
        return master_program(space, promising_clusters(space, step_s))

    @property
    def _is_hard(self) -> bool:
        """Whether the search for the answer itself, now done, had to follow many plans."""
        done: SearchState | None = self.__dict__.get("single_type")
        return done is not None and done.plans_evaluated > HARD

    def _judged_first(
        self, space: Space, program: MasterProgram, masks: Masks, state: SearchState
    ) -> list[tuple[int, int, int]]:
        """Judge what the program puts first; more of it while no plan keeps the limits."""
        allowed = [c for c in program.first if masks[c.site][list(c.entries)].all()]
        judge_first(space, allowed[:JUDGED], state)
        done = JUDGED if state.incumbents else JUDGED_MOST
        judge_first(space, allowed[JUDGED:done], state)
        singles = [c for c in allowed[:done] if len(c.entries) == 1]
        return [(c.site, c.entries[0], c.counts[0]) for c in singles]

    def without_fallbacks(
        self,
        limits: Limits,
        masks: Masks | None = None,
        budget: Budget = FULL,
        slack: float = 0.0,
    ) -> SearchState:
        """Clusters of one type that no fallback helps: fewer plans, and quicker to go through."""
        state = SearchState(slack=slack if limits.goal == "time" else 0.0, max_plans=budget.plans)
        space = self._space(limits, budget, fallbacks=False)
        if budget.beside:
            self._judge_by_estimate(space, masks, state)
        if not state.incumbents:
            step_s = self.problem.step_s[:, : limits.max_machines]
            search_singles(space, state, masks, single_queue(space, step_s))
        return state

    @cached_property
    def _sites_without_fallbacks(self) -> SitePools:
        all_sites = self.problem.single_type_sites
        sites = tuple(replace(site, fallbacks=site.fallbacks.none()) for site in all_sites.sites)
        return SitePools(sites, all_sites.pools)

    def _queue(self, space: Space) -> SingleQueue:
        """All clusters of one entry, made once for searches under the same limits.

        A tighter limit only raises lower bounds, so the problem's own queue does for it as well:
        clusters that cannot keep it are met, and dropped.
        """
        own, most = self.problem.limits, space.limits.max_machines
        as_many = replace(space.limits, max_machines=own.max_machines)
        if own in self.queues and most <= own.max_machines and as_many.tighter_than(own):
            known = self.queues[own]
            return known if most == own.max_machines else known.up_to(most)
        if space.limits not in self.queues:
            step_s = self.problem.step_s[:, : space.limits.max_machines]
            self.queues[space.limits] = single_queue(space, step_s)
        return self.queues[space.limits]

    # Clusters of several types

    @property
    def mixes(self) -> bool:
        """Whether clusters of several types are searched: they seldom pay without quotas."""
        mix = self.problem.choice.mix
        if not self.problem.rows:
            return False
        if not self.single_type.incumbents:
            return mix != "no" and bool(self._able)
        pays = self._all_mixes or self.problem.job.elastic or self._anchored
        return mix == "yes" or (mix == "auto" and pays)

    @property
    def _all_mixes(self) -> bool:
        """Whether mixes are searched as far as they go: quotas bind, or a proof is asked for."""
        return self.prove or bool(self.problem.choice.quotas)

    @property
    def _anchored(self) -> bool:
        """Whether spot machines may save to an on-demand machine of their cluster only."""
        return self.problem.choice.checkpoint_to == "anchor"

    @cached_property
    def _able(self) -> frozenset[str]:
        """Providers whose mixes could keep the limits, where no cluster of one type does."""
        from recommender.planner.mix_feasibility import able_providers  # most answers need none

        return able_providers(self.problem.space(self.problem.single_type_sites))

    @property
    def _mix_budget(self) -> Budget:
        if self.prove:
            return PROOF
        if self.problem.choice.quotas:
            return MIXES_QUOTAS
        return MIXES

    @cached_property
    def _mix_regions(self) -> tuple[SitePools, float]:
        """Regions searched for mixes, and the lower bound of those that are not."""
        if not self.mixes:
            return SitePools((), ()), float("inf")
        most = None if self._all_mixes or self._anchored else MIX_REGIONS
        able = None if self.single_type.incumbents else self._able
        pairs = MIX_PAIRS if most is None and not self.prove else None
        return self.problem.mix_regions(self.single_type.cutoff, most, able, pairs)

    @cached_property
    def sites(self) -> SitePools:
        """All sites: those of single types first, then the regions where a mix may be better."""
        return self.problem.single_type_sites + self._mix_regions[0]

    @cached_property
    def best(self) -> SearchState:
        """The search over clusters of one type and, where they may pay, of several."""
        single = self.single_type
        state = replace(single, incumbents=dict(single.incumbents), waiting=[])
        if not self.mixes:
            return state
        budget = self._mix_budget
        state.max_plans, state.max_supports = state.plans_evaluated + budget.plans, budget.supports
        state.patience = budget.patience
        state.open_bound = min(state.open_bound, self._mix_regions[1])
        space, start = self.problem.space(self.sites), len(self.problem.single_type_sites.sites)
        complete = bool(state.incumbents) or self._find_any(space, start, state)
        self.watch.show(state, may_stop=budget is PROOF)
        if state.incumbents or (self.prove and not complete):
            search_mixes(space, state, first=start)
        elif not complete:
            state.open_bound = 0.0
        self.watch.close()
        return state

    def _find_any(self, space: Space, start: int, state: SearchState) -> bool:
        """Find a mix where no plan is known; whether all were looked at."""
        from recommender.planner.mix_feasibility import find_any  # most answers need none

        last = MIXES_LAST_QUOTAS if self.problem.choice.quotas else MIXES_LAST
        return find_any(space, start, state, last.plans, last.supports)

    @property
    def proven_infeasible(self) -> bool:
        """Where no plan was found: whether nothing that could keep the limits was left out."""
        return not np.isfinite(self.best.open_bound)

    def proof(self, told: Evaluated | None = None) -> Proof:
        """How far below the best plan the goal of a plan that was not found could lie.

        Where the plan `told` as the best is not the one that was found, but dearer (the curve
        without limits holds nothing that takes months), how far below that.
        """
        state, single, gap = self.best, self.single_type.gap(), self._gap
        mixes = self._mixes_searched(gap)
        if told is not None and state.incumbents:
            found = self.builder.build(state.best_candidate())
            left = min(1.0, found.cost_usd / told.cost_usd)
            single, gap = 1.0 - left * (1.0 - single), 1.0 - left * (1.0 - gap)
        return Proof(
            status="gap" if gap > 0 else "optimal",
            gap=gap,
            one_type_gap=min(single, gap),
            method="search",
            plans_evaluated=state.plans_evaluated,
            mixes=mixes,
        )

    def _mixes_searched(self, gap: float) -> Literal["searched", "in part", "bounded"]:
        if not self.mixes:
            return "bounded" if gap > self.single_type.gap() else "searched"
        return "in part" if gap > self.single_type.gap() else "searched"

    @cached_property
    def _gap(self) -> float:
        """How much better a plan could be than the best one, by the search and a quick bound."""
        state = self.best
        of_one = replace(state, open_bound=self.single_type.open_bound).gap()
        if not self.mixes:
            return max(state.gap(), self._mix_gap)
        if state.gap() <= of_one or self.problem.choice.quotas:  # which the quick bound leaves out
            return state.gap()
        return max(of_one, min(state.gap(), self._mix_gap))

    @property
    def _mix_gap(self) -> float:
        """How much better a mix could be than the best plan, by a bound that is quick."""
        best = self.best.best_goal
        if not np.isfinite(best):
            return 0.0
        least = self.problem.mix_lower_bound(best * (1.0 - EPSILON), self.thorough)
        return 0.0 if least >= best * (1.0 - EPSILON) else 1.0 - least / best

    # Plans

    @cached_property
    def builder(self) -> PlanBuilder:
        """Builds plans of candidates."""
        return PlanBuilder(self.problem, self.sites)

    def ranked(self, top: int, beside: Iterable[Candidate] = ()) -> Ranked:
        """The best plans of a table of `top`; none where no plan keeps the limits.

        Without limits the cost-time curve through what the search finds and what is `beside`.
        """
        if not self.best.incumbents:
            return Ranked((), 0)
        limits = self.problem.limits
        on_demand = self.search_or_relaxed(limits, "on_demand")
        ranking = Ranking(
            self.builder, top, on_demand.best_candidate() if on_demand.incumbents else None
        )
        if limits.goal == "frontier":
            return ranking.frontier([self.best.best_candidate(), *self._ladder(), *beside])
        return ranking.ranked(self._with_quoted(ranking), self._best_of_each())

    def _with_quoted(self, ranking: Ranking) -> SearchState:
        """The best plans, with the best at quoted prices where one nobody quoted may not lead.

        The search for the best of all meets few of those that cost a little more.
        """
        state, below = self.best, ranking.quoted_below(self.best)
        if below <= 0.0:
            return state
        pools = self.problem.single_type_sites.pools
        masks = tuple(np.array([not self.problem.is_derived(p) for p in site]) for site in pools)
        quoted = self._exactly(self.problem.limits, masks, FULL, below=below)
        printed = {key: each for key, each in quoted.incumbents.items() if each.printed}
        return replace(state, incumbents=state.incumbents | printed)

    def _best_of_each(self) -> list[Candidate]:
        """The best plan without spot, and the best of each provider."""
        limits, sites = self.problem.limits, self.problem.single_type_sites.sites
        found = [self.search(limits, "on_demand", BASELINE)]
        for index in range(len(sites)):
            if self.single_type.incumbents and self.single_type.best_candidate().site == index:
                continue  # the best plan of all is the best of its provider
            masks = tuple(np.full(len(s.entries), i == index) for i, s in enumerate(sites))
            found.append(self._clusters(limits, masks, BASELINE))
        return [state.best_candidate() for state in found if state.incumbents]

    def _ladder(self) -> list[Candidate]:
        """What no other plan beats in both cost and time, of those met on the way.

        Searched are the cheapest plan, the fastest, and the cheapest under deadlines between them,
        kept by half of the runs and by as many as a limit asks for: what waits seldom and long is
        on the curve of medians as well.
        """
        limits = self.problem.limits
        aims = (replace(limits, objective="time"), replace(limits, objective="cost"))
        found = [self.without_fallbacks(aim, budget=BASELINE) for aim in aims]
        times = [state.best_candidate().time_s for state in found if state.incumbents]
        if len(times) > 1:
            most_s = min(max(times), HORIZON_S)
            # Medians lie below the trimmed means by which the fastest is known.
            least_s = 0.7 * min(times)
            for due_s in np.geomspace(least_s, most_s, LADDER + 2)[1:-1].tolist():
                for due, chance in ((due_s, 0.5), (due_s * 1.3, limits.confidence)):
                    under = replace(limits, deadline_s=due, objective="cost", confidence=chance)
                    found.append(self.without_fallbacks(under, budget=QUICK))
            if max(times) > HORIZON_S:  # the cheapest of all may take a year
                found.append(self.without_fallbacks(within_horizon(limits), budget=QUICK))
        met = {key: each for state in found for key, each in state.incumbents.items()}
        return list(unbeaten(met.values(), lambda each: (each.cost_usd, each.time_s)))

    def best_unconstrained(self, aim: Literal["time", "cost"]) -> Evaluated | None:
        """The plan that leads the table of the same problem with no limit but an aim.

        The cheapest within the horizon: prices and spot laws say little of what comes later.
        """
        limits = Limits(objective=aim, max_machines=self.problem.limits.max_machines)
        state = self._search(limits, "any", FULL, slack=BLUR)
        if not state.incumbents:
            return None
        near = {
            k: c for k, c in state.incumbents.items() if c.goal <= state.best_goal * (1.0 + NEAR)
        }
        ranking = Ranking(self.builder.under(limits), 1, None)
        first = ranking.ranked(replace(state, incumbents=near), []).plans[0]
        if aim == "cost" and first.time_s > HORIZON_S:
            sooner = self.without_fallbacks(within_horizon(limits))
            within = sorted(sooner.incumbents.values(), key=ranking_key)
            built = map(self.builder.build, within[:FEW])
            return next((each for each in built if each.time_s <= HORIZON_S), first)
        return self.builder.build(first.candidate)

    def again(self, limits: Limits) -> SearchState:
        """This search under other limits, mixes included."""
        return PlanSearch(self.problem.under(limits)).best

    def replan(self, limits: Limits) -> Evaluated | None:
        """The plan of one machine type that leads the table of the same problem, limited otherwise.

        Neither mixes nor as many plans as an answer's: one is asked for each limit that is tried.
        """
        builder = self.builder.under(limits)
        state = _as_printed(self.search(limits, budget=BASELINE), builder)
        if not state.incumbents:
            return None
        # Plans that keep the limits on the paths of a search may miss them on those printed.
        first = next(iter(Ranking(builder, 1, None).ranked(state, []).plans), None)
        return first if first is not None and keeps(first.plan, limits) else None


def within_horizon(limits: Limits) -> Limits:
    """Limits under which the cheapest plan ends within the horizon in half of the runs."""
    most_s = min(HORIZON_S, limits.deadline_s or HORIZON_S)
    return replace(limits, deadline_s=most_s, objective="cost", confidence=0.5)


def _as_printed(state: SearchState, builder: PlanBuilder) -> SearchState:
    """A search on few paths, what may be its best with the figures that are printed."""
    near = sorted(state.incumbents.values(), key=ranking_key)[:FEW]
    near = [each for each in near if each.goal <= state.best_goal * (1.0 + PATHS_ERROR)]
    built = [builder.build(each) for each in near]
    told = {
        key_of(each.candidate): replace(
            each.candidate,
            goal=goal_of(each.plan, builder.limits),
            cost_usd=each.cost_usd,
            time_s=each.time_s,
        )
        for each in built
    }
    return replace(state, incumbents=state.incumbents | told)


def search_other_offers(problem: Problem, choice: Choice) -> tuple[SearchState, PlanBuilder]:
    """The best clusters of one type of other offers, and what builds plans of them."""
    other = problem.among(choice)
    state = SearchState(slack=0.0, max_plans=BASELINE.plans)
    search_singles(other.space(other.single_type_sites), state)
    return state, PlanBuilder(other, other.single_type_sites)
