"""Which plans stand in the table, and in which order."""

from collections.abc import Iterable
from itertools import islice

import numpy as np

from recommender.catalogs.frozen import dataclass
from recommender.optimize.search_state import Candidate, SearchState, ranking_key
from recommender.optimize.space import MEMORY_TIER
from recommender.plan.plan import Plan
from recommender.planner.plan_builder import (
    Evaluated,
    PlanBuilder,
    goal_of,
    has_derived_price,
    is_on_demand_only,
    keeps,
)

SIMULATED = 12  # kinds of plans simulated again, however few are shown: the same plan wins
TRIES = 4  # plans of one kind that are simulated again until one keeps the limits
BEYOND = 24  # plans of all kinds simulated again where the search promised more than the lead
TIE = 0.005  # goals closer than this are a tie: fewer machines win
TWINS = 0.02  # nobody chooses between plans of a frontier that are closer than this in cost or time
# No plan of a frontier takes longer while another is shorter: prices and spot laws of this month
# say little of the next.
HORIZON_S = 30 * 86400.0
DOMINATES = 0.05  # a tie that is this much better in the other figure is no tie
KNEE = 0.10  # the knee is the cheapest plan at most this much slower than the fastest

Kind = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Ranked:
    """The plans of a table, and how many more kinds of plans a longer one could hold at most."""

    plans: tuple[Evaluated, ...]
    more: int


@dataclass(frozen=True)
class Ranking:
    """Chooses and orders the plans of one problem."""

    builder: PlanBuilder
    top: int
    on_demand: Candidate | None  # the best plan without spot: what the others save against

    def ranked(self, state: SearchState, others: list[Candidate]) -> Ranked:
        """The best plan, others that differ from it, and the best of each provider.

        All keep the limits by their printed figures, unless no plan that was simulated does.
        """
        ordered = sorted(state.incumbents.values(), key=ranking_key)
        kinds = self._by_kind([ordered[0], *others, *ordered])
        built = self._best_of_kinds(kinds)
        keeping = [each for each in built.values() if keeps(each.plan, self.builder.limits)]
        kept = sorted(keeping or built.values(), key=self._goal)
        kept = self._quoted_first(self._fewest_machines_first(kept))
        wanted = [built[kind] for kind in map(self._kind, others) if kind in built]
        wanted = [each for each in wanted if each in kept]
        first = [kept[0], *(each for each in wanted if each != kept[0])][: self.top]
        rest = [each for each in kept if each not in first]
        shown = [*first, *rest[: self.top - len(first)]]
        plans = self._labelled([each for each in kept if each in shown], built.values())
        return Ranked(plans, len(kept) - len(plans) + len(kinds) - len(built))

    def _best_of_kinds(self, kinds: dict[Kind, list[Candidate]]) -> dict[Kind, Evaluated]:
        """A plan of each of the first kinds: the simplest that keeps the limits, if any does."""
        built: dict[Kind, Evaluated] = {}
        for kind, alike in islice(kinds.items(), max(self.top, SIMULATED)):
            first = _simplest(alike)
            tried = [first, *(c for c in sorted(alike, key=ranking_key) if c != first)][:TRIES]
            keeping = next(self.builder.keeping(tried), None)
            built[kind] = keeping or self.builder.build(first)
        better = self._better_than_lead(kinds, built)
        return built if better is None else built | {self._kind(better.candidate): better}

    def _better_than_lead(
        self, kinds: dict[Kind, list[Candidate]], built: dict[Kind, Evaluated]
    ) -> Evaluated | None:
        """A plan that keeps the limits and beats all tried so far, though its like failed.

        Of one kind many may miss a chance by a hair where the next keeps it: of gpt2-medium for
        243 USD five on an H200 machine, the fifth in 11 h; the next kind took 27 h (November 2026).
        """
        keeping = [each for each in built.values() if keeps(each.plan, self.builder.limits)]
        lead = min(map(self._goal, keeping), default=0.0)
        promising = [
            candidate
            for kind in built
            for candidate in kinds[kind]
            if candidate.goal < lead * (1.0 - TIE)
        ]
        found = self.builder.keeping(sorted(promising, key=ranking_key)[:BEYOND])
        return next((each for each in found if self._goal(each) < lead), None)

    def frontier(self, candidates: Iterable[Candidate]) -> Ranked:
        """Plans that no other beats in both cost and time, cheapest first."""
        built = sorted(
            (self.builder.build(_simplest(alike)) for alike in self._by_kind(candidates).values()),
            key=lambda each: (each.cost_usd, each.time_s),
        )
        return Ranked(self._labelled(_worth_a_choice(built), built), 0)

    def _goal(self, evaluated: Evaluated) -> float:
        return goal_of(evaluated.plan, self.builder.limits)

    def _by_kind(self, candidates: Iterable[Candidate]) -> dict[Kind, list[Candidate]]:
        """Candidates of the same GPUs, markets and size, in the order of their first."""
        kinds: dict[Kind, list[Candidate]] = {}
        for candidate in candidates:
            kinds.setdefault(self._kind(candidate), []).append(candidate)
        return kinds

    def _kind(self, candidate: Candidate) -> Kind:
        pools = self.builder.pools_of(candidate)
        types = tuple(sorted({(p.type.provider, p.type.gpu, p.spot) for p in pools}))
        gpus = sum(n * p.type.gpus for n, p in zip(candidate.counts, pools, strict=True))
        return (types, round(float(np.log(gpus) / np.log(1.5))))

    def _labelled(
        self, shown: list[Evaluated], simulated: Iterable[Evaluated]
    ) -> tuple[Evaluated, ...]:
        """Savings against the best on-demand plan simulated, best of each provider, the knee."""
        baseline = self._cheapest_on_demand(simulated)
        providers: set[str] = set()
        result = []
        for each in shown:
            provider = each.plan.machines[0].provider
            labels = () if provider in providers else (f"best of {provider}",)
            providers.add(provider)
            result.append(each.labelled(*each.plan.labels, *labels).against(baseline))
        if self.builder.limits.goal == "time" and result:
            near = [each for each in result if each.time_s <= result[0].time_s * (1.0 + KNEE)]
            knee = min(near, key=lambda each: each.cost_usd)
            if knee != result[0]:
                result[result.index(knee)] = knee.labelled(*knee.plan.labels, "knee")
        return tuple(result)

    def _cheapest_on_demand(self, simulated: Iterable[Evaluated]) -> Plan | None:
        """The best plan without spot by its printed figures, of those that keep the limits."""
        plans = [each.plan for each in simulated if is_on_demand_only(each.plan)]
        plans += [] if self.on_demand is None else [self.builder.build(self.on_demand).plan]
        keeping = [plan for plan in plans if keeps(plan, self.builder.limits)]
        return min(
            keeping or plans, key=lambda plan: goal_of(plan, self.builder.limits), default=None
        )

    def _fewest_machines_first(self, plans: list[Evaluated]) -> list[Evaluated]:
        """Among near-ties with the first, the plan with the fewest machines leads."""
        goal = self._goal
        if not plans:
            return plans
        ties = [p for p in plans if goal(p) <= goal(plans[0]) * (1.0 + TIE)]
        # Never one that another tie beats in the other figure too: 36 % more expensive, no faster.
        fair = [p for p in ties if not any(goal(o) <= goal(p) and _dominates(o, p) for o in ties)]
        return _led_by(min(fair, key=lambda p: sum(m.count for m in p.plan.machines)), plans)

    def _quoted_first(self, plans: list[Evaluated]) -> list[Evaluated]:
        """A plan at derived prices does not lead a quoted one that is within the derived error."""
        lead = next((p for p in plans if not has_derived_price(p.plan)), None)
        if not plans or lead is None or not has_derived_price(plans[0].plan):
            return plans
        # zone medians err 11 % (snapshot rules, 2026)
        error = max(plans[0].plan.estimate.price_sigma, 0.11)
        if self._goal(lead) > self._goal(plans[0]) * (1.0 + error):
            return plans
        return _led_by(lead, plans)


