"""The short answer in every form: a terminal, Markdown, a notebook, an object for agents."""

from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from recommender.plan.answer import Answer
from recommender.report import formatting as fmt
from recommender.report.answer_frame import PlanRequest, currency_line
from recommender.report.answer_table import curve
from recommender.report.explain import check_words
from recommender.report.json_output import plain
from recommender.report.layout import (
    BLANK,
    FAINT,
    STRONG,
    WARNING,
    Block,
    Framed,
    drawn,
    inset,
    labelled,
    marked,
    text,
)
from recommender.report.short_answer import ShortAnswer, ShortPlan, short_answer
from recommender.report.short_refusal import headline, short_refusal

RENT = "bold green"
_FRAME = 4  # columns of the frame around the plans
_GAP = 2
_WIDEST = 100  # columns, beyond which figures are too far from their names
_NARROW = 60
_BLOCK = 80  # columns of a code block


def short_blocks(
    answer: Answer, request: PlanRequest, width: int = 80, quiet: bool = False, every: bool = False
) -> list[Block]:
    """The answer on a terminal; `quiet` leaves only the plans, `every` all that a refusal knows."""
    short = short_form(answer, request, every)
    verdict = [text(short.verdict, STRONG)] if short.verdict else []
    plans = [Framed(_plans(short, min(width - _FRAME, _WIDEST)))] if short.plans else []
    if quiet:
        return [*verdict, *plans]
    labels = [*short.steps, *_checked(answer), ("Prices", short.prices), ("More", short.more)]
    return [
        text(short.job, FAINT if verdict else STRONG),
        *verdict,
        *(text(f"warning: {fmt.clean(w)}", WARNING) for w in answer.warnings),
        *plans,
        *([text(short.span)] if short.span else []),
        *([text(costs)] if (costs := currency_line(answer, request)) else []),
        *curve(answer),
        BLANK,
        labelled([(name, words) for name, words in labels if words], indent=0),
    ]


def short_form(answer: Answer, request: PlanRequest, every: bool = False) -> ShortAnswer:
    """What every form for people says of an answer or a refusal."""
    if answer.status == "ok":
        return short_answer(answer, request)
    return short_refusal(answer, request, every)


def _checked(answer: Answer) -> list[tuple[str, str]]:
    """What `--verify` found of the plan that leads."""
    return [("Checked", check_words(c)) for c in answer.checks if c.rank == answer.lead]


def _plans(short: ShortAnswer, width: int) -> Group:
    """A line of figures for each plan, and a fainter one with its GPUs, its place, its catch."""
    role = max(len(plan.role) for plan in short.plans) + _GAP
    rows = [short.headings, *(plan.figures for plan in short.plans)]
    figures = [max(map(len, column)) for column in zip(*rows, strict=True)]
    room = width - role - sum(each + _GAP for each in figures)
    names = [word for plan in short.plans for word in plan.machines.split()]
    if width < _NARROW or room < max(map(len, names)):
        return Group(*(block for plan in short.plans for block in _stacked(short, plan)))
    lines: list[Block] = [_line([role + room, *figures], text(short.asked), short.headings, FAINT)]
    for plan in short.plans:
        style = RENT if plan is short.plans[0] else STRONG
        first = _line([room, *figures], marked(plan.machines, STRONG), plan.figures)
        lines.append(_side_by_side([role, width - role], Text(plan.role, style), first))
        lines.append(_side_by_side([role, width - role], "", _below(plan)))
    return Group(*lines)


def _line(widths: Sequence[int], first: Block, figures: Sequence[str], style: str = "") -> Table:
    """A block and right-aligned figures beside it, in columns of known widths."""
    table = Table.grid(padding=(0, _GAP, 0, 0), pad_edge=False)
    for i, width in enumerate(widths):
        table.add_column(width=width, justify="right" if i else "left", no_wrap=i > 0)
    table.add_row(first, *(Text(each, style) for each in figures))
    return table


def _side_by_side(widths: Sequence[int], left: Block, right: Block) -> Table:
    table = Table.grid()
    for width in widths:
        table.add_column(width=width)
    table.add_row(left, right)
    return table


def _below(plan: ShortPlan) -> Text:
    made = Text().append_text(text(plan.where, FAINT))
    return made.append_text(text(f" · {plan.catch}", WARNING)) if plan.catch else made


def _stacked(short: ShortAnswer, plan: ShortPlan) -> list[Block]:
    """The lines of a plan on a narrow terminal, and before the first one what was asked."""
    first = plan is short.plans[0]
    named = dict(zip(short.headings, plan.figures, strict=True))
    chance = [f"{named['chance']} chance"] if "chance" in named else []
    title = text(f"{plan.role} ", RENT if first else STRONG)
    return [
        *([text(short.asked, FAINT)] if first else []),
        title.append_text(marked(plan.machines, STRONG)),
        inset(text(" · ".join([*plan.figures[:2], *chance]))),
        inset(_below(plan)),
    ]


def short_text(answer: Answer, request: PlanRequest, width: int = _BLOCK) -> str:
    """The answer as plain text."""
    return drawn(short_blocks(answer, request, width), width)


def short_object(answer: Answer, request: PlanRequest) -> dict[str, Any]:
    """The answer in two kilobytes, for agents: USD, seconds, shares."""
    if answer.status != "ok":
        why = answer.infeasible
        steps = [] if why is None else [step for step in why.relaxed if step.plan is not None]
        return {
            "status": answer.status,
            "answer": headline(request, answer.status == "infeasible"),
            "why": [] if why is None else list(why.binding),
            "would_work": [{"change": s.change, "effect": s.effect} for s in steps],
        }
    short = short_answer(answer, request)
    return {
        "status": answer.status,
        "job": short.job,
        "asked": short.asked,
        "plans": [_plan_object(plan) for plan in short.plans],
        "span": short.span,
        **{name.lower(): words for name, words in short.steps},
        "prices": short.prices,
        "warnings": list(answer.warnings),
    }


def _plan_object(plan: ShortPlan) -> dict[str, Any]:
    estimate = plan.plan.estimate
    return {
        "role": plan.role,
        "plan": plan.rank,
        "machines": plan.machines,
        "where": plan.where,
        "cost_usd": plain(estimate.cost.mean),
        "time_s": plain(estimate.time.p50),
        "chance": plain(estimate.chance),
        "catch": plan.catch,
    }
