"""A simulation as a page."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from recommender.plan.plan import Plan
from recommender.plan.simulation import ExecutorRun, PolicyRun, Quantiles, Simulation
from recommender.report import answer_frame, cells, layout
from recommender.report import formatting as fmt
from recommender.report.answer_frame import PlanRequest
from recommender.report.cells import unit_of
from recommender.report.json_output import SIMULATION_SCHEMA, finding
from recommender.report.layout import (
    BLANK,
    FAINT,
    STRONG,
    Block,
    add_row,
    fits,
    labelled,
    sheet,
    text,
)
from recommender.report.limit_words import limit_words
from recommender.report.page import Column, Page, Rows

FIGURES = ("", "50 %", "5 %", "95 %", "99 %", "mean", "±", "first order")
POLICY_TITLES = ("policy", "mean USD", "±", "95 %", "time h", "in time", "on-demand h")
EXECUTOR_TITLES = ("run by", "mean USD", "95 %", "time h", "limits", "on-demand")
_COLUMNS = ("figure", "unit", "mean", "error", "p05", "p25", "p50", "p75", "p95", "p99", "form")


def simulation_page(found: Simulation, request: PlanRequest, quiet: bool = False) -> Page:
    """A simulation in any format; `quiet` leaves only the figures."""
    return Page(
        view=lambda width: render(found, request, width, quiet),
        facts=lambda: document(found, request),
        sheet=lambda: sheet_rows(found),
    )


def render(found: Simulation, request: PlanRequest, width: int, quiet: bool = False) -> list[Block]:
    """The whole page; `quiet` leaves only the figures."""
    if quiet:
        return [figures(found, width)]
    unit, name = unit_of([found.time.mean])
    notes: list[Block] = [text(f"{fmt.clean(note)}.") for note in found.notes]
    return [
        text(answer_frame.job_line(request), STRONG),
        text(f"{plan_name(found)}: {plan_words(found.plan)}", STRONG),
        text(f"{found.runs:,} simulated runs, seed {found.seed}", FAINT),
        BLANK,
        figures(found, width),
        BLANK,
        text("Where the time of a usual run goes", STRONG),
        layout.bars([(s.name, s.share) for s in found.states if s.share > 0.0]),
        BLANK,
        *_policy_blocks(found, width),
        *_executor_blocks(found, width),
        labelled(sentences(found)),
        BLANK,
        text("Cost in USD, share of the runs", STRONG),
        layout.histogram(found.cost_histogram, 1.0),
        BLANK,
        text(f"Time in {name}, share of the runs", STRONG),
        layout.histogram(found.time_histogram, unit),
        *([BLANK] if notes else []),
        *notes,
    ]


def plan_name(found: Simulation) -> str:
    """Which plan was simulated."""
    return f"Plan {found.number}" if found.number else "Your machines"


def plan_words(plan: Plan) -> str:
    """The machines of a plan on one line."""
    return ", ".join(cells.machines_lines(plan))


def figure_rows(found: Simulation) -> list[tuple[str, Quantiles, float, str]]:
    """Each figure: its name, quantiles, divisor and first-order estimate."""
    unit, name = unit_of([found.time.mean])
    form = found.closed_form
    return [
        ("cost USD", found.cost, 1.0, fmt.usd(form.cost_usd)),
        (f"time {name}", found.time, unit, fmt.number(form.time_s / unit)),
        ("interruptions", found.interruptions, 1.0, ""),
        ("lost work h", found.lost, 3600.0, ""),
    ]


def figures(found: Simulation, width: int) -> Table:
    """The table of means and quantiles."""
    return _chosen(FIGURES, [_cells(*row) for row in figure_rows(found)], (0, 1, 2, 3), width)


def _chosen(
    titles: Sequence[str], rows: Sequence[Sequence[str]], few: Sequence[int], width: int
) -> Table:
    """All columns of a table of figures where they fit, else a few."""
    whole = _sheet(titles, rows, range(len(titles)))
    return whole if fits(whole, width) else _sheet(titles, rows, few)


def _sheet(titles: Sequence[str], rows: Sequence[Sequence[str]], chosen: Sequence[int]) -> Table:
    table = sheet([Column(titles[i], right=bool(i)) for i in chosen], flexible=0)
    for row in rows:
        add_row(table, [(row[i],) for i in chosen])
    return table


def _cells(name: str, q: Quantiles, unit: float, form: str) -> list[str]:
    figures = (_figure(x / unit) for x in (q.p50, q.p05, q.p95, q.p99, q.mean))
    return [name, *figures, f"{q.error / unit:.2g}", form]


def _figure(x: float) -> str:
    """Three digits; nothing below a thousandth."""
    return fmt.number(round(x, 3))


def _policy_blocks(found: Simulation, width: int) -> list[Block]:
    """The policies that were simulated next to the plan's own rule."""
    if not found.policies:
        return []
    rows = [policy_cells(run) for run in found.policies]
    return [
        text(policy_title(found), STRONG),
        _chosen(POLICY_TITLES, rows, (0, 1, 5), width),
        BLANK,
    ]


def _executor_blocks(found: Simulation, width: int) -> list[Block]:
    """The plan as something else than its own rule runs it."""
    if not found.executors:
        return []
    if len(found.executors) == 1:
        return [text("The target of --executor runs the plan as it is simulated here."), BLANK]
    rows = [executor_cells(run) for run in found.executors]
    return [_chosen(EXECUTOR_TITLES, rows, (0, 1, 4), width), BLANK]


