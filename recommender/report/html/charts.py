"""The pictures of the page as Vega-Lite specifications: plain data, drawn by the bundled script.

https://vega.github.io/vega-lite/docs/ (version 6). Rows come as named data, so that the page can
give other rows to a picture that is drawn already.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from recommender.report.axis import ticks
from recommender.report.html.page_data import PageData, domain
from recommender.report.html.palette import BLUE, LINES, SKY, VERMILION, Theme

Spec: TypeAlias = dict[str, Any]
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
LOWER, HIGHER = "lower", "higher"  # ends of an input
PERCENT = "format(100 * datum.value, ',~r') + ' %'"  # labels of an axis, as in the text
DESK = "width > 560"  # whether a picture is wider than a phone's


def base(height: int, **more: Any) -> Spec:
    """A picture as wide as its place in the page."""
    sized = {"width": "container", "height": height, "autosize": {"type": "fit-x", "resize": True}}
    return {"$schema": SCHEMA, **sized, **more}


def named(name: str) -> Spec:
    """Rows that the page's script fills in."""
    return {"name": name}


def frontier(data: PageData) -> Spec:
    """Cost against time: a bar per plan for 5-95 %, limits as lines, the chance as shade."""
    return base(
        520,
        datasets={},
        data=named("plans"),
        encoding={
            "x": _axis("x", f"time, {data.scale.unit}", domain(data, "x")),
            "y": _axis("y", "cost, USD", domain(data, "y")),
        },
        layer=[*_beyond(), _others(), *_bars(), _line(), *_limit_lines(), *_marks(), *_labels()],
        resolve={"scale": {"color": "shared"}},
    )


def _axis(field: str, title: str, domain: tuple[float, float]) -> Spec:
    scale = {"type": "log", "domain": list(domain), "nice": False}
    labels = {"title": title, "format": ",~r", "values": ticks(*domain), "labelOverlap": "greedy"}
    return {"field": field, "type": "quantitative", "scale": scale, "axis": labels}


def _beyond() -> list[Spec]:
    """What lies beyond a limit, veiled."""
    shade = {"type": "rect", "opacity": 0.07, "color": VERMILION, "clip": True}
    return [
        {
            "data": named("limits"),
            "transform": [{"filter": "datum.axis === 'x'"}],
            "mark": shade,
            "encoding": {
                "x": {"field": "at"}, "x2": {"value": "width"},
                "y": {"value": 0}, "y2": {"value": "height"},
            },
        },
        {
            "data": named("limits"),
            "transform": [{"filter": "datum.axis === 'y'"}],
            "mark": shade,
            "encoding": {
                "y": {"field": "at"}, "y2": {"value": 0},
                "x": {"value": 0}, "x2": {"value": "width"},
            },
        },
    ]  # fmt: skip


# The name of an upright line, left of its upper end.
_UPRIGHT: Spec = {"angle": 270, "align": "right", "baseline": "bottom", "dy": -3, "dx": -6}


def _limit_lines() -> list[Spec]:
    """The limits, each with its name."""
    level: Spec = {"align": "right", "baseline": "bottom", "dy": -3, "dx": -4}
    return [
        *_limit_line("x", {"x": {"field": "at"}, "y": None}, {"y": {"value": 0}}, _UPRIGHT),
        *_limit_line("y", {"y": {"field": "at"}, "x": None}, {"x": {"value": "width"}}, level),
    ]


def _limit_line(axis: str, line: Spec, end: Spec, words: Spec) -> list[Spec]:
    """One limit across the picture, and its name at one end."""
    rows: Spec = {"data": named("limits"), "transform": [{"filter": f"datum.axis === '{axis}'"}]}
    rule: Spec = {"type": "rule", "strokeWidth": 1.5, "strokeDash": [6, 4], "color": "$limit"}
    name: Spec = {"type": "text", "color": "$limit", "fontSize": 12, **words}
    named_line = {**rows, "encoding": {**line, **end, "text": {"field": "name"}}}
    return [{**rows, "mark": rule, "encoding": line}, *_with_outline(named_line, name)]


def _with_outline(layer: Spec, words: Spec) -> list[Spec]:
    """Words that stay readable on lines and marks."""
    outline = {"stroke": "$paper", "strokeWidth": 4, "strokeJoin": "round", "opacity": 0.8}
    return [{**layer, "mark": words | outline}, {**layer, "mark": words}]


def _shade() -> Spec:
    """The chance that all limits are met, from faint to full."""
    return {
        "field": "chance",
        "type": "quantitative",
        "scale": {"domain": [0, 1], "range": ["$never", "$always"], "clamp": True},
        "legend": None,
    }


def _filled() -> Spec:
    """The shade inside of a mark: marks of plans that miss a limit are hollow."""
    return {"condition": {"test": "datum.meets", **_shade()}, "value": "$paper"}


