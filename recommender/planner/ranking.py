"""Which plans stand in the table, and in which order."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from recommender.market.sites import SitePools
from recommender.optimize.incumbent import Candidate, SearchState, ranking_key
from recommender.optimize.space import MEMORY_TIER
from recommender.plan.plan import Plan
from recommender.planner.plan_builder import Presenter, is_derived, is_steady, keeps, saving
from recommender.planner.problem import Question

FOLLOWED = 12  # kinds of plans that are followed again, however few are shown: the same plan wins
TRIES = 4  # plans of one kind that are followed again until one keeps the limits
TIE = 0.005  # goals closer than this are a tie: fewer machines win
DOMINATES = 0.05  # a tie that is this much better in the other figure is no tie
KNEE = 0.10  # the knee is the cheapest plan at most this much slower than the fastest

Goal = Callable[[Plan], float]
Look = tuple[object, ...]


def _simplest(alike: list[Candidate]) -> Candidate:
    """Among near-ties the cheapest of the fewest machines, none of them just for checkpoints."""
    best = min(candidate.goal for candidate in alike)
    ties = [c for c in alike if c.goal <= best * (1.0 + TIE)]
    return min(
        ties,
        key=lambda c: (c.checkpoint_path == MEMORY_TIER, sum(c.counts), c.cost_usd, ranking_key(c)),
    )


@dataclass(frozen=True, slots=True)
class Shown:
    """The plans of a table, and how many more kinds of plans a longer one could hold at most."""

    plans: tuple[Plan, ...]
    more: int


@dataclass(frozen=True)
class Table:
    """Chooses and orders the plans of one question."""

    question: Question
    built: SitePools
    presenter: Presenter
    top: int
    steady: Candidate | None  # the best plan without spot: what the others save against

    def ranked(self, found: SearchState, others: list[Candidate]) -> Shown:
        """The best plan, others that differ from it, and the best of each provider.

        All keep the limits by their printed figures, but where no plan followed does.
        """
        ordered = sorted(found.incumbents.values(), key=ranking_key)
        looks = self._by_look([ordered[0], *others, *ordered])
        made = self._followed(looks)
        good = {look: plan for look, plan in made.items() if keeps(plan, self.presenter.limits)}
        kept = sorted((good or made).values(), key=self._goal)
        kept = _quoted_first(_fewer_machines(kept, self._goal), self._goal)
        wanted = [made[look] for look in map(self._looks, others) if look in made]
        wanted = [plan for plan in wanted if plan in kept]
        first = [kept[0], *(plan for plan in wanted if plan is not kept[0])][: self.top]
        rest = [plan for plan in kept if plan not in first]
        shown = [*first, *rest[: self.top - len(first)]]
        plans = self._labelled([plan for plan in kept if plan in shown], made.values())
        return Shown(plans, len(kept) - len(plans) + len(looks) - len(made))

    def _followed(self, looks: dict[Look, list[Candidate]]) -> dict[Look, Plan]:
        """A plan of each of the first looks: the simplest that keeps the limits, if any does."""
        made: dict[Look, Plan] = {}
        for look, alike in islice(looks.items(), max(self.top, FOLLOWED)):
            first = _simplest(alike)
            tried = [first, *(c for c in sorted(alike, key=ranking_key) if c is not first)][:TRIES]
            plan = next(self.presenter.keeping(tried), None)
            made[look] = plan or self.presenter.plan(first)
        return made

    def frontier(self, candidates: Iterable[Candidate]) -> Shown:
        """Plans that no other beats in both cost and time, cheapest first."""
        plans = sorted(
            (self.presenter.plan(_simplest(c)) for c in self._by_look(candidates).values()),
            key=lambda p: (p.estimate.cost.mean, p.estimate.time.typical),
        )
        kept: list[Plan] = []
        for plan in plans:
            last = kept[-1].estimate.time.typical if kept else np.inf
            if plan.estimate.time.typical < last * (1 - TIE):
                kept.append(plan)
        return Shown(self._labelled(kept, plans), 0)

    def _goal(self, plan: Plan) -> float:
        estimate = plan.estimate
        return estimate.time.typical if self._by_time else estimate.cost.mean

    @property
    def _by_time(self) -> bool:
        return self.presenter.limits.goal == "time"

    def _by_look(self, candidates: Iterable[Candidate]) -> dict[Look, list[Candidate]]:
        """Candidates of the same GPUs, markets and size, in the order of their first."""
        looks: dict[Look, list[Candidate]] = {}
        for candidate in candidates:
            looks.setdefault(self._looks(candidate), []).append(candidate)
        return looks

    def _looks(self, candidate: Candidate) -> Look:
        pools = [self.built.pools[candidate.site][e] for e in candidate.entries]
        kinds = tuple(sorted({(p.type.provider, p.type.gpu, p.spot) for p in pools}))
        gpus = sum(n * p.type.gpus for n, p in zip(candidate.counts, pools, strict=True))
        return (kinds, round(float(np.log(gpus) / np.log(1.5))))

    def _labelled(self, plans: list[Plan], followed: Iterable[Plan]) -> tuple[Plan, ...]:
        """Savings against the best on-demand plan followed, best of each provider, the knee."""
        limits = self.presenter.limits
        steady = [p for p in followed if is_steady(p)]
        steady += [] if self.steady is None else [self.presenter.plan(self.steady)]
        good = [p for p in steady if keeps(p, limits)]
        best = min(good or steady, key=self._goal, default=None)
        seen: set[str] = set()
        result = []
        for plan in plans:
            provider = plan.machines[0].provider
            labels = () if provider in seen else (f"best of {provider}",)
            seen.add(provider)
            result.append(replace(plan, saving=saving(plan, best), labels=plan.labels + labels))
        if self._by_time and result:
            limit = result[0].estimate.time.typical * (1.0 + KNEE)
            near = [p for p in result if p.estimate.time.typical <= limit]
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
    # Never one that another tie beats in what is not sought as well: 36 % dearer, no faster.
    fair = [p for p in ties if not any(goal(o) <= goal(p) and _clearly(o, p) for o in ties)]
    lead = min(fair, key=lambda p: sum(m.count for m in p.machines))
    return [lead, *(p for p in plans if p is not lead)]


def _clearly(other: Plan, plan: Plan) -> bool:
    """Whether a plan is clearly cheaper or clearly faster than another."""
    ours, theirs = other.estimate, plan.estimate
    cheaper = ours.cost.mean < theirs.cost.mean * (1.0 - DOMINATES)
    return cheaper or ours.time.typical < theirs.time.typical * (1.0 - DOMINATES)


def _quoted_first(plans: list[Plan], goal: Goal) -> list[Plan]:
    """A plan at derived prices does not lead a quoted one that is within the derived error."""
    lead = next((p for p in plans if not is_derived(p)), None)
    if not plans or lead is None or not is_derived(plans[0]):
        return plans
    error = max(plans[0].estimate.price_sigma, 0.11)  # zone medians err 11 % (snapshot rules, 2026)
    if goal(lead) > goal(plans[0]) * (1.0 + error):
        return plans
    return [lead, *(p for p in plans if p is not lead)]
