"""Bars of block characters, and histograms made of them."""

from collections.abc import Sequence

from recommender.report import text
from recommender.report.lines import Line
from recommender.simulation import Histogram

_EIGHTHS = " ▏▎▍▌▋▊▉"
_LEAST = 8  # characters of the longest bar


def bar(share: float, longest: float, width: int) -> str:
    """A bar as long as its share of the longest, in eighths of a character."""
    eighths = round(8 * width * share / longest) if longest > 0 else 0
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def bars(rows: Sequence[tuple[str, float]], width: int) -> list[Line]:
    """One bar per row between its label and its share in per cent."""
    label = max(len(name) for name, _ in rows)
    longest = max(share for _, share in rows)
    said = [text.percent(share) for _, share in rows]
    room = max(width - label - max(map(len, said)) - 6, _LEAST)
    return [
        Line(f"  {name.rjust(label)}  {bar(share, longest, room)} {words}".rstrip())
        for (name, share), words in zip(rows, said, strict=True)
    ]


def histogram(given: Histogram, unit: float, width: int) -> list[Line]:
    """A bar per bin; the outer bins hold the tails, and say so."""
    places = edge_places([edge / unit for edge in given.edges])
    edges = [f"{edge / unit:,.{places}f}" for edge in given.edges]
    names = [f"{low}-{high}" for low, high in zip(edges, edges[1:], strict=False)]
    if len(names) > 1:
        names = [f"up to {edges[1]}", *names[1:-1], f"from {edges[-2]}"]
    return bars(list(zip(names, given.shares, strict=True)), width)


def edge_places(edges: Sequence[float]) -> int:
    """Fewest decimals that write every edge exactly."""
    for places in range(6):
        if all(abs(round(e, places) - e) < 1e-9 * max(abs(e), 1.0) for e in edges):
            return places
    return 6
