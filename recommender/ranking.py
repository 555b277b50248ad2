"""Which plans stand in the table, and in which order."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from recommender.market.sites import Built
from recommender.optimize.found import Candidate, Found, order
from recommender.optimize.space import MEMORY_TIER
from recommender.plan import Plan
from recommender.present import Presenter
from recommender.question import Question

FOLLOWED = 12  # candidates that are followed again, however few are shown: the same plan wins
TIE = 0.005  # goals closer than this are a tie: fewer machines win
SLACK = 0.004  # a plan whose chance, on more histories, falls this far below is left out
KNEE = 0.10  # the knee is the cheapest plan at most this much slower than the fastest

Goal = Callable[[Plan], float]


def _simplest(alike: list[Candidate]) -> Candidate:
    """Among near-ties the one with fewest machines and no machines just for checkpoints."""
    best = min(candidate.goal for candidate in alike)
    ties = [c for c in alike if c.goal <= best * (1.0 + TIE)]
    return min(ties, key=lambda c: (c.path == MEMORY_TIER, sum(c.counts), order(c)))


@dataclass(frozen=True)
class Table:
    """Chooses and orders the plans of one question."""

    question: Question
    built: Built
    presenter: Presenter
    top: int

    def ranked(self, found: Found, others: list[Candidate]) -> tuple[Plan, ...]:
        """The best plan, others that differ from it, and the best of each provider."""
        ordered = sorted(found.kept.values(), key=order)
        chosen = self._distinct([ordered[0], *others, *ordered])
        made = {candidate: self.presenter.plan(candidate) for candidate in chosen}
        least = self.question.limits.confidence - SLACK
        kept = [plan for plan in made.values() if plan.estimate.chance >= least]
        kept = sorted(kept or made.values(), key=self._goal)
        kept = _quoted_first(_fewer_machines(kept, self._goal), self._goal)
        looks = {self._looks(c): plan for c, plan in made.items()}
        wanted = [looks[self._looks(c)] for c in others if self._looks(c) in looks]
        wanted = [plan for plan in wanted if plan in kept]
        first = [kept[0], *(plan for plan in wanted if plan is not kept[0])][: self.top]
        rest = [plan for plan in kept if plan not in first]
        shown = [*first, *rest[: self.top - len(first)]]
        return self._labelled([plan for plan in kept if plan in shown], made.values())

    def frontier(self, candidates: Iterable[Candidate]) -> tuple[Plan, ...]:
        """Plans that no other beats in both cost and time, cheapest first."""
        plans = sorted(
            (self.presenter.plan(c) for c in self._distinct(candidates, most=99)),
            key=lambda p: (p.estimate.cost.mean, p.estimate.time.mean),
        )
        kept: list[Plan] = []
        for plan in plans:
            if not kept or plan.estimate.time.mean < kept[-1].estimate.time.mean * (1 - TIE):
                kept.append(plan)
        return self._labelled(kept, plans)

    def _goal(self, plan: Plan) -> float:
        spread = plan.estimate.time if self._by_time else plan.estimate.cost
        return spread.mean

    @property
    def _by_time(self) -> bool:
        return self.question.limits.goal == "time"

    def _distinct(
        self, candidates: Iterable[Candidate], most: int | None = None
    ) -> list[Candidate]:
        """The simplest of the best of each look: same GPUs, markets and size are one look."""
        looks: dict[tuple[object, ...], list[Candidate]] = {}
        for candidate in candidates:
            looks.setdefault(self._looks(candidate), []).append(candidate)
        chosen = [_simplest(alike) for alike in looks.values()]
        return chosen[: most or max(self.top, FOLLOWED)]

    def _looks(self, candidate: Candidate) -> tuple[object, ...]:
        pools = [self.built.pools[candidate.site][e] for e in candidate.entries]
        kinds = tuple(sorted({(p.type.provider, p.type.gpu, p.spot) for p in pools}))
        gpus = sum(n * p.type.gpus for n, p in zip(candidate.counts, pools, strict=True))
        return (kinds, round(float(np.log(gpus) / np.log(1.5))))

    def _labelled(self, plans: list[Plan], followed: Iterable[Plan]) -> tuple[Plan, ...]:
        """Savings against the best on-demand plan followed, best of each provider, the knee."""
        steady = [p for p in followed if all(m.market == "on_demand" for m in p.machines)]
        best = min(steady, key=lambda p: p.estimate.cost.mean, default=None)
        seen: set[str] = set()
        result = []
        for plan in plans:
            provider = plan.machines[0].provider
            labels = () if provider in seen else (f"best of {provider}",)
            seen.add(provider)
            result.append(replace(plan, saving=_saving(plan, best), labels=plan.labels + labels))
        if self._by_time and result:
            limit = result[0].estimate.time.mean * (1.0 + KNEE)
            near = [p for p in result if p.estimate.time.mean <= limit]
            knee = min(near, key=lambda p: p.estimate.cost.mean)
            if knee is not result[0]:
                place = result.index(knee)
                result[place] = replace(knee, labels=(*knee.labels, "knee"))
        return tuple(result)


def _fewer_machines(plans: list[Plan], goal: Goal) -> list[Plan]:
    """Among near-ties with the first, the plan with the fewest machines leads."""
    if not plans:
        return plans
    value = goal(plans[0])
    ties = [p for p in plans if goal(p) <= value * (1.0 + TIE)]
    lead = min(ties, key=lambda p: sum(m.count for m in p.machines))
    return [lead, *(p for p in plans if p is not lead)]


def _quoted_first(plans: list[Plan], goal: Goal) -> list[Plan]:
    """A plan at derived prices does not lead a quoted one that is within the derived error."""
    lead = next((p for p in plans if not _derived(p)), None)
    if not plans or lead is None or not _derived(plans[0]):
        return plans
    error = max(plans[0].estimate.price_sigma, 0.11)  # zone medians err 11 % (snapshot rules, 2026)
    if goal(lead) > goal(plans[0]) * (1.0 + error):
        return plans
    return [lead, *(p for p in plans if p is not lead)]


def _derived(plan: Plan) -> bool:
    return any(m.price_kind == "derived" for m in plan.machines)


def _saving(plan: Plan, steady: Plan | None) -> float | None:
    if steady is None:
        return None
    return 1.0 - plan.estimate.cost.mean / steady.estimate.cost.mean
