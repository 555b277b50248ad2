"""Every term of one plan: step, memory, time, bill, spot, policy, and the next plan."""

import re
from collections.abc import Sequence

from rich.table import Table

from recommender.errors import no_plan
from recommender.plan.answer import Answer, Check, Difference, LimitWorth, PolicyFacts, ProgramShare
from recommender.plan.plan import OWN_TRACE, Estimate, OnDemandFacts, Plan, SpotFacts, StepSplit
from recommender.report import answer_frame, cells
from recommender.report import formatting as fmt
from recommender.report.advice import comparison, plan_blocks
from recommender.report.answer_frame import PlanRequest
from recommender.report.layout import (
    BLANK,
    FAINT,
    STRONG,
    Block,
    add_row,
    fits,
    grid,
    inset,
    labelled,
    sheet,
    text,
)
from recommender.report.page import Column
from recommender.report.trio import tie_line, why_it_leads

_SHORT = {"on-demand": "od", None: "late"}
_ERRORS = 3.0  # standard errors beyond which a difference is no accident
_WHOLE = 0.999  # of the work, from which on the rest is what rounding leaves
_NOTHING = 0.005  # a better division of the work by less is what rates may be off
_NONE = 1e-6  # parts of the time below this share are what rounding leaves


def policy_blocks(facts: PolicyFacts | None, width: int) -> list[Block]:
    """The policy of `--explain`; one line if the dynamic program cannot express the plan."""
    if facts is None:
        return []
    title = text("Fallback policy", STRONG)
    if facts.why_not:
        return [BLANK, title, text(f"No policy was computed: {fmt.clean(facts.why_not)}.")]
    step = fmt.duration(facts.tick_s)
    return [
        BLANK,
        title,
        text("Expected cost under the availability model of the zones, at the predicted speed:"),
        inset(_costs(facts)),
        BLANK,
        text(
            f"By time left and work left, in steps of {step}: what to do while spot is up / down "
            "(od: on-demand)."
        ),
        inset(text("time left, by work left", FAINT)),
        inset(_policy_grid(facts, width - 2)),
    ]


def _costs(facts: PolicyFacts) -> Table:
    """Expected costs under one law, from a random moment of the market on."""
    rows = [("fallback rule of the plan", facts.fallback_usd)]
    if facts.rule_usd is not None:
        rows.append(("two thresholds, the rule above", facts.rule_usd))
    rows.append(("cost-optimal, a lower bound", facts.full_usd))
    return grid([(name, f"{fmt.usd(usd)} USD") for name, usd in rows], right=(1,))


def _policy_grid(facts: PolicyFacts, width: int) -> Table:
    """Rows by time left, columns by work left; the rightmost columns go where it is narrow."""
    heads = ["", *(fmt.duration(s) for s in facts.work_left_s)]
    table = sheet([Column(head) for head in heads], flexible=-1)
    table.box, table.padding = None, (0, 2, 0, 0)
    for time_s, up, away in zip(facts.time_left_s, facts.spot_up, facts.spot_away, strict=True):
        row = [fmt.duration(time_s), *(_cell(a, b) for a, b in zip(up, away, strict=True))]
        add_row(table, [(cell,) for cell in row])
    while len(table.columns) > 2 and not fits(table, width):
        table.columns.pop()
    return table


def _cell(up: str | None, away: str | None) -> str:
    names = [_SHORT.get(each, each) or "" for each in (up, away)]
    return names[0] if names[0] == names[1] else "/".join(names)


def program_blocks(answer: Answer) -> list[Block]:
    """The linear program behind the ranking: what it chose, and the value of limits."""
    program = answer.program
    if program is None or program.status != "optimal":
        return []
    words = program_words(answer)
    return [BLANK, text("Linear program", STRONG), *map(text, words), labelled(worth_words(answer))]


def program_words(answer: Answer) -> list[str]:
    """How the program divides the work, and the plan of one cluster that was made of it."""
    program = answer.program
    if program is None:
        return []
    chose = (
        f"By the figures of the simulated runs, the program's choice among "
        f"{fmt.plural(program.columns, 'configuration')}: {_listed(program.shares)} of the work."
    )
    if not program.plan_shares:
        return [chose]
    done = f"Plan {answer.best} does {_listed(program.plan_shares)}"
    if program.plan_share >= _WHOLE:
        return [f"{chose} That is plan {answer.best}."]
    if program.saving < _NOTHING:
        return [chose, f"{done}, which is as good."]
    better = "takes" if answer.goal == "time" else "costs"
    return [
        f"{chose} It {better} {fmt.percent(program.saving)} less than plan {answer.best}, but "
        "knows no slow runs and each limit by itself.",
        f"{done}: of the configurations simulated run by run, the best that meets the limits.",
    ]