def _tooltip() -> list[Spec]:
    fields = (
        ("title", "plan"), ("where", "place"), ("cost_words", "cost"), ("time_words", "time"),
        ("chance_words", "chance"), ("fallback", "fallback"),
    )  # fmt: skip
    return [{"field": field, "title": title} for field, title in fields]


def _others() -> Spec:
    """Plans that are neither of the table, nor baselines, nor on the frontier."""
    return {
        "transform": [{"filter": "datum.kind === 'other' && !datum.barred"}],
        "mark": {"type": "point", "size": 26, "opacity": 0.8, "clip": True},
        "encoding": {"stroke": _shade(), "fill": _filled(), "tooltip": _tooltip()},
    }


def _bars() -> list[Spec]:
    """What nine runs of ten stay within, in time and in cost."""
    across = {"x": {"field": "x_low"}, "x2": {"field": "x_high"}}
    upright = {"y": {"field": "y_low"}, "y2": {"field": "y_high"}}
    thick = {"type": "rule", "strokeWidth": 3, "opacity": 0.6, "strokeCap": "round", "clip": True}
    thin = {**thick, "strokeWidth": 1.2, "opacity": 0.35}
    others = "datum.kind === 'other' && !datum.chosen"
    return [
        {
            "transform": [{"filter": f"datum.barred && {which}"}],
            "mark": mark,
            "encoding": {**each, "color": _shade(), "tooltip": _tooltip()},
        }
        for mark, which in ((thin, f"({others})"), (thick, f"!({others})"))
        for each in (across, upright)
    ]


def _line() -> Spec:
    """The frontier: plans that meet the limits and that no other beats in cost and time."""
    return {
        "transform": [{"filter": "datum.best"}],
        "mark": {
            "type": "line",
            "interpolate": "step-after",
            "strokeWidth": 1.5,
            "color": "$ink",
            "clip": True,
        },
        "encoding": {"order": {"field": "x", "type": "quantitative"}},
    }


def _marks() -> list[Spec]:
    """A mark per plan of the table, baseline and the frontier; a ring round the chosen."""
    shape = {
        "condition": {"test": "datum.baseline", "value": "diamond"},
        "value": "circle",
    }
    size = {"condition": {"test": "datum.kind === 'other'", "value": 60}, "value": 170}
    stroke = {"condition": {"test": "datum.meets", "value": "$ink"}, **_shade()}
    return [
        {
            "transform": [{"filter": "datum.barred"}],
            "mark": {"type": "point", "opacity": 1, "strokeWidth": 1.4, "clip": True,
                     "cursor": "pointer"},
            "encoding": {"fill": _filled(), "stroke": stroke, "shape": shape, "size": size,
                         "tooltip": _tooltip()},
        },
        {
            "transform": [{"filter": "datum.chosen"}],
            "mark": {"type": "point", "filled": False, "size": 480, "strokeWidth": 2.2,
                     "color": "$ink", "clip": True},
            "encoding": {"tooltip": _tooltip()},
        },
    ]  # fmt: skip


def _labels() -> list[Spec]:
    """Names of the plans of the table and of the baselines, readable on bars and marks."""
    words: Spec = {"type": "text", "align": {"expr": "datum.label_left ? 'right' : 'left'"},
                   "dx": {"expr": "datum.label_left ? -12 : 12"},
                   "dy": {"expr": "datum.label_dy"}, "baseline": "middle", "fontSize": 12,
                   "fontWeight": 600, "clip": True}  # fmt: skip
    shown: Spec = {
        "transform": [{"filter": "datum.tag"}],
        "encoding": {"text": {"field": "tag"}},
    }
    return _with_outline(shown, words)


def distribution(title: str) -> Spec:
    """How a figure spreads over the runs of the chosen plan: within the limit, and beyond.

    The axis is logarithmic, since a few runs take many times as long as most.
    """
    colour = {
        "condition": {"test": "datum.beyond", "value": VERMILION},
        "value": BLUE,
    }
    marks: Spec = {"field": "at", "type": "quantitative"}
    return base(
        220,
        params=[{"name": "ticks", "value": []}],
        data=named("bins"),
        layer=[
            {
                "mark": {"type": "bar"},
                "encoding": {
                    "x": {"field": "low", "type": "quantitative", "title": title,
                          "axis": {"format": ",~r", "grid": False, "values": {"expr": "ticks"}},
                          "scale": {"type": "log", "nice": False}},
                    "x2": {"field": "high"},
                    "y": {"field": "share", "type": "quantitative", "title": "share of the runs",
                          "axis": {"labelExpr": PERCENT, "tickCount": 4}},
                    "y2": {"datum": 0},
                    "color": colour,
                    "tooltip": [{"field": "span", "title": title},
                                {"field": "words", "title": "runs"}],
                },
            },
            {
                "data": named("marks"),
                "mark": {"type": "rule", "strokeWidth": 1.5, "color": "$ink"},
                "encoding": {"x": marks, "y": None},
            },
            {
                "data": named("marks"),
                "mark": {"type": "text", "baseline": "bottom", "dy": {"expr": "datum.dy"},
                         "fontSize": 11},
                "encoding": {"x": marks, "y": {"value": 0}, "text": {"field": "name"}},
            },
            *_limit_line("x", {"x": marks, "y": None}, {"y": {"value": 0}}, _UPRIGHT),
        ],
    )  # fmt: skip


