"""The answer as CSV (RFC 4180), safe to open in a spreadsheet, and as Markdown."""

import csv
import io
import re
from collections.abc import Iterable, Sequence

from recommender.plan.answer import Answer
from recommender.plan.plan import Plan
from recommender.report import answer_frame, cells
from recommender.report import formatting as fmt
from recommender.report.advice import changed, comparison
from recommender.report.answer_frame import PlanRequest, closing_facts
from recommender.report.answer_table import plan_lines
from recommender.report.explain import check_words
from recommender.report.launch import launch_line
from recommender.report.short_forms import short_form
from recommender.report.trio import tie_line

COLUMNS = (
    "rank",
    "status",
    "machines",
    "market",
    "provider",
    "region",
    "gpus",
    "cost_usd_mean",
    "cost_usd_median",
    "cost_usd_p05",
    "cost_usd_p95",
    "time_h_median",
    "time_h_p05",
    "time_h_p95",
    "chance",
    "usd_per_hour",
    "interruptions",
    "checkpoint_path",
    "checkpoint_interval_s",
    "overhead",
    "flop_per_usd",
    "saving",
    "price_as_of",
    "labels",
    "launch",
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def rows(answer: Answer) -> list[tuple[str, ...]]:
    """Every plan of an answer as cells; an infeasible answer gives its closest plans."""
    numbered = [(str(i), "ok", plan) for i, plan in enumerate(answer.plans, 1)]
    if answer.compared is not None:
        numbered.append(("now", "compared", answer.compared))
    if answer.infeasible is not None:
        nearest = [s for s in answer.infeasible.relaxed if s.plan is not None]
        numbered += [("", f"{answer.status}: {s.change}", s.plan) for s in nearest if s.plan]
    return [_row(rank, status, plan) for rank, status, plan in numbered]


def _row(rank: str, status: str, plan: Plan) -> tuple[str, ...]:
    estimate, first = plan.estimate, plan.machines[0]
    cost, time = estimate.cost, estimate.time
    markets = dict.fromkeys(fmt.market(m.market) for m in plan.machines)
    return (
        rank,
        fmt.clean(status),
        " + ".join(f"{m.count}x {fmt.clean(m.instance_type)}" for m in plan.machines),
        " + ".join(markets),
        fmt.clean(first.provider),
        fmt.clean(cells.first_region(plan)),
        cells.gpus(plan.machines),
        *(_number(x) for x in (cost.mean, cost.p50, cost.p05, cost.p95)),
        *(_number(x / 3600) for x in (time.p50, time.p05, time.p95)),
        _number(estimate.chance),
        _number(plan.usd_per_hour),
        _number(estimate.interruptions),
        plan.checkpointing.path,
        _number(plan.checkpointing.interval_s),
        _number(estimate.overhead),
        _number(plan.flopp),
        "" if plan.saving is None or plan.saving < 0.0 else _number(plan.saving),
        min(fmt.clean(m.as_of) for m in plan.machines),
        "; ".join(fmt.clean(label) for label in plan.labels),
        launch_line(plan, int(rank) if rank.isdigit() else None) or "",
    )


def _number(x: float) -> str:
    return f"{x:.6g}" if x == x and abs(x) != float("inf") else ""


_NUMBER = re.compile(r"-?[0-9.]+(?:e[+-]?[0-9]+)?")


def render_csv(answer: Answer) -> str:
    """One header line and one line per plan, ended by CRLF."""
    return table(COLUMNS, rows(answer))


def table(header: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A header and rows as CSV."""
    made = io.StringIO(newline="")
    writer = csv.writer(made, lineterminator="\r\n")
    writer.writerow(header)
    writer.writerows([safe(cell) for cell in row] for row in body)
    return made.getvalue()


def safe(cell: str) -> str:
    """Put an apostrophe before a cell that a spreadsheet would run as a formula."""
    formula = cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if formula else cell


_SPECIAL = str.maketrans({c: f"\\{c}" for c in "\\`*_[]<>|#"})


def render_markdown(
    answer: Answer, request: PlanRequest, every: bool = False, quiet: bool = False
) -> str:
    """The plans that most people would take and what to do, or every plan as a table."""
    whole = every and answer.status == "ok"
    parts = _every(answer, request, quiet) if whole else _short(answer, request, quiet, every)
    return "\n\n".join(filter(None, parts)) + "\n"


def _short(answer: Answer, request: PlanRequest, quiet: bool, every: bool) -> list[str]:
    short = short_form(answer, request, every)
    head = ["", _escape(short.asked), *short.headings]
    rows = [
        [plan.role, "<br>".join(map(_escape, filter(None, lines))), *plan.figures]
        for plan in short.plans
        for lines in [(plan.machines, plan.where, plan.catch)]
    ]
    table = _markdown_table(head, rows, left=2)
    verdict = [_escape(short.verdict)] if short.verdict else []
    table = table if rows else ""
    if quiet:
        return [*verdict, table]
    labels = [*short.steps, ("Prices", short.prices), ("More", short.more)]
    return [
        f"**{_escape(short.job)}**",
        *verdict,
        *_warnings(answer),
        table,
        _escape(short.span),
        "\n".join(f"* **{name}**: {_escape(words)}" for name, words in labels if words),
    ]


def _every(answer: Answer, request: PlanRequest, quiet: bool) -> list[str]:
    table = _table(answer)
    if quiet:
        return [table]
    prices = answer_frame.price_line(answer, request)
    facts = [tie_line(answer), comparison(answer, request), *closing_facts(answer, request)]
    return [
        f"**{_escape(answer_frame.job_line(request))}**",
        _escape(f"{answer_frame.goal_line(answer, request)}. {prices}".rstrip()),
        *_warnings(answer),
        table,
        _escape(answer_frame.legend(answer)),
        "\n".join(f"* {_escape(each)}" for each in facts if each),
        *_changes(answer),
        *_checks(answer),
        *_assumed(answer),
    ]


def _assumed(answer: Answer) -> list[str]:
    """All that is taken for granted; each is cut where it is too long, not the whole."""
    return (
        [f"Assumed: {'; '.join(map(_escape, answer.assumptions))}."] if answer.assumptions else []
    )


def _warnings(answer: Answer) -> list[str]:
    return [f"**Warning:** {_escape(each)}" for each in answer.warnings]


def _table(answer: Answer) -> str:
    plans = [*answer.plans, *([answer.compared] if answer.compared else [])]
    names = [str(i) for i in range(1, len(answer.plans) + 1)] + ["now"]
    heading, times = cells.time_column([plan.estimate.time for plan in plans])
    head = ["#", "machines", "cost USD", heading, "chance", "USD/h"]
    columns = zip(
        names, plan_lines(answer, plans), cells.cost_cells(plans), times, plans,
        cells.price_cells(plans), strict=False,
    )  # fmt: skip
    rows = [
        [
            name,
            "<br>".join(map(_escape, lines)),
            f"{cost[0]} ({cost[1]})",
            f"{time[0]} ({time[1]})",
            fmt.share(plan.estimate.chance),
            price[0],
        ]
        for name, lines, cost, time, plan, price in columns
    ]
    return _markdown_table(head, rows, left=2)


def _markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int) -> str:
    """A table whose first columns are words and whose others are figures."""
    rule = [":--" if i < left else "--:" for i in range(len(head))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


def _changes(answer: Answer) -> list[str]:
    steps = [step for step in answer.sensitivity if step.changes]
    items = [f"* {_escape(step.change)}: {_escape(step.effect)}" for step in steps]
    if not items:
        return []
    return [f"{changed(answer)}:\n\n" + "\n".join(items)]


def _checks(answer: Answer) -> list[str]:
    if not answer.checks:
        return []
    items = [f"* plan {check.rank}: {_escape(check_words(check))}" for check in answer.checks]
    runs = answer.checks[0].runs
    return [f"Verified with {runs:,} new simulated runs each:\n\n" + "\n".join(items)]


def _escape(foreign: str) -> str:
    return fmt.clean(foreign).translate(_SPECIAL)