def executor_cells(run: ExecutorRun) -> tuple[str, ...]:
    """One executor as a row."""
    return (
        run.name, _figure(run.cost.mean), _figure(run.cost.p95), _figure(run.time.p50 / 3600.0),
        fmt.share(run.chance), fmt.percent(run.fallback_share),
    )  # fmt: skip


def policy_title(found: Simulation) -> str:
    """How the policies were simulated."""
    step = fmt.duration(found.policies[0].tick_s)
    return f"Policies on the same simulated runs, in steps of {step}, billed in full"


def policy_cells(run: PolicyRun) -> tuple[str, ...]:
    """One policy as a row."""
    cost = run.cost
    hours = (run.time.p50 / 3600.0, run.on_demand_h)
    time, on_demand = (_figure(x) for x in hours)
    return (
        run.name, _figure(cost.mean), f"{cost.error:.2g}", _figure(cost.p95), time,
        fmt.share(run.in_time), on_demand,
    )  # fmt: skip


def sentences(found: Simulation) -> list[tuple[str, str]]:
    """The sentences under the figures, by label."""
    return [
        ("in short", _cost_and_time(found)),
        ("limits", _limits(found)),
        *([("fallback", _fallback(found))] if found.plan.fallback else []),
        ("first order", closed_words(found)),
        ("capacity", fmt.clean(found.capacity)),
    ]


def _cost_and_time(found: Simulation) -> str:
    """Cost and time in the format of an answer, next to those of the answer itself."""
    cost, time = fmt.usd(found.cost.mean), fmt.duration(found.time.p50)
    text = f"{cost} USD on average, half of the runs within {time}"
    if not found.number:
        return text
    said = found.plan.estimate
    return f"{text}; the answer: {fmt.usd(said.cost.mean)} USD, {fmt.duration(said.time.p50)}"


def _limits(found: Simulation) -> str:
    if not found.limit_chances:
        return "none given"
    each = "; ".join(f"{limit_words(k)} {fmt.share(k.chance)}" for k in found.limit_chances)
    if len(found.limit_chances) == 1:
        return f"{each} (± {100 * found.chance_error:.1f} %)"
    return f"{each}; all together {fmt.share(found.chance)} (± {100 * found.chance_error:.1f} %)"


def _fallback(found: Simulation) -> str:
    text = f"rented in {fmt.percent(found.fallback_share)} of the runs"
    form = found.closed_form
    if form.fallback_from_s is None:
        return f"{text}; first order: never"
    when = fmt.duration(form.fallback_from_s)
    share = fmt.percent(form.fallback_share)
    return f"{text}; first order: in {share}, from {when} on"


def closed_words(found: Simulation) -> str:
    """The closed form in one sentence."""
    form = found.closed_form
    text = f"{form.law}: {fmt.duration(form.time_s)} and {fmt.usd(form.cost_usd)} USD on average"
    if form.time_p95_s is not None:
        text += f", 95 % of runs within {fmt.duration(form.time_p95_s)}"
    if form.chance is not None:
        text += f", in time {fmt.share(form.chance)}"
    if found.plan.spot is None:
        return text
    return f"{text}; an hour on spot does {fmt.percent(form.drift)} of an hour's work"


def document(found: Simulation, request: PlanRequest) -> dict[str, Any]:
    """Everything as plain objects: seconds, USD, shares, six significant digits."""
    made = finding(SIMULATION_SCHEMA, "simulation", found, request)
    return {**made, "provenance": {**made["provenance"], "seed": found.seed}}


def sheet_rows(found: Simulation) -> Rows:
    """One row per figure, state and limit."""
    form = found.closed_form
    rows = [
        _figure_cells("cost", "USD", found.cost, 1.0, form.cost_usd),
        _figure_cells("time", "h", found.time, 3600.0, form.time_s / 3600.0),
        _figure_cells("interruptions", "", found.interruptions, 1.0, None),
        _figure_cells("lost work", "h", found.lost, 3600.0, None),
    ]
    chances = [(limit_words(k), k.chance) for k in found.limit_chances]
    shares = [(f"state: {s.name}", s.share) for s in found.states]
    if found.limit_chances:
        chances.append(("all limits", found.chance))
    shares += [(f"chance: {name}", chance) for name, chance in chances]
    shares.append(("fallback rented", found.fallback_share))
    blank = [""] * (len(_COLUMNS) - 3)
    for run in found.policies:
        rows.append(_figure_cells(f"cost, {run.name}", "USD", run.cost, 1.0, None))
        rows.append(_figure_cells(f"time, {run.name}", "h", run.time, 3600.0, None))
        shares.append((f"chance in time, {run.name}", run.in_time))
    for each in found.executors:
        rows.append(_figure_cells(f"cost, {each.name}", "USD", each.cost, 1.0, None))
        rows.append(_figure_cells(f"time, {each.name}", "h", each.time, 3600.0, None))
        shares.append((f"chance, {each.name}", each.chance))
    return [_COLUMNS, *rows, *([n, "share", f"{share:.6g}", *blank] for n, share in shares)]


def _figure_cells(
    name: str, unit: str, q: Quantiles, scale: float, form: float | None
) -> list[str]:
    values = (q.mean, q.error, q.p05, q.p25, q.p50, q.p75, q.p95, q.p99)
    last = "" if form is None else f"{form:.6g}"
    return [name, unit, *(f"{value / scale:.6g}" for value in values), last]