def strips(colours: dict[str, str]) -> Spec:
    """Single runs as strips: what each does when, its interruptions and its checkpoints.

    A strip has its own axis below it and its name above it; the script sets the position of both.
    """
    moment: Spec = {"field": "at", "type": "quantitative"}
    return base(
        300,
        encoding={"y": {"field": "run", "type": "nominal", "sort": None, "axis": None}},
        layer=[
            {
                "data": named("segments"),
                "mark": {"type": "bar", "height": 34},
                "encoding": {
                    "x": {"field": "start", "type": "quantitative", "axis": None,
                          "scale": {"domain": [0, 1]}},
                    "x2": {"field": "end"},
                    "color": _parts("doing", colours),
                    "tooltip": [{"field": "doing"}, {"field": "from"}, {"field": "to"}],
                },
            },
            {
                "data": named("saves"),
                "mark": {"type": "tick", "thickness": 1, "size": 12, "color": "$paper",
                         "opacity": 0.8},
                "encoding": {"x": moment, "tooltip": [{"field": "words", "title": "checkpoint"}]},
            },
            {
                "data": named("interruptions"),
                "mark": {"type": "point", "shape": "triangle-down", "filled": True, "size": 60,
                         "yOffset": -23, "color": "$ink", "opacity": 1},
                "encoding": {"x": moment, "tooltip": [{"field": "words", "title": "interrupted"}]},
            },
            {
                "data": named("strips"),
                "mark": {"type": "text", "align": "left", "baseline": "bottom", "yOffset": -29,
                         "fontSize": 12, "fontWeight": 600},
                "encoding": {"x": {"value": 0}, "text": {"field": "run"}},
            },
            {
                "data": named("ticks"),
                "mark": {"type": "tick", "thickness": 1, "size": 5, "yOffset": 20,
                         "color": "$faint"},
                "encoding": {"x": moment},
            },
            {
                "data": named("ticks"),
                "mark": {"type": "text", "baseline": "top", "yOffset": 25, "fontSize": 12,
                         "color": "$faint"},
                "encoding": {"x": moment, "text": {"field": "words"}},
            },
        ],
    )  # fmt: skip


def _parts(field: str, colours: dict[str, str]) -> Spec:
    """The colours of the parts of bars, with a key as wide as there is room."""
    return {
        "field": field,
        "type": "nominal",
        "title": None,
        "scale": {"domain": list(colours), "range": list(colours.values())},
        "legend": {"orient": "bottom", "columns": {"expr": f"{DESK} ? 8 : 1"}, "labelLimit": 260},
    }


def tornado(rows: int, title: str) -> Spec:
    """What one figure otherwise does, widest first: a bar to either end, names above the bars."""
    order: Spec = {"field": "what", "type": "nominal", "sort": None, "axis": None,
                   "scale": {"paddingInner": 0.65, "paddingOuter": 0.6}}  # fmt: skip
    sides = {LOWER: SKY, HIGHER: BLUE}
    fits: Spec = {"limit": {"expr": "width"}}  # of a phone: the picture keeps its width
    heading: Spec = {"type": "text", "align": "left", "baseline": "bottom", "fontSize": 12, **fits}
    name: Spec = {**heading, "yOffset": -32, "fontWeight": 600}
    rest: Spec = {**heading, "yOffset": -17}
    return base(
        76 * rows + 50,
        data=named("ends"),
        encoding={"y": order},
        layer=[
            {
                "mark": {"type": "bar"},
                "encoding": {
                    "x": {"field": "base", "type": "quantitative", "title": title,
                          "axis": {"format": ",~r", "tickCount": 6},
                          "scale": {"zero": False, "nice": True, "padding": 34}},
                    "x2": {"field": "end"},
                    "color": {"field": "side", "type": "nominal", "title": None,
                              "scale": {"domain": list(sides), "range": list(sides.values())},
                              "legend": {"orient": "bottom"}},
                    "tooltip": [{"field": "what"}, {"field": "factor"}, {"field": "cost"},
                                {"field": "time"}, {"field": "chance"}],
                },
            },
            {
                "mark": {"type": "tick", "thickness": 2, "size": 34, "color": "$ink",
                         "opacity": 1},
                "encoding": {"x": {"field": "base", "type": "quantitative"}},
            },
            *_end_words(),
            *(
                {
                    "transform": [{"filter": f"datum.side === '{LOWER}'"}],
                    "mark": mark,
                    "encoding": {"x": {"value": 2}, "text": {"field": field}},
                }
                for field, mark in (("what", name), ("words", rest))
            ),
        ],
    )  # fmt: skip


