"""Why a plan of an answer leads, what the others are to most people, and ties."""

from recommender.plan.answer import Answer, Pick, Trio
from recommender.plan.effort import effort_of, generalised_cost_usd
from recommender.plan.plan import Plan
from recommender.report import formatting as fmt

MIN_BEST_SHARE = 0.1  # of the draws, from which on a plan may be the best
_BEST = {"cost": "the cheapest", "time": "the fastest"}
_MINOR_H = 0.05  # hours of work too few to mention
_UNFOUNDED = {  # the evidence with which no plan is the sensible one, in words
    "guessed": "its speed was never measured on this GPU",
    "untraced": "nobody traced how long it stays on spot",
    "asked": "one host of a stranger, who can read your data and may ask more",
    "derived": "its price was derived from other prices",
    "floor": "at the lowest price that the provider allows: there may be none",
    "assumed": "when such machines begin was never published",
    "unpublished": "its vCPUs and memory are not published",
}
_MINOR_TAIL = 0.2  # share of what 1 run in 20 takes, below which it decides nothing


def role_words(trio: Trio | None) -> dict[int, tuple[str, ...]]:
    """What the leading plans are to most people, by their numbers: lines of a table's cell."""
    if trio is None:
        return {}
    roles: dict[int, list[Pick]] = {}
    for pick in trio.picks:
        roles.setdefault(pick.rank, []).append(pick)
    return {
        rank: (
            ("rent this: " if rank == trio.picks[0].rank else "")
            + fmt.listing([pick.role for pick in picks]),
            *filter(None, (each for pick in picks for each in (_ties(pick), faster_still(pick)))),
        )
        for rank, picks in roles.items()
    }


def _ties(pick: Pick) -> str:
    """That other plans are as sensible; "" where none is."""
    plans = "plan" if len(pick.ties) == 1 else "plans"
    return f"as sensible: {plans} {fmt.listing([str(n) for n in pick.ties])}" if pick.ties else ""


def faster_still(pick: Pick) -> str:
    """What the fastest plan of all costs, where few would pay it; "" if this is it."""
    if pick.faster is None:
        return ""
    less, more = fmt.duration(pick.faster.less_s), fmt.usd(pick.faster.more_usd)
    return f"faster still, by {less} for {more} USD more: plan {pick.faster.rank}"


def why_it_leads(answer: Answer) -> str:
    """Why the plan that leads is not the one requested, nor one that only seems better."""
    return "; ".join(filter(None, (_against_requested(answer), _unfounded(answer))))


def _unfounded(answer: Answer) -> str:
    """The plan that would be the sensible one if its speed and its price were known; "" if none."""
    led = answer.plans[answer.lead - 1]
    if answer.trio is None or answer.trio.asked != "sensible" or weakness(led):
        return ""
    most = _total_usd(led, answer)
    weak = [(_total_usd(p, answer), i) for i, p in enumerate(answer.plans, 1) if weakness(p)]
    total, rank = min(weak, default=(most, 0))
    if total >= most:
        return ""
    return f"plan {rank} would be better value, but {weakness(answer.plans[rank - 1])}"


def weakness(plan: Plan) -> str:
    """The evidence that keeps a plan from being the sensible one, in words; "" if none does."""
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
    """How often each plan is the best over what speeds and prices may be."""
    best = _BEST.get(answer.goal)
    shares = [(plan.best_share or 0.0, rank) for rank, plan in enumerate(answer.plans, 1)]
    said = [
        f"plan {rank} in {fmt.percent(share)}"
        for share, rank in sorted(shares, key=lambda each: -each[0])
        if share >= MIN_BEST_SHARE
    ]
    if best is None or len(answer.plans) < 2 or not said:
        return ""
    draws = [f"{said[0]} of their draws", *said[1:]]
    return f"Speeds and prices are not known exactly: {best} is {fmt.listing(draws)}."
