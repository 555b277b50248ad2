"""The answer as CSV (RFC 4180), safe to open in a spreadsheet, and as Markdown."""

import csv
import io
import re
from collections.abc import Iterable, Sequence

from recommender.plan.answer import Answer
from recommender.plan.plan import Plan
from recommender.report import advice, answer_frame, cells, infeasible
from recommender.report import formatting as fmt
from recommender.report.answer_frame import PlanRequest, closing_facts
from recommender.report.explain import check_words
from recommender.report.launch import launch_line
from recommender.report.layout import drawn
from recommender.report.trio import tie_line, trio_parts, why_it_leads

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
_BLOCK = 80  # columns of a code block


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


def render_markdown(answer: Answer, request: PlanRequest, quiet: bool = False) -> str:
    """Title, table, and the sentences about the leading plan as a list."""
    if answer.status != "ok":
        return _infeasible(answer, request)
    table = _table(answer)
    if quiet:
        return "\n".join(table) + "\n"
    parts = [
        f"**{_escape(answer_frame.job_line(request))}**",
        f"{_escape(answer_frame.goal_line(answer, request))}."
        f" {_escape(answer_frame.price_line(answer, request))}".rstrip(),
        *(f"**Warning:** {_escape(w)}" for w in answer.warnings),
        *_trio(answer),
        "\n".join(table),
        _escape(f"{answer_frame.legend(answer)} {tie_line(answer)}".rstrip()),
        _sentences(closing_facts(answer, request), " · "),
        *_first(answer, request),
        *_changes(answer),
        *_checks(answer),
    ]
    if answer.assumptions:
        parts.append(f"Assumed: {_sentences(answer.assumptions, '; ')}.")
    return "\n\n".join(parts) + "\n"


def _table(answer: Answer) -> list[str]:
    plans = [*answer.plans, *([answer.compared] if answer.compared else [])]
    best = answer.plans[answer.best - 1]
    names = [str(i) for i in range(1, len(answer.plans) + 1)] + ["now"]
    costs, (heading, times) = (
        cells.cost_cells(plans),
        cells.time_column([plan.estimate.time for plan in plans]),
    )
    head = ["#", "machines", "cost USD", heading, "chance", "USD/h"]
    rows = [
        [
            names[i],
            "<br>".join(
                map(
                    _escape,
                    (
                        *cells.machines_lines(plan),
                        *cells.fallback_of(plan, plans),
                        *cells.knee(plan, best),
                    ),
                )
            ),
            f"{costs[i][0]} ({costs[i][1]})",
            f"{times[i][0]} ({times[i][1]})",
            fmt.share(plan.estimate.chance),
            cells.price_cells(plans)[i][0],
        ]
        for i, plan in enumerate(plans)
    ]
    return [_markdown_row(head), "|--:|:--|--:|--:|--:|--:|", *map(_markdown_row, rows)]


def _markdown_row(given: Sequence[str]) -> str:
    return f"| {' | '.join(given)} |"


def _first(answer: Answer, request: PlanRequest) -> list[str]:
    if not answer.plans:
        return []
    plan = answer.plans[answer.lead - 1]
    remarks = [("why", why_it_leads(answer)), *advice.sentences(plan, request)]
    parts = [(label, words) for label, words in remarks if words]
    items = "\n".join(f"* *{label}*: {_escape(words)}" for label, words in parts)
    return [_escape(advice.headline(answer, request)), items, *_code(plan, answer.lead)]


def _code(plan: Plan, number: int) -> list[str]:
    line = launch_line(plan, number)
    if line is None:
        return []
    fence = "~~~~" if "```" in line else "```"
    return [f"{fence}sh\n{line}\n{fence}"]


def _trio(answer: Answer) -> list[str]:
    parts = trio_parts(answer.trio)
    return ["\n".join(f"* *{role}*: {_escape(words)}" for role, words in parts)] if parts else []


def _changes(answer: Answer) -> list[str]:
    steps = [step for step in answer.sensitivity if step.changes]
    items = [f"* {_escape(step.change)}: {_escape(step.effect)}" for step in steps]
    if not items:
        return []
    return [f"{advice.changed(answer)}:\n\n" + "\n".join(items)]


def _checks(answer: Answer) -> list[str]:
    if not answer.checks:
        return []
    items = [f"* plan {check.rank}: {_escape(check_words(check))}" for check in answer.checks]
    runs = answer.checks[0].runs
    return [f"Verified with {runs:,} new simulated runs each:\n\n" + "\n".join(items)]


def _infeasible(answer: Answer, request: PlanRequest) -> str:
    """The lines of a terminal as a code block."""
    blocks = infeasible.infeasible_blocks(answer, request, _BLOCK)
    return f"```text\n{drawn(blocks, _BLOCK)}```\n"


def _sentences(foreign: Sequence[str], between: str) -> str:
    """Several strings in a row; each is cut where it is too long, not the whole."""
    return between.join(map(_escape, foreign))


def _escape(foreign: str) -> str:
    return fmt.clean(foreign).translate(_SPECIAL)