def _end_words() -> list[Spec]:
    """The figure at the end of each bar of a tornado chart."""
    return [
        {
            "transform": [{"filter": f"datum.end {side} datum.base"}],
            "mark": {"type": "text", "align": align, "baseline": "middle", "dx": dx,
                     "fontSize": 12},
            "encoding": {"x": {"field": "end", "type": "quantitative"},
                         "text": {"field": "words_at_end"}},
        }
        for side, align, dx in (("<", "right", -6), (">=", "left", 6))
    ]  # fmt: skip


def stacked(rows: int, title: str, colours: dict[str, str], percent: bool = False) -> Spec:
    """Parts of a whole, a bar per plan; `colours` has the parts in their order."""
    order = list(colours)
    name = f"{DESK} ? datum.label : split(datum.label, ':')[0]"  # without its machines on a phone
    upright: Spec = {"field": "plan", "type": "nominal", "sort": None, "title": None,
                     "axis": {"labelLimit": 280, "labelExpr": name, "labelPadding": 6,
                              "domain": False, "ticks": False}}  # fmt: skip
    labels: Spec = {"format": ",~r", "tickCount": 6}
    if percent:  # labels of six do not fit a phone
        labels = {"labelExpr": PERCENT, "values": [0.0, 0.25, 0.5, 0.75, 1.0]}
    return base(
        34 * rows + 50,
        data=named("parts"),
        transform=[{"calculate": f"indexof({order!r}, datum.part)", "as": "place"}],
        encoding={"y": upright},
        layer=[
            {
                "mark": {"type": "bar", "height": {"band": 0.72}},
                "encoding": {
                    "x": {"field": "amount", "type": "quantitative", "title": title,
                          "stack": "zero", "axis": labels,
                          "scale": {"nice": False}},
                    "color": _parts("part", colours),
                    "order": {"field": "place", "type": "quantitative"},
                    "tooltip": [{"field": "plan"}, {"field": "part"},
                                {"field": "words", "title": "amount"}],
                },
            },
            {
                "transform": [{"filter": "datum.whole !== ''"}],
                "mark": {"type": "text", "align": "left", "dx": 6, "fontSize": 12},
                "encoding": {"x": {"field": "end", "type": "quantitative"},
                             "text": {"field": "whole"}},
            },
        ],
    )  # fmt: skip


def prices(names: Sequence[str]) -> Spec:
    """Prices of offers over the days that they were read on."""
    colour: Spec = {"field": "offer", "type": "nominal", "title": None, "sort": None,
                    "scale": {"domain": list(names), "range": list(LINES[: len(names)])},
                    "legend": {"orient": "bottom", "columns": 1, "labelLimit": 340}}  # fmt: skip
    return base(
        260,
        data=named("prices"),
        mark={"type": "line", "point": True, "strokeWidth": 2},
        encoding={
            "x": {"field": "day", "type": "temporal", "title": None, "scale": {"type": "utc"},
                  "axis": {"format": "%-d %b", "tickCount": 5}},
            "y": {"field": "usd", "type": "quantitative", "title": "USD per machine and hour",
                  "axis": {"format": ",~r", "tickCount": 6}, "scale": {"zero": False}},
            "color": colour,
            "tooltip": [{"field": "offer"}, {"field": "date"},
                        {"field": "words", "title": "price"}],
        },
    )  # fmt: skip


def config(theme: Theme) -> Spec:
    """What pictures look like on a background."""
    axis = {
        "labelColor": theme.faint, "titleColor": theme.ink, "gridColor": theme.grid,
        "domainColor": theme.faint, "tickColor": theme.faint, "labelFontSize": 12,
        "titleFontSize": 12, "titleFontWeight": 600, "titlePadding": 8,
    }  # fmt: skip
    return {
        "background": "transparent",
        "font": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif",
        "aria": False,  # a picture is one thing to a screen reader; its figures are in its table
        "view": {"stroke": None},
        "axis": axis,
        "legend": {"labelColor": theme.ink, "titleColor": theme.ink, "labelFontSize": 12},
        "text": {"color": theme.ink},
    }  # fmt: skip


def variables(theme: Theme) -> dict[str, str]:
    """Words with a dollar sign, escaped as Vega needs it."""
    low, high = theme.chance
    return {"$never": low, "$always": high, "$ink": theme.ink, "$limit": theme.limit,
            "$paper": theme.paper, "$faint": theme.faint}  # fmt: skip
