"""Pictures of their own, drawn from the specifications of the report: the frontier, the runs of a
simulation, prices over days.

Needs vl-convert-python (extra `plot`), which draws Vega-Lite without a
browser and without the network.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib import import_module
from typing import Any

from recommender.errors import UsageError
from recommender.plan.answer import Answer
from recommender.plan.frontier import chance_of, cost_and_time, unbeaten
from recommender.plan.limits import Limits
from recommender.plan.report_data import SimulatedPlan
from recommender.plan.simulation import Histogram, Quantiles, Simulation
from recommender.report import cells
from recommender.report import formatting as fmt
from recommender.report.answer_frame import PlanRequest, goal_line
from recommender.report.axis import ticks
from recommender.report.html import charts
from recommender.report.html.page_data import (
    PageData,
    PlanRow,
    labelled,
    page_data,
    without_duplicates,
)
from recommender.report.html.palette import LIGHT
from recommender.report.html.prices import PriceSeries, price_rows, series_names
from recommender.report.simulation import plan_name, plan_words

MISSING = "--plot needs vl-convert-python: pip install vl-convert-python"
WIDTH, SCALE = 960, 2.0
_BEYOND = 2.0  # times a limit, up to which plans that miss it are drawn
_HIDDEN = ("weight", "time_codes", "cost_codes")  # of runs: no picture shows them


def drawn(spec: charts.Spec, form: str) -> bytes:
    """A picture as `.svg` or `.png`.

    Raises:
        UsageError: what draws it is not installed.
    """
    try:
        drawer = import_module("vl_convert")
    except ImportError:
        raise UsageError(MISSING) from None
    if form == ".png":
        made: bytes = drawer.vegalite_to_png(spec, scale=SCALE)
        return made
    text: str = drawer.vegalite_to_svg(spec)
    return text.encode("utf-8")


def frontier_spec(answer: Answer, request: PlanRequest) -> charts.Spec:
    """The specification of the frontier with its rows."""
    data = _near(page_data(answer, request))
    simulated = without_duplicates(() if answer.report is None else answer.report.simulated_plans)
    rows = {"plans": _rows(data, simulated, request.limits), "limits": limit_rows(data)}
    spec = {**charts.frontier(data), "width": WIDTH, "datasets": rows}
    return _on_white(spec, _title(answer, request, data))


def _near(data: PageData) -> PageData:
    """The plans without those far beyond a limit, which nobody moves to in a picture."""
    due, most_usd = data.deadline_s, data.budget_usd
    most_x = math.inf if due is None else _BEYOND * due / data.scale.unit_s
    most_y = math.inf if most_usd is None else _BEYOND * most_usd
    kept = [p for p in data.plans if p.kind != "other" or (p.x <= most_x and p.y <= most_y)]
    return labelled(replace(data, plans=tuple(kept)))


def runs_spec(found: Simulation) -> charts.Spec:
    """Cost and time of simulated runs, side by side."""
    unit, name = cells.unit_of([found.time.mean])
    limits = {each.limit: each.value for each in found.limit_chances}
    form = found.closed_form
    panels = [
        _panel("cost, USD", 1.0, found.cost_histogram, found.cost, form.cost_usd,
               limits.get("budget")),
        _panel(f"time, {name}", unit, found.time_histogram, found.time, form.time_s,
               limits.get("deadline")),
    ]  # fmt: skip
    met = f", all limits met in {fmt.share(found.chance)}" if found.limit_chances else ""
    title = {
        "text": f"{plan_name(found)}: {plan_words(found.plan)}",
        "subtitle": [
            f"{found.runs:,} simulated runs, seed {found.seed}{met}",
            fmt.clean(found.capacity),
            "upright lines: 5, 50 and 95 % of the runs, and the first-order estimate; outer bars "
            "hold the tails",
        ],
    }
    return _on_white({"$schema": charts.SCHEMA, "hconcat": panels}, title)


def _panel(
    title: str, unit: float, bins: Histogram, q: Quantiles, form: float, limit: float | None
) -> charts.Spec:
    """The histogram of one figure, as in the report."""
    edges = [edge / unit for edge in bins.edges]
    lines = sorted([(q.p05, "5 %"), (q.p50, "50 %"), (q.p95, "95 %"), (form, "estimate")])
    marks = [  # names of neighbours one above the other
        {"at": value / unit, "name": name, "dy": -16 if i % 2 else -4}
        for i, (value, name) in enumerate(lines)
        if bins.edges[0] <= value <= bins.edges[-1]
    ]
    beyond = [limit is not None and low * unit >= limit for low in edges]
    rows = [
        {"low": low, "high": high, "share": share, "beyond": late}
        for low, high, share, late in zip(edges, edges[1:], bins.shares, beyond, strict=False)
    ]
    ends = [] if limit is None else [{"axis": "x", "at": limit / unit, "name": "limit"}]
    spec = charts.distribution(title)
    del spec["params"], spec["autosize"], spec["$schema"]
    across = spec["layer"][0]["encoding"]["x"]
    if edges[0] > 0.0:
        across["axis"]["values"] = ticks(edges[0], edges[-1])
    else:  # which no logarithmic axis has
        across |= {"axis": {"format": ",~r", "grid": False}, "scale": {"nice": False}}
    filled = _filled(spec, {"bins": rows, "marks": marks, "limits": ends})
    return {**filled, "width": WIDTH // 2 - 60, "height": 240}


def prices_spec(title: str, curves: Mapping[str, Sequence[tuple[str, float]]]) -> charts.Spec:
    """Prices of offers over the days that they were read on; curves have (ISO date, USD/h)."""
    series = [PriceSeries(name, tuple(points)) for name, points in curves.items()]
    rows = [asdict(row) for row in price_rows(series)]
    spec = _filled(charts.prices(series_names(series)), {"prices": rows})
    return _on_white({**spec, "width": WIDTH}, {"text": fmt.clean(title)})


def _on_white(spec: charts.Spec, title: charts.Spec) -> charts.Spec:
    """A picture that has no page around it."""
    config = {**charts.config(LIGHT), "background": LIGHT.paper}
    shown = {"anchor": "start", "offset": 14, "fontSize": 15, "subtitleFontSize": 12,
             "subtitlePadding": 6}  # fmt: skip
    painted: charts.Spec = coloured(spec, charts.variables(LIGHT))
    return {**painted, "title": {**title, **shown}, "config": config, "padding": 12}


def _filled(tree: Any, rows: Mapping[str, Sequence[Any]]) -> Any:
    """A specification with rows in place of their names."""
    if isinstance(tree, list):
        return [_filled(each, rows) for each in tree]
    if not isinstance(tree, dict):
        return tree
    if set(tree) == {"name"} and tree["name"] in rows:
        return {"values": list(rows[tree["name"]])}
    return {key: _filled(value, rows) for key, value in tree.items()}


def _title(answer: Answer, request: PlanRequest, data: PageData) -> charts.Spec:
    """What is drawn, and how to read it."""
    return {
        "text": f"{fmt.clean(request.job.name)}: {goal_line(answer, request)}",
        "subtitle": [
            f"{len(data.plans)} plans at their mean cost and median time; bars: what 9 in 10 "
            "simulated runs stay within; line: no plan is both cheaper and faster",
            "ring: the sensible plan; circles: the answer's plans; diamonds: baselines; "
            "the stronger the colour, the likelier all limits are met; hollow: too unlikely",
        ],
    }


def coloured(tree: Any, names: dict[str, str]) -> Any:
    """A specification with the colours of a background, as the page's script makes it."""
    if isinstance(tree, str):
        return names.get(tree, tree)
    if isinstance(tree, list):
        return [coloured(each, names) for each in tree]
    if isinstance(tree, dict):
        return {key: coloured(value, names) for key, value in tree.items()}
    return tree


