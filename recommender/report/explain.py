"""Every term of one plan: the step, the memory, the time, the bill, spot, and the next plan."""

import re
from collections.abc import Sequence

from recommender.errors import UsageError
from recommender.plan import OWN_TRACE, Answer, Estimate, Plan, SpotFacts, StepSplit
from recommender.report import cells, text, titles
from recommender.report.advice import plan_lines
from recommender.report.asked import Asked
from recommender.report.lines import Line, labelled, paragraph
from recommender.report.policyview import policy_lines

_MACHINES = re.compile(r"^\d+x \S+ (spot|on-demand)$")
_NONE = 1e-6  # parts of the time below this share are what rounding leaves
_Term = tuple[str, str, str]  # what, how much, remark


def render(answer: Answer, asked: Asked, number: int, width: int) -> list[Line]:
    """Plan `number` term by term."""
    if number > len(answer.plans):
        raise UsageError(f"--explain {number}: there are {len(answer.plans)} plans")
    plan = answer.plans[number - 1]
    lines = paragraph(titles.job_line(asked), width, "title")
    lines += paragraph(f"Plan {number}: {', '.join(cells.machines_lines(plan))}", width, "title")
    lines += [Line(""), *plan_lines(plan, asked, width)]
    for title, terms in _sections(plan, asked):
        lines += [Line(""), *paragraph(title, width, "strong"), *_terms(terms, width)]
    lines += policy_lines(answer.policy, width)
    return lines + _lost(answer, number, width) + _derived(asked, width)


def _sections(plan: Plan, asked: Asked) -> list[tuple[str, Sequence[_Term]]]:
    estimate = plan.estimate
    step, cost, time = estimate.step, estimate.cost, estimate.time
    unit = "tokens" if asked.job.tokens_per_sample > 1 else f"{asked.job.sample_unit}s"
    rate = asked.job.global_batch * asked.job.tokens_per_sample / step.step_s
    sections: list[tuple[str, Sequence[_Term]]] = [
        (f"One step: {text.duration(step.step_s)}, {text.large(rate)} {unit}/s", _step(step)),
        (f"Memory of one GPU: {text.three(step.memory_gib)} GiB", _memory(step)),
        (
            f"Time: {text.duration(time.typical)}, the mean of the 9 of 10 runs that take "
            f"{text.duration(time.p05)} to {text.duration(time.p95)}",
            _time(plan),
        ),
        (
            f"Bill: {text.usd(cost.mean)} USD expected, 9 of 10 runs cost "
            f"{text.usd_span(cost.p05, cost.p95)} USD",
            _bill(plan),
        ),
        ("How sure", _certainty(plan)),
    ]
    if plan.spot is not None:
        of = "as in your trace of" if plan.spot.basis.startswith(OWN_TRACE) else "of class"
        name = text.clean(plan.spot.name)
        sections.append((f"Spot capacity {of} {name}", _spot(plan.spot, estimate)))
    return sections


def _step(step: StepSplit) -> list[_Term]:
    parts = [
        ("arithmetic", step.compute_s),
        ("done again to save memory", step.recompute_s),
        ("network, not hidden", step.exposed_network_s),
        ("between GPUs, not hidden", step.exposed_intra_s),
        ("pipeline filling and draining", step.bubble_s),
        ("input", step.input_s),
    ]
    terms = [(name, text.duration(s), _of(s, step.step_s)) for name, s in parts if s]
    where = "replica" if " " in step.sharding else "GPU"  # "fsdp", or "TP 8 × PP 4"
    batch = f"{step.micro_batch} samples per {where}, {step.accumulation} accumulated"
    return [*terms, ("micro-batch", batch, f"weights: {text.clean(step.sharding)}")]


def _memory(step: StepSplit) -> list[_Term]:
    parts = step.memory_parts_gib
    return [(text.clean(n), f"{text.three(x)} GiB", _of(x, step.memory_gib)) for n, x in parts]


def _time(plan: Plan) -> list[_Term]:
    split = plan.estimate.split
    parts = [
        ("start-up", split.start_up_s),
        ("work", split.work_s),
        ("checkpoints", split.checkpoint_s),
        ("lost work, done again", split.lost_s),
        ("restarts", split.restart_s),
        ("waiting for capacity", split.waiting_s),
    ]
    total = sum(seconds for _, seconds in parts)
    return [(name, text.duration(s), _of(s, total)) for name, s in parts if s > _NONE * total]


def _bill(plan: Plan) -> list[_Term]:
    total = sum(item.usd for item in plan.estimate.bill)
    return [
        (text.clean(item.item), f"{item.usd:,.2f} USD", _of(item.usd, total))
        for item in plan.estimate.bill
    ]


