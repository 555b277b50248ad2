"""Older prices of the store, by which creeping changes are found."""

from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from functools import cache
from typing import Any

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.errors import CatalogError
from recommender.catalogs.load import load
from recommender.catalogs.providers.contract import PartPrice
from recommender.catalogs.refresh.reference import History, Key, held_key
from recommender.catalogs.schema import Offer
from recommender.catalogs.store import Store, day_of, sequence

WEEK, MONTH = timedelta(days=7), timedelta(days=30)
Rows = Iterable[tuple[str, str, str, float]]


class Past:
    """What the versions up to the one that holds said of prices, and what a person accepted."""

    def __init__(self, store: Store, held: str, base: Catalog, today: date) -> None:
        self._store, self._base, self.today = store, base, today
        self._names = [n for n in store.names() if held and sequence(n) <= sequence(held)]
        self._load = cache(self._loaded)
        report = store.report(held) if held else {}
        self.report: Mapping[str, Any] = report
        self.parts: dict[str, list[Any]] = _table(report.get("parts"))
        self.accepted: dict[str, str] = _table(report.get("accepted"))  # the day, by provider

    def history(self, provider: str) -> History:
        """Prices of a provider in 7 and 30 nights, and as shipped."""
        accepted = str(self.accepted.get(provider, ""))
        names = [name for name in self._names if f"{day_of(name)}" >= accepted]
        week, month = (_before(names, self.today - ago) for ago in (WEEK, MONTH))
        return History(
            parts=_prices((), self.parts.get(provider, ())),
            week=self._prices(week, provider),
            month=self._prices(month, provider),
            shipped={} if accepted else _prices(self._own(self._base, provider), ()),
        )

    def take(
        self, provider: str, parts: Iterable[PartPrice], held: frozenset[Key], accept: bool
    ) -> None:
        """Keep what is published of a provider for the nights to come."""
        new = {(p.part, p.region, "", p.market): p.usd_per_hour for p in parts}
        old = _prices((), self.parts.get(provider, ()))
        known = new | {key: usd for key, usd in old.items() if key in held}
        rows = [[part, region, market, usd] for (part, region, _, market), usd in known.items()]
        self.parts = {**self.parts, provider: rows} if rows else self.parts
        self.accepted |= {provider: self.today.isoformat()} if accept else {}

    def _prices(self, name: str, provider: str) -> dict[Key, float]:
        if not name:
            return {}
        catalog, parts = self._load(name)
        return _prices(self._own(catalog, provider), _table(parts).get(provider, ()))

    def _loaded(self, name: str) -> tuple[Catalog | None, object]:
        try:
            return load(self._store.path(name)), self._store.report(name).get("parts")
        except CatalogError:
            return None, None  # damaged: readers pass it over as well

    def _own(self, catalog: Catalog | None, provider: str) -> Iterable[Offer]:
        return (o for o in (catalog.offers if catalog else ()) if o.provider == provider)


def _before(names: list[str], day: date) -> str:
    """The newest version of a day or before; the oldest where all are younger."""
    older = [name for name in names if day_of(name) <= day]
    return older[-1] if older else next(iter(names), "")


def _table(found: object) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}


def _prices(offers: Iterable[Offer], parts: Rows) -> dict[Key, float]:
    """Prices by what is held back with them."""
    found = {held_key(o): o.usd_per_hour for o in offers if o.kind in ("quote", "composed")}
    return found | {(part, region, "", market): usd for part, region, market, usd in parts}
