"""The plans that an answer leads with, each in a line that a person would say aloud, and ties."""

from collections import Counter
from dataclasses import replace

from recommender.catalogs.registry import OWN
from recommender.plan.answer import Answer, Pick, Trio
from recommender.plan.effort import effort_of, generalised_cost_usd
from recommender.plan.plan import Machines, Need, Plan
from recommender.report import cells
from recommender.report import formatting as fmt

MIN_BEST_SHARE = (
    0.1  # share of the draws from which on a plan counts among those that may be the best
)
TIE = 0.75  # no plan that is the best in so many of them: a tie
_RENTED = {"spot": "on spot", "on_demand": "on demand"}
_BEST = {"cost": "the cheapest", "time": "the fastest"}
_STATED_BY_FIGURES = (  # reasons that the sentence shows by its figures
    "a quota to ask for",
    "one machine",
)
_MINOR_H = 0.05  # hours of work too few to mention
_SAME_COST = 0.02  # plans on the same machines that cost so much more are no other choice
_UNFOUNDED = {  # the evidence with which no plan is the sensible one, in words
    "guessed": "its speed was never measured on that GPU",
    "untraced": "nobody traced how long that GPU stays on spot",
    "derived": "its price was derived from other prices",
    "floor": "its price is the provider's floor, which says little about availability",
}
_MINOR_TAIL = 0.2  # share of what 1 run in 20 takes, below which it decides nothing


def trio_parts(trio: Trio | None) -> list[tuple[str, str]]:
    """Roles and what to rent; a plan that has several roles is shown once."""
    if trio is None:
        return []
    roles: dict[int, list[Pick]] = {}
    for pick in trio.picks:
        roles.setdefault(pick.rank, []).append(pick)
    why = fmt.listing([each for each in trio.picks[0].reasons if each not in _STATED_BY_FIGURES])
    parts: list[tuple[str, str]] = []
    for rank, picks in roles.items():
        tie = _tie(picks)
        words = [f"{one_sentence(picks[0].plan)} (plan {rank}{tie})", *map(faster_still, picks)]
        words.insert(1, why if not parts else "")
        parts.append((", ".join(pick.role for pick in picks), "; ".join(filter(None, words))))
    return parts


def _tie(picks: list[Pick]) -> str:
    """That plans are as sensible as the one of these roles; "" where none is."""
    ranks = [str(rank) for pick in picks for rank in pick.ties]
    plans = "plan" if len(ranks) == 1 else "plans"
    return f"; a tie with {plans} {fmt.listing(ranks)}" if ranks else ""


def faster_still(pick: Pick) -> str:
    """What the fastest plan of all costs, where few would pay it; "" if this is it."""
    if pick.faster is None:
        return ""
    less, more = fmt.duration(pick.faster.less_s), fmt.usd(pick.faster.more_usd)
    return f"faster still, by {less} for {more} USD more: plan {pick.faster.rank}"


def one_sentence(plan: Plan) -> str:
    """What to rent, what it costs, how long it takes and what it needs, in one sentence."""
    estimate = plan.estimate
    machines = " + ".join(_rented(m) for m in plan.machines)
    takes = "Use" if all(m.provider == OWN for m in plan.machines) else "Rent"
    figures = (
        f"about {fmt.usd(estimate.cost.mean)} USD, about {cells.duration_with_tail(estimate.time)}"
    )
    requests = _requests(plan)
    needs = f"; needs {requests}" if requests else ""
    return f"{takes} {machines}{_place(plan)}: {figures}{needs}"


def _rented(m: Machines) -> str:
    machine = f"{m.count}× {fmt.clean(m.instance_type)}"
    if m.provider == OWN and m.market == "on_demand":
        return machine
    return f"{machine} {_RENTED.get(m.market, fmt.market(m.market))}"


def _place(plan: Plan) -> str:
    """The places in words; empty for the user's own machines."""
    first, region = plan.machines[0], fmt.clean(cells.first_region(plan))
    if first.provider != OWN:
        return f" in {fmt.provider(first.provider)} {region}"
    return "" if region == OWN else f" in {region}"


def _lacking(need: Need) -> bool:
    """Whether it has to be requested."""
    known = need.yours if need.yours is not None else need.new_accounts
    return need.amount > (known or 0.0)


def _requests(plan: Plan) -> str:
    """The quotas to ask for, each once for all the regions of a failover list."""
    regions = Counter(replace(n, region="", yours=None) for n in plan.needs if _lacking(n))
    parts = []
    for need, count in regions.items():
        where = f" in each of {count} regions" if count > 1 else ""
        words = f"{cells.amount_of(need)} of quota{where}"
        parts.append(f"{words} for the fallback" if need.fallback else words)
    return fmt.listing(parts)


