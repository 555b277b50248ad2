"""How a plan runs and what it needs, a sentence per subject."""

from dataclasses import replace

from recommender.catalogs.registry import CLOUDS
from recommender.job.job import Job
from recommender.plan.answer import Answer
from recommender.plan.plan import Checkpointing, Fallback, Need, Plan, Site, StepSplit
from recommender.report import cells
from recommender.report import formatting as fmt
from recommender.report.answer_frame import PlanRequest
from recommender.report.launch import write_sentence
from recommender.report.layout import Block, labelled
from recommender.report.limit_words import why_not
from recommender.text import interruptions_words

_WHERE = {"object_store": "the bucket", "anchor": "the anchor", "memory_tier": "the memory tier"}
_BACKGROUND = (
    "counts on saves in the background (where training waits for them, as in Transformers: "
    "asynchronous_save: no in the job file)"
)
_SAME = 1e-9
_SMALL = 0.005  # parts of the time below this share are left out
_HEAVY = 0.2  # of the bill, from which on what is not a machine is named


def changed(answer: Answer) -> str:
    """The title of the answers under other limits, compared with the best plan by the goal."""
    if answer.lead == answer.best:
        return "What would change the answer"
    if any(step.effect.startswith(f"plan {answer.lead}: ") for step in answer.sensitivity):
        return "What other limits would change"  # of more plans than one, which the lines name
    return f"What other limits would change, against plan {answer.best}"


def comparison(answer: Answer, request: PlanRequest) -> str:
    """The saving of the leading plan, against on-demand and against today's machines."""
    first, parts = answer.plans[answer.lead - 1], []
    if all(m.market != "spot" for m in first.machines):
        own = first.is_owned
        parts.append("uses your machines only" if own else f"rents {_held(first)} machines only")
    elif first.saving is not None:
        parts.append(_against_on_demand(answer, request, first.saving))
    if answer.compared is not None:
        parts.append(against_today(first, answer.compared))
    return f"Plan {answer.lead} {'; it '.join(parts)}." if parts else ""


def _held(plan: Plan) -> str:
    return " and ".join(dict.fromkeys(fmt.market(m.market) for m in plan.machines))


def against_today(first: Plan, today: Plan) -> str:
    """What a plan saves against the machines that the user rents today."""
    saved = 1 - first.estimate.cost.mean / today.estimate.cost.mean
    times = [fmt.duration(plan.estimate.time.p50) for plan in (first, today)]
    share = fmt.percent(abs(saved))
    verb = f"is {share} cheaper" if saved >= 0 else f"costs {share} more"
    return f"{verb} than yours and takes {times[0]} instead of {times[1]}"


def _times_more(saving: float) -> str:
    return f"{fmt.percent(-saving)} more than" if saving > -0.5 else f"{fmt.number(1.0 - saving)}×"


def _against_on_demand(answer: Answer, request: PlanRequest, saving: float) -> str:
    """What is saved against the best plan without spot."""
    cost = answer.plans[answer.lead - 1].estimate.cost.mean / max(1.0 - saving, _SAME)
    other = _without_spot(answer, request, cost)
    if saving < 0.0:
        return f"costs {_times_more(saving)} {other}"
    return f"is {fmt.percent(saving)} cheaper than {other}"


def _without_spot(answer: Answer, request: PlanRequest, cost: float) -> str:
    """The best plan without spot: its number, or what it costs and the limit that it misses.

    The best is the fastest where time is minimised, and may cost more than a slower one would. One
    that misses a limit need be neither the fastest nor the cheapest.
    """
    kind = "fastest" if request.limits.goal == "time" else "cheapest"
    for rank, plan in enumerate(answer.plans, 1):
        if plan.saving is not None and abs(plan.saving) < _SAME:
            return f"the {kind} on-demand plan ({rank})"
    alike = [p for p in answer.baselines if abs(p.estimate.cost.mean / cost - 1.0) < _SAME]
    wrong = why_not(alike[0], request.limits) if alike else ""
    if wrong:
        return f"the all-on-demand plan ({fmt.usd(cost)} USD; it {wrong})"
    return f"the {kind} on-demand plan ({fmt.usd(cost)} USD)"


def plan_blocks(plan: Plan, request: PlanRequest, why: str = "") -> list[Block]:
    """One plan, a sentence per label, and its launch command."""
    remarks = [("why", why), *sentences(plan, request)]
    parts = [(label, words) for label, words in remarks if words]
    return [labelled(parts), *_launch(plan, request)]