def _listed(shares: Sequence[ProgramShare]) -> str:
    return fmt.listing([f"{fmt.clean(s.configuration)} {fmt.percent(s.share)}" for s in shares])


def worth_words(answer: Answer) -> list[tuple[str, str]]:
    """The value of relaxing each limit a little, after the name of the limit."""
    worth = () if answer.program is None else answer.program.worth
    return [(fmt.clean(each.limit), _worth(each, answer.goal)) for each in worth]


def _worth(each: LimitWorth, goal: str) -> str:
    gained = each.gain * each.more
    gain = fmt.duration(3600.0 * gained) if goal == "time" else f"{fmt.usd(gained)} USD"
    one = each.more == 1.0
    saved = f"save{'s' if one else ''} {gain if each.gain > 0.0 else 'nothing'}"
    number = "one" if one else fmt.number(each.more)
    return f"{number} more {fmt.clean(each.unit)} {saved} ({each.source})"


def check_blocks(answer: Answer) -> list[Block]:
    """One paragraph per plan; empty without verification."""
    if not answer.checks:
        return []
    runs, seed = answer.checks[0].runs, answer.checks[0].seed
    title = f"Verified with {runs:,} new simulated runs each (seed {seed})"
    checked = [(f"plan {check.rank}", check_words(check)) for check in answer.checks]
    return [BLANK, text(title, STRONG), labelled(checked)]


def check_words(check: Check) -> str:
    """The differences of one plan: "cost 104 USD printed, 103 simulated (-0.6 %, ± 0.8 %)"."""
    parts = [_words(each) for each in check.differences]
    far = [d.figure for d in check.differences if abs(d.simulated - d.printed) > _ERRORS * d.error]
    names = fmt.listing([name.partition("_")[0] for name in far])
    beyond = f"; {names}: more than {_ERRORS:g} standard errors apart" if far else ""
    return "; ".join(parts) + beyond


def _words(d: Difference) -> str:
    if d.figure == "chance":
        pair = f"chance {100 * d.printed:.1f} % printed, {100 * d.simulated:.1f} % simulated"
        return f"{pair} ({100 * (d.simulated - d.printed):+.1f}, ± {100 * d.error:.1f})"
    name, write = ("cost", _usd) if d.figure == "cost_usd" else ("time", fmt.duration)
    share, error = d.simulated / d.printed - 1.0, d.error / d.printed
    pair = f"{name} {write(d.printed)} printed, {write(d.simulated)} simulated"
    return f"{pair} ({100 * share:+.1f} %, ± {100 * error:.1f} %)"


def _usd(x: float) -> str:
    return f"{fmt.number(x)} USD"


_MACHINES = re.compile(r"^\d+x \S+ (spot|on-demand)$")
Term = tuple[str, str, str]  # what, how much, remark


def render(answer: Answer, request: PlanRequest, number: int, width: int) -> list[Block]:
    """Plan `number` term by term."""
    if number > len(answer.plans):
        raise no_plan("--explain", number, len(answer.plans))
    plan = answer.plans[number - 1]
    blocks: list[Block] = [
        text(answer_frame.job_line(request), STRONG),
        text(f"Plan {number}: {', '.join(cells.machines_lines(plan))}", STRONG),
        BLANK,
        *([text(comparison(answer, request))] if number == answer.lead else []),
        *plan_blocks(plan, request, _why(answer, number)),
    ]
    for title, terms in sections(plan, request):
        blocks += [BLANK, text(title, STRONG), _terms(terms, width)]
    blocks += policy_blocks(answer.policy, width)
    blocks += program_blocks(answer)
    blocks += [*_lost(answer, number), *_sure(answer), *check_blocks(answer)]
    return [*blocks, *assumed_blocks(answer), *_derived(request)]


def _why(answer: Answer, number: int) -> str:
    """Why the plan is one of the three, and what it takes to get it going."""
    reasons = dict.fromkeys(
        each for pick in answer.picks if pick.rank == number for each in pick.reasons
    )
    leads = why_it_leads(answer) if number == answer.lead else ""
    return "; ".join(filter(None, (leads, *reasons)))


