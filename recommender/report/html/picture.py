"""The frontier as a picture of its own, drawn from the specification of the report.

Needs vl-convert-python (`pip install 'recommend-gpus[plot]'`), which draws Vega-Lite without a
browser and without the network.
"""

from dataclasses import asdict
from importlib import import_module
from typing import Any

from recommender.errors import UsageError
from recommender.plan.answer import Answer
from recommender.plan.frontier import chance_of, cost_and_time, unbeaten
from recommender.plan.limits import Limits
from recommender.plan.report_data import SimulatedPlan
from recommender.report import formatting as fmt
from recommender.report.answer_frame import PlanRequest, goal_line
from recommender.report.html import charts
from recommender.report.html.page_data import PageData, PlanRow, page_data, without_duplicates
from recommender.report.html.palette import LIGHT

MISSING = "--plot needs vl-convert-python: pip install 'recommend-gpus[plot]'"
WIDTH, SCALE = 960, 2.0
_HIDDEN = ("time_codes", "cost_codes")  # runs: no picture shows them


def frontier_picture(answer: Answer, request: PlanRequest, form: str) -> bytes:
    """The picture as `.svg` or `.png`.

    Raises:
        UsageError: what draws it is not installed.
    """
    try:
        drawer = import_module("vl_convert")
    except ImportError:
        raise UsageError(MISSING) from None
    spec = frontier_spec(answer, request)
    if form == ".png":
        made: bytes = drawer.vegalite_to_png(spec, scale=SCALE)
        return made
    text: str = drawer.vegalite_to_svg(spec)
    return text.encode("utf-8")


def frontier_spec(answer: Answer, request: PlanRequest) -> charts.Spec:
    """The specification with its rows, on white."""
    data = page_data(answer, request)
    simulated = without_duplicates(() if answer.report is None else answer.report.simulated_plans)
    spec = coloured(charts.frontier(data), charts.variables(LIGHT))
    config = charts.config(LIGHT)
    return {
        **spec,
        "width": WIDTH,
        "title": _title(answer, request, data),
        "config": {**config, "background": LIGHT.paper},
        "padding": 12,
        "datasets": {
            "plans": _rows(data, simulated, request.limits),
            "limits": limit_rows(data),
        },
    }


def _title(answer: Answer, request: PlanRequest, data: PageData) -> charts.Spec:
    """What is drawn, and how to read it: the picture has no page around it."""
    return {
        "text": f"{fmt.clean(request.job.name)}: {goal_line(answer, request)}",
        "subtitle": [
            f"{len(data.plans)} plans, each through hundreds of simulated runs; bars: what 9 in 10 "
            "runs stay within; line: no plan is both cheaper and faster",
            "ring: the sensible plan; circles: the answer's plans; diamonds: baselines; "
            "the stronger the colour, the likelier all limits are met; hollow: too unlikely",
        ],
        "anchor": "start",
        "offset": 14,
        "fontSize": 15,
        "subtitleFontSize": 12,
        "subtitlePadding": 6,
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
        _drawn(row, chances[i], i in best, row.id == data.lead, limits)
        for i, row in enumerate(data.plans)
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
