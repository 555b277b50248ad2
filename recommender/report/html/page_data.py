"""The plans of a page as rows: what its pictures draw and its controls filter, run by run.

A page that is asked about another deadline counts the runs of each plan that meet it. Runs travel
as whole numbers of 16 bits on a logarithmic scale around the limit asked (around a figure in their
middle where there is none, or none of them is anywhere near it),

    code(x) = ⌈4096 · ln(x / origin)⌉,    x ≤ limit  ⟺  code(x) ≤ ⌊4096 · ln(limit / origin)⌋

which is exact at the limit asked, so that the page counts there what the answer printed, and fine
to 0.02 % elsewhere.
"""

import base64
import math
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from recommender.catalogs.frozen import dataclass
from recommender.plan.answer import Answer
from recommender.plan.report_data import SimulatedPlan
from recommender.report import cells
from recommender.report import formatting as fmt
from recommender.report.answer_frame import PlanRequest
from recommender.report.html import label_places
from recommender.report.limit_words import as_typed

STEPS = 4096  # per factor of e
_MAX = 32_767
_DETAILED = 8  # first plans, of which, as of those that lead, every printed path travels
_FEW = 6  # plans of a table; each one more leaves out some that have no name
_LEFT_OUT = 6  # since a plan of the table takes as much room in a page
_THINNED = 8
_NEAR = math.exp(4.0)  # codes reach from e^-8 to e^8 times their origin
_ROOM = 1.2  # beyond the outermost mark of an axis


@dataclass(frozen=True, slots=True)
class Scale:
    """The origins that runs are coded around, and the unit that times are drawn in."""

    origin_s: float
    origin_usd: float
    unit_s: float
    unit: str


@dataclass(frozen=True, slots=True)
class PlanRow:
    """A plan as pictures draw it; `x` is time in the unit of the page, `y` is USD."""

    id: int
    kind: str  # "table", "baseline", "other"
    number: int
    name: str
    where: str
    label: str  # the label next to its mark
    label_dy: float  # pixels below it
    label_left: bool  # whether it ends left of the mark
    baseline: str  # the baseline that it is: "one GPU"
    fallback: str
    x: float
    x_low: float
    x_high: float
    y: float
    y_low: float
    y_high: float
    mean_usd: float
    median_s: float
    cost: str  # USD, as it is printed
    cost_span: str
    time: str
    time_span: str
    price: str  # USD per hour
    max_usd_per_hour: float
    overhead: float
    weight: float  # of the share of its runs that meet limits
    runs: int
    time_codes: str  # base64 of little-endian 16-bit numbers, a run each
    cost_codes: str


@dataclass(frozen=True, slots=True)
class PageData:
    """Everything that the page's script is given."""

    goal: str
    by_value: bool
    deadline_s: float | None
    budget_usd: float | None
    hourly_usd: float | None
    max_overhead: float | None
    confidence: float
    deadline: str  # as it was asked, in words; "" where there is none
    budget: str
    steps: int
    scale: Scale
    lead: int  # id of the plan that the answer leads with
    plans: tuple[PlanRow, ...]


def page_data(answer: Answer, request: PlanRequest) -> PageData:
    """The plans and limits of an answer that has report data."""
    simulated = () if answer.report is None else answer.report.simulated_plans
    limits, scale = request.limits, _scale(answer, request, simulated)
    drawn = without_duplicates(simulated)
    rows = tuple(_row(i, plan, answer, scale) for i, plan in enumerate(drawn))
    lead = next((row.id for row in rows if row.kind == "table" and row.number == answer.lead), 0)
    data = PageData(
        goal=answer.goal,
        by_value=answer.by_value,
        deadline_s=limits.deadline_s,
        budget_usd=limits.budget_usd,
        hourly_usd=limits.hourly_usd,
        max_overhead=limits.max_overhead,
        confidence=limits.confidence,
        deadline="" if limits.deadline_s is None else as_typed("time", limits.deadline_s),
        budget="" if limits.budget_usd is None else as_typed("usd", limits.budget_usd),
        steps=STEPS,
        scale=scale,
        lead=lead,
        plans=rows,
    )
    return labelled(data)


def domain(data: PageData, axis: Literal["x", "y"]) -> tuple[float, float]:
    """From the shortest to the longest bar of the answer's plans, all marks and limits within."""
    barred = [plan for plan in data.plans if plan.kind != "other"] or list(data.plans)
    values = [getattr(plan, f"{axis}_{end}") for plan in barred for end in ("low", "high")]
    values += [getattr(plan, axis) for plan in data.plans]
    asked = (data.deadline_s or 0.0) / data.scale.unit_s if axis == "x" else data.budget_usd
    values += [asked] if asked else []
    return min(values, default=1.0) / _ROOM, max(values, default=10.0) * _ROOM


def labelled(data: PageData) -> PageData:
    """The rows with their names where none lies on another."""
    named = [row for row in data.plans if row.label]
    found = label_places.places(
        [row.label for row in named],
        [(row.x, row.y) for row in named],
        [(row.x, row.y) for row in data.plans if not row.label],
        domain(data, "x"),
        domain(data, "y"),
    )
    placed = {row.id: place for row, place in zip(named, found, strict=True)}
    rows = (
        replace(row, label_dy=placed[row.id].dy, label_left=placed[row.id].left)
        if row.id in placed
        else row
        for row in data.plans
    )
    return replace(data, plans=tuple(rows))