def _sure(answer: Answer) -> list[Block]:
    """How sure the first place is: what else was looked at, and what may be better after all."""
    proof = answer_frame.proof_words(answer)
    said = [f"{proof[:1].upper()}{proof[1:]}.", tie_line(answer)]
    return [BLANK, text("Is it the best?", STRONG), *(inset(text(each)) for each in said if each)]


def sections(plan: Plan, request: PlanRequest) -> list[tuple[str, Sequence[Term]]]:
    """Every term of a plan under its heading: step, memory, time, bill, confidence, spot."""
    estimate = plan.estimate
    step, cost, time = estimate.step, estimate.cost, estimate.time
    unit = "tokens" if request.job.tokens_per_sample > 1 else f"{request.job.sample_unit}s"
    rate = float(request.job.batch_on(plan.gpus)) * request.job.tokens_per_sample / step.step_s
    sections: list[tuple[str, Sequence[Term]]] = [
        (
            f"One step: {fmt.duration(step.step_s)}, {fmt.large(rate)} {unit}/s",
            _step(step),
        ),
        (f"Memory of one GPU: {fmt.number(step.memory_gib)} GiB", _memory(step)),
        (
            f"Time: half of the runs take {fmt.duration(time.p50)} or less, 9 in 10 "
            f"{fmt.duration(time.p05)} to {fmt.duration(time.p95)}; a usual run",
            _time(plan),
        ),
        (
            f"Bill: half of the runs cost {fmt.usd(cost.p50)} USD or less, 9 in 10 "
            f"{fmt.usd_span(cost.p05, cost.p95)} USD; on average {fmt.usd(cost.mean)} USD",
            _bill(plan),
        ),
        ("Confidence", _certainty(plan)),
    ]
    if plan.spot is not None:
        of = "as in your trace of" if plan.spot.basis.startswith(OWN_TRACE) else "of class"
        name = fmt.clean(plan.spot.name)
        sections.append((f"Spot capacity {of} {name}", _spot(plan.spot, estimate)))
    return sections


def _step(step: StepSplit) -> list[Term]:
    parts = [
        ("compute", step.compute_s),
        ("recomputation", step.recompute_s),
        ("network, exposed", step.exposed_network_s),
        ("intra-node, exposed", step.exposed_intra_s),
        ("pipeline bubble", step.bubble_s),
        ("input", step.input_s),
    ]
    terms = [(name, fmt.duration(s), _of(s, step.step_s)) for name, s in parts if s]
    where = "replica" if step.is_model_parallel else "GPU"
    batch = f"{step.micro_batch} samples per {where}, accumulation {step.accumulation}"
    return [*terms, ("micro-batch", batch, f"sharding: {fmt.clean(step.sharding)}")]


def _memory(step: StepSplit) -> list[Term]:
    parts = step.memory_parts_gib
    return [(fmt.clean(n), f"{fmt.number(x)} GiB", _of(x, step.memory_gib)) for n, x in parts if x]


def _time(plan: Plan) -> list[Term]:
    split = plan.estimate.split
    parts = [
        ("start-up", split.start_up_s),
        ("work", split.work_s),
        ("checkpoints", split.checkpoint_s),
        ("lost work, repeated", split.lost_s),
        ("restarts", split.restart_s),
        ("waiting for capacity", split.waiting_s),
    ]
    total = sum(seconds for _, seconds in parts)
    return [(name, fmt.duration(s), _of(s, total)) for name, s in parts if s > _NONE * total]


def _bill(plan: Plan) -> list[Term]:
    total = sum(item.usd for item in plan.estimate.bill)
    places = max(2, cells.decimals([total], digits=3))  # of a job of a few cents more than cents
    return [
        (fmt.clean(item.item), f"{item.usd:,.{places}f} USD", _of(item.usd, total))
        for item in plan.estimate.bill
    ]


def _certainty(plan: Plan) -> list[Term]:
    estimate, known = plan.estimate, plan.evidence
    speed = "" if known is None else f", {known.speed}"
    price = "" if known is None else f", {known.price} ({known.price_age_days:.0f} days)"
    drift = estimate.price_sigma if known is None else known.price_sd  # of list prices too
    terms = [
        ("all limits met", fmt.share(estimate.chance), ""),
        (
            "all limits met, if the speed is as predicted",
            fmt.share(estimate.chance_if_speed_known),
            "",
        ),
        *_on_demand(plan.on_demand),
        ("speed uncertainty", f"±{fmt.percent(estimate.speed_sigma)}", f"one sigma{speed}"),
        ("price drift", f"±{fmt.percent(drift)}", f"one sigma{price}"),
        ("work per dollar", f"{fmt.scientific(plan.flopp)} FLOP/USD", "at list price"),
    ]
    if plan.best_share is not None:
        share = fmt.percent(plan.best_share)
        terms.append(("best of the table", f"{share} of draws", "of GPU speeds and prices"))
    return terms


