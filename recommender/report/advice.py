"""The paragraph under the table: how plan 1 goes, what it needs, what would change it."""

import shlex

from recommender.catalogs.registry import CLOUDS
from recommender.plan.plan import (
    Answer,
    Checkpointing,
    Machines,
    Need,
    Plan,
    SensitivityStep,
    StepSplit,
)
from recommender.report import cells
from recommender.report import formatting as fmt
from recommender.report.answer_frame import PlanRequest
from recommender.report.formatting import clean
from recommender.report.layout import Line, labelled, paragraph, wrapped
from recommender.report.limit_words import why_not


def launch_words(plan: Plan) -> tuple[str, ...]:
    """The words of the launch line, quoted; empty where one line cannot rent the plan."""
    kinds = {(m.provider, m.instance_type, m.market) for m in plan.machines}
    if len(kinds) != 1:
        return ()
    first = plan.machines[0]
    info = CLOUDS.get(first.provider)
    if info is None or not info.sky_name:
        return ()
    nodes = sum(m.count for m in plan.machines)
    infra = f"{info.sky_name}/{_region(plan, first)}"
    if first.confidential:
        words = _azure_confidential(first, _region(plan, first), nodes)
    else:
        words = _sky(first, infra, nodes)
    return tuple(shlex.quote(clean(word)) for word in words)


def launch_line(plan: Plan) -> str:
    """The launch line on one line, or nothing."""
    return " ".join(launch_words(plan))


def _region(plan: Plan, first: Machines) -> str:
    return plan.sites[0].region if plan.sites else first.region


def _sky(machines: Machines, infra: str, nodes: int) -> list[str]:
    spot = machines.market == "spot"
    return [
        "sky",
        "launch",
        *(["--use-spot"] if spot else []),
        *("--infra", infra),
        *("--instance-type", machines.instance_type),
        *(["--num-nodes", str(nodes)] if nodes > 1 else []),
        *(["--retry-until-up"] if spot else []),
        "train.yaml",
    ]


# The image of confidential VMs with a GPU (Azure, "Create a confidential VM with a GPU", 2026-08).
_CONFIDENTIAL_IMAGE = "Canonical:0001-com-ubuntu-confidential-vm-jammy:22_04-lts-cvm:latest"


def _azure_confidential(machines: Machines, region: str, nodes: int) -> list[str]:
    """Azure's own command: SkyPilot sets no security type, and these VMs start with theirs only."""
    spot = machines.market == "spot"
    return [
        *("az", "vm", "create", "--resource-group", "train", "--name", "train"),
        *("--location", region),
        *("--size", machines.instance_type),
        *(["--count", str(nodes)] if nodes > 1 else []),
        *(["--priority", "Spot"] if spot else []),
        *("--security-type", "ConfidentialVM"),
        *("--os-disk-security-encryption-type", "VMGuestStateOnly"),
        *("--enable-vtpm", "true", "--enable-secure-boot", "true"),
        *("--image", _CONFIDENTIAL_IMAGE),
    ]


def folded(words: tuple[str, ...], width: int, indent: str) -> list[str]:
    """The words on lines that end in a backslash, so that they can still be copied."""
    lines, current = [], ""
    for word in _pairs(words):
        if current and len(current) + 1 + len(word) > width - 2:
            lines.append(current + " \\")
            current = indent + word
        else:
            current = f"{current} {word}" if current else word
    return [*lines, current] if current else lines


_TAKING = frozenset({
    "--infra", "--instance-type", "--num-nodes", "--resource-group", "--name", "--location",
    "--size", "--count", "--priority", "--security-type", "--os-disk-security-encryption-type",
    "--enable-vtpm", "--enable-secure-boot", "--image",
})  # fmt: skip


