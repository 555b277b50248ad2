"""Traces: what was watched, in a line each, and the laws that are kept for offers."""

from collections.abc import Sequence

from recommender.limits import OfferLaw
from recommender.report import text
from recommender.report.jsonview import plain
from recommender.report.lines import Column
from recommender.report.pages import Page
from recommender.traces.facts import Fit, Prices, Watched

SHOW_SCHEMA = "recommend.traces/v1"
_BARS = "▁▂▃▄▅▆▇█"


def sparkline(shares: Sequence[float]) -> str:
    """Shares from 0 to 1 as bars, one character each; only nothing is the lowest bar."""
    return "".join(_bar(share) for share in shares)


def _bar(share: float) -> str:
    if share <= 1e-9:
        return _BARS[0]
    return _BARS[min(1 + int(share * 7 * (1 - 1e-9)), 7)]


def series_page(found: Fit) -> Page:
    """One row per series: how long, how much of the time up, and a line over time."""
    columns = (
        Column("series", right=False),
        Column("watched", gap=2),
        Column("up", gap=2),
        Column("stops", gap=2),
        Column("USD/h", gap=2),
    )
    return Page(
        title=f"{len(found.series)} series",
        columns=columns,
        rows=tuple(_series_row(series) for series in found.series),
        flexible=0,
        below=_legend(found),
        facts={"schema": SHOW_SCHEMA, "series": plain(found.series)},
    )


def _series_row(s: Watched) -> tuple[str, ...]:
    about = " · ".join(text.clean(word) for word in _about(s) if word)
    lines = [text.clean(s.name), about, sparkline(s.shares or s.price_line)]
    return (
        "\n".join(line for line in lines if line),
        text.duration(s.hours * 3600.0),
        "" if s.availability is None else text.percent(s.availability.value),
        "" if s.availability is None else f"{s.interruptions:,}",
        "" if s.prices is None else _price(s.prices),
    )


def _about(s: Watched) -> list[str]:
    place = s.zone or s.region
    known = "" if place and place in s.name else " ".join(w for w in (s.provider, place) if w)
    machines = f"{s.capacity}x " if s.capacity > 1 else ""
    machine = f"{machines}{s.machine or 'machines'}" if s.capacity or s.machine else ""
    kind = {"probe": "probed", "hold": "held"}.get(s.kind, "")
    every = f"every {text.duration(s.step_s)}" if s.step_s else ""
    return [known, machine, " ".join(w for w in (kind, every) if w), s.begin[:10]]


def _price(prices: Prices) -> str:
    if prices.least_usd == prices.most_usd:
        return text.three(prices.mean_usd.value)
    return f"{text.three(prices.least_usd)}-{text.three(prices.most_usd)}"


def _legend(found: Fit) -> tuple[str, ...]:
    said = []
    if any(series.shares for series in found.series):
        said.append("up: one machine, share of the time; bars: share of the machines up")
    if any(series.price_line and not series.shares for series in found.series):
        said.append("bars of prices: from the least to the most")
    return tuple(said)


def laws_page(laws: Sequence[OfferLaw], path: str) -> Page:
    """The laws that are kept, one row each."""
    columns = (
        Column("offer", right=False),
        Column("mean run", gap=2),
        Column("up", gap=2),
        Column("fitted", gap=2),
        Column("trace", right=False, gap=2),
    )
    return Page(
        title="" if laws else "No spot law of your own is kept.",
        columns=columns,
        rows=tuple(_law_row(law) for law in laws),
        flexible=4,
        below=(f"kept in {text.clean(path)}",),
        facts={"path": path, "laws": plain(tuple(laws))},
    )


def _law_row(law: OfferLaw) -> tuple[str, ...]:
    seen = f", {law.seen}" if law.seen else ""
    return (
        text.clean(law.offer),
        text.duration(law.run_mean_s),
        text.percent(law.availability),
        law.fitted,
        f"{text.clean(law.trace)}{seen}, {law.interruptions:,} stops",
    )
