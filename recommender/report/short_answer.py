"""The answer that a person acts on: three plans, the first one's span, what to ask for and type."""

import math
from collections.abc import Iterable
from dataclasses import replace

from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import CLOUDS, OWN
from recommender.job.derive import size_of_work
from recommender.plan.answer import Answer
from recommender.plan.effort import (
    HOUR_USD,
    ONE_MACHINE,
    Effort,
    doubted_cost_usd,
    effort_of,
    risk_usd,
)
from recommender.plan.plan import Need, Plan
from recommender.report import cells
from recommender.report import formatting as fmt
from recommender.report.advice import against_today
from recommender.report.answer_frame import PlanRequest, age_words, asked_words
from recommender.report.launch import write_sentence
from recommender.report.trio import weakness
from recommender.text import interruptions_words

TIGHT = 0.99  # chance to fit the memory below which it is the catch
_ROWS = 4  # of plans; the table has all
TAIL = 2.0  # times the usual, from which on what 1 run in 20 takes is a catch
Z_SPAN = 3.29  # standard deviations from 5 to 95 %
_OLD_DAYS = 90  # a price of which age is the catch where there is no other


@dataclass(frozen=True, slots=True)
class ShortPlan:
    """A plan in the words of a row."""

    plan: Plan
    role: str  # "rent", "cheapest", "now"
    rank: int  # its number in the table of all plans; 0: none
    machines: str  # "1× p5.4xlarge on-demand"
    where: str  # "1 H100 · AWS us-east-1"
    figures: tuple[str, ...]  # cost, time, and where there are limits the chance
    catch: str  # the one thing to know before renting it; "" if there is none

    @property
    def said(self) -> tuple[object, ...]:
        """What a reader sees: rows that say the same are one."""
        return self.machines, self.where, self.figures, self.catch


@dataclass(frozen=True, slots=True)
class ShortAnswer:
    """An answer with plans, as every form for people prints it."""

    job: str
    asked: str
    headings: tuple[str, ...]  # of the figures
    plans: tuple[ShortPlan, ...]
    span: str
    steps: tuple[tuple[str, str], ...]  # "First", "Then", each with its sentence
    prices: str
    more: str
    verdict: str = ""  # that there is no plan, and how sure that is


def short_answer(answer: Answer, request: PlanRequest) -> ShortAnswer:
    """The short form of an answer that has plans."""
    lead = answer.plans[answer.lead - 1]
    limited = answer.goal != "frontier"
    steps = (
        ("First", first_words(lead, request)),
        ("Then", fmt.clean(write_sentence(lead, request))),
        ("Else", _else(answer, lead)),
        ("Contract", contract_words(answer, lead)),
    )
    return ShortAnswer(
        job=job_words(request),
        asked=asked_words(request, brief=True) or "without any limit",
        headings=("cost", "time", *(["chance"] if limited else [])),
        plans=_plans(answer, limited),
        span=_span(lead, request),
        steps=tuple((name, words) for name, words in steps if words),
        prices=age_words([lead]),
        more=_more(answer),
    )


def job_words(request: PlanRequest) -> str:
    """What was understood of the job."""
    job = request.job
    method = [job.method] if job.method != "full" and job.method not in job.name else []
    return ", ".join([f"{fmt.clean(job.name)}: {fmt.clean(size_of_work(job))}", *method])


# The rows


def _plans(answer: Answer, limited: bool) -> tuple[ShortPlan, ...]:
    """The plan to rent, the others that most people would take, and today's machines."""
    roles: dict[int, list[str]] = {answer.lead: []}
    for pick in answer.picks:
        roles.setdefault(pick.rank, []).append(pick.role)
    rows = [
        _row(answer.plans[rank - 1], rank, names, answer, limited) for rank, names in roles.items()
    ]
    for step in answer.sensitivity:
        if step.surer and step.plan is not None:
            words = f"with {step.change}"
            rows.insert(1, plan_row(step.plan, "surer", words, step.effect, limited))
    del rows[_ROWS:]
    if answer.compared is not None:
        against = f"the first {against_today(answer.plans[answer.lead - 1], answer.compared)}"
        rows.append(plan_row(answer.compared, "now", "", against, limited))
    return tuple({row.said: row for row in reversed(rows)}.values())[::-1]


