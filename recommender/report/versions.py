"""Differences between catalog versions, and the history of a machine's prices."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from recommender.report import formatting as fmt
from recommender.report.json_output import picked
from recommender.report.page import Page, headings

if TYPE_CHECKING:
    from recommender.catalogs.history import Change, Difference, PricePoint
    from recommender.catalogs.schema import Offer

_SHOWN = 10
_SPARKS = 24  # days drawn; of a longer history the last ones
Series = dict[tuple[str, str, str], list["PricePoint"]]  # by provider, market, zone


def difference_page(found: "Difference", before: str, after: str) -> Page:
    """Offers added, removed and repriced by provider and market, then the largest changes."""
    columns = headings("provider:", "market:", "added", "removed", "repriced")
    rows = tuple(
        (fmt.provider(provider), fmt.market(market), *(f"{n:,}" for n in counts))
        for (provider, market), counts in found.counts().items()
    )
    return Page(
        title=f"From {before} to {after}",
        columns=columns,
        rows=rows,
        flexible=0,
        below=tuple(_changes(found)) if rows else ("nothing changed",),
        facts={
            "before": before,
            "after": after,
            "added": [_offer(offer) for offer in found.added],
            "removed": [_offer(offer) for offer in found.removed],
            "changed": [_change(change) for change in found.changed],
            "new_types": [list(each) for each in found.new_types],
            "removed_types": [list(each) for each in found.removed_types],
        },
    )


def _changes(found: "Difference") -> list[str]:
    lines = [
        fmt.clean(
            f"{c.offer.instance_type} {c.offer.zone or c.offer.region} "
            f"{fmt.market(c.offer.market)}: {fmt.number(c.before)} to {fmt.number(c.after)} USD/h "
            f"({c.ratio - 1:+.0%})"
        )
        for c in found.changed[:_SHOWN]
    ]
    for word, types in (("new", found.new_types), ("removed", found.removed_types)):
        if types:
            names = ", ".join(name for _, name in types[:_SHOWN])
            more = f" and {len(types) - _SHOWN} more" if len(types) > _SHOWN else ""
            lines.append(fmt.clean(f"{word} instance types: {names}{more}"))
    return lines


def _offer(offer: "Offer") -> dict[str, Any]:
    return picked(offer, "provider", "instance_type", "region", "zone", "market", "usd_per_hour")


def _change(change: "Change") -> dict[str, Any]:
    return {**_offer(change.offer), "usd_per_hour_before": change.before}


def history_page(
    points: Sequence["PricePoint"], instance_type: str, region: str, notes: Sequence[str]
) -> Page:
    """One row per market and zone: how far the price moved, drawn day by day."""
    columns = headings("market:", "zone:", "days", "low", "high", "last", "USD/h by day:")
    groups = series(points)
    facts = {
        "instance_type": instance_type,
        "region": region,
        "prices": [picked(p, "date", "provider", "market", "zone", "usd_per_hour") for p in points],
    }
    return Page(
        title=fmt.clean(f"{instance_type} in {region}, {_days(points)}"),
        columns=columns,
        rows=tuple(_series_row(market, zone, held) for (_, market, zone), held in groups.items()),
        flexible=len(columns) - 1,
        below=tuple(notes),
        facts=facts,
    )


def series(points: Sequence["PricePoint"]) -> Series:
    """The prices of each market and zone, oldest first."""
    groups: Series = {}
    for point in points:
        groups.setdefault((point.provider, point.market, point.zone), []).append(point)
    return dict(sorted(groups.items()))


def _days(points: Sequence["PricePoint"]) -> str:
    return f"{points[0].date} to {points[-1].date}" if points else "no price known"


def _series_row(market: str, zone: str, held: Sequence["PricePoint"]) -> tuple[str, ...]:
    prices = [point.usd_per_hour for point in held]
    return (
        fmt.market(market),
        fmt.clean(zone),
        str(len(prices)),
        fmt.number(min(prices)),
        fmt.number(max(prices)),
        fmt.number(prices[-1]),
        fmt.sparkline(prices[-_SPARKS:]),
    )


def curves(found: Sequence["PricePoint"]) -> dict[str, list[tuple[str, float]]]:
    """Date and price of each market and zone, by what a picture calls them."""
    return {
        " ".join(word for word in (fmt.market(market), fmt.clean(zone)) if word): [
            (point.date, point.usd_per_hour) for point in held
        ]
        for (_, market, zone), held in series(found).items()
    }
