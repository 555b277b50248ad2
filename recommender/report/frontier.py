"""The frontier of cost and time as a page with a plot, as CSV, and as JSON."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from rich.text import Text

from recommender.catalogs.frozen import dataclass
from recommender.plan.answer import Answer
from recommender.plan.frontier import Frontier, FrontierPoint, cost_and_time, distinct
from recommender.plan.limits import LIMITS
from recommender.plan.report_data import SimulatedPlan
from recommender.report import cells
from recommender.report import formatting as fmt
from recommender.report.answer_frame import FIGURES, PlanRequest, job_line
from recommender.report.axis import ticks
from recommender.report.json_output import FRONTIER_SCHEMA, finding, plain
from recommender.report.layout import BLANK, FAINT, Block, render, text
from recommender.report.limit_words import limits_in_words
from recommender.report.page import Page, Rows, headings

_NONE = "No simulated plan meets the limits; recommend JOB explains why."
_ROWS = 14  # of the plot, axes apart
_LABEL = 8  # columns left of it
_MIN_COLUMNS, _MAX_COLUMNS = 20, 100


def frontier_page(found: Frontier, answer: Answer, request: PlanRequest) -> Page:
    """One row per plan of the frontier, cheapest first, and the data for programs."""
    points = distinct(found.points, cost_and_time)
    heading, times = cells.time_column([p.time for p in points]) if points else ("time", [])
    chance = ["chance"] if _limited(request) else []
    columns = headings("machines:", "cost USD", heading, *chance, "USD/h")
    costs = cells.spread_cells([p.cost.mean for p in points], [p.cost for p in points])
    rows = tuple(
        (
            "\n".join(_machines(point)),
            "\n".join(cost),
            "\n".join(time),
            *([fmt.share(point.chance)] if _limited(request) else []),
            fmt.number(point.usd_per_hour),
        )
        for point, cost, time in zip(points, costs, times, strict=True)
    )
    below = _below(found, request, len(found.points) - len(points))
    table = Page(_title(request), columns, rows, 0, below)
    return replace(
        table,
        facts=lambda: document(found, answer, request),
        sheet=lambda: frontier_sheet(found),
        view=lambda width: _blocks(table, found, answer, request, width),
    )


def _title(request: PlanRequest) -> str:
    promise = limits_in_words(request.limits)
    limits = (
        f", of those that {promise} with {fmt.exact(100.0 * request.limits.confidence)} % chance"
    )
    return (
        f"{job_line(request)}\nPlans that no other plan beats in both cost and time"
        f"{limits if promise else ''}"
    )


def _below(found: Frontier, request: PlanRequest, more: int) -> tuple[str, ...]:
    count = f"{found.meeting} of {found.simulated} simulated plans meet the limits."
    if not _limited(request):
        count = f"Chosen from {found.simulated} simulated plans."
    if more:
        count += f" {fmt.plural(more, 'more plan')} less than 2 % cheaper or faster: -o csv."
    return (f"{FIGURES}.", count)


def _limited(request: PlanRequest) -> bool:
    """Whether there is a limit that a plan may miss."""
    return any(True for _ in request.limits.given(LIMITS))


def _machines(point: FrontierPoint) -> list[str]:
    lines = [" + ".join(map(cells.group_line, point.machines)), _where(point)]
    if point.fallback and point.fallback_due_s is not None:
        fallback = cells.counted(point.fallback)
        lines.append(f"then {fallback} on demand, in time for {fmt.duration(point.fallback_due_s)}")
    return lines


def _where(point: FrontierPoint) -> str:
    first = point.machines[0]
    more = f" +{point.regions - 1}" if point.regions > 1 else ""
    return f"{cells.gpus(point.machines)} · {first.provider} {fmt.clean(first.region)}{more}"


def document(found: Frontier, answer: Answer, request: PlanRequest) -> dict[str, Any]:
    """The frontier for programs."""
    made = finding(FRONTIER_SCHEMA, "frontier", found, request)
    return {**made, "inputs": {**plain(answer.inputs), **made["inputs"]}}


_CSV = (
    *("machines", "gpus", "provider", "region", "regions", "fallback"),
    *("mean_usd", "p05_usd", "median_usd", "p95_usd", "median_s", "p05_s", "p95_s"),
    *("chance", "usd_per_hour"),
)


def frontier_sheet(found: Frontier) -> Rows:
    """A row per plan, seconds and USD in six digits."""
    return [_CSV, *map(_sheet_row, found.points)]


def _sheet_row(p: FrontierPoint) -> list[str]:
    figures = (*(p.cost.mean, p.cost.p05, p.cost.p50, p.cost.p95), p.time.p50, p.time.p05,
               p.time.p95, p.chance, p.usd_per_hour)  # fmt: skip
    return [
        " + ".join(map(cells.group_line, p.machines)), f"{p.gpus}", p.machines[0].provider,
        p.machines[0].region, f"{p.regions}", cells.counted(p.fallback),
        *(f"{x:.6g}" for x in figures),
    ]  # fmt: skip


# The plot of a terminal


def _blocks(
    page: Page, found: Frontier, answer: Answer, request: PlanRequest, width: int
) -> list[Block]:
    """The plot, then the rows."""
    if not found.points:
        return [text(_NONE)]
    simulated = () if answer.report is None else answer.report.simulated_plans
    shown = plot(found, simulated, request, width)
    drawn: list[Block] = [Text("\n".join(shown)), legend(request), BLANK] if shown else []
    head, *rest = render(page, width)
    return [head, BLANK, *drawn, *rest[1:]]


@dataclass(frozen=True, slots=True)
class _Axis:
    """A logarithmic axis of a few characters."""

    low: float
    high: float
    cells: int

    def at(self, value: float) -> int:
        """The character that a value falls on, from 0; -1 or `cells` outside."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return math.floor(share * (self.cells - 1) + 0.5)