def _row(plan: Plan, rank: int, roles: list[str], answer: Answer, limited: bool) -> ShortPlan:
    leads = rank == answer.lead
    named = [role for role in roles if not leads or role != "sensible"]
    role, *others = ["use" if plan.is_owned else "rent", *named] if leads else named
    also = f"also the {fmt.listing(others)}" if others else ""
    row = plan_row(plan, role, also, catch(plan, leads), limited, rank)
    lead = answer.plans[answer.lead - 1]
    same = (plan.machines, plan.sites) == (lead.machines, lead.sites)
    if not same or plan.move_after_s == lead.move_after_s:
        return row
    return replace(row, where=f"the same machines and places; {_patience(plan)}", catch="")


def _patience(plan: Plan) -> str:
    """What a plan does where spot is lost."""
    if plan.move_after_s:
        return f"waits {fmt.duration(plan.move_after_s)} for spot before it moves"
    return "moves at once where spot is lost"


def plan_row(
    plan: Plan, role: str, words: str, known: str, limited: bool = False, rank: int = 0
) -> ShortPlan:
    """A row: what it is to most people, some words, where it runs, and the catch that is known."""
    estimate = plan.estimate
    chance = [fmt.share(estimate.chance)] if limited else []
    return ShortPlan(
        plan,
        role,
        rank,
        cells.short_machines(plan),
        " · ".join(filter(None, (words, cells.gpus(plan.machines), place_words(plan)))),
        (f"{fmt.usd(estimate.cost.mean)} USD", fmt.duration(estimate.time.p50), *chance),
        known,
    )


def place_words(plan: Plan) -> str:
    """The cloud and the first region; other regions of the failover list as a number."""
    first, region = plan.machines[0], cells.first_region(plan)
    cloud = "your machines" if first.provider == OWN else fmt.provider(first.provider)
    others = len({site.region for site in plan.sites} - {region})
    named = cloud if region == first.provider else f"{cloud} {fmt.clean(region)}"
    return f"{named} or {fmt.plural(others, 'other region')}" if others else named


def catch(plan: Plan, leads: bool) -> str:
    """The one thing to know before renting a plan: a guess, or what costs most besides the bill.

    The quota of the plan that leads is what to ask for first, and not repeated.
    """
    fits = plan.estimate.step.memory_fits
    if fits < TIGHT:
        return f"fits its GPUs' memory with {fmt.share(fits)} chance"
    weak = weakness(plan)
    if weak:
        return weak
    effort = effort_of(plan)
    found = [*_tail(plan), *([] if leads else _quota(plan, effort)), *_work(plan, effort)]
    usd, words = max(found, default=(0.0, ""))
    return words if usd else _age(plan)


def _tail(plan: Plan) -> Iterable[tuple[float, str]]:
    """What one run in twenty takes and costs, if it is twice the usual."""
    cost, time = plan.estimate.cost, plan.estimate.time
    if time.p95 >= TAIL * time.p50:
        late_h = (time.p95 - time.p50) / 3600.0
        yield risk_usd(0.0, late_h), f"1 run in 20 takes over {fmt.duration(time.p95)}"
    if cost.p95 >= TAIL * cost.mean:
        dear = f"1 run in 20 costs over {fmt.usd(cost.p95)} USD"
        yield risk_usd(cost.p95 - cost.mean, 0.0), dear


