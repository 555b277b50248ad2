"""A simulation as a picture: two histograms with their quantiles, as SVG of fixed bytes."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from recommender.report import text
from recommender.report.bars import edge_places
from recommender.report.simulationview import plan_name, plan_words, time_unit
from recommender.simulation import Histogram, Quantiles, Simulation

_WIDTH, _HEIGHT = 960, 430
_PANEL_W, _PANEL_H, _TOP = 390, 230, 110
_LEFT = (60, 530)
_FONT = "font-family='Helvetica, Arial, sans-serif'"
_INK, _FAINT, _BAR, _MARK, _LIMIT, _FORM = (
    "#1f2933", "#6b7785", "#8fb8de", "#12507b", "#b3261e", "#5f6b2d",
)  # fmt: skip
_TICKS = 4


@dataclass(frozen=True, slots=True)
class _Panel:
    """One histogram: its figures, the unit of its axis, a limit and the closed form's mean."""

    title: str
    unit: float
    bins: Histogram
    figures: Quantiles
    limit: float | None
    form: float
    left: int

    def x(self, value: float) -> float:
        """Where a value stands on the axis."""
        low, high = self.bins.edges[0], self.bins.edges[-1]
        return self.left + _PANEL_W * (value - low) / (high - low)

    def inside(self, value: float) -> bool:
        """Whether a value lies on the axis."""
        return self.bins.edges[0] <= value <= self.bins.edges[-1]


def svg(found: Simulation) -> str:
    """Cost and time of the simulated runs, side by side."""
    unit, name = time_unit(found.time.mean)
    limits = {kept.limit: kept.value for kept in found.kept}
    form = found.closed_form
    panels = (
        _Panel(
            "cost, USD", 1.0, found.cost_histogram, found.cost,
            limits.get("budget"), form.cost_usd, _LEFT[0],
        ),
        _Panel(
            f"time, {name}", unit, found.time_histogram, found.time,
            limits.get("deadline"), form.time_s, _LEFT[1],
        ),
    )  # fmt: skip
    words = plan_words(found.plan)
    kept = f", all limits kept in {text.share(found.chance)}" if found.kept else ""
    body = [
        _text(40, 36, f"{plan_name(found)}: {words}", size=16, weight="bold"),
        _text(40, 58, f"{found.runs:,} simulated runs, seed {found.seed}{kept}", colour=_FAINT),
        _text(40, 76, text.clean(found.capacity), colour=_FAINT),
        *(part for panel in panels for part in _panel(panel)),
        _text(
            40, _HEIGHT - 14,
            "lines: 5, 50 and 95 % of the runs; dashed red: limit; dotted green: first-order "
            "estimate; outer bars hold the tails", colour=_FAINT, size=11,
        ),
    ]  # fmt: skip
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{_WIDTH}' height='{_HEIGHT}' "
        f"viewBox='0 0 {_WIDTH} {_HEIGHT}' role='img'>"
    )
    back = f"<rect width='{_WIDTH}' height='{_HEIGHT}' fill='white'/>"
    title = f"<title>{escape(plan_name(found))}: simulated cost and time</title>"
    return "\n".join([head, title, back, *body, "</svg>"]) + "\n"


def _panel(panel: _Panel) -> list[str]:
    bottom = _TOP + _PANEL_H
    most = max(panel.bins.shares)
    bars = [
        _bar(panel, low, high, share / most)
        for low, high, share in zip(
            panel.bins.edges, panel.bins.edges[1:], panel.bins.shares, strict=False
        )
    ]
    axis = _line(panel.left, bottom, panel.left + _PANEL_W, bottom, _INK)
    middle = panel.left + _PANEL_W / 2
    name = _text(middle, bottom + 46, panel.title, anchor="middle", weight="bold")
    share = _text(
        panel.left - 6, _TOP + 4, text.percent(most), anchor="end", colour=_FAINT, size=11
    )
    base = _text(panel.left - 6, bottom + 4, "0", anchor="end", colour=_FAINT, size=11)
    return [*bars, axis, name, share, base, *_ticks(panel), *_marks(panel)]


def _bar(panel: _Panel, low: float, high: float, share: float) -> str:
    x, width, height = panel.x(low), panel.x(high) - panel.x(low), _PANEL_H * share
    return (
        f"<rect x='{x + 0.5:.2f}' y='{_TOP + _PANEL_H - height:.2f}' "
        f"width='{max(width - 1.0, 0.5):.2f}' height='{height:.2f}' fill='{_BAR}'/>"
    )


def _ticks(panel: _Panel) -> list[str]:
    """Edges of bins that stand far enough apart."""
    edges = panel.bins.edges
    every = max(1, -(-(len(edges) - 1) // _TICKS))
    places = edge_places([edge / panel.unit for edge in edges])
    bottom, made = _TOP + _PANEL_H, []
    for edge in edges[::every]:
        x = panel.x(edge)
        label = f"{edge / panel.unit:,.{places}f}"
        made.append(_line(x, bottom, x, bottom + 5, _INK))
        made.append(_text(x, bottom + 20, label, anchor="middle", size=12))
    return made


def _marks(panel: _Panel) -> list[str]:
    """Quantiles, the limit and the first-order mean, where they lie on the axis."""
    q, top, bottom = panel.figures, _TOP - 6, _TOP + _PANEL_H
    made, last = [], -1e9
    for value, name in ((q.p05, "5 %"), (q.p50, "50 %"), (q.p95, "95 %")):
        x = panel.x(min(max(value, panel.bins.edges[0]), panel.bins.edges[-1]))
        made.append(_line(x, top, x, bottom, _MARK, 1.5))
        if x - last > 34:  # names of near marks would lie on each other
            made.append(_text(x, top - 4, name, anchor="middle", colour=_MARK, size=11))
            last = x
    others: Sequence[tuple[float | None, str, str]] = (
        (panel.limit, _LIMIT, "7 4"),
        (panel.form, _FORM, "2 3"),
    )
    for given, colour, dash in others:
        if given is not None and panel.inside(given):
            x = panel.x(given)
            made.append(_line(x, top, x, bottom, colour, 1.5, dash))
    return made


def _line(
    x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1.0, dash: str = ""
) -> str:
    dashed = f" stroke-dasharray='{dash}'" if dash else ""
    return (
        f"<line x1='{x1:.2f}' y1='{y1:.2f}' x2='{x2:.2f}' y2='{y2:.2f}' "
        f"stroke='{colour}' stroke-width='{width:g}'{dashed}/>"
    )


def _text(
    x: float,
    y: float,
    words: str,
    anchor: str = "start",
    colour: str = _INK,
    size: int = 13,
    weight: str = "normal",
) -> str:
    return (
        f"<text x='{x:.2f}' y='{y:.2f}' {_FONT} font-size='{size}' font-weight='{weight}' "
        f"fill='{colour}' text-anchor='{anchor}'>{escape(words)}</text>"
    )
