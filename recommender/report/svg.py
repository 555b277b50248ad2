"""Draws prices over days as SVG, without a drawing library."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from xml.sax.saxutils import escape

_WIDTH, _HEIGHT = 720, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 180, 40, 40
# Eight colours that people with any colour vision tell apart (Okabe and Ito, 2008).
_COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999933",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Curve:
    """A named line through (ISO date, USD per hour), oldest first."""

    name: str
    points: tuple[tuple[str, float], ...]


def drawing(title: str, curves: Sequence[Curve]) -> str:
    """A chart from zero to the highest price, with the names beside it."""
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
            said = date.fromordinal(day).isoformat()
            x = scale.x(day)
            yield f'<text x="{x:.1f}" y="{base + 18}" text-anchor="{anchor}">{said}</text>'


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