def _quota(plan: Plan, effort: Effort) -> Iterable[tuple[float, str]]:
    """The quotas to ask for, each once for all the regions of a failover list."""
    parts = []
    for need, regions in lacking(plan):
        where = f" in each of {len(regions)} regions" if len(regions) > 1 else ""
        late = " for the fallback" if need.fallback else ""
        parts.append(f"{cells.amount_of(need)}{where}{late}")
    if parts:
        yield HOUR_USD * effort.quota_h, f"needs a quota of {fmt.listing(parts)}"


def _work(plan: Plan, effort: Effort) -> Iterable[tuple[float, str]]:
    """Interruptions, and machines that have to find each other."""
    found = plan.estimate
    if effort.resume_h:
        often = interruptions_words(found.interrupted, found.interruptions, found.interruptions_p95)
        carried = plan.evidence is not None and plan.evidence.spot == "carried over"
        going_by = ", going by machines of other sizes" if carried else ""
        usd = HOUR_USD * (effort.resume_h + effort.interruptions_h)
        yield usd, f"interrupted {often.partition(';')[0]}{going_by}"
    count = sum(m.count for m in plan.machines)
    if count > 1:
        yield HOUR_USD * effort.cluster_h, f"{count} machines needed at once, which train as one"


def _age(plan: Plan) -> str:
    days = 0.0 if plan.evidence is None else plan.evidence.price_age_days
    return f"a price of {days:.0f} days ago" if days >= _OLD_DAYS else ""


# The first plan


def _span(plan: Plan, request: PlanRequest) -> str:
    """What nine runs in ten stay within, and what would narrow it most."""
    cost, time = plan.estimate.cost, plan.estimate.time
    unit, name = cells.unit_of([time.p50])
    hours = cells.span(time, unit, cells.decimals([time.p50 / unit]))
    unstated = "stack" in request.job.assumed and not request.job.timings
    of = " (training software not stated: --stack)" if unstated else ""
    return (
        f"9 in 10 runs of the first: {fmt.usd_span(cost.p05, cost.p95)} USD, {hours} {name}"
        f"{of}; {_narrows(plan, request)}."
    )


def _narrows(plan: Plan, request: PlanRequest) -> str:
    """What makes the span: of speed, price and capacity the one that varies most."""
    estimate, time = plan.estimate, plan.estimate.time
    whole = math.log(time.p95 / time.p05) / Z_SPAN if time.p05 > 0.0 else 0.0
    capacity = math.sqrt(max(whole**2 - estimate.speed_sigma**2, 0.0))
    most = max(estimate.speed_sigma, estimate.price_sigma, capacity)
    if most == estimate.speed_sigma:
        timed = bool(request.job.timings)
        return "most of it is the speed" if timed else "a timed step narrows it most (--measured)"
    if most == estimate.price_sigma:
        return "newer prices narrow it most (recommend catalog update)"
    if any(m.market == "spot" for m in plan.machines):
        return "most of it is waiting for spot and lost work (none with --no-spot)"
    return "most of it is waiting for machines (none if yours are held: --assume-on-demand 100%)"


def first_words(plan: Plan, request: PlanRequest) -> str:
    """What to ask for before the plan can be started: a quota in its first region, or nothing."""
    provider = plan.machines[0].provider
    if provider == OWN:
        return ""
    info, name = CLOUDS.get(provider), fmt.provider(provider)
    page = f", at {info.quota_page}" if info and info.quota_page else ""
    asked = [_request(need, regions) for need, regions in lacking(plan)]
    if asked:
        yours = "" if request.choice.quotas_known else "; if you have it: --quota FILE"
        return f"ask {name} for {'; '.join(asked)}{page}{yours}"
    if plan.on_request:
        return f"an account at {name}, which rents such machines to new ones on request"
    if not plan.needs or not request.choice.quotas_known:
        return f"an account at {name}; no quota to ask for"
    unread = [need for need in plan.needs if need.yours is not None and math.isinf(need.yours)]
    if not unread:
        return "nothing: your quotas suffice"
    return f"check that you have {amount_words(unread[0])} in {fmt.clean(unread[0].region)}{page}"