def _certainty(plan: Plan) -> list[_Term]:
    estimate = plan.estimate
    return [
        ("all limits are kept", text.share(estimate.chance), ""),
        ("the same, were the speed known", text.share(estimate.chance_if_speed_known), ""),
        ("speed is known to", f"±{text.percent(estimate.speed_sigma)}", "one sigma"),
        ("prices have drifted by", f"±{text.percent(estimate.price_sigma)}", "one sigma"),
        ("work per dollar", f"{text.scientific(plan.flopp)} FLOP/USD", "at list price"),
    ]


def _spot(facts: SpotFacts, estimate: Estimate) -> list[_Term]:
    """The law of the machines, and what the plan's own runs meet of it."""
    basis = f"{text.clean(facts.basis)}, {text.clean(facts.as_of)}"
    waiting = estimate.split.waiting_s
    half = ("half of the runs wait", text.duration(facts.waiting_p50_s), "or less, all in all")
    return [
        ("one machine runs", text.duration(facts.run_mean_s), "on average, until it is taken"),
        ("this cluster runs", text.duration(facts.gang_run_mean_s), "until one of it is taken"),
        ("machines go together", text.percent(facts.co_interruption), "of interruptions"),
        ("a run loses them", _times(estimate.interruptions), "on average"),
        ("runs that never wait", text.percent(facts.never_waits), "of all runs"),
        *([half] if facts.waiting_p50_s > 0.0 else []),
        ("1 run of 20 waits", text.duration(facts.waiting_p95_s), "or more, all in all"),
        ("waiting takes", _of(waiting, estimate.time.typical), "of the time above"),
        ("known from", basis, ""),
    ]


def _times(count: float) -> str:
    return text.plural(round(count, 1), "time")


def _of(part: float, whole: float) -> str:
    return text.percent(part / whole) if whole else ""


def _terms(terms: Sequence[_Term], width: int) -> list[Line]:
    """Three columns: what, how much, which share of the whole or a remark."""
    first = max(len(name) for name, _, _ in terms) if terms else 0
    second = max(len(amount) for _, amount, _ in terms) if terms else 0
    lines = [f"  {n.ljust(first)}  {a.rjust(second)}  {r}".rstrip() for n, a, r in terms]
    if all(len(line) <= width for line in lines):
        return [Line(line) for line in lines]
    narrow = [labelled(n, " · ".join(x for x in (a, r) if x), width, hang=14) for n, a, r in terms]
    return [line for each in narrow for line in each]


def _lost(answer: Answer, number: int, width: int) -> list[Line]:
    """Why the next plan stands behind this one: the terms that make the difference."""
    if number >= len(answer.plans):
        return []
    this, after = answer.plans[number - 1], answer.plans[number]
    if answer.goal == "time":
        said = [
            f"{text.duration(abs(d))} {_more(d)} {name}"
            for name, d in _differences(_seconds(this), _seconds(after))
        ]
    else:
        said = [
            f"{text.usd(abs(d))} USD {_more(d)} {name}"
            for name, d in _differences(_dollars(this), _dollars(after))
        ]
    why = text.listing(said) or "less apart than is shown"
    return [Line(""), *paragraph(f"Plan {number + 1} against it: {why}.", width)]


def _more(difference: float) -> str:
    return "more for" if difference > 0 else "less for"


def _dollars(plan: Plan) -> dict[str, float]:
    """The bill by subject: machines of one market are one subject, whatever their type."""
    found: dict[str, float] = {}
    for item in plan.estimate.bill:
        name = _MACHINES.sub(r"\1 machines", text.clean(item.item))
        found[name] = found.get(name, 0.0) + item.usd
    return found


def _seconds(plan: Plan) -> dict[str, float]:
    split = plan.estimate.split
    return {
        "work": split.work_s,
        "waiting": split.waiting_s,
        "restarts and lost work": split.restart_s + split.lost_s,
        "checkpoints": split.checkpoint_s,
        "start-up": split.start_up_s,
    }


def _differences(this: dict[str, float], after: dict[str, float]) -> list[tuple[str, float]]:
    """The three largest differences, the largest first, none below 2 % of the largest."""
    names = dict.fromkeys([*this, *after])
    found = [(name, after.get(name, 0.0) - this.get(name, 0.0)) for name in names]
    found.sort(key=lambda term: -abs(term[1]))
    least = 0.02 * abs(found[0][1]) if found else 0.0
    return [(name, d) for name, d in found[:3] if abs(d) > least]


def _derived(asked: Asked, width: int) -> list[Line]:
    names = asked.job.assumed
    if not names:
        return []
    listed = ", ".join(text.clean(name) for name in names)
    return [Line(""), *paragraph(f"Derived from the rest of the job: {listed}.", width, "faint")]