def why_it_leads(answer: Answer) -> str:
    """Why the plan that leads is not the one requested, nor one that only seems better."""
    return "; ".join(filter(None, (_against_requested(answer), _unfounded(answer))))


def _unfounded(answer: Answer) -> str:
    """The plan that would be the sensible one if its speed and its price were known; "" if none."""
    led = answer.plans[answer.lead - 1]
    if answer.trio is None or answer.trio.asked != "sensible" or _weakness(led):
        return ""
    most = _total_usd(led, answer)
    weak = [(_total_usd(p, answer), i) for i, p in enumerate(answer.plans, 1) if _weakness(p)]
    total, rank = min(weak, default=(most, 0))
    if total >= most:
        return ""
    return f"plan {rank} would be better value, but {_weakness(answer.plans[rank - 1])}"


def _weakness(plan: Plan) -> str:
    return "" if plan.evidence is None else _UNFOUNDED.get(plan.evidence.weakest, "")


def _total_usd(plan: Plan, answer: Answer) -> float:
    return generalised_cost_usd(plan, answer.goal)


def _against_requested(answer: Answer) -> str:
    """What the plan that leads costs and spares, against the one requested; "" if it is that.

    Asked for is the best by the goal, under a budget the fastest that people pay for.
    """
    if answer.trio is None:
        return ""
    reference = answer.trio.third.rank if answer.by_value else answer.best
    if answer.lead == reference:
        return ""
    led, best = answer.trio.picks[0], answer.plans[reference - 1]
    money = led.plan.estimate.cost.mean - best.estimate.cost.mean
    seconds = led.plan.estimate.time.p50 - best.estimate.time.p50
    tail_s = best.estimate.time.p95 - led.plan.estimate.time.p95
    work_h = led.effort_h - effort_of(best).total_h
    parts = [
        f"{fmt.usd(abs(money))} USD {'more' if money > 0.0 else 'less'}",
        f"{fmt.duration(abs(seconds))} {'longer' if seconds > 0.0 else 'sooner'}",
    ]
    if tail_s > max(-seconds, _MINOR_TAIL * best.estimate.time.p95):
        parts.append(f"its slowest runs (1 in 20) end {fmt.duration(tail_s)} sooner")
    if abs(work_h) > _MINOR_H:
        spent = f"{fmt.duration(3600.0 * abs(work_h))} {'more' if work_h > 0.0 else 'less'}"
        parts.append(f"{spent} of your own work (quotas, interruptions, several machines)")
    return f"against plan {reference}: {', '.join(parts)}"


def tie_line(answer: Answer) -> str:
    """How often each plan is the best over what speeds and prices may be; a tie is called one."""
    shares = [(rank, plan.best_share or 0.0) for rank, plan in enumerate(answer.plans, 1)]
    ranked = sorted(
        (each for each in shares if each[1] >= MIN_BEST_SHARE), key=lambda each: -each[1]
    )
    best = _BEST.get(answer.goal)
    if best is None or len(answer.plans) < 2 or not ranked:
        return ""
    (rank, most), *others = ranked
    if rank == answer.best and answer.by_value and most >= TIE:
        return ""  # the trio names the fastest, or what is faster still
    if most >= TIE or not others:
        alike = _alike(answer, rank)
        shared = sum(answer.plans[each - 1].best_share or 0.0 for each in alike)
        often = fmt.percent(most + shared)
        if alike:
            plans = fmt.listing([str(each) for each in (rank, *alike)], "or")
            return (
                f"Plan {plans}, which rent the same machines at about the same cost, is {best} in "
                f"{often} of the draws of speeds and prices."
            )
        return f"Plan {rank} is {best} in {often} of the draws of speeds and prices."
    named = [f"{rank} ({fmt.percent(share)})" for rank, share in ranked]
    return f"A tie: speeds and prices decide whether plan {fmt.listing(named, 'or')} is {best}."


def _alike(answer: Answer, rank: int) -> list[int]:
    """Other plans that rent other numbers of the same machines at about the same cost.

    Draws of speeds and prices move them together, so these do not tell them apart.
    """
    first = answer.plans[rank - 1]
    most = first.estimate.cost.mean * (1.0 + _SAME_COST)
    if answer.goal != "cost":
        return []
    return [
        other
        for other, plan in enumerate(answer.plans, 1)
        if other != rank and _kinds(plan) == _kinds(first) and plan.estimate.cost.mean <= most
    ]


def _kinds(plan: Plan) -> set[tuple[str, ...]]:
    return {(m.provider, m.instance_type, m.market, m.region) for m in plan.machines}