def _else(answer: Answer, lead: Plan) -> str:
    """What to rent where the first cloud has no machines left."""
    trio = answer.trio
    if trio is None or not trio.elsewhere or answer.lead != trio.sensible.rank:
        return ""
    plan, first = answer.plans[trio.elsewhere - 1], fmt.provider(lead.machines[0].provider)
    cost, time = fmt.usd(plan.estimate.cost.mean), fmt.duration(plan.estimate.time.p50)
    where = f"{cells.short_machines(plan)} at {place_words(plan)}, {cost} USD, {time}"
    return f"if {first} has none left, plan {trio.elsewhere}: {where}"


def contract_words(answer: Answer, lead: Plan) -> str:
    """Of a job for which capacity is sold by contract, what that is worth, and whether spot is.

    Blocks are sold by the day, and more than one machine is argued for with the provider.
    """
    if lead.is_owned or lead.gpus <= ONE_MACHINE or lead.estimate.time.p50 <= 86_400.0:
        return ""
    split = lead.estimate.split
    held_h = (split.start_up_s + split.work_s + split.checkpoint_s) / 3600.0
    most = lead.estimate.cost.mean / (lead.gpus * held_h)
    return (
        f"{cells.gpus(lead.machines)} held for {fmt.duration(3600.0 * held_h)} are worth up to "
        f"{fmt.number(most)} USD per GPU-hour: stop haggling below; {_spot_words(answer, lead)}"
    )


def _spot_words(answer: Answer, lead: Plan) -> str:
    """Whether spot is sound for it: led by, or what the best spot plan counts with its doubts."""
    spot = [p for p in answer.plans if any(m.market == "spot" for m in p.machines)]
    if lead in spot:
        return "spot is sound, with code that resumes"
    best = min(spot, key=lambda plan: doubted_cost_usd(plan, answer.goal), default=None)
    if best is None:
        return "no spot plan is sound"
    found = best.estimate
    why = weakness(best) or interruptions_words(
        found.interrupted, found.interruptions, found.interruptions_p95
    )
    number, ties = answer.plans.index(best) + 1, answer.trio.sensible.ties if answer.trio else ()
    if number in ties:
        return f"plan {number} on spot is as sensible, but {why}"
    times = doubted_cost_usd(best, answer.goal) / doubted_cost_usd(lead, answer.goal)
    return f"no spot plan is sound: plan {number} counts {fmt.number(times)} times as much ({why})"


def lacking(plan: Plan) -> list[tuple[Need, list[str]]]:
    """The quotas that have to be requested, each with its regions, the first ones first."""
    regions: dict[Need, list[str]] = {}
    for need in plan.needs:
        if need.missing:
            regions.setdefault(replace(need, region="", yours=None), []).append(need.region)
    return list(regions.items())


def _request(need: Need, regions: list[str]) -> str:
    words = f"{amount_words(need)} in {fmt.clean(regions[0])}"
    new = need.new_accounts
    notes = [f"new accounts have {fmt.exact(new)}"] if new is not None else []
    if len(regions) > 1:
        others = fmt.plural(len(regions) - 1, "other region")
        notes.append(f"the same in {others} for failover, --failover zone plans without")
    late = " for the fallback" if need.fallback else ""
    known = f" ({'; '.join(notes)})" if notes else ""
    return f"{words}{late}{known}"


def amount_words(need: Need) -> str:
    """A quota by its name in the console, and how much of it."""
    return f'"{fmt.clean(need.name)}" ≥ {cells.amount_of(need)}'


def _more(answer: Answer) -> str:
    """Where everything else is said."""
    return (
        f"--table {fmt.plural(len(answer.plans), 'plan')} · --explain {answer.lead} why, risk, "
        "bill, proof · --report FILE"
    )
