"""The main answer: the best plans in a table, and what to do with the first of them."""

from collections.abc import Sequence

from recommender.plan.plan import Answer, Plan
from recommender.report import answer_frame, cells
from recommender.report import formatting as fmt
from recommender.report.advice import advice
from recommender.report.answer_frame import PlanRequest, closing_facts
from recommender.report.infeasible import infeasible_lines
from recommender.report.layout import Cell, Column, Line, Row, grid, inset, paragraph

_NARROW = 80  # below, chance and price move under the machines
_CARD = 56  # below, everything moves there
_WIDE = 120  # from here on, the columns of the second half fit


Figures = list[tuple[Column, Sequence[Cell]]]


def render(
    answer: Answer,
    request: PlanRequest,
    width: int = 80,
    quiet: bool = False,
    all_regions: bool = False,
) -> list[Line]:
    """The whole answer as lines; `quiet` leaves the table alone."""
    if answer.status != "ok":
        return infeasible_lines(answer, request, width)
    table = plans_table(answer, width, all_regions)
    if quiet:
        return table
    return [
        *_heading(answer, request, width),
        Line(""),
        *table,
        *inset(" · ".join(closing_facts(answer, request)), width),
        *advice(answer, request, width),
        *_check_lines(answer, width),
    ]


def _check_lines(answer: Answer, width: int) -> list[Line]:
    """What `--verify` found; the page that explains a plan is not loaded without it."""
    if not answer.checks:
        return []
    from recommender.report.explain import check_lines

    return check_lines(answer, width)


def _heading(answer: Answer, request: PlanRequest, width: int) -> list[Line]:
    lines = [
        *paragraph(answer_frame.job_line(request), width, "title"),
        *paragraph(answer_frame.goal_line(answer, request.limits), width, "title"),
    ]
    prices = answer_frame.price_line(answer, request)
    warnings = [f"warning: {fmt.clean(w)}" for w in answer.warnings]
    lines += paragraph(prices, width, "faint") if prices else []
    return lines + [line for w in warnings for line in paragraph(w, width, "warning")]


def plans_table(answer: Answer, width: int, all_regions: bool = False) -> list[Line]:
    """The table of plans; the plan in use today stands last, marked "now"."""
    plans = [*answer.plans, *([answer.compared] if answer.compared else [])]
    names = [str(i) for i in range(1, len(answer.plans) + 1)] + ["now"]
    unit, name = cells.time_unit(plans)
    numbers: Figures = [
        (Column("cost USD"), cells.cost_cells(plans)),
        (Column(f"time {name}"), cells.time_cells(plans, unit)),
    ]
    tail: Figures = [
        (Column("chance"), [(fmt.share(p.estimate.chance),) for p in plans]),
        (Column("USD/h"), cells.price_cells(plans)),
    ]
    machines: Sequence[Cell] = [
        (*_machines(p, all_regions), *cells.knee(p, plans[0])) for p in plans
    ]
    if width < _CARD:
        machines = _under(machines, numbers + tail)
        return _grid(names, machines, [], width)
    if width < _NARROW:
        return _grid(names, _under(machines, tail), numbers, width)
    more = _second_half(plans) if width >= _WIDE else []
    return _grid(names, machines, numbers + tail + more, width)


def _grid(
    names: Sequence[str],
    machines: Sequence[Cell],
    numbers: Figures,
    width: int,
) -> list[Line]:
    columns = [Column("#", right=False), Column("machines", right=False, gap=2)]
    columns += [column for column, _ in numbers]
    rows = [
        Row(((names[i],), cell, *(given[i] for _, given in numbers)), strong=i == 0)
        for i, cell in enumerate(machines)
    ]
    return grid(columns, rows, width, flexible=1)


def _machines(plan: Plan, all_regions: bool) -> Cell:
    lines = cells.machines_lines(plan)
    if not all_regions:
        return lines
    sites = [site.region for site in plan.sites[1:]]
    regions = dict.fromkeys([*sites, *plan.also_regions])
    return (*lines, *([f"also {', '.join(map(fmt.clean, regions))}"] if regions else []))


def _under(machines: Sequence[Cell], numbers: Figures) -> list[Cell]:
    """Figures as a line below the machines, each with its unit."""
    spans = [(c, given) for c, given in numbers if " " in c.title]
    single = [(c, given) for c, given in numbers if " " not in c.title]
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


def _second_half(plans: Sequence[Plan]) -> Figures:
    return [
        (
            Column("interr."),
            [(fmt.three(round(p.estimate.interruptions, 1)),) for p in plans],
        ),
        (Column("overhead"), [(fmt.percent(p.estimate.overhead),) for p in plans]),
        (
            Column("checkpoints", right=False),
            [cells.checkpoint_cell(p.checkpointing) for p in plans],
        ),
        (Column("FLOP/USD"), [(fmt.scientific(p.flopp),) for p in plans]),
        (Column("saving"), [cells.saving_cell(p) for p in plans]),
    ]