def sentences(plan: Plan, request: PlanRequest) -> list[tuple[str, str]]:
    """The sentences about a plan, by label; empty if there is nothing to say."""
    return [
        ("time", time_sentence(plan)),
        ("bill", bill_sentence(plan)),
        ("spot", spot_sentence(plan)),
        ("regions", regions_sentence(plan)),
        ("save", save_sentence(plan)),
        ("fallback", fallback_sentence(plan, request.job)),
        ("needs", needs_sentence(plan, request)),
        ("layout", layout_sentence(plan.estimate.step)),
        *(("note", fmt.clean(note)) for note in plan.notes),
    ]


def time_sentence(plan: Plan) -> str:
    """Where the time goes, in a natural order."""
    split = plan.estimate.split
    spot = any(m.market == "spot" for m in plan.machines)
    parts = [
        (split.work_s, "work"),
        (split.waiting_s, "waiting for spot" if spot else "waiting for capacity"),
        (split.restart_s + split.lost_s, "restarts and lost work"),
        (split.checkpoint_s, "checkpoints"),
        (split.start_up_s, "start-up"),
    ]
    total = sum(seconds for seconds, _ in parts)
    phrases = [f"{fmt.duration(s)} {name}" for s, name in parts if s > _SMALL * total]
    time = plan.estimate.time
    span = f"{fmt.duration(time.p50)}, 1 run in 20 over {fmt.duration(time.p95)}"
    return f"{span}; a usual run: {', '.join(phrases)}"


def bill_sentence(plan: Plan) -> str:
    """Costs other than machines that are a large part of the bill; "" if there are none."""
    named = {m.instance_type for m in plan.machines}
    named |= {m.instance_type for m in (plan.fallback.machines if plan.fallback else ())}
    bill = plan.estimate.bill
    named |= {"on-demand fallback"}  # which has a sentence of its own
    others = [each for each in bill if not any(name in each.item for name in named)]
    most = max(others, key=lambda each: each.usd, default=None)
    total = sum(each.usd for each in bill)
    if most is None or most.usd < _HEAVY * total:
        return ""
    stays = "; --failover zone stays in one region" if "between regions" in most.item else ""
    share = fmt.percent(most.usd / total)
    return f"{share} of the cost is for {fmt.clean(most.item)} ({fmt.usd(most.usd)} USD){stays}"


def spot_sentence(plan: Plan) -> str:
    """How often spot is interrupted, and where machines are requested next."""
    if all(m.market != "spot" for m in plan.machines):
        return ""
    others = _next_in_line(plan)
    move_after_s = plan.move_after_s
    wait = f"after {fmt.duration(move_after_s)} without spot in its zone, " if move_after_s else ""
    after = f"; {wait}failover to {', then '.join(others[:3])}" if others else ""
    more = f" and {len(others) - 3} more" if len(others) > 3 else ""
    found = plan.estimate
    often = interruptions_words(found.interrupted, found.interruptions, found.interruptions_p95)
    return f"interrupted {often}{after}{more}"


def regions_sentence(plan: Plan) -> str:
    """The regions where on-demand machines are requested in turn; "" for one region."""
    if not plan.sites or any(m.market == "spot" for m in plan.machines):
        return ""
    regions = [fmt.clean(site.region) for site in plan.sites]
    return f"{', then '.join(regions)}: rented in the first that has the machines"


def layout_sentence(step: StepSplit) -> str:
    """What the training code must support for this plan: parallelism, recomputation."""
    parts = [_layout_phrase(step)] if step.is_model_parallel else []
    if step.recompute_s > 0:
        parts.append("counts on activation checkpointing (gradient_checkpointing of transformers)")
    return "; ".join(parts)


def _layout_phrase(step: StepSplit) -> str:
    code = f"{fmt.clean(step.sharding)}: needs model-parallel code (Megatron-LM, NeMo, torchtitan)"
    if "CP " in step.sharding:  # whole sequences of that length may fit no GPU
        return f"{code} that shares each sequence among GPUs"
    return f"{code}; --sharding fsdp plans without it"


def _next_in_line(plan: Plan) -> list[str]:
    """Where spot is requested after the first place: regions, or zones where one has several."""
    regions = [site.region for site in plan.sites]
    several = {region for region in regions if regions.count(region) > 1}
    return [
        fmt.clean(_zone(site) if site.region in several and site.zone else site.region)
        for site in plan.sites[1:]
    ]


def _zone(site: Site) -> str:
    """A zone's name; AWS's ids do not say their region."""
    return site.zone if site.zone.startswith(site.region) else f"{site.region} ({site.zone})"


def save_sentence(plan: Plan) -> str:
    """Where checkpoints go, how often, and whether the provider's notice covers one."""
    saving = plan.checkpointing
    if saving.path == "none":
        return "only against crashes: the files that run it do; cost and time here leave it out"
    every = f"every {cells.intervals(saving)} to {_WHERE[saving.path]}{_as_good(saving)}"
    text = f"{every} ({_length_of_save(saving)})"
    spot = any(m.market == "spot" for m in plan.machines)
    text += _notice(plan.machines[0].provider, saving) if spot else ""
    return f"{text}; {_BACKGROUND}" if saving.needs_background else text