def without_duplicates(simulated: Sequence[SimulatedPlan]) -> list[SimulatedPlan]:
    """Plans without duplicates: baselines of the table are drawn once; others give way to it."""
    table = [_identity(plan) for plan in simulated if plan.kind == "table"]
    named = [p for p in simulated if p.kind != "other"]
    others = [p for p in simulated if p.kind == "other"]
    most = max(len(others) - _LEFT_OUT * max(len(table) - _FEW, 0), 0)
    kept = [p for p in named if p.kind == "table" or _identity(p) not in table]
    return [*kept, *others[:most]]


def _identity(plan: SimulatedPlan) -> tuple[object, ...]:
    return plan.machines, plan.fallback, plan.cost, plan.time


def _scale(answer: Answer, request: PlanRequest, simulated: Sequence[SimulatedPlan]) -> Scale:
    limits = request.limits
    times = sorted(plan.time.p50 for plan in simulated) or [3600.0]
    costs = sorted(plan.cost.p50 for plan in simulated) or [1.0]
    shown = [plan.estimate.time.p50 for plan in answer.plans] or times
    unit = cells.unit_of(shown)
    return Scale(
        origin_s=_origin(limits.deadline_s, times[len(times) // 2]),
        origin_usd=_origin(limits.budget_usd, costs[len(costs) // 2]),
        unit_s=unit[0],
        unit=unit[1],
    )


def _origin(limit: float | None, middle: float) -> float:
    """The figure that codes represent exactly: the limit, unless it is too far from the runs."""
    return limit if limit is not None and middle / _NEAR < limit < middle * _NEAR else middle


def _row(index: int, plan: SimulatedPlan, answer: Answer, scale: Scale) -> PlanRow:
    cost, time, unit = plan.cost, plan.time, scale.unit_s
    picked = plan.number in [pick.rank for pick in answer.picks]
    whole = plan.kind != "table" or plan.number <= _DETAILED or picked
    thin = 1 if whole else _THINNED
    return PlanRow(
        id=index,
        kind=plan.kind,
        number=plan.number,
        name=" + ".join(map(cells.group_line, plan.machines)),
        where=_where(plan),
        label=_label(plan, answer),
        label_dy=0.0,
        label_left=False,
        baseline=baseline_name(plan, answer),
        fallback=_fallback(plan),
        x=_short(time.p50 / unit),
        x_low=_short(time.p05 / unit),
        x_high=_short(time.p95 / unit),
        y=_short(cost.mean),
        y_low=_short(cost.p05),
        y_high=_short(cost.p95),
        mean_usd=cost.mean,
        median_s=time.p50,
        cost=fmt.usd(cost.mean),
        cost_span=fmt.usd_span(cost.p05, cost.p95),
        time=fmt.duration(time.p50),
        time_span=f"{fmt.duration(time.p05)} to {fmt.duration(time.p95)}",
        price=fmt.number(plan.usd_per_hour),
        max_usd_per_hour=plan.max_usd_per_hour,
        overhead=plan.overhead,
        weight=plan.weight,
        runs=len(plan.time_s[::thin]),
        time_codes=encoded(plan.time_s[::thin], scale.origin_s),
        cost_codes=encoded(plan.cost_usd[::thin], scale.origin_usd),
    )


def _short(x: float) -> float:
    """A coordinate: five digits are more than a screen shows."""
    return float(f"{x:.5g}")


def _where(plan: SimulatedPlan) -> str:
    first = plan.machines[0]
    more = f" +{plan.regions - 1}" if plan.regions > 1 else ""
    named, region = fmt.clean(first.provider), fmt.clean(first.region)
    place = named if named == region else f"{named} {region}"
    return f"{cells.gpus(plan.machines)} · {place}{more}"


def _fallback(plan: SimulatedPlan) -> str:
    """What takes over, and from which deadline back it is counted."""
    if not plan.fallback or plan.fallback_due_s is None:
        return ""
    return (
        f"{cells.counted(plan.fallback)} on demand in time for {fmt.duration(plan.fallback_due_s)}"
    )


def _label(plan: SimulatedPlan, answer: Answer) -> str:
    """The number of a plan of the table, its roles and then its GPUs; the name of a baseline."""
    if plan.kind == "baseline":
        return baseline_name(plan, answer)
    if plan.kind == "other":
        return ""
    roles = [pick.role for pick in answer.picks if pick.rank == plan.number]
    if not roles:
        return str(plan.number)
    return f"{plan.number} {', '.join(roles)}: {cells.gpus(plan.machines)}"


def baseline_name(plan: SimulatedPlan, answer: Answer) -> str:
    """Which of the baselines it is: "one GPU", "all on-demand"; "" of the others."""
    if plan.kind == "other":
        return ""
    shown = answer.plans if plan.kind == "table" else answer.baselines
    mine = shown[plan.number - 1]
    names = [
        each.labels[0]
        for each in answer.baselines
        if each.labels and (each.machines, each.estimate) == (mine.machines, mine.estimate)
    ]
    return fmt.listing([fmt.clean(name) for name in names])


def code(x: float, origin: float) -> int:
    """A figure of a run as a whole number; never above 0 up to the origin, never below 1 beyond."""
    exact = STEPS * math.log(max(x, 1e-9) / origin)
    found = min(math.ceil(exact), 0) if x <= origin else max(math.ceil(exact), 1)
    return max(-_MAX, min(found, _MAX))


def encoded(values: Sequence[float], origin: float) -> str:
    """Figures of all runs as base64."""
    codes = [code(x, origin) for x in values]
    return base64.b64encode(struct.pack(f"<{len(codes)}h", *codes)).decode("ascii")