def limit_rows(data: PageData) -> list[dict[str, Any]]:
    """The lines of the limits."""
    rows: list[dict[str, Any]] = []
    if data.deadline_s is not None:
        at = data.deadline_s / data.scale.unit_s
        rows.append({"axis": "x", "at": at, "name": f"deadline {data.deadline}"})
    if data.budget_usd is not None:
        rows.append({"axis": "y", "at": data.budget_usd, "name": f"budget {data.budget}"})
    return rows


def _rows(data: PageData, simulated: list[SimulatedPlan], limits: Limits) -> list[dict[str, Any]]:
    chances = [chance_of(plan, limits) for plan in simulated]
    meeting = [i for i, chance in enumerate(chances) if chance >= limits.confidence - 1e-12]
    best = frozenset(unbeaten(meeting, lambda i: cost_and_time(simulated[i])))
    return [
        _drawn(row, chances[row.id], row.id in best, row.id == data.lead, limits)
        for row in data.plans
    ]


def _drawn(row: PlanRow, chance: float, best: bool, chosen: bool, limits: Limits) -> dict[str, Any]:
    """A row with what limits say of its plan."""
    shown = {name: value for name, value in asdict(row).items() if name not in _HIDDEN}
    return {
        **shown,
        "chance": chance,
        "meets": chance >= limits.confidence - 1e-12,
        "best": best,
        "barred": row.kind != "other" or best,
        "chosen": chosen,
        "tag": row.label,
    }
