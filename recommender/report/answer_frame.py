"""The lines above and under the table of an answer: question, prices, baselines, proof."""

from collections.abc import Sequence
from dataclasses import field

from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import OWN
from recommender.job.derive import size_of_work
from recommender.job.job import Job
from recommender.plan.answer import Answer
from recommender.plan.effort import HOUR_USD
from recommender.plan.limits import Choice, Goal, Limits, Progress
from recommender.plan.plan import Plan
from recommender.report import cells
from recommender.report import formatting as fmt
from recommender.report.formatting import age_days
from recommender.report.limit_words import as_typed, limits_in_words, why_not
from recommender.text import NO_MONEY

FIGURES = "Mean cost and median time; below them the range of 9 in 10 runs"
_TIME_ORDER = "; in the order of mean time"
FRESH_DAYS = 7  # younger prices need no word about how to renew them
_MAX_TOP = 1000  # plans that may be requested
RENEW = "recommend catalog update"  # needs no account


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A job, its limits, the allowed offers, and the progress of the job."""

    job: Job
    limits: Limits = field(default_factory=Limits)
    choice: Choice = field(default_factory=Choice)
    progress: Progress = field(default_factory=Progress)
    catalog: str = ""  # version of the catalog that was read
    deadline_at: str = ""  # the deadline with its time zone, if it was given as a moment
    folder: str = ""  # that the files which run the plan are written to, where they are
    target: str = ""  # of these files, where one was named
    currency: tuple[str, float, str] | None = None  # to show, what 1 USD is in it, and since when


def job_line(request: PlanRequest) -> str:
    """The job in one line: amount, work, precision, checkpoint."""
    job = request.job
    facts = [
        fmt.clean(size_of_work(job)),
        f"{fmt.scientific(job.total_flop)} FLOP",
        "mixed precision" if job.precision == "mixed" else job.precision,
        *([job.method] if job.method != "full" else []),
        f"{fmt.size(job.checkpoint_bytes)} checkpoint",
    ]
    return f"{fmt.clean(job.name)}: {', '.join(facts)}"


def goal_line(answer: Answer, request: PlanRequest) -> str:
    """The objective, and the limits with their confidence."""
    asked = asked_words(request)
    if not asked:
        return {
            "cost": "Cheapest plans, without any limit",
            "time": "Fastest plans, without any limit",
            "frontier": "Plans that no other plan beats in both cost and time",
        }[answer.goal]
    what = {"cost": "Cheapest plans", "time": "Fastest plans", "frontier": "Best plans"}
    goal = "Best-value plans" if answer.by_value else what[answer.goal]
    return f"{goal} that {asked}"


def asked_words(request: PlanRequest, brief: bool = False) -> str:
    """The limits with their confidence, and what is left of a running job; "" without limits.

    A deadline that is a moment is said as both, or if it is to be `brief` as the moment.
    """
    promise = limits_in_words(request.limits)
    if not promise:
        return ""
    if request.deadline_at:  # the moment is what was asked, the time what is left until then
        left = f"finish within {as_typed('time', request.limits.deadline_s or 0.0)}"
        in_words = f"finish by {request.deadline_at}"
        promise = promise.replace(
            left, in_words if brief else f"{left}, by {request.deadline_at},", 1
        )
    sure = fmt.exact(100.0 * request.limits.confidence)
    return f"{promise} with {sure} % chance{_left(request)}"


def _left(request: PlanRequest) -> str:
    """What is left of the job and of its limits: all figures are of that."""
    progress, limits, parts = request.progress, request.limits, list[str]()
    if progress.done_share:
        parts.append(f"{fmt.percent(1.0 - progress.done_share)} of the work")
    if progress.elapsed_s and limits.deadline_s is not None:
        parts.append(fmt.duration(limits.deadline_s - progress.elapsed_s))
    if progress.spent_usd and limits.budget_usd is not None:
        parts.append(f"{fmt.usd(limits.budget_usd - progress.spent_usd)} USD")
    return f"; the rest is planned: {fmt.listing(parts)}" if parts else ""


def price_line(answer: Answer, request: PlanRequest) -> str:
    """The age of the prices that the shown plans rent at, by market, and what renews them."""
    meant = "used as quoted" if request.choice.prices_as_quoted else "the spans allow for it"
    found = age_words(answer.plans, f" ({meant})")
    return f"Prices rented here: {found}." if found else ""


def age_words(plans: Sequence[Plan], meant: str = "") -> str:
    """The age of the prices that plans and their fallbacks rent at; "" where none is dated."""
    ages = sorted(_ages(plans).items())
    oldest = max((max(days) for _, days in ages), default=0)
    if oldest == 0:
        return "from today" if ages else ""
    kinds = ", ".join(f"{fmt.market(market)} {_days(days)}" for market, days in ages)
    renewed = f"; {RENEW} renews them" if oldest >= FRESH_DAYS else ""
    return f"{kinds} days old{meant}{renewed}"


def currency_line(answer: Answer, request: PlanRequest) -> str:
    """The costs of the plans in the user's currency, with the rate that it was done at."""
    if request.currency is None:
        return ""
    code, rate, day = request.currency
    found = [plan.estimate.cost for plan in answer.plans]
    spans = [fmt.usd_span(rate * cost.p05, rate * cost.p95) for cost in found]
    costs = [
        f"plan {number} {fmt.usd(rate * cost.mean)} ({span})"
        for number, (cost, span) in enumerate(zip(found, spans, strict=True), 1)
    ]
    when = f" of {day}" if day else ""
    return f"in {code}: {', '.join(costs)}; 1 USD = {fmt.number(rate)} {code}, your rate{when}"


