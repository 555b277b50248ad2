"""What an answer leads with: the sensible plan, the cheapest, and the fastest or the safest.

All three are in the table, and without limits they need not lie on the cost-time curve. The leading
plan is the one with the launch command, so that the first line and the command name the same
machines.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from recommender.catalogs.frozen import dataclass
from recommender.inputs.limits import as_typed, rounded_up
from recommender.optimize.candidate import Candidate
from recommender.plan.answer import Faster, Pick, Role, SensitivityStep, Trio
from recommender.plan.effort import (
    HOUR_USD,
    doubted_cost_usd,
)
from recommender.plan.limits import LIMITS, Aim, Limit, Limits
from recommender.plan.plan import Plan
from recommender.planner.plan_builder import (
    SAME_CHANCE,
    Evaluated,
    are_duplicates,
    best_on_demand,
    goal_value_of,
    is_uninterrupted,
    ranks_in,
)
from recommender.planner.plan_pool import PlanPool
from recommender.planner.ranking import Ranked, kind_of
from recommender.planner.relaxed_limits import MARGIN
from recommender.planner.sensitivity import compared
from recommender.planner.trio_candidates import TrioCandidates, guesses_of, is_sure, machines_of

AS_SENSIBLE = 0.05  # plans that cost so much more at most, all counted, are as sensible
# And so much more at most are called a tie: with other simulated runs the same plan costs mostly up
# to 4 % more or less, once 8 %, all counted (nineteen presets, three seeds, 2026-11-26).
TIED_COST = 0.1
TIES = 3  # ties on other machines that are in the table
MAX_COST_FACTOR = 3.0  # of the least total cost: above it a plan is not a choice by value
SAME_COST = 0.02  # costs closer than this are not a reason to choose
SAME_TIME = 0.02  # nor are times: with other runs medians differ by 1.2 to 1.6 % (--verify)
# The maximum value of an hour if nothing is stated: two people who only wait.
URGENT_HOUR_USD = 2.0 * HOUR_USD
CHANCE_TOLERANCE = 0.02  # printed chances are right to a point, each of two (docs/research/risk.md)

# The leading plan: the sensible one, or the best by a stated objective.
LEADS: dict[Aim, Role] = {"auto": "sensible", "cost": "cheapest", "time": "fastest"}

TotalUsd = Callable[[Evaluated], float]  # money, effort and waiting together


@dataclass(frozen=True, slots=True)
class TrioPlans:
    """The plans of the three roles; one may hold several."""

    sensible: Evaluated
    cheapest: Evaluated
    third: Evaluated
    third_role: Role
    today: Evaluated | None  # what a new account can start now; None where the sensible plan is it
    elsewhere: Evaluated | None  # on demand at another cloud, should the first have none left
    fastest: Evaluated  # at any price
    kinds: tuple[Evaluated, ...]  # the best of each kind by value, the best first
    ties: tuple[Evaluated, ...]  # on other machines, the best first

    def numbered(self, table: Sequence[Evaluated], limits: Limits) -> Trio:
        """The trio by the numbers of a table that holds all three."""
        ranks = ranks_in(table)

        def pick(
            role: Role, chosen: Evaluated, faster: Faster | None = None, ties: tuple[int, ...] = ()
        ) -> Pick:
            rank = ranks[chosen.candidate]
            return Pick(role, rank, table[rank - 1].plan, faster, ties)

        rank = ranks.get(self.fastest.candidate)  # None unless speed at any price was requested
        faster = None if rank is None or self.third_role != "fastest" else self._faster(rank)
        return Trio(
            sensible=pick("sensible", self.sensible, ties=self._as_sensible(table, limits)),
            cheapest=pick("cheapest", self.cheapest),
            third=pick(self.third_role, self.third, faster),
            today=None if self.today is None else pick("today", self.today),
            elsewhere=0 if self.elsewhere is None else ranks[self.elsewhere.candidate],
            asked=LEADS[limits.objective],
        )

    def _as_sensible(self, table: Sequence[Evaluated], limits: Limits) -> tuple[int, ...]:
        """Plans that differ from the sensible one by less than other draws would change.

        With another seed they might replace it. Not those that differ in their fallbacks only.
        """
        machines, total_usd = self.sensible.plan.machines, _counting(limits)
        most = total_usd(self.sensible) * (1.0 + TIED_COST)
        return tuple(
            rank
            for rank, each in enumerate(table, 1)
            if each.plan.machines != machines and total_usd(each) <= most
        )

    def _faster(self, rank: int) -> Faster | None:
        """What is faster still than the third, by the printed figures."""
        listed, other = self.third.plan.estimate, self.fastest.plan.estimate
        less_s = listed.time.p50 - other.time.p50
        if less_s <= SAME_TIME * listed.time.p50:
            return None
        return Faster(rank, other.cost.mean - listed.cost.mean, less_s)


def choose_trio(candidates: TrioCandidates, ranked: Ranked) -> TrioPlans | None:
    """The trio of the plans that meet the limits; None where none does."""
    pool, shown = candidates.pool, ranked.plans
    limits = pool.problem.limits
    plans = _without_duplicates(candidates.plans(shown), shown)
    if not plans:
        return None
    keeping = ranks_in(plans)
    best = shown[0] if shown and shown[0].candidate in keeping else None
    total_usd = _counting(limits)
    sensible = _sensible(plans, total_usd)
    most = MAX_COST_FACTOR * total_usd(sensible)
    known = [each for each in (*plans, *candidates.startable) if total_usd(each) <= most]
    startable = [each for each in known if each.plan.startable]
    curve = [each for each in plans if each in shown] if limits.goal == "frontier" else []
    fastest = best if best and limits.goal == "time" else _fastest(curve or plans)
    safest = limits.deadline_s is not None and limits.objective != "time"
    third = _safest(plans, total_usd) if safest else _fastest_worth_paying(plans, sensible)
    return TrioPlans(
        sensible=sensible,
        cheapest=best if best and limits.goal == "cost" else _cheapest(plans, total_usd),
        third=fastest if limits.objective == "time" else third,  # at any price only if asked for
        third_role="safest" if safest else "fastest",
        today=None if sensible.plan.startable else _most_sensible(startable, total_usd),
        elsewhere=_most_sensible(_elsewhere(known, sensible.plan), total_usd),
        fastest=fastest,
        kinds=_kinds(pool, plans, total_usd) if limits.by_value else (),
        ties=_ties(pool, curve or plans, sensible, total_usd),
    )


def _counting(limits: Limits) -> TotalUsd:
    """Money, effort and waiting together, in USD, if what is known of a plan errs against it."""
    return lambda each: doubted_cost_usd(each.plan, limits.goal)


def _elsewhere(known: Iterable[Evaluated], first: Plan) -> list[Evaluated]:
    """The plans of other clouds than that of a plan which waits for machines on demand.

    Nobody publishes how often a cloud has none left. Spot has its failover list.
    """
    if first.is_owned or not is_uninterrupted(first):
        return []
    clouds = {each.provider for each in first.machines}
    others = (e for e in known if is_uninterrupted(e.plan) and e.plan.is_promised)
    return [e for e in others if not clouds & {m.provider for m in e.plan.machines}]


def surer_step(candidates: TrioCandidates, sensible: Evaluated) -> SensitivityStep | None:
    """The least rise of a limit that allows a plan without spot and guesses that is as sensible.

    None where the sensible plan is such a plan itself.
    """
    limits = candidates.pool.problem.limits
    total_usd = _counting(limits)
    most = total_usd(sensible) * (1.0 + TIED_COST)
    for limit, asked in limits.given(LIMITS) if not is_sure(sensible.plan) else ():
        worth = [each for each in candidates.sure_without(limit) if total_usd(each) <= most]
        nearest = min(worth, key=lambda each: limit.of_plan(each.plan), default=None)
        if nearest is None or limit.of_plan(nearest.plan) <= asked:
            continue
        change, plan = raised(candidates.pool, limit, nearest)
        if plan is not None:
            return replace(compared(change, plan, sensible.plan), surer=True)
    return None


def sensible_without(pool: PlanPool, limit: Limit, asked: Limits) -> tuple[str, Plan | None]:
    """What would be sensible, without spot and guesses, were one limit none: what it needs."""
    found = TrioCandidates(pool).sure_without(limit)
    return raised(pool, limit, min(found, key=_counting(asked))) if found else ("", None)


def raised(pool: PlanPool, limit: Limit, needing: Evaluated) -> tuple[str, Plan | None]:
    """A limit as wide as a plan needs it, as typed, and the plan if that is enough."""
    problem = pool.problem
    value = rounded_up(limit, MARGIN * limit.of_plan(needing.plan), problem.progress)
    met = pool.first_meeting([needing.candidate], problem.limits.with_value(limit, value))
    return as_typed(limit, value, problem.progress), None if met is None else met.plan


def _without_duplicates(plans: Sequence[Evaluated], first: Sequence[Evaluated]) -> list[Evaluated]:
    """Plans without duplicates: no two rent the same machines at the same cost and time.

    Duplicates differ in checkpoints only. Of those, the one in `first` is kept.
    """
    ranks = ranks_in(first)
    kept: list[Evaluated] = []
    for each in sorted(plans, key=lambda each: ranks.get(each.candidate, len(ranks) + 1)):
        if not any(are_duplicates(each.plan, other.plan) for other in kept):
            kept.append(each)
    return kept


def _ties(
    pool: PlanPool, plans: Sequence[Evaluated], sensible: Evaluated, total_usd: TotalUsd
) -> tuple[Evaluated, ...]:
    """Ties on other machines, of which one might lead with other simulated runs.

    That is the one with the least total cost, or the cheapest of those near it.
    """
    most = total_usd(sensible) * (1.0 + TIED_COST)
    kinds = {machines_of(pool, sensible.candidate): sensible}
    for each in sorted(plans, key=total_usd):
        if total_usd(each) <= most:
            kinds.setdefault(machines_of(pool, each.candidate), each)
    others = list(kinds.values())[1:]
    cheapest = sorted(others, key=lambda each: each.cost_usd)
    return tuple({each.candidate: each for each in (*others[:1], *cheapest)}.values())[:TIES]


def _kinds(
    pool: PlanPool, plans: Sequence[Evaluated], total_usd: TotalUsd
) -> tuple[Evaluated, ...]:
    """The most valuable plan of each kind, without those that are far worse than the first."""
    ordered = sorted(plans, key=total_usd)
    most = MAX_COST_FACTOR * total_usd(ordered[0])
    found: dict[object, Evaluated] = {}
    for each in ordered:
        if total_usd(each) <= most:
            found.setdefault(kind_of(pool.builder, each.candidate), each)
    return tuple(found.values())


def table_of(found: TrioPlans | None, ranked: Ranked, limits: Limits) -> tuple[Evaluated, ...]:
    """The ranked plans and the three by their goal; by value the best of their kinds instead."""
    if found is None:
        return ranked.plans
    chosen = found.kinds[: len(ranked.plans)] if limits.by_value else ranked.plans
    labelled = {each.candidate: each for each in ranked.plans}
    plans: dict[Candidate, Evaluated] = {}
    others = tuple(each for each in (found.today, found.elsewhere) if each is not None)
    picked = (*ranked.plans[:1], found.sensible, found.cheapest, found.third, *others)
    for each in (*chosen, *picked, *found.ties):
        plans.setdefault(each.candidate, labelled.get(each.candidate, each))
    if limits.goal != "frontier":
        plans = _without_twins(plans, picked)
    known = () if ranked.on_demand is None else (ranked.on_demand,)
    baseline = best_on_demand((*known, *(each.plan for each in plans.values())), limits)
    listed = [each.against(baseline) for each in plans.values()]
    if limits.by_value:
        return tuple(sorted(listed, key=_counting(limits)))
    return (*listed[:1], *sorted(listed[1:], key=lambda each: goal_value_of(each.plan, limits)))


def _without_twins(
    plans: dict[Candidate, Evaluated], picked: Sequence[Evaluated]
) -> dict[Candidate, Evaluated]:
    """Plans without those that differ from another in patience, checkpoints or fallback only.

    Those that are picked stay, because each has a name.
    """
    named = {each.candidate for each in picked}
    shown = {each.plan.machines for each in picked}
    kept: dict[Candidate, Evaluated] = {}
    for candidate, each in plans.items():
        if candidate in named or each.plan.machines not in shown:
            kept[candidate] = each
            shown.add(each.plan.machines)
    return kept


def _sensible(plans: Collection[Evaluated], total_usd: TotalUsd) -> Evaluated:
    """The least of money, effort and waiting; of near-ties the cheapest with the fewest guesses.

    If possible one that a new account can start.
    """
    most = min(map(total_usd, plans)) * (1.0 + AS_SENSIBLE)
    near = [each for each in plans if total_usd(each) <= most]
    ready = [each for each in near if each.plan.startable] or near
    fewest = min(guesses_of(each.plan) for each in ready)
    return _cheapest([each for each in ready if guesses_of(each.plan) == fewest], total_usd)


def _most_sensible(plans: Collection[Evaluated], total_usd: TotalUsd) -> Evaluated | None:
    return _sensible(plans, total_usd) if plans else None


def _cheapest(plans: Sequence[Evaluated], total_usd: TotalUsd) -> Evaluated:
    """The least money; of plans that cost about the same the one that is least, all counted."""
    most = min(each.cost_usd for each in plans) * (1.0 + SAME_COST)
    return min((each for each in plans if each.cost_usd <= most), key=total_usd)


def _fastest_worth_paying(plans: Sequence[Evaluated], sensible: Evaluated) -> Evaluated:
    """The fastest that people pay for: the least of money and `URGENT_HOUR_USD` for each hour.

    So an hour that it saves against any plan costs no more than that; of near-ties the fastest,
    and of those that are as fast the cheapest.
    """

    def urgent_usd(each: Evaluated) -> float:
        return each.cost_usd + URGENT_HOUR_USD * each.time_s / 3600.0

    median_s = sensible.plan.estimate.time.p50  # which is printed; plans are ordered by the mean
    no_slower = [
        each
        for each in plans
        if each.time_s <= sensible.time_s and each.plan.estimate.time.p50 <= median_s
    ]
    most = min(map(urgent_usd, no_slower)) * (1.0 + AS_SENSIBLE)
    paid = [each for each in no_slower if urgent_usd(each) <= most]
    least_s = min(each.time_s for each in paid) * (1.0 + SAME_TIME)
    return min((each for each in paid if each.time_s <= least_s), key=lambda each: each.cost_usd)


def _fastest(plans: Sequence[Evaluated]) -> Evaluated:
    return min(plans, key=lambda each: (each.time_s, each.cost_usd))


def _safest(plans: Sequence[Evaluated], total_usd: TotalUsd) -> Evaluated:
    """Without spot if such a plan is about as likely to be in time as any, else the likeliest.

    Of these the one that costs least, all counted. Nobody promises that a stranger's host stays.
    """
    plans = [each for each in plans if each.plan.is_promised] or plans
    best = max(each.plan.estimate.chance for each in plans)

    def likely(less: float) -> list[Evaluated]:
        return [each for each in plans if each.plan.estimate.chance >= best - less]

    held = [each for each in likely(CHANCE_TOLERANCE) if is_uninterrupted(each.plan)]
    return min(held or likely(SAME_CHANCE), key=total_usd)
