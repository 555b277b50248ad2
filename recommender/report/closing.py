"""The line under the table: the floor, the plans anybody would think of first, the proof."""

from recommender.plan import Answer, Plan
from recommender.report import text
from recommender.report.asked import Asked

_MOST_TOP = 1000  # plans that may be asked for


def closing_facts(answer: Answer, asked: Asked) -> list[str]:
    """What stands under the table of every form for people."""
    return [
        _floor(answer),
        *_trivial(answer, asked),
        *_more(answer),
        *_regions(answer),
        _proof(answer),
    ]


def _proof(answer: Answer) -> str:
    """How sure the first place is, and whether clusters of several types were looked at."""
    proof, left = answer.proof, text.percent(answer.proof.gap)
    if proof.mixes == "in part":
        return f"best found; a mix of types up to {left} better is not ruled out"
    if proof.status == "gap":
        return f"best found; up to {left} better is not ruled out"
    if proof.mixes == "not searched":
        return "plan 1 proven best of one machine type; mixes of types: --mix"
    return "plan 1 proven best, mixes of types included"


def _floor(answer: Answer) -> str:
    if answer.goal == "time":
        return f"floor {text.duration(answer.floor_s)}"
    return f"floor {text.usd(answer.floor_usd)} USD"


def _more(answer: Answer) -> list[str]:
    if not answer.more_plans:
        return []
    top = min(len(answer.plans) + answer.more_plans, _MOST_TOP)
    return [f"up to {text.plural(answer.more_plans, 'more plan')}: --top {top}"]


def _regions(answer: Answer) -> list[str]:
    if not answer.more_regions:
        return []
    return [f"{text.plural(answer.more_regions, 'more region')} tried: --all-regions"]


def _trivial(answer: Answer, asked: Asked) -> list[str]:
    """The plans anybody would think of first: those in the table by number, then the others."""
    if not answer.plans:
        return []
    ranks = {plan.machines: i for i, plan in reversed(list(enumerate(answer.plans, 1)))}
    named: dict[int, list[str]] = {}
    for plan in answer.trivial:
        if plan.machines in ranks and plan.labels:
            named.setdefault(ranks[plan.machines], []).append(text.clean(plan.labels[0]))
    shown = [f"{text.listing(named[rank])}: plan {rank}" for rank in sorted(named)]
    others = [plan for plan in answer.trivial if plan.machines not in ranks]
    return [*shown, *(_against(plan, answer, asked) for plan in others)]


def _against(plan: Plan, answer: Answer, asked: Asked) -> str:
    kinds = text.listing(list(dict.fromkeys(text.clean(m.instance_type) for m in plan.machines)))
    name = f"{text.clean(plan.labels[0])} ({kinds})" if plan.labels else kinds
    wrong = why_not(plan, asked)
    if wrong:
        return f"{name} {wrong}"
    best = answer.plans[0].estimate
    if answer.goal == "time":
        factor, what = plan.estimate.time.typical / best.time.typical, "time"
    else:
        factor, what = plan.estimate.cost.mean / best.cost.mean, "cost"
    return f"{name}: {text.three(round(factor, 1 if factor >= 2 else 2))}× the {what} of plan 1"


def why_not(plan: Plan, asked: Asked) -> str:
    """Which limit a plan does not keep, in words; empty where it keeps all."""
    limits, estimate = asked.limits, plan.estimate
    hourly = dearest_usd_per_hour(plan)
    if limits.hourly_usd is not None and hourly > limits.hourly_usd:
        return f"costs up to {text.three(hourly)} USD/h: too dear"
    if limits.max_overhead is not None and estimate.overhead > limits.max_overhead:
        return f"loses {text.percent(estimate.overhead)} of the paid time: too much"
    if estimate.chance >= limits.confidence:
        return ""
    if limits.deadline_s is not None and estimate.time.p95 > limits.deadline_s:
        return f"takes up to {text.duration(estimate.time.p95)}: too slow"
    if limits.budget_usd is not None and estimate.cost.p95 > limits.budget_usd:
        return f"costs up to {text.usd(estimate.cost.p95)} USD: too dear"
    return f"keeps the limits in {text.share(estimate.chance)} only"


def dearest_usd_per_hour(plan: Plan) -> float:
    """List price while everything runs, at the dearest place of the failover list."""
    places = [site.usd_per_hour for site in plan.sites]
    more = max(places) - places[0] if places else 0.0
    return plan.usd_per_hour + more * sum(m.count for m in plan.machines if m.market == "spot")