def _ages(plans: Sequence[Plan]) -> dict[str, list[int]]:
    """Days since the prices of plans and of their fallbacks, by market."""
    ages: dict[str, list[int]] = {}
    for plan in plans:
        for m in (*plan.machines, *(plan.fallback.machines if plan.fallback else ())):
            age = age_days(m.as_of)
            dated_by_default = m.provider == OWN and age == 0
            if age is not None and not dated_by_default:
                ages.setdefault(m.market, []).append(age)
    return ages


def _days(ages: list[int]) -> str:
    low, high = min(ages), max(ages)
    return f"{low}" if low == high else f"{low}-{high}"


_VALUE_ORDER = (
    f"; sorted by cost plus your time at {HOUR_USD:.0f} USD/h: waiting, quota requests, "
    "interruptions, several machines"
)


def legend(answer: Answer) -> str:
    """The meaning of the table's figures, and its order if it is not by cost."""
    order = _VALUE_ORDER if answer.by_value else _TIME_ORDER if answer.goal == "time" else ""
    return f"{FIGURES}{order}."


def closing_facts(answer: Answer, request: PlanRequest) -> list[str]:
    """The facts below the table, in every human-readable format."""
    return [
        *_baselines(answer, request),
        *_more(answer),
        *_regions(answer),
        proof_words(answer),
    ]


def proof_words(answer: Answer) -> str:
    """How sure the first place is: proven, or what was not looked at."""
    proof, best = answer.proof, answer.best
    mixes = f" and {proof.mixes_rated:,} mixes" if proof.mixes_rated else ""
    looked = f"{proof.rated:,} clusters{mixes} compared, {proof.plans_simulated:,} plans simulated"
    if proof.status == "optimal":
        better = "faster" if answer.goal == "time" else "cheaper"
        if sum(machines.gpus > 0 for machines in answer.plans[best - 1].machines) > 1:
            return f"plan {best} mixes machines; no cluster of one type is {better}: {looked}"
        return (
            f"no other cluster of one machine type can be {better} than plan {best}, even if it "
            f"lost no work: {looked}"
        )
    left = fmt.plural(proof.open_clusters, "other")
    return (
        f"{looked}; plan {best} is the best of these, and {left} could be better only by losing no "
        "work (--prove)"
    )


def _more(answer: Answer) -> list[str]:
    if not answer.more_plans:
        return []
    top = min(len(answer.plans) + answer.more_plans, _MAX_TOP)
    return [f"up to {fmt.plural(answer.more_plans, 'more plan')}: --top {top}"]


def _regions(answer: Answer) -> list[str]:
    if not answer.more_regions:
        return []
    return [f"{fmt.plural(answer.more_regions, 'more region')} tried: --all-regions"]


def _baselines(answer: Answer, request: PlanRequest) -> list[str]:
    """The plans anybody would think of first: those in the table by number, then the others."""
    if not answer.plans:
        return []
    ranks = {_identity(plan): i for i, plan in reversed(list(enumerate(answer.plans, 1)))}
    named: dict[int, list[str]] = {}
    for plan in answer.baselines:
        if _identity(plan) in ranks and plan.labels:
            named.setdefault(ranks[_identity(plan)], []).append(fmt.clean(plan.labels[0]))
    shown = [f"{fmt.listing(named[rank])}: plan {rank}" for rank in sorted(named)]
    others: dict[tuple[object, ...], list[Plan]] = {}
    for plan in answer.baselines:
        if _identity(plan) not in ranks:
            others.setdefault(_identity(plan), []).append(plan)
    return [*shown, *(_against(alike, answer, request) for alike in others.values())]


def _identity(plan: Plan) -> tuple[object, ...]:
    """What makes two plans the same: machines, places in their order, and what they cost."""
    return plan.machines, plan.sites, fmt.number(plan.estimate.cost.mean)


def _against(alike: list[Plan], answer: Answer, request: PlanRequest) -> str:
    """A plan outside the table, once for all the baselines that it is, against the best plan."""
    plan = alike[0]
    kinds = fmt.listing(list(dict.fromkeys(fmt.clean(m.instance_type) for m in plan.machines)))
    labels = fmt.listing([fmt.clean(each.labels[0]) for each in alike if each.labels])
    name = f"{labels} ({kinds})" if labels else kinds
    wrong = why_not(plan, request.limits)
    if wrong:
        return f"{name} {wrong}"
    best = answer.plans[answer.best - 1].estimate
    if best.cost.mean < NO_MONEY:
        return f"{name}: {fmt.usd(plan.estimate.cost.mean)} USD"
    if answer.goal == "time":
        factor, what = plan.estimate.time.p50 / best.time.p50, "time"
    else:
        factor, what = plan.estimate.cost.mean / best.cost.mean, "cost"
    times = fmt.number(round(factor, 1 if factor >= 2 else 2))
    times = "" if times == "1" else f"{times}× "
    but = f", but {_drawback(plan, answer.goal)}" if factor < 1.0 else ""
    return f"{name}: {times}the {what} of plan {answer.best}{but}"


def _drawback(plan: Plan, goal: Goal) -> str:
    """Why a plan that is better by the goal does not lead."""
    if goal == "time":
        return f"{fmt.usd(plan.estimate.cost.mean)} USD"
    slow = plan.estimate.time.has_tail and goal == "frontier"  # which ends within a month
    if any(m.price_kind == "derived" for m in plan.machines) and not slow:
        return "at a derived price"  # which never wins by less than its error
    return cells.duration_with_tail(plan.estimate.time)
