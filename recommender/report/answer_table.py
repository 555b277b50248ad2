"""All plans of an answer as a table, and what stands around it."""

from collections.abc import Sequence

from rich.table import Table

from recommender.catalogs.frozen import dataclass
from recommender.plan.answer import Answer
from recommender.plan.plan import Plan
from recommender.report import answer_frame, cells
from recommender.report import formatting as fmt
from recommender.report.advice import changed, comparison
from recommender.report.answer_frame import PlanRequest, closing_facts
from recommender.report.explain import check_blocks
from recommender.report.layout import (
    BLANK,
    FAINT,
    STRONG,
    WARNING,
    Block,
    add_row,
    fits,
    grid,
    inset,
    sheet,
    text,
)
from recommender.report.page import Column, headings
from recommender.report.trio import role_words, tie_line

CURVE_PLANS, CURVE_COLUMNS = 3, 24  # fewer plans make no curve
HEAVY = 0.2  # checkpoint overhead from which on it is shown at any width

Cell = tuple[str, ...]  # the lines of one cell
Figures = list[tuple[Column, Sequence[Cell]]]


def render(
    answer: Answer,
    request: PlanRequest,
    width: int = 80,
    quiet: bool = False,
    all_regions: bool = False,
) -> list[Block]:
    """All plans, and what stands around them; `quiet` leaves only the table."""
    limited = request.limits.max_overhead is not None
    table = plans_table(answer, width, all_regions, limited)
    if quiet:
        return [table]
    steps = [(fmt.clean(s.change), fmt.clean(s.effect)) for s in answer.sensitivity if s.changes]
    facts = closing_facts(answer, request)
    changes: list[Block] = [BLANK, text(changed(answer), STRONG), inset(grid(steps))]
    return [
        *_heading(answer, request),
        BLANK,
        table,
        text(answer_frame.legend(answer), FAINT),
        *([text(costs)] if (costs := answer_frame.currency_line(answer, request)) else []),
        *curve(answer),
        BLANK,
        *(text(each) for each in (tie_line(answer), comparison(answer, request)) if each),
        *(text(f"{each[:1].upper()}{each[1:]}.") for each in facts),
        *(changes if steps else []),
        *check_blocks(answer),
        BLANK,
        text(f"How plan {answer.lead} runs, and what is assumed: --explain {answer.lead}", FAINT),
    ]


def _heading(answer: Answer, request: PlanRequest) -> list[Block]:
    prices = answer_frame.price_line(answer, request)
    return [
        text(answer_frame.job_line(request), STRONG),
        text(answer_frame.goal_line(answer, request), STRONG),
        *([text(prices, FAINT)] if prices else []),
        *(text(f"warning: {fmt.clean(w)}", WARNING) for w in answer.warnings),
    ]


def curve(answer: Answer) -> list[Block]:
    """Where no limit chose: the least cost for each time, over the logarithm of the time."""
    points = sorted((p.estimate.time.p50, p.estimate.cost.mean) for p in answer.plans)
    if answer.goal != "frontier" or len(points) < CURVE_PLANS:
        return []
    first_s, last_s = points[0][0], points[-1][0]
    ends = [first_s * (last_s / first_s) ** (i / (CURVE_COLUMNS - 1)) for i in range(CURVE_COLUMNS)]
    least = [min(usd for time_s, usd in points if time_s <= end_s * 1.000001) for end_s in ends]
    return [
        text(
            f"least cost from {fmt.duration(first_s)} to {fmt.duration(last_s)}: "
            f"{fmt.usd(least[0])} {fmt.sparkline(least)} {fmt.usd(least[-1])} USD",
            FAINT,
        )
    ]


def plans_table(
    answer: Answer, width: int, all_regions: bool = False, limited: bool = False
) -> Table:
    """The table of plans; today's machines come last, marked "now".

    The overhead is shown at any width if it is heavy or was `limited`.

    Columns are in order of importance: in narrow tables the last ones are dropped, then figures
    move under the machines.
    """
    plans = [*answer.plans, *([answer.compared] if answer.compared else [])]
    names = [str(i) for i in range(1, len(answer.plans) + 1)] + ["now"]
    heading, times = cells.time_column([plan.estimate.time for plan in plans])
    overhead = [_overhead(plans)]
    shown = limited or any(p.estimate.overhead > HEAVY for p in plans)
    spans: Figures = [
        (Column("cost USD"), cells.cost_cells(plans)),
        (Column(heading), times),
    ]
    chance = (Column("chance"), [(fmt.share(p.estimate.chance),) for p in plans])
    tail: Figures = [
        *([chance] if answer.goal != "frontier" else []),  # there is nothing to meet
        (Column("USD/h"), cells.price_cells(plans)),
        *(overhead if shown else []),
    ]
    machines = plan_lines(answer, plans, all_regions)
    rows = _Rows(names, str(answer.lead))
    return (
        _as_wide_as_fits(rows, machines, spans + tail, [] if shown else overhead, plans, width)
        or _fitting(rows, _under(machines, tail), spans, width)
        or _table(rows, _under(machines, spans + tail), [])
    )