def plot(
    found: Frontier, simulated: Sequence[SimulatedPlan], request: PlanRequest, width: int
) -> list[str]:
    """Cost against time in characters: the frontier, other plans, and the limits."""
    if len(simulated) < 2:
        return []
    columns = min(max(width - _LABEL - 1, _MIN_COLUMNS), _MAX_COLUMNS)
    x = _axis([p.time.p50 for p in simulated], request.limits.deadline_s, columns)
    y = _axis([p.cost.mean for p in simulated], request.limits.budget_usd, _ROWS)
    grid = [[" "] * columns for _ in range(_ROWS)]
    _draw_limits(grid, x, y, request)
    _draw(grid, x, y, [(p.time.p50, p.cost.mean) for p in simulated], "·")
    _draw(grid, x, y, [(p.time.p50, p.cost.mean) for p in found.points], "●")
    unit, name = cells.unit_of([p.time.p50 for p in found.points or simulated])
    sides = {y.at(value): fmt.number(value) for value in ticks(y.low, y.high)}
    lines = [
        f"{sides.get(row, ''):>{_LABEL - 1}}│{''.join(grid[row])}" for row in reversed(range(_ROWS))
    ]
    return [f"{'USD':>{_LABEL - 1}}", *lines, *_below_axis(x, unit, name)]


def _below_axis(x: _Axis, unit: float, name: str) -> list[str]:
    """The axis of time with its ticks, and as many of their figures as do not touch."""
    line, words, most = ["─"] * x.cells, "", x.cells - len(name) - 1
    for value in ticks(x.low / unit, x.high / unit):
        at, figure = x.at(value * unit), fmt.number(value)
        start = max(at - len(figure) // 2, 0)
        line[at] = "┬"
        if start + len(figure) <= most and (not words or start >= len(words) + 2):
            words = f"{words:<{start}}{figure}"
    margin = " " * _LABEL
    return [f"{margin[1:]}└{''.join(line)}", f"{margin}{words} {name}"]


def _axis(values: Sequence[float], limit: float | None, count: int) -> _Axis:
    known = [*values, *([] if limit is None else [limit])]
    low, high = min(known), max(known)
    return _Axis(low * 0.95, max(high * 1.05, low * 1.2), count)


def _draw_limits(grid: list[list[str]], x: _Axis, y: _Axis, request: PlanRequest) -> None:
    limits = request.limits
    if limits.deadline_s is not None:
        for row in grid:
            row[x.at(limits.deadline_s)] = "┊"
    if limits.budget_usd is not None:
        grid[y.at(limits.budget_usd)] = ["┄"] * x.cells


def _draw(
    grid: list[list[str]], x: _Axis, y: _Axis, points: Iterable[tuple[float, float]], mark: str
) -> None:
    for time, cost in points:
        grid[y.at(cost)][x.at(time)] = mark


def legend(request: PlanRequest) -> Block:
    """The meaning of the plot's marks."""
    limits, marks = request.limits, ["● the frontier", "· other simulated plans"]
    drawn = [(limits.deadline_s, "┊ deadline"), (limits.budget_usd, "┄ budget")]
    return text("  ".join([*marks, *(mark for given, mark in drawn if given is not None)]), FAINT)
