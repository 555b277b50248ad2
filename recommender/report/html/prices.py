"""How the prices of the plans that lead have moved, where a store keeps older ones."""

from collections.abc import Mapping, Sequence

from recommender.catalogs.frozen import dataclass
from recommender.plan.answer import Answer
from recommender.report import formatting as fmt
from recommender.report.html.elements import Element, Sheet, element, figure, section

OfferKey = tuple[str, str, str, str, str]  # provider, type, region, zone, market
Known = Mapping[OfferKey, Sequence[tuple[str, float]]]  # day and price, oldest first
NO_PRICES: Known = {}
MAX_CURVES = 6  # curves: as many colours as can be distinguished


@dataclass(frozen=True, slots=True)
class PriceSeries:
    """The prices of one offer."""

    offer: str
    points: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class PriceRow:
    """One price as it is drawn."""

    offer: str
    day: str  # midnight of it, in UTC
    date: str
    usd: float
    words: str


def offers_of(answer: Answer) -> tuple[OfferKey, ...]:
    """The machines of the plans that the answer leads with, each once."""
    machines = (m for pick in answer.picks for m in pick.plan.machines)
    keys = ((m.provider, m.instance_type, m.region, m.zone, m.market) for m in machines)
    return tuple(dict.fromkeys(keys))


def moved_offers(known: Known) -> tuple[PriceSeries, ...]:
    """The offers of which two prices or more are known."""
    found = [
        PriceSeries(_name(key), tuple(points)) for key, points in known.items() if len(points) > 1
    ]
    return tuple(found[:MAX_CURVES])


def _name(key: OfferKey) -> str:
    provider, name, region, zone, market = key
    return f"{fmt.clean(name)} {fmt.market(market)}, {provider} {fmt.clean(zone or region)}"


def series_names(series: Sequence[PriceSeries]) -> list[str]:
    """What the curves are called."""
    return [each.offer for each in series]


def price_rows(series: Sequence[PriceSeries]) -> tuple[PriceRow, ...]:
    """Every price that is drawn."""
    return tuple(
        PriceRow(each.offer, f"{day}T00:00Z", day, usd, f"{fmt.number(usd)} USD/h")
        for each in series
        for day, usd in each.points
    )


def price_part(series: Sequence[PriceSeries]) -> list[Element]:
    """The curves with their figures; nothing where nothing is known."""
    if not series:
        return []
    days = sorted({day for each in series for day, _ in each.points})
    rows = tuple((day, *(_on(dict(each.points), day) for each in series)) for day in days)
    columns = ("day", *(each.offer for each in series))
    sheet = Sheet("USD per machine and hour, by the day that it was read", columns, rows,
                  frozenset(range(1, len(columns))))  # fmt: skip
    alt = "Prices of the machines of the plans that lead, over the days that they were read on."
    words = "As listed in the year before this release, then in the versions that are kept."
    return [section("price-history", "Price history", element("p", words),
                    figure("prices", alt, sheet.element()))]  # fmt: skip


def _on(prices: Mapping[str, float], day: str) -> str:
    return fmt.number(prices[day]) if day in prices else ""