def _worth_a_choice(built: list[Evaluated]) -> list[Evaluated]:
    """Of plans from the cheapest on those that differ in cost and time, none beyond the horizon."""
    least_s = min((each.time_s for each in built), default=0.0)
    kept: list[Evaluated] = []
    for each in built:
        last_s = kept[-1].time_s if kept else np.inf
        if each.time_s > max(HORIZON_S, least_s) or each.time_s >= last_s * (1.0 - TWINS):
            continue
        if kept and each.cost_usd <= kept[-1].cost_usd * (1.0 + TWINS):
            kept.pop()  # as cheap, and faster
        kept.append(each)
    return kept


def _simplest(alike: list[Candidate]) -> Candidate:
    """Among near-ties the cheapest of the fewest machines, none of them just for checkpoints."""
    best = min(candidate.goal for candidate in alike)
    ties = [c for c in alike if c.goal <= best * (1.0 + TIE)]
    return min(
        ties,
        key=lambda c: (c.checkpoint_path == MEMORY_TIER, sum(c.counts), c.cost_usd, ranking_key(c)),
    )


def _led_by(lead: Evaluated, plans: list[Evaluated]) -> list[Evaluated]:
    return [lead, *(plan for plan in plans if plan != lead)]


def _dominates(other: Evaluated, one: Evaluated) -> bool:
    """Whether a plan is clearly cheaper or clearly faster than another."""
    cheaper = other.cost_usd < one.cost_usd * (1.0 - DOMINATES)
    return cheaper or other.time_s < one.time_s * (1.0 - DOMINATES)