def _length_of_save(saving: Checkpointing) -> str:
    """How long a save takes, and for how much of that training stops."""
    takes = f"takes {fmt.duration(saving.transfer_s)}"
    blocks = f"blocks training for {fmt.duration(saving.stall_s)}"
    safe = f", uploaded {fmt.duration(saving.upload_s)} later" if saving.upload_s else ""
    if not saving.stall_s:
        return takes + safe
    # With the copy to host memory a stall may be longer than the transfer.
    waits = saving.stall_s >= saving.transfer_s
    return (blocks if waits else f"{takes}, {blocks}") + safe


def _as_good(saving: Checkpointing) -> str:
    """That a range of intervals does as well: the optimum is flat."""
    low, high = saving.as_good_s
    return ", the cost within 0.1 % the same" if low < high else ""


def _notice(provider: str, saving: Checkpointing) -> str:
    if not saving.notice_s:
        return ""
    info = CLOUDS.get(provider)
    named = f"{info.notice_owner if info else 'the'} {fmt.duration(saving.notice_s)} notice"
    verdict = (
        "leaves time for a final one" if saving.notice_covers else "is too short for a final one"
    )
    return f"; {named} {verdict}"


def fallback_sentence(plan: Plan, job: Job) -> str:
    """When the fallback starts, what it is, and how often it is needed."""
    fallback = plan.fallback
    if fallback is None:
        return ""
    machines = " + ".join(cells.group_line(m) for m in fallback.machines)
    regions = ", then ".join(fmt.clean(site.region) for site in fallback.sites)
    machines += f" in {regions}" if regions else ""
    share = f", does {fmt.percent(fallback.work_share)} of the work" if fallback.work_share else ""
    hired = f"{machines} ({fmt.number(fallback.usd_per_hour)} USD/h)"
    return (
        f"{_rule(fallback, hired, job.seconds_on(plan.gpus, plan.estimate.step.step_s))}; "
        f"needed in {fmt.percent(fallback.probability)} of runs{share}"
        f"{_other_layout(plan.estimate.step, fallback.step)}"
    )


def _rule(fallback: Fallback, hired: str, work_s: float) -> str:
    """When the fallback takes over, and when spot does again; of the job's predicted work."""
    reserve = fmt.duration(fallback.reserve_s) if fallback.reserve_s else ""
    if fallback.wait_above is None or fallback.back_above is None:
        kept = f" + {reserve}" if reserve else ""
        return f"when the time left is down to the work left{kept}: {hired} until the end"
    kept = f" and {reserve}" if reserve else ""
    need_s = work_s / fallback.speed
    wait, back = (fmt.duration(x * need_s) for x in (fallback.wait_above, fallback.back_above))
    return (
        f"{hired} when spot is away and less than {wait} of slack are left "
        f"({fmt.percent(fallback.wait_above)} of the work left; with spot, when none is), back to "
        f"spot above {back} ({fmt.percent(fallback.back_above)}); slack: time left less work left"
        f"{kept}"
    )


def _other_layout(first: StepSplit, late: StepSplit | None) -> str:
    """How the fallback's GPUs share the network, where that is not the plan's own layout."""
    if late is None or not late.is_model_parallel or late.sharding == first.sharding:
        return ""
    return f"; its layout is {fmt.clean(late.sharding)}, resumed from checkpoints that reshard"


def needs_sentence(plan: Plan, request: PlanRequest) -> str:
    """The quotas that the plan needs, by their names in the provider's console."""
    regions: dict[Need, list[str]] = {}
    for need in plan.needs:
        regions.setdefault(replace(need, region=""), []).append(need.region)
    known = request.choice.quotas_known
    parts = [_need(need, fmt.listing(places), known) for need, places in regions.items()]
    return f"quota {'; '.join(parts)}" if parts else ""


def _need(need: Need, places: str, known: bool) -> str:
    text = f'"{fmt.clean(need.name)}" ≥ {cells.amount_of(need)} in {fmt.clean(places)}'
    if need.fallback:
        text = f"for the fallback {text}"
    if need.yours is not None:
        return f"{text} (yours: {fmt.exact(need.yours)})"
    if known:
        return f"{text} (not among the quotas you gave)"
    new = need.new_accounts
    started = "" if new is None else f"; new accounts have {fmt.exact(new)}"
    return f"{text} (yours is unknown{started})"


def _launch(plan: Plan, request: PlanRequest) -> list[Block]:
    """How the files that run it are written and started."""
    return [labelled([("launch", fmt.clean(write_sentence(plan, request)))])]