def _pairs(words: tuple[str, ...]) -> list[str]:
    """Options with their values: a flag is never parted from what belongs to it."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1].split()[0] in _TAKING and " " not in joined[-1]:
            joined[-1] += f" {word}"
        else:
            joined.append(word)
    return joined


_WHERE = {"object_store": "the bucket", "anchor": "the anchor", "memory_tier": "the memory tier"}
_NARROW = 60
_HEAVY = 1.15  # from here on the longest runs raise the mean time over what is shown
_SAME = 1e-9
_SMALL = 0.005  # parts of the time below this share are left out


def advice(answer: Answer, request: PlanRequest, width: int) -> list[Line]:
    """Everything below the table."""
    if not answer.plans:
        return []
    lines = [Line(""), *paragraph(headline(answer, request), width, "strong")]
    lines += plan_lines(answer.plans[0], request, width)
    if answer.sensitivity:
        lines += [Line(""), Line("What would change the answer", "strong")]
        lines += [line for step in answer.sensitivity for line in _step(step, width)]
    if answer.assumptions:
        assumed = "; ".join(fmt.clean(a).rstrip(".") for a in answer.assumptions)
        lines += [*paragraph(f"Assumed: {assumed}.", width, "faint")]
    return lines


def headline(answer: Answer, request: PlanRequest) -> str:
    """What plan 1 saves, against on-demand and against the machines in use today."""
    first, parts = answer.plans[0], []
    if all(m.market != "spot" for m in first.machines):
        parts.append("rents on-demand machines only")
    elif first.saving is not None:
        parts.append(_against_on_demand(answer, request, first.saving))
    if answer.compared is not None:
        parts.append(_against_today(first, answer.compared))
    return f"Plan 1 {'; it '.join(parts)}." if parts else "Plan 1:"


def _against_today(first: Plan, today: Plan) -> str:
    saved = 1 - first.estimate.cost.mean / today.estimate.cost.mean
    times = [fmt.duration(plan.estimate.time.typical) for plan in (first, today)]
    share = fmt.percent(abs(saved))
    verb = f"is {share} cheaper" if saved >= 0 else f"costs {share} more"
    return f"{verb} than yours and takes {times[0]} instead of {times[1]}"


def _times_more(saving: float) -> str:
    return f"{fmt.percent(-saving)} more than" if saving > -0.5 else f"{fmt.three(1.0 - saving)}×"


def _against_on_demand(answer: Answer, request: PlanRequest, saving: float) -> str:
    """What is saved against the best plan without spot: its number, or what it costs."""
    numbered = enumerate(answer.plans, 1)
    shown = (f"{i}" for i, p in numbered if p.saving is not None and abs(p.saving) < _SAME)
    cost = answer.plans[0].estimate.cost.mean / max(1.0 - saving, _SAME)
    best = f"the best on-demand plan ({next(shown, '') or _unlisted(answer, request, cost)})"
    if saving < 0.0:
        return f"costs {_times_more(saving)} {best}"
    return f"is {fmt.percent(saving)} cheaper than {best}"


def _unlisted(answer: Answer, request: PlanRequest, cost: float) -> str:
    """What the best on-demand plan costs, and why it is not in the table if it may not be."""
    alike = [p for p in answer.baselines if abs(p.estimate.cost.mean / cost - 1.0) < _SAME]
    wrong = why_not(alike[0], request.limits) if alike else ""
    return f"{fmt.usd(cost)} USD; it {wrong}" if wrong else f"{fmt.usd(cost)} USD"


def plan_lines(plan: Plan, request: PlanRequest, width: int) -> list[Line]:
    """One plan, sentence by sentence, each behind its label."""
    parts = sentences(plan, request)
    lines = [line for label, words in parts if words for line in labelled(label, words, width)]
    return lines + _go(plan, width)


def sentences(plan: Plan, request: PlanRequest) -> list[tuple[str, str]]:
    """What there is to say of a plan, by label; empty where there is nothing."""
    return [
        ("time", time_sentence(plan)),
        ("spot", spot_sentence(plan)),
        ("save", save_sentence(plan)),
        ("fallback", late_sentence(plan)),
        ("rule", rule_sentence(plan)),
        ("needs", needs_sentence(plan, request)),
        ("layout", layout_sentence(plan.estimate.step)),
        ("note", tail_sentence(plan)),
        *(("note", fmt.clean(note)) for note in plan.notes),
    ]


def time_sentence(plan: Plan) -> str:
    """Where the time goes, in the order a person would tell it."""
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
    return ", ".join(phrases)


def spot_sentence(plan: Plan) -> str:
    """How often spot goes away, and where the cluster is asked for next."""
    if all(m.market != "spot" for m in plan.machines):
        return ""
    others = _next_in_line(plan)
    after = f"; failover to {', then '.join(others[:3])}" if others else ""
    more = f" and {len(others) - 3} more" if len(others) > 3 else ""
    return f"interrupted {_times(plan.estimate.interruptions)}{after}{more}"


def layout_sentence(step: StepSplit) -> str:
    """That the training code must cut the network, where the plan counts on it."""
    if not step.cuts_network:
        return ""
    return (
        f"{fmt.clean(step.sharding)}: needs model-parallel code (Megatron-LM, NeMo, "
        "torchtitan); --sharding fsdp plans without it"
    )


def _next_in_line(plan: Plan) -> list[str]:
    """Where spot is asked for after the first place: regions, then further zones of them."""
    seen = {site.region for site in plan.sites[:1]}
    names = []
    for site in plan.sites[1:]:
        names.append(fmt.clean(site.zone if site.region in seen and site.zone else site.region))
        seen.add(site.region)
    return names


def _times(interruptions: float) -> str:
    if interruptions < 0.75:
        return f"in about {fmt.percent(interruptions)} of runs"
    return "about once" if interruptions < 1.5 else f"about {round(interruptions)} times"


def save_sentence(plan: Plan) -> str:
    """Where checkpoints go, how often, and whether the provider's notice covers one."""
    saving = plan.checkpointing
    if saving.path == "none":
        return ""
    stop = f", blocks training for {fmt.duration(saving.stall_s)}" if saving.stall_s else ""
    every = f"every {fmt.duration(saving.interval_s)} to {_WHERE[saving.path]}"
    text = f"{every} (takes {fmt.duration(saving.transfer_s)}{stop})"
    spot = any(m.market == "spot" for m in plan.machines)
    return text + (_notice(plan.machines[0].provider, saving) if spot else "")


