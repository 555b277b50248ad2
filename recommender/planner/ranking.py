"""Selects which of the found plans are ranked, for a table or a frontier, and orders them."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from operator import attrgetter
from typing import Literal

import numpy as np

from recommender.catalogs.frozen import dataclass
from recommender.optimize.candidate import Candidate, ranking_key
from recommender.optimize.space import MEMORY_TIER
from recommender.plan.frontier import distinct, unbeaten
from recommender.plan.limits import Limits
from recommender.plan.plan import Plan
from recommender.planner.plan_builder import (
    Evaluated,
    PlanBuilder,
    best_on_demand,
    goal_value_of,
    has_derived_price,
)
from recommender.planner.plan_pool import PlanPool

SIMULATED = 6  # kinds of plans built, however few are shown
CHEAPEST = 8  # plans of a frontier that are built until one ends within the horizon
KIND_PLANS = 4  # plans of one kind that are built until one meets the limits
TIE = 0.002  # goals closer than this are a tie: fewer machines win
# Of a kind, a plan that takes four per cent less may cost one per cent more: of 0, 0.25, 0.5 and 1
# the curves of 19 presets covered most cost and time at 0.25 (November 2026).
TIME_WEIGHT = 0.25
CURVE = 8  # plans of a curve that are shown at most, unless a longer table is requested
# No plan of a frontier takes longer in 1 run in 20 while another does not: prices and spot laws of
# this month say little of the next.
HORIZON_S = 30 * 86400.0
# Of the runs: where more end on the fallback, spot is only a detour. Of 201 plans of 20 deadlines
# eleven end there in over 90 % of the runs, two in 60 to 90 %, and the others in fewer. Without
# this rule two of the 20 answers would lead with such a plan, for 1.2 and 2.7 times the money.
DETOUR = 0.8
DOMINATES = 0.05  # a tie that is this much better in the other figure is no tie

Kind = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Ranked:
    """The plans of a table, and how many more kinds of plans a longer one could contain."""

    plans: tuple[Evaluated, ...]  # the best by the goal first
    more: int
    on_demand: Plan | None = None  # what the others save against


def ranked_plans(pool: PlanPool, top: int, others: Iterable[Candidate] = ()) -> Ranked:
    """The best plans of a table of `top`; none if no plan meets the limits.

    `others` are candidates besides the best by the goal. Without limits, the frontier.
    """
    if not pool.best.plans:
        return Ranked((), 0)
    limits = pool.problem.limits
    on_demand = pool.select_or_relaxed(limits, "on_demand")
    ranking = Ranking(pool.builder, top, on_demand.best if on_demand.plans else None)
    if limits.goal == "frontier":
        return ranking.frontier([pool.best.best, *_curve(pool), *others])
    return ranking.ranked(_by_goal(pool, ranking, others), _best_of_each(pool, top))


def best_kinds(pool: PlanPool, top: int) -> tuple[Evaluated, ...]:
    """The best plan by the goal and the next best kinds, without what answers say besides."""
    if not pool.best.plans:
        return ()
    ranking = Ranking(pool.builder, top, None)
    return ranking.ranked(_by_goal(pool, ranking), []).plans


def _by_goal(
    pool: PlanPool, ranking: "Ranking", others: Iterable[Candidate] = ()
) -> list[Candidate]:
    """The plans that meet the limits; those at quoted prices too where a derived one leads."""
    plans = [*pool.best.plans, *others]
    if ranking.quoted_below(best_printed(pool.best.plans)) > 0.0:
        plans += [each for each in pool.at_quoted_prices().plans if each.printed]
    return list(dict.fromkeys(plans))


def _best_of_each(pool: PlanPool, top: int) -> list[Candidate]:
    """The best plan without spot, and the best of each provider that a table of `top` may show."""
    found = [pool.select(pool.problem.limits, "uninterrupted")]
    of_best = pool.sites.sites[pool.best.best.site].provider
    providers = [each for each in pool.providers if each != of_best]
    found += [pool.of_provider(each) for each in providers[:top]]
    return [selection.best for selection in found if selection.plans]


def cheapest_in_horizon(limits: Limits) -> Limits:
    """Limits under which the cheapest plan ends within the horizon in 19 of 20 runs."""
    most_s = min(HORIZON_S, limits.deadline_s or HORIZON_S)
    return replace(limits, deadline_s=most_s, objective="cost", confidence=0.95)


def _curve(pool: PlanPool) -> list[Candidate]:
    """What no other plan beats in both cost and time: of the promising clusters, of the fastest and
    the cheapest, all without a fallback.
    """
    aims: tuple[Literal["time", "cost"], ...] = ("time", "cost")
    limits = pool.problem.limits
    found = [pool.select(replace(limits, objective=aim)) for aim in aims]
    if any(each.plans and each.best.time_s > HORIZON_S for each in found):
        found.append(pool.select(cheapest_in_horizon(limits)))  # the cheapest may take a year
    met = [plan for each in found for plan in each.plans if plan.fallback < 0]
    searched = unbeaten(met, lambda each: (each.cost_usd, each.time_s))
    return [*searched, *pool.pool.frontier(limits)]


def best_unconstrained(pool: PlanPool, aim: Literal["time", "cost"]) -> Evaluated | None:
    """The best plan of no limits but an objective, with its figures under those asked for.

    The cheapest within the horizon, because prices and spot laws say little about later times.
    """
    limits = replace(pool.problem.limits.of_size, objective=aim)
    found = pool.select(limits).plans
    if aim == "cost" and found and found[0].time_s > HORIZON_S:
        found = pool.select(cheapest_in_horizon(limits)).plans or found
    return pool.builder.build(found[0]) if found else None


@dataclass(frozen=True)
class Ranking:
    """Selects and orders the plans of one problem."""

    builder: PlanBuilder
    top: int
    on_demand: Candidate | None  # the best plan without spot: what the others save against

    def ranked(self, found: Sequence[Candidate], others: list[Candidate]) -> Ranked:
        """The best plan, `others` that differ from it, and the next best kinds of plans.

        All meet the limits by their printed figures.
        """
        ordered = sorted(found, key=ranking_key)
        lead = self._lead(ordered)
        kinds = self._by_kind([lead, *others, *ordered])
        built: list[Evaluated] = []
        groups = list(kinds.values())[: max(self.top, SIMULATED)]
        firsts = [lead if lead in alike else _simplest(alike) for alike in groups]
        self.builder.prepare(firsts)
        for alike, first in zip(groups, firsts, strict=True):
            rest = sorted((c for c in alike if c != first), key=ranking_key)
            meeting = self.builder.meeting([first, *rest][:KIND_PLANS])
            built += islice((e for e in meeting if e.candidate == lead or not is_detour(e.plan)), 1)
        plans, wanted = self._led(built), {kind_of(self.builder, other) for other in others}

        def order(rank: int) -> tuple[bool, bool, int]:
            unwanted = kind_of(self.builder, plans[rank].candidate) not in wanted
            return rank > 0, unwanted, rank

        shown = sorted(sorted(range(len(plans)), key=order)[: self.top])
        compared = self._against_on_demand([plans[rank] for rank in shown], built)
        tried = min(len(kinds), max(self.top, SIMULATED))
        more = len(kinds) - tried + len(built) - len(shown)
        return Ranked(compared, more, self._cheapest_on_demand(built))

    def _lead(self, ordered: list[Candidate]) -> Candidate:
        """The plan that leads: of near-ties with the best the simplest.

        One at derived prices does not lead a quoted one that is within the derived error.
        """
        lead = best_printed(ordered)
        most = self.quoted_below(lead)
        quoted = [each for each in ordered if most > 0.0 and not self._is_derived(each)]
        quoted.sort(key=lambda each: not each.printed)
        met = next(self.builder.meeting(quoted[:KIND_PLANS]), None)
        return lead if met is None or self._goal(met) > most else met.candidate

    def quoted_below(self, lead: Candidate) -> float:
        """The goal up to which a plan at quoted prices comes first although it is not the best.

        0 if the best plan has quoted prices itself.
        """
        if not self._is_derived(lead):
            return 0.0
        first = self.builder.build(lead)
        # zone medians err 11 % (snapshot rules, 2026)
        return self._goal(first) * (1.0 + max(first.plan.estimate.price_sigma, 0.11))

    def _led(self, built: list[Evaluated]) -> list[Evaluated]:
        """Plans by their goal, but the one that leads, which is the first given."""
        if not built:
            return built
        lead, ordered = built[0], sorted(built, key=self._goal)
        best = ordered[0]
        # Only the best plans were simulated on the printed paths before: another may prove better.
        better = self._goal(best) < self._goal(lead) * (1.0 - TIE)
        if better and (not has_derived_price(best.plan) or has_derived_price(lead.plan)):
            return ordered
        return [lead, *(each for each in ordered if each.candidate != lead.candidate)]

    def frontier(self, candidates: Iterable[Candidate]) -> Ranked:
        """Plans that no other beats in both cost and time, cheapest first."""
        kinds = self._by_kind(candidates)
        # The same machines in other places are two choices.
        orders = _cost_and_some_time, attrgetter("time_s")
        by_kind = [sorted(alike, key=key) for alike in kinds.values() for key in orders]
        by_cost = sorted(chain(*kinds.values()), key=lambda each: each.cost_usd)
        # The paths of a search allow for the error of an overhead, the printed ones do not.
        firsts = [islice(self.builder.meeting(some[:KIND_PLANS]), 1) for some in by_kind]
        cheapest = _until_in_horizon(self.builder.meeting(by_cost[:CHEAPEST]))
        met = {each.candidate: each for each in chain(cheapest, *firsts)}
        figures = attrgetter("cost_usd", "time_s")
        built = sorted(met.values(), key=figures)
        choices = distinct(within_horizon(built), figures)
        listed = _representative(choices, max(self.top, CURVE))
        return Ranked(self._against_on_demand(listed, built), 0, self._cheapest_on_demand(built))

    def _goal(self, evaluated: Evaluated) -> float:
        return goal_value_of(evaluated.plan, self.builder.limits)

    def _by_kind(self, candidates: Iterable[Candidate]) -> dict[Kind, list[Candidate]]:
        """Candidates of the same GPUs, markets and size, in the order of their first."""
        kinds: dict[Kind, list[Candidate]] = {}
        for candidate in candidates:
            kinds.setdefault(kind_of(self.builder, candidate), []).append(candidate)
        return kinds

    def _against_on_demand(
        self, shown: list[Evaluated], simulated: Iterable[Evaluated]
    ) -> tuple[Evaluated, ...]:
        """Plans with their savings against the best on-demand plan simulated."""
        baseline = self._cheapest_on_demand(simulated)
        return tuple(each.against(baseline) for each in shown)

    def _cheapest_on_demand(self, simulated: Iterable[Evaluated]) -> Plan | None:
        """The best plan without spot by its printed figures, of those that meet the limits."""
        plans = [each.plan for each in simulated]
        plans += [] if self.on_demand is None else [self.builder.build(self.on_demand).plan]
        return best_on_demand(plans, self.builder.limits)

    def _is_derived(self, candidate: Candidate) -> bool:
        """Whether the price of some of its machines is derived, not quoted."""
        return any(map(self.builder.problem.is_derived, self.builder.pools_of(candidate)))


def _until_in_horizon(built: Iterable[Evaluated]) -> Iterator[Evaluated]:
    """Plans up to the first of which 19 in 20 runs end within the horizon."""
    for each in built:
        yield each
        if each.plan.estimate.time.p95 <= HORIZON_S:
            break


def within_horizon(built: list[Evaluated]) -> list[Evaluated]:
    """The plans of which 19 in 20 runs end within the horizon; if none does, the soonest."""
    slow_s = [each.plan.estimate.time.p95 for each in built]
    most_s = max(HORIZON_S, min(slow_s, default=0.0))
    return [each for each, late_s in zip(built, slow_s, strict=True) if late_s <= most_s]


def is_detour(plan: Plan) -> bool:
    """Whether most runs end on the fallback, which few would not rent from the start."""
    return plan.fallback is not None and plan.fallback.probability > DETOUR


def kind_of(builder: PlanBuilder, candidate: Candidate) -> Kind:
    """GPUs, markets and size of a plan; plans of the same kind are no real alternatives."""
    pools = builder.pools_of(candidate)
    types = tuple(sorted({(p.type.provider, p.type.gpu, p.spot) for p in pools}))
    gpus = sum(n * p.type.gpus for n, p in zip(candidate.counts, pools, strict=True))
    return (types, round(float(np.log(gpus) / np.log(1.5))))


def _cost_and_some_time(candidate: Candidate) -> float:
    """What the best plan of a kind has least of: a failover list may be worth its price."""
    return candidate.cost_usd * float(candidate.time_s**TIME_WEIGHT)


def _representative(curve: list[Evaluated], most: int) -> list[Evaluated]:
    """So many plans of a curve: those go without which least of it is lost.

    What a plan adds to two others is the area that only it covers, in factors of cost and time.
    """
    kept = list(curve)

    def adds(at: int) -> float:
        slower, plan, costlier = kept[at - 1 : at + 2]
        return math.log(slower.time_s / plan.time_s) * math.log(costlier.cost_usd / plan.cost_usd)

    while len(kept) > most:
        del kept[min(range(1, len(kept) - 1), key=adds)]
    return kept


def _simplest(alike: list[Candidate]) -> Candidate:
    """Among near-ties the cheapest of the fewest machines, none of them just for checkpoints."""
    return min(
        _ties(alike),
        key=lambda c: (c.checkpoint_path == MEMORY_TIER, sum(c.counts), c.cost_usd, ranking_key(c)),
    )


def _ties(candidates: list[Candidate]) -> list[Candidate]:
    """Those whose goals are next to the best."""
    best = min(candidate.goal_value for candidate in candidates)
    return [c for c in candidates if c.goal_value <= best * (1.0 + TIE)]


def best_printed(plans: Iterable[Candidate]) -> Candidate:
    """The simplest of near-ties with the best that no other of them beats in the other figure.

    Of plans with figures of the printed paths.
    """
    ties = _ties(sorted((each for each in plans if each.printed), key=ranking_key))
    comparable = [
        c for c in ties if not any(o.goal_value <= c.goal_value and _dominates(o, c) for o in ties)
    ]
    return _simplest(comparable)


def _dominates(other: Candidate, one: Candidate) -> bool:
    """Whether a plan is clearly cheaper or clearly faster than another."""
    cheaper = other.cost_usd < one.cost_usd * (1.0 - DOMINATES)
    return cheaper or other.time_s < one.time_s * (1.0 - DOMINATES)