def _on_demand(facts: OnDemandFacts | None) -> list[Term]:
    """How far the chance hangs on on-demand machines that may not be there."""
    if facts is None:
        return []
    return [
        (
            "all limits met, if on-demand is available",
            fmt.share(facts.chance_if_at_once),
            "at once",
        ),
        ("on-demand machines are needed", fmt.percent(facts.needed), "of all runs"),
        ("not available within an hour", fmt.percent(facts.late), "of all runs"),
        ("available at once", fmt.percent(facts.at_once), "of the time (assumed)"),
    ]


def _spot(facts: SpotFacts, estimate: Estimate) -> list[Term]:
    """The law of the machines, and what the plan's own runs meet of it."""
    basis = f"{fmt.clean(facts.basis)}, {fmt.clean(facts.as_of)}"
    waiting = estimate.split.waiting_s
    half = (
        "half of the runs wait",
        fmt.duration(facts.waiting_p50_s),
        "or less in total",
    )
    return [
        (
            "one machine runs",
            fmt.duration(facts.run_mean_s),
            "on average, until reclaimed",
        ),
        (
            "this cluster runs",
            fmt.duration(facts.gang_run_mean_s),
            "until one is reclaimed",
        ),
        ("reclaimed together", fmt.percent(facts.co_interruption), "of interruptions"),
        ("a run is interrupted", _times(estimate.interruptions), "on average"),
        ("runs that never wait", fmt.percent(facts.never_waits), "of all runs"),
        *([half] if facts.waiting_p50_s > 0.0 else []),
        ("1 run in 20 waits", fmt.duration(facts.waiting_p95_s), "or more in total"),
        ("waiting takes", _of(waiting, estimate.time.p50), "of the time above"),
        ("basis", basis, ""),
    ]


def _times(count: float) -> str:
    return fmt.plural(round(count, 1), "time")


def _of(part: float, whole: float) -> str:
    return fmt.percent(part / whole) if whole else ""


def _terms(terms: Sequence[Term], width: int) -> Block:
    """What, how much, and which share of the whole or a remark; the last two in one if narrow."""
    table = inset(grid(terms, right=(1,)))
    if fits(table, width):
        return table
    return labelled(
        [(name, " · ".join(x for x in (much, rest) if x)) for name, much, rest in terms]
    )


def _lost(answer: Answer, number: int) -> list[Block]:
    """Why the next plan ranks below this one: the terms that make the difference."""
    if number >= len(answer.plans):
        return []
    this, after = answer.plans[number - 1], answer.plans[number]
    if answer.goal == "time":
        parts = [
            f"{fmt.duration(abs(d))} {_more(d)} {name}"
            for name, d in _differences(_seconds(this), _seconds(after))
        ]
    else:
        parts = [
            f"{fmt.usd(abs(d))} USD {_more(d)} {name}"
            for name, d in _differences(_dollars(this), _dollars(after))
        ]
    why = fmt.listing(parts) or "no visible difference"
    return [BLANK, text(f"Plan {number + 1} compared: {why}.")]


def _more(difference: float) -> str:
    return "more for" if difference > 0 else "less for"


def _dollars(plan: Plan) -> dict[str, float]:
    """The bill by subject: machines of one market are one subject, whatever their type."""
    found: dict[str, float] = {}
    for item in plan.estimate.bill:
        name = _MACHINES.sub(r"\1 machines", fmt.clean(item.item))
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


def assumed_blocks(answer: Answer) -> list[Block]:
    """All that is taken for granted."""
    sentences = [text(f"{fmt.clean(each).rstrip('.')}.") for each in answer.assumptions]
    return [BLANK, text("Assumed", STRONG), *map(inset, sentences)] if sentences else []


def _derived(request: PlanRequest) -> list[Block]:
    names = request.job.assumed
    if not names:
        return []
    listed = ", ".join(fmt.clean(name) for name in names)
    return [BLANK, text(f"Job fields derived from the others: {listed}.", FAINT)]