def _notice(provider: str, saving: Checkpointing) -> str:
    if not saving.notice_s:
        return ""
    info = CLOUDS.get(provider)
    named = f"{info.notice_owner if info else 'the'} {fmt.duration(saving.notice_s)} notice"
    verdict = (
        "leaves time for a final one" if saving.notice_covers else "is too short for a final one"
    )
    return f"; {named} {verdict}"


def late_sentence(plan: Plan) -> str:
    """When the fallback starts, what it is and how often it is needed."""
    late = plan.fallback
    if late is None:
        return ""
    machines = " + ".join(cells.group_line(m) for m in late.machines)
    reserve = f" + {fmt.duration(late.reserve_s)}" if late.reserve_s else ""
    share = f", does {fmt.percent(late.work_share)} of the work" if late.work_share else ""
    return (
        f"when the time left is down to the work left{reserve}: {machines} "
        f"({fmt.three(late.usd_per_hour)} USD/h) until the end; "
        f"needed in {fmt.percent(late.probability)} of runs{share}"
    )


def tail_sentence(plan: Plan) -> str:
    """That some runs take far longer than the time shown, which is that of nine in ten."""
    time = plan.estimate.time
    if time.mean <= _HEAVY * time.typical:
        return ""
    return (
        f"half of all runs take {fmt.duration(time.p50)} or less; 1 in 20 takes longer than "
        f"{fmt.duration(time.p95)}, some far longer: the time shown is the trimmed mean of "
        f"the 9 in 10 runs within its span"
    )


def rule_sentence(plan: Plan) -> str:
    """A cheaper rule than the one behind the figures: when to wait, and when to go back."""
    late = plan.fallback
    if late is None or late.wait_above is None or late.back_above is None:
        return ""
    work_s = plan.estimate.split.work_s
    wait, back = (fmt.duration(share * work_s) for share in (late.wait_above, late.back_above))
    return (
        f"cheaper on recorded markets, not in the figures: wait for spot while there is more than "
        f"{wait} of slack ({fmt.percent(late.wait_above)} of the work left), else go "
        f"on-demand; return to spot above {back} ({fmt.percent(late.back_above)})"
    )


def needs_sentence(plan: Plan, request: PlanRequest) -> str:
    """The quotas this plan needs, as the provider's console names them."""
    parts = [_need(need, request.choice.quotas_known) for need in plan.needs]
    return f"quota {'; '.join(parts)}" if parts else ""


def _need(need: Need, known: bool) -> str:
    unit = {"vcpu": " vCPU", "gpu": " GPUs", "machine": " machines"}.get(need.unit, "")
    amount = f"≥ {fmt.three(need.amount)}{unit}"
    text = f'"{fmt.clean(need.name)}" {amount} in {fmt.clean(need.region)}'
    if need.yours is not None:
        return f"{text} (yours: {fmt.three(need.yours)})"
    if known:
        return f"{text} (not among the quotas you gave)"
    new = need.new_accounts
    started = "" if new is None else f"; new accounts have {fmt.three(new)}"
    return f"{text} (yours is unknown{started})"


def _go(plan: Plan, width: int) -> list[Line]:
    words = launch_words(plan)
    if not words:
        return []
    if width < _NARROW:
        lines = folded(words, width - 4, "  ")
        return [Line("  launch"), *(Line(f"    {each}") for each in lines)]
    first, *rest = folded(words, width - 11, "  ")
    return [Line(f"  launch   {first}"), *(Line(" " * 11 + each) for each in rest)]


def _step(step: SensitivityStep, width: int) -> list[Line]:
    """A change on the left, what it does on the right; one below the other where narrow."""
    change, effect = fmt.clean(step.change), fmt.clean(step.effect)
    room = min(44, width * 55 // 100)
    if width < _NARROW:
        head = [Line(each) for each in wrapped(change, width, "  ")]
        return [*head, *(Line(each) for each in wrapped(effect, width, "    "))]
    if len(change) <= room - 4:
        first = f"  {change}".ljust(room)
        return [Line(each) for each in wrapped(effect, width, first, " " * room)]
    left = wrapped(change, room - 2, "  ", "    ")
    right = wrapped(effect, width - room)
    rows = max(len(left), len(right))
    left += [""] * (rows - len(left))
    right += [""] * (rows - len(right))
    return [Line(f"{a.ljust(room)}{b}".rstrip()) for a, b in zip(left, right, strict=True)]
