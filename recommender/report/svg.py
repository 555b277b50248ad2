"""Reproducible SVG pictures: prices over days, histograms of a simulation."""

from collections.abc import Iterator, Sequence
from datetime import date
from xml.sax.saxutils import escape

from recommender.catalogs.frozen import dataclass
from recommender.plan.simulation import Histogram, Quantiles, Simulation
from recommender.report import formatting as fmt
from recommender.report.cells import unit_of
from recommender.report.layout import edge_places
from recommender.report.simulation import plan_name, plan_words

_WIDTH, _HEIGHT = 720, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 180, 40, 40
# Eight colours that people with any colour vision can distinguish (Okabe and Ito, 2008).
_COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999933",
)  # fmt: skip
_PLOT_LEFT = (60, 530)
_FONT = "font-family='Helvetica, Arial, sans-serif'"
_TICKS = 4


@dataclass(frozen=True, slots=True)
class Curve:
    """A named line through (ISO date, USD per hour), oldest first."""

    name: str
    points: tuple[tuple[str, float], ...]


def drawing(title: str, curves: Sequence[Curve]) -> str:
    """A chart from zero to the highest price, with a legend."""
    days = [date.fromisoformat(day).toordinal() for c in curves for day, _ in c.points]
    prices = [usd for c in curves for _, usd in c.points]
    first, last = min(days, default=0), max(days, default=1)
    scale = _Scale(first, max(last, first + 1), max(prices, default=1.0))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="14">{escape(title)}</text>',
        *_axes(scale, days),
        *(part for i, curve in enumerate(curves) for part in _curve(i, curve, scale)),
        "</svg>\n",
    ]
    return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class _Scale:
    """Where a day and a price lie."""

    first: int
    last: int
    highest: float

    def x(self, day: int) -> float:
        """From the left."""
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (day - self.first) / (self.last - self.first)

    def y(self, usd: float) -> float:
        """From the top."""
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * usd / self.highest


def _axes(scale: _Scale, days: Sequence[int]) -> Iterator[str]:
    right, base = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    for share in (0.0, 0.5, 1.0):
        usd = share * scale.highest
        y = scale.y(usd)
        yield f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#ddd"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{usd:.4g}</text>'
    yield f'<text x="{_LEFT}" y="{_TOP - 6}" text-anchor="end">USD/h</text>'
    for day, anchor in ((min(days, default=None), "start"), (max(days, default=None), "end")):
        if day is not None:
            parts = date.fromordinal(day).isoformat()
            x = scale.x(day)
            yield f'<text x="{x:.1f}" y="{base + 18}" text-anchor="{anchor}">{parts}</text>'


def _curve(index: int, curve: Curve, scale: _Scale) -> Iterator[str]:
    colour = _COLOURS[index % len(_COLOURS)]
    places = [
        (scale.x(date.fromisoformat(day).toordinal()), scale.y(usd)) for day, usd in curve.points
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for x, y in places:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>'
    y = _TOP + 16 * index + 8
    x = _WIDTH - _RIGHT + 12
    yield f'<text x="{x}" y="{y}" fill="{colour}">{escape(curve.name)}</text>'


_PLOT_WIDTH, _PLOT_HEIGHT = 960, 430
_PANEL_W, _PANEL_H, _PLOT_TOP = 390, 230, 110
_INK, _FAINT, _BAR, _MARK, _LIMIT, _FORM = (
    "#1f2933", "#6b7785", "#8fb8de", "#12507b", "#b3261e", "#5f6b2d",
)  # fmt: skip


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
        """The position of a value on the axis."""
        low, high = self.bins.edges[0], self.bins.edges[-1]
        return self.left + _PANEL_W * (value - low) / (high - low)

    def inside(self, value: float) -> bool:
        """Whether a value lies on the axis."""
        return self.bins.edges[0] <= value <= self.bins.edges[-1]


def svg(found: Simulation) -> str:
    """Cost and time of the simulated runs, side by side."""
    unit, name = unit_of([found.time.mean])
    limits = {each.limit: each.value for each in found.limit_chances}
    form = found.closed_form
    panels = (
        _Panel(
            "cost, USD", 1.0, found.cost_histogram, found.cost,
            limits.get("budget"), form.cost_usd, _PLOT_LEFT[0],
        ),
        _Panel(
            f"time, {name}", unit, found.time_histogram, found.time,
            limits.get("deadline"), form.time_s, _PLOT_LEFT[1],
        ),
    )  # fmt: skip
    words = plan_words(found.plan)
    met = f", all limits met in {fmt.share(found.chance)}" if found.limit_chances else ""
    body = [
        _text(40, 36, f"{plan_name(found)}: {words}", size=16, weight="bold"),
        _text(40, 58, f"{found.runs:,} simulated runs, seed {found.seed}{met}", colour=_FAINT),
        _text(40, 76, fmt.clean(found.capacity), colour=_FAINT),
        *(part for panel in panels for part in _panel(panel)),
        _text(
            40, _PLOT_HEIGHT - 14,
            "lines: 5, 50 and 95 % of the runs; dashed red: limit; dotted green: first-order "
            "estimate; outer bars hold the tails", colour=_FAINT, size=11,
        ),
    ]  # fmt: skip
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{_PLOT_WIDTH}' height='{_PLOT_HEIGHT}' "
        f"viewBox='0 0 {_PLOT_WIDTH} {_PLOT_HEIGHT}' role='img'>"
    )
    back = f"<rect width='{_PLOT_WIDTH}' height='{_PLOT_HEIGHT}' fill='white'/>"
    title = f"<title>{escape(plan_name(found))}: simulated cost and time</title>"
    return "\n".join([head, title, back, *body, "</svg>"]) + "\n"


def _panel(panel: _Panel) -> list[str]:
    bottom = _PLOT_TOP + _PANEL_H
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
        panel.left - 6,
        _PLOT_TOP + 4,
        fmt.percent(most),
        anchor="end",
        colour=_FAINT,
        size=11,
    )
    base = _text(panel.left - 6, bottom + 4, "0", anchor="end", colour=_FAINT, size=11)
    return [*bars, axis, name, share, base, *_ticks(panel), *_marks(panel)]


def _bar(panel: _Panel, low: float, high: float, share: float) -> str:
    x, width, height = panel.x(low), panel.x(high) - panel.x(low), _PANEL_H * share
    return (
        f"<rect x='{x + 0.5:.2f}' y='{_PLOT_TOP + _PANEL_H - height:.2f}' "
        f"width='{max(width - 1.0, 0.5):.2f}' height='{height:.2f}' fill='{_BAR}'/>"
    )


def _ticks(panel: _Panel) -> list[str]:
    """Edges of bins that are far enough apart."""
    edges = panel.bins.edges
    every = max(1, -(-(len(edges) - 1) // _TICKS))
    places = edge_places([edge / panel.unit for edge in edges])
    bottom, made = _PLOT_TOP + _PANEL_H, []
    for edge in edges[::every]:
        x = panel.x(edge)
        label = f"{edge / panel.unit:,.{places}f}"
        made.append(_line(x, bottom, x, bottom + 5, _INK))
        made.append(_text(x, bottom + 20, label, anchor="middle", size=12))
    return made


def _marks(panel: _Panel) -> list[str]:
    """Quantiles, the limit and the first-order mean, where they lie on the axis."""
    q, top, bottom = panel.figures, _PLOT_TOP - 6, _PLOT_TOP + _PANEL_H
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
