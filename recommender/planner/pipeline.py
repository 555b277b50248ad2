"""How an answer is put together: the search, its alternatives, and what surrounds them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from recommender.arrays import Bools, Floats
from recommender.errors import UsageError
from recommender.inputs.units import Comparison
from recommender.market.sites import SitePools
from recommender.optimize.incumbent import Candidate, SearchState, ranking_key
from recommender.optimize.lower_bounds import least_seconds
from recommender.optimize.search import (
    Masks,
    SingleQueue,
    search_mixes,
    search_singles,
    single_queue,
)
from recommender.optimize.space import Entries, Space
from recommender.plan.limits import Limits
from recommender.plan.plan import Answer, Infeasible, Plan, Proof, Step
from recommender.planner import assumptions
from recommender.planner.baselines import floors_of, more_regions, price_dates, trivial
from recommender.planner.current_setup import compared
from recommender.planner.infeasibility import infeasible
from recommender.planner.plan_builder import Presenter, keeps
from recommender.planner.problem import Question
from recommender.planner.ranking import KNEE, Shown, Table
from recommender.planner.sensitivity import neighbours, wider_quotas
from recommender.text import shown_path

if TYPE_CHECKING:
    from recommender.optimize.certificate import ProgramProof


def save_program(question: Question, built: SitePools, best: Candidate, path: Path) -> None:
    """Write the program; raises UsageError where the file cannot be written."""
    from recommender.optimize.certificate import write_lp

    space = question.space(built)
    site, used = space.sites[best.site], np.array(best.entries)
    counts = np.zeros(len(site.entries), dtype=np.int64)
    counts[used] = best.counts
    rows = np.flatnonzero(site.entries.region == site.entries.region[used[0]])
    region = question.catalog.offers.region[int(site.entries.offer[used[0]])]
    local = replace(site.only(rows), region=region)
    try:
        write_lp(space, local, path, best.goal, counts[rows])
    except OSError as error:
        raise UsageError(
            f"--save-lp {shown_path(path)}: cannot be written ({error.strerror}); name another"
        ) from None


MOST_PLANS = 3000  # plans followed in one search before it stops with a gap
MOST_ASIDE = 1000  # the same for what only stands beside the answer; most need fewer than 100
MOST_HURRIED = 200  # the same for limits that are only tried
MOST_MIXED = 600  # and plans that mix types
MOST_SAVING = 100  # the same where no plan of one type keeps the limits
MIX_REGIONS = 4  # regions in which mixes are tried, unless a proof is asked for
MIX_SUPPORTS = 200  # sets of entries tried for mixes
SAVING_SUPPORTS = 60  # the same where no plan of one type keeps the limits
QUOTA_SUPPORTS = 600  # the same under quotas; on 12 questions 1,500 found nothing better
PROOF_SUPPORTS = 3000  # and for a proof
NEAR = 0.25  # above the best goal: what quoted prices may still make the first of a table
BLUR = 0.05  # the same by the error of the histories of a search
EDGE = 3.0  # standard errors of the chance in a search, within which plans are followed again
FEW = 8  # such plans at most
SURER = 0.3  # of the way to certainty that is asked for where no plan proves sure enough
LADDER = 6  # deadlines tried between the fastest and the cheapest plan for the frontier
MOST_PROGRAMS = 60  # programs solved for a proof

Which = Callable[[Entries, Floats], Bools]
# Which entries a search may use, by entries and GPUs per machine.
ONLY: dict[str, Which] = {
    "any": lambda entries, gpus: gpus > 0,
    "on_demand": lambda entries, gpus: ~entries.spot,
    "spot": lambda entries, gpus: entries.spot,
    "one GPU": lambda entries, gpus: gpus == 1,
    "big": lambda entries, gpus: gpus >= 8,
}


@dataclass(frozen=True)
class Answering:
    """One question on its way to an answer."""

    question: Question
    top: int
    compare: Comparison | None
    prove: bool
    save_lp: Path | None
    searched: dict[tuple[Limits, str], SearchState] = field(default_factory=dict)
    queues: dict[Limits, SingleQueue] = field(default_factory=dict)

    def answer(self) -> Answer:
        """Search, then gather what a reader wants beside the best plan."""
        if not self.best.incumbents:
            why = infeasible(self.question, self.hurried, self.freely, self.again)
            return self._answer(Shown((), 0), why)
        shown = self.shown()
        if self.save_lp is not None:
            save_program(self.question, self.built, self.best.best_candidate(), self.save_lp)
        return self._answer(shown, None)

    @cached_property
    def singles(self) -> SearchState:
        """The search over clusters of one type."""
        found = self.alone(self.question.limits, slack=KNEE)
        return found if found.incumbents else self._at_the_edge(found)

    def _at_the_edge(self, failed: SearchState) -> SearchState:
        """Plans that fall short on the histories of the search, and not on those printed."""
        limits = self.question.limits
        sure = limits.confidence
        blur = EDGE * float(
            np.sqrt(sure * (1.0 - sure) / self.question.space(SitePools((), ())).path_count)
        )
        near = self.alone(replace(limits, confidence=max(sure - blur, 0.0)), slack=NEAR)
        surest = sorted(
            near.incumbents.items(), key=lambda item: (-item[1].chance, ranking_key(item[1]))
        )
        presenter = Presenter(self.question, self.question.lists)
        kept = {k: c for k, c in surest[:FEW] if keeps(presenter.plan(c), limits)}
        if not kept:
            return failed
        best = min(candidate.goal for candidate in kept.values())
        return replace(
            failed,
            incumbents=kept,
            best_goal=best,
            open_bound=min(failed.open_bound, near.open_bound, near.best_goal),
        )

    @property
    def whole(self) -> bool:
        """Whether mixes are searched as far as they go: quotas bind, or a proof is asked for."""
        return self.prove or bool(self.question.choice.quotas)

    @property
    def mixes(self) -> bool:
        """Whether clusters of several types are looked at: they seldom pay without quotas."""
        wish = self.question.choice.mix
        if not self.question.rows:
            return False
        failed = not self.singles.incumbents and self._in_reach
        pays = self.whole or self.question.job.elastic or failed or self._anchored
        return wish == "yes" or (wish == "auto" and pays)

    @property
    def _anchored(self) -> bool:
        """Whether spot machines may save to an on-demand machine beside them only."""
        return self.question.choice.checkpoint_to == "anchor"

    @property
    def _in_reach(self) -> bool:
        """Whether a deadline leaves time to start machines and to compute on the fastest."""
        due_s, lists = self.question.limits.deadline_s, self.question.lists
        return due_s is None or due_s > least_seconds(self.question.space(lists))

    @property
    def _most_supports(self) -> int:
        if self.prove:
            return PROOF_SUPPORTS
        return QUOTA_SUPPORTS if self.question.choice.quotas else MIX_SUPPORTS

    @cached_property
    def _regions(self) -> tuple[SitePools, float]:
        """Regions searched for mixes, and the bound of those that are not."""
        if not self.mixes:
            return SitePools((), ()), float("inf")
        most = None if self.whole or self._anchored else MIX_REGIONS
        return self.question.regions_below(self.singles.cutoff, most)

    @cached_property
    def built(self) -> SitePools:
        """The sites of the search: lists first, then the regions where a mix may be better."""
        return self.question.lists + self._regions[0]

    @property
    def best(self) -> SearchState:
        """The search over everything."""
        return self._best[0]

    @cached_property
    def _best(self) -> tuple[SearchState, "ProgramProof | None"]:
        """The same, and what programs prove of it; better plans they meet enter it."""
        found = replace(self.singles, incumbents=dict(self.singles.incumbents))
        if self.mixes:
            # A mix seldom keeps what no cluster of one type keeps: then fewer are followed.
            hopeful = bool(found.incumbents) or self.whole
            found.max_plans = found.plans_evaluated + (MOST_MIXED if hopeful else MOST_SAVING)
            found.max_supports = self._most_supports if hopeful else SAVING_SUPPORTS
            found.open_bound = min(found.open_bound, self._regions[1])
            space = self.question.space(self.built)
            search_mixes(space, found, first=len(self.question.lists.sites))
            if self.prove:
                from recommender.optimize.certificate import prove

                return found, prove(space, found, MOST_PROGRAMS)
        return found, None

    def aside(self, limits: Limits, only: str = "any") -> SearchState:
        """The same for what only stands beside the answer: with less patience.

        Where the best plan of all is one of those asked for, it is the best of them.
        """
        if limits == self.question.limits and self.singles.incumbents:
            masks = self._masks(only)
            if self.singles.best_candidate().allowed_by(masks):
                kept = {k: c for k, c in self.singles.incumbents.items() if c.allowed_by(masks)}
                return replace(self.singles, incumbents=kept)
        return self.alone(limits, only, MOST_ASIDE)

    def hurried(self, limits: Limits, only: str = "any") -> SearchState:
        """The same for the many limits that are tried where no plan keeps those asked for."""
        return self.alone(limits, only, MOST_HURRIED)

    def near(self, limits: Limits, only: str = "any") -> SearchState:
        """The same; where no plan keeps the limits, the fastest or cheapest without them."""
        found = self.aside(limits, only)
        if found.incumbents:
            return found
        aim: Literal["time", "cost"] = "time" if limits.deadline_s is not None else "cost"
        free = Limits(objective=aim, max_machines=limits.max_machines, confidence=0.0)
        return self.aside(free, only)

    def alone(
        self, limits: Limits, only: str = "any", most: int = MOST_PLANS, slack: float = 0.0
    ) -> SearchState:
        """Plans of one entry, under other limits or with some entries only (`ONLY`).

        Plans slower than the fastest by up to `slack` are kept, for its knee.
        """
        key = (limits, only)
        if key not in self.searched:
            lists = self.question.lists
            found = self._alone(limits, lists, self._masks(only), most, slack)
            if only == "any" and found.exhausted and not found.incumbents:
                # Cheap spot plans used all patience up: steady ones are dearer, and may still do.
                steady = self._alone(limits, lists, self._masks("on_demand"), most, slack)
                found = replace(
                    steady,
                    open_bound=min(found.open_bound, steady.open_bound),
                    plans_evaluated=found.plans_evaluated + steady.plans_evaluated,
                    max_plans=found.max_plans + steady.max_plans,
                )
            self.searched[key] = found
        return self.searched[key]

    def _masks(self, only: str) -> Masks:
        gpus = self.question.columns.gpus
        sites = self.question.lists.sites
        return tuple(ONLY[only](site.entries, gpus[site.entries.kind]) for site in sites)

    def _alone(
        self,
        limits: Limits,
        lists: SitePools,
        masks: Masks | None,
        most: int = MOST_PLANS,
        slack: float = 0.0,
    ) -> SearchState:
        space = replace(self.question.space(lists), limits=limits)
        found = SearchState(slack=slack if limits.goal == "time" else 0.0, max_plans=most)
        if limits.goal == "time" and limits.deadline_s is not None and lists is not self._bare:
            # Fallbacks make many plans of a cluster and few of them faster: first those without.
            first = self._alone(limits, self._bare, masks, most // 3, slack)
            found.best_goal, found.incumbents = first.best_goal, dict(first.incumbents)
        search_singles(
            space, found, masks, self._queue(space) if lists is self.question.lists else None
        )
        return found

    def _queue(self, space: Space) -> SingleQueue:
        """All clusters of one entry, made once for searches under the same limits.

        A tighter limit only raises floors, so the question's own queue does for it as well:
        clusters that cannot keep it are met, and dropped.
        """
        own = self.question.limits
        if own in self.queues and space.limits.tighter_than(own):
            return self.queues[own]
        if space.limits not in self.queues:
            step_s = self.question.step_s[:, : space.limits.max_machines]
            self.queues[space.limits] = single_queue(space, step_s)
        return self.queues[space.limits]

    @cached_property
    def presenter(self) -> Presenter:
        """Turns candidates into plans."""
        return Presenter(self.question, self.built)

    def plans(self) -> tuple[Plan, ...]:
        """The plans of the table; none where no plan keeps the limits."""
        return self.shown().plans

    def shown(self) -> Shown:
        """The same, and how many more there are."""
        if not self.best.incumbents:
            return Shown((), 0)
        limits = self.question.limits
        steady = self.near(limits, "on_demand")
        table = Table(
            self.question,
            self.built,
            self.presenter,
            self.top,
            steady.best_candidate() if steady.incumbents else None,
        )
        if limits.goal == "frontier":
            return table.frontier(self._ladder())
        shown = table.ranked(self.best, self._others())
        if keeps(shown.plans[0], limits):
            return shown
        # All fell short of the chance on the histories printed: look among surer ones as well.
        surer = limits.confidence + SURER * (1.0 - limits.confidence)
        found = self.alone(replace(limits, confidence=surer))
        more = replace(self.best, incumbents=self.best.incumbents | found.incumbents)
        return table.ranked(more, self._others())

    def _others(self) -> list[Candidate]:
        """The best plan without spot, and the best of each provider."""
        limits, lists = self.question.limits, self.question.lists
        found = [self.aside(limits, "on_demand")]
        for index, site in enumerate(lists.sites):
            if self.singles.incumbents and self.singles.best_candidate().site == index:
                continue  # the best plan of all is the best of its provider
            masks = tuple(np.full(len(s.entries), s is site) for s in lists.sites)
            found.append(self._alone(limits, lists, masks, MOST_ASIDE))
        return [f.best_candidate() for f in found if f.incumbents]

    def freely(self, aim: Literal["time", "cost"]) -> Candidate | None:
        """The plan that leads the table of the same question with no limit but an aim."""
        limits = Limits(objective=aim, max_machines=self.question.limits.max_machines)
        found = self.alone(limits, slack=BLUR)
        if not found.incumbents:
            return None
        near = {
            k: c for k, c in found.incumbents.items() if c.goal <= found.best_goal * (1.0 + NEAR)
        }
        presenter = self.presenter.under(limits)
        table = Table(self.question, self.built, presenter, 1, None)
        return presenter.candidate_of(table.ranked(replace(found, incumbents=near), []).plans[0])

    def again(self, limits: Limits) -> Plan | None:
        """The plan that leads the table of the same question under other limits."""
        question = replace(self.question, limits=limits)
        return next(iter(Answering(question, 1, None, False, None).plans()), None)

    @cached_property
    def _bare(self) -> SitePools:
        """The lists without fallbacks."""
        lists = self.question.lists
        sites = tuple(replace(site, fallbacks=site.fallbacks.none()) for site in lists.sites)
        return SitePools(sites, lists.pools)

    def _ladder(self) -> list[Candidate]:
        """The cheapest plan, the fastest, and the cheapest under deadlines between them."""
        limits, alone = self.question.limits, self._bare
        ends = [
            found.best_candidate()
            for aim in (replace(limits, objective="time"), replace(limits, objective="cost"))
            for found in [self._alone(aim, alone, None)]
            if found.incumbents
        ]
        times = [c.time_s for c in ends]
        between = np.geomspace(min(times), max(times), LADDER + 2)[1:-1] if len(ends) > 1 else ()
        for deadline in between:
            under = replace(limits, deadline_s=float(deadline) * 1.3, objective="cost")
            between_them = self._alone(under, alone, None)
            ends += [between_them.best_candidate()] if between_them.incumbents else []
        return ends

    def _answer(self, shown: Shown, failed: Infeasible | None) -> Answer:
        plans = shown.plans
        question, limits = self.question, self.question.limits
        found = self.best
        floor = floors_of(question)
        return Answer(
            status="infeasible" if failed else "ok",
            goal=limits.goal,
            plans=plans,
            trivial=() if failed else trivial(limits, self.near, self.presenter, plans),
            compared=compared(question, self.compare),
            floor_usd=floor[0],
            floor_s=floor[1],
            steps=() if failed else self._neighbours(plans[0]),
            proof=self._proof(found),
            infeasible=failed,
            prices=price_dates(question),
            assumptions=assumptions.of(question, plans),
            warnings=assumptions.warnings(question, plans),
            more_plans=shown.more,
            more_regions=more_regions(plans),
            seed=question.seed,
        )

    def _proof(self, found: SearchState) -> Proof:
        programs = None if found is self.singles else self._best[1]
        gap = found.gap()
        if programs is not None:
            # Search and programs each bound all mixes; clusters of one type are the search's.
            alone = replace(found, open_bound=self.singles.open_bound).gap()
            gap = min(gap, max(alone, programs.gap))
        return Proof(
            status="gap" if gap > 0 else "optimal",
            gap=gap,
            method="search" if programs is None else "search + program",
            plans_evaluated=found.plans_evaluated,
            programs_solved=0 if programs is None else programs.programs,
            mixes=self._mixes_said(gap),
        )

    def _neighbours(self, first: Plan) -> tuple[Step, ...]:
        steps = neighbours(self.question, self.aside, self.presenter, first, self.singles)
        return steps + wider_quotas(self.question, first)

    def _mixes_said(self, gap: float) -> Literal["searched", "in part", "not searched"]:
        if not self.mixes:
            return "not searched"
        return "in part" if gap > self.singles.gap() else "searched"
