"""Azure: retail prices of GPU machines, spot and on demand, from the public price list.

No account is needed. The list has no zones, eviction rates or specifications; the hardware of
machines comes from the catalog's own table.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.load import load_snapshot
from recommender.catalogs.providers.azure.prices import Prices, Reader
from recommender.catalogs.providers.azure.quotas import Account, account_from, read_quotas
from recommender.catalogs.providers.contract import (
    Counters,
    Failed,
    Fetched,
    Wanted,
    read_offer,
)
from recommender.catalogs.providers.http import Patience, Web
from recommender.catalogs.providers.quotas import shipped_places
from recommender.catalogs.schema import Market, Offer, Source

ADDRESS = "https://prices.azure.com/api/retail/prices"
_VERSION = "2023-01-01-preview"  # values in filters count in the case they are written in
_SMALL_REGION = 10  # offers in the snapshot; a region with less may have closed
_SOURCE = Source(
    source=1,
    name="Azure Retail Prices API",
    licence="facts of a public price list",
    taken="row",
    attribution="retail prices of virtual machines, prices.azure.com",
)


def provider() -> "Azure":
    """The client of Azure."""
    return Azure(account=account_from())


@dataclass(frozen=True, slots=True)
class Azure:
    """Reads Azure's prices."""

    address: str = ADDRESS
    patience: Patience = Patience()
    account: Account = Account()  # for quotas; prices need none
    name: str = "azure"

    def fetch(self, wanted: Wanted) -> Fetched:
        """Read the prices of all GPU machines, and of the other known machines.

        All regions are read at once, so `Wanted.regions` does not shorten it.

        Raises:
            ProviderError: a page cannot be read.
        """
        began = time.monotonic()
        if wanted.parts == {"quotas"}:
            return self._quotas(wanted)
        markets = wanted.listed_markets
        reader = Reader(wanted.types, wanted.now)
        pages = 0
        with Web("azure", wanted, patience=self.patience) as web:
            for start in self._starts(wanted):
                for page in web.pages(start, "Items", "NextPageLink"):
                    pages += 1
                    for item in _items(page):
                        reader.take(item)
                    wanted.progress(f"{reader.rows} prices read")
        prices = reader.prices()
        offers = tuple(_offers(prices, wanted, markets))
        if not offers:
            raise ProviderError("azure", "format", "no price of a known machine; has it changed?")
        return Fetched(
            provider="azure",
            started=wanted.now,
            finished=wanted.now + timedelta(seconds=time.monotonic() - began),
            markets=markets,
            offers=offers,
            sources=(_SOURCE,),
            unknown_types=prices.unknown,
            quarantined=prices.quarantined,
            failed=tuple(_lost(offers)),
            counters=Counters(
                calls=web.calls,
                retries=web.retries,
                pages=pages,
                raw_rows=reader.rows,
                ignored=prices.ignored,
                bytes=web.bytes,
            ),
        )

    def _quotas(self, wanted: Wanted) -> Fetched:
        """Read what the subscription may run where the catalog has machines."""
        places = shipped_places("azure").values()
        regions = wanted.regions or tuple(sorted({name for each in places for name in each}))
        quotas = load_snapshot().quotas
        found = read_quotas(self.account, wanted, self.patience, quotas, regions)
        return found.as_fetched("azure", wanted, Counters(calls=len(regions)))

    def _starts(self, wanted: Wanted) -> Iterator[str]:
        """The first pages: of all sizes with GPUs, then of each machine without."""
        names = sorted(name for name, machine in wanted.types.items() if not machine.gpu)
        kinds = ["contains(armSkuName, 'Standard_N')", *(f"armSkuName eq '{n}'" for n in names)]
        for kind in kinds:
            terms = f"serviceName eq 'Virtual Machines' and priceType eq 'Consumption' and {kind}"
            query = f"api-version={_VERSION}&currencyCode='USD'&$filter={quote(terms)}"
            yield f"{self.address}?{query}"


def _items(page: dict[str, Any]) -> list[Any]:
    """The rows of a page."""
    items = page.get("Items")
    if not isinstance(items, list):
        raise ProviderError("azure", "format", "a page has no known form")
    if page.get("Count", len(items)) != len(items):
        reason = f"a page of {page['Count']} rows holds {len(items)}"
        raise ProviderError("azure", "format", reason)
    if page.get("BillingCurrency", "USD") != "USD":
        raise ProviderError("azure", "format", f"a page in {page['BillingCurrency']!r}, not in USD")
    return items


def _offers(prices: Prices, wanted: Wanted, markets: frozenset[Market]) -> Iterator[Offer]:
    for (name, region, market), usd in sorted(prices.usd.items()):
        machine = wanted.types[name]
        if market in markets and (machine.gpu or market == "on_demand"):
            yield read_offer(
                machine, region, market, usd, source=_SOURCE.source, as_of=wanted.today
            )


def _lost(offers: Iterable[Offer]) -> Iterator[Failed]:
    """Regions with many machines in the snapshot that the list no longer names."""
    found = {offer.region for offer in offers}
    shipped = Counter(region for regions in shipped_places("azure").values() for region in regions)
    for region, count in sorted(shipped.items()):
        if count >= _SMALL_REGION and region not in found:
            yield Failed(region, "", "the price list names no machine here")
