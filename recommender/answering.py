"""How an answer is put together: the search, its alternatives, and what surrounds them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from recommender import assumptions
from recommender.limits import Limits
from recommender.market.sites import Built, Pool
from recommender.nearest import infeasible, neighbours
from recommender.optimize.search import Candidate, Found, search_mixes, search_singles
from recommender.optimize.space import Entries
from recommender.plan import Answer, Plan, PriceDate, Proof
from recommender.present import Presenter
from recommender.question import Question
from recommender.units import Comparison

MOST_PLANS = 3000  # plans followed in one search before it stops with a gap
MIX_SUPPORTS = 40  # sets of entries tried for mixes unless quotas or --prove ask for all
LADDER = 5  # points of the frontier between the cheapest and the fastest plan
KNEE = 0.10  # the knee is the cheapest plan at most this much slower than the fastest

Which = Callable[[Entries], NDArray[np.bool_]]


@dataclass(frozen=True)
class Answering:
    """One question on its way to an answer."""

    question: Question
    top: int
    compare: Comparison | None
    prove: bool
    save_lp: Path | None

    def answer(self) -> Answer:
        """Search, then gather what a reader wants beside the best plan."""
        found = self.best
        if not found.kept:
            return self._answer((), infeasible(self.question, self.alone), found)
        plans = self._ranked()
        return self._answer(plans, None, found)

    @cached_property
    def best(self) -> Found:
        """The search over everything."""
        found = self._search(self.question.limits)
        self.__dict__["_alone"] = found.gap() == 0.0
        if self.question.choice.mix and found.kept:
            if not (self.prove or self.question.choice.quotas):
                found.most_supports = MIX_SUPPORTS
            space = self.question.space(self.built(found.bar))
            search_mixes(space, found, first=len(self.question.lists.sites))
        return found

    def built(self, bar: float) -> Built:
        """The sites of the search: lists first, then regions worth a mix."""
        if "_built" not in self.__dict__:
            regions = self.question.regions_below(bar) if self.question.choice.mix else Built((), ())
            self.__dict__["_built"] = self.question.lists + regions
        sites: Built = self.__dict__["_built"]
        return sites

    def alone(self, limits: Limits, which: Which | None = None) -> Found:
        """Plans of one entry, under other limits or with some entries only."""
        return self._search(limits, which)

    def _search(self, limits: Limits, which: Which | None = None) -> Found:
        lists = self.question.lists
        space = replace(self.question.space(lists), limits=limits)
        slack = KNEE if limits.goal == "time" else 0.0
        found = Found(slack=slack, most=MOST_PLANS)
        masks = None if which is None else tuple(which(site.entries) for site in lists.sites)
        search_singles(space, found, masks)
        return found

    @cached_property
    def presenter(self) -> Presenter:
        """Turns candidates into plans."""
        return Presenter(self.question, self.built(self.best.bar))

    def _ranked(self) -> tuple[Plan, ...]:
        """The plans of the table: the best, others that differ, the best of each provider."""
        limits = self.question.limits
        wanted = self._candidates()
        plans = []
        for candidate, labels in wanted:
            plan = self.presenter.plan(candidate, labels)
            if plan.estimate.chance >= limits.confidence - 0.01:
                plans.append(plan)
        by_time = limits.goal == "time"
        plans.sort(key=lambda p: p.estimate.time.mean if by_time else p.estimate.cost.mean)
        best = self._best_on_demand(plans)
        return tuple(replace(p, saving=_saving(p, best)) for p in plans[: self.top])

    def _best_on_demand(self, plans: list[Plan]) -> Plan | None:
        steady = [p for p in plans if all(m.market == "on_demand" for m in p.machines)]
        return min(steady, key=lambda p: p.estimate.cost.mean, default=None)

    def _candidates(self) -> list[tuple[Candidate, tuple[str, ...]]]:
        """At most `top` candidates, each different from those before it."""
        ordered = sorted(self.best.kept.values(), key=_order)
        chosen: dict[tuple[object, ...], tuple[Candidate, tuple[str, ...]]] = {}
        must = [ordered[0], *self._others(ordered[0])]
        for candidate in (*must, *ordered):
            chosen.setdefault(self._looks(candidate), (candidate, ()))
            if len(chosen) >= max(self.top, len(must)):
                break
        return sorted(chosen.values(), key=lambda item: _order(item[0]))

    def _others(self, first: Candidate) -> list[Candidate]:
        """The best plan without spot, and of each provider that is not the first one's."""
        limits, lists = self.question.limits, self.question.lists
        found = [self.alone(limits, lambda e: ~e.spot)]
        for index, site in enumerate(lists.sites):
            if self._provider(first) != site.provider:
                found.append(self._provider_search(index))
        return [min(f.kept.values(), key=_order) for f in found if f.kept]

    def _provider_search(self, index: int) -> Found:
        lists = self.question.lists
        space = self.question.space(lists)
        masks = tuple(
            np.full(len(site.entries), place == index) for place, site in enumerate(lists.sites)
        )
        found = Found(slack=0.0, most=MOST_PLANS)
        search_singles(space, found, masks)
        return found

    def _provider(self, candidate: Candidate) -> str:
        return self.built(np.inf).sites[candidate.site].provider

    def _pools(self, candidate: Candidate) -> list[Pool]:
        return [self.built(np.inf).pools[candidate.site][e] for e in candidate.entries]

    def _looks(self, candidate: Candidate) -> tuple[object, ...]:
        """What makes two plans the same in a person's eyes."""
        kinds = tuple(sorted((p.type.provider, p.type.gpu, p.spot) for p in self._pools(candidate)))
        size = round(np.log(sum(candidate.counts)) / np.log(1.5))
        return (kinds, size)

    def _answer(self, plans: tuple[Plan, ...], failed: object, found: Found) -> Answer:
        question, limits = self.question, self.question.limits
        from recommender.plan import Infeasible

        no_plan = failed if isinstance(failed, Infeasible) else None
        floor = self._floors()
        return Answer(
            status="infeasible" if no_plan else "ok",
            goal=limits.goal,
            plans=plans,
            trivial=() if no_plan else self._trivial(),
            compared=None,
            floor_usd=floor[0],
            floor_s=floor[1],
            steps=() if no_plan else neighbours(question, self.alone, self.presenter, plans[0]),
            proof=self._proof(found),
            infeasible=no_plan,
            prices=_price_dates(question),
            assumptions=assumptions.of(question, plans),
            warnings=(),
            more_plans=max(len(found.kept) - len(plans), 0),
            more_regions=len({question.catalog.offers.region[r] for r in question.rows}),
            seed=question.seed,
        )

    def _proof(self, found: Found) -> Proof:
        status: Literal["optimal", "gap"] = "gap" if found.gap() > 0 else "optimal"
        return Proof(status, found.gap(), "search", found.plans, 0, bool(self.__dict__["_alone"]))

    def _floors(self) -> tuple[float, float]:
        """Least cost and time of any plan: best job FLOPP, nothing lost, nothing waited for."""
        from recommender.optimize.search import single_floors

        space = self.question.space(self.question.lists)
        least = []
        for objective in ("cost", "time"):
            free = replace(space, limits=Limits(objective=objective, max_machines=space.limits.max_machines))  # type: ignore[arg-type]
            floors = [single_floors(free, site, self.question.step_s).min(initial=np.inf) for site in free.sites]
            least.append(float(min(floors, default=np.inf)))
        return least[0], least[1]

    def _trivial(self) -> tuple[Plan, ...]:
        """One GPU, one big machine, all on demand, all spot, whether in time or not."""
        gpus = self.question.columns.gpus
        limits = Limits(objective="cost", max_machines=1, confidence=0.0)
        asked: list[tuple[str, Limits, Which]] = [
            ("one GPU", limits, lambda e: gpus[e.kind] == 1),
            ("one big machine", limits, lambda e: gpus[e.kind] >= 8),
            ("all on-demand", self.question.limits, lambda e: ~e.spot),
            ("all spot", self.question.limits, lambda e: e.spot),
        ]
        plans = []
        for label, under, which in asked:
            found = self.alone(under, which)
            if found.kept:
                plans.append(self.presenter.plan(min(found.kept.values(), key=_order), (label,)))
        return tuple(plans)


def _order(candidate: Candidate) -> tuple[float, int, int, tuple[int, ...]]:
    """Least goal first; ties go to fewer machines, then fewer kinds."""
    return (candidate.goal, sum(candidate.counts), len(candidate.entries), candidate.entries)


def _saving(plan: Plan, steady: Plan | None) -> float | None:
    if steady is None:
        return None
    return 1.0 - plan.estimate.cost.mean / steady.estimate.cost.mean


def _price_dates(question: Question) -> tuple[PriceDate, ...]:
    return tuple(
        PriceDate(d.provider, d.market, d.newest, d.offers) for d in question.catalog.price_dates()
    )