def plan_lines(answer: Answer, plans: Sequence[Plan], all_regions: bool = False) -> list[Cell]:
    """What each plan of a table rents, where, and what distinguishes it."""
    roles = role_words(answer.trio)
    return [
        (
            *_machines(plan, all_regions),
            *cells.fallback_of(plan, plans),
            *roles.get(rank, ()),
        )
        for rank, plan in enumerate(plans, 1)
    ]


@dataclass(frozen=True, slots=True)
class _Rows:
    """The names of the rows, and the highlighted one."""

    names: Sequence[str]
    strong: str


def _as_wide_as_fits(
    rows: _Rows,
    machines: Sequence[Cell],
    figures: Figures,
    more: Figures,
    plans: Sequence[Plan],
    width: int,
) -> Table | None:
    """The figures, and as many more columns as leave every machine on one line."""
    table = _table(rows, machines, figures + more + _second_half(plans))
    first, word = table.columns[1], table.columns[1].min_width
    first.min_width = max(len(line) for plan in plans for line in cells.machines_lines(plan))
    while len(table.columns) > 2 + len(figures) and not fits(table, width):
        table.columns.pop()
    first.min_width = word
    return table if fits(table, width) else None


def _fitting(rows: _Rows, machines: Sequence[Cell], figures: Figures, width: int) -> Table | None:
    table = _table(rows, machines, figures)
    return table if fits(table, width) else None


def _table(rows: _Rows, machines: Sequence[Cell], figures: Figures) -> Table:
    columns = [*headings("#:", "machines:")]
    table = sheet([*columns, *(column for column, _ in figures)], flexible=1)
    for i, cell in enumerate(machines):
        row = ((rows.names[i],), cell, *(given[i] for _, given in figures))
        add_row(table, row, first=STRONG if rows.names[i] == rows.strong else "")
    return table


def _machines(plan: Plan, all_regions: bool) -> Cell:
    lines = cells.machines_lines(plan)
    if not all_regions:
        return lines
    regions = dict.fromkeys(site.region for site in plan.sites[1:])
    return (*lines, *([f"also {', '.join(map(fmt.clean, regions))}"] if regions else []))


def _under(machines: Sequence[Cell], figures: Figures) -> list[Cell]:
    """Figures as a line below the machines, each with its unit."""
    spans = [(c, given) for c, given in figures if " " in c.title]
    single = [(c, given) for c, given in figures if " " not in c.title]
    return [
        (
            *cell,
            *(_figure_line(column.title, given[i]) for column, given in spans),
            " · ".join(_figure_line(column.title, given[i]) for column, given in single),
        )
        for i, cell in enumerate(machines)
    ]


def _figure_line(title: str, cell: Cell) -> str:
    word, _, unit = title.partition(" ")
    if not unit:
        return f"{cell[0]} {word}"
    return f"{word} {cell[0]} {unit} ({', '.join(cell[1:])})"


def _overhead(plans: Sequence[Plan]) -> tuple[Column, Sequence[Cell]]:
    return Column("overhead"), [(fmt.percent(p.estimate.overhead),) for p in plans]


def _second_half(plans: Sequence[Plan]) -> Figures:
    """Remarks next to the figures of a plan where there is room, the most important first."""
    return [
        (Column("saving"), [cells.saving_cell(p) for p in plans]),
        (
            Column("checkpoints", right=False),
            [cells.checkpoint_cell(p.checkpointing) for p in plans],
        ),
        (
            Column("interr."),
            [(fmt.number(round(p.estimate.interruptions, 1)),) for p in plans],
        ),
        (Column("FLOP/USD"), [(fmt.scientific(p.flopp),) for p in plans]),
    ]
