"""OVHcloud's public order catalog: list prices in USD, of accounts outside Europe and the US.

An addon is a way to pay for an instance, named by it: `h100-380.consumption` by the hour. Prices
are whole numbers of 1e-8 of the currency. It says nothing of stock, quotas or regions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.provider_info import ANY_REGION
from recommender.catalogs.providers.contract import Fetched, Quarantined, Wanted
from recommender.catalogs.providers.http import Patience, Web
from recommender.catalogs.providers.public.listed import PublicList, Row, fetched
from recommender.catalogs.schema import Source

ADDRESS = "https://ca.api.ovh.com/1.0/order/catalog/public/cloud?ovhSubsidiary=WE"
_SOURCE = Source(
    source=1,
    name="OVHcloud public order catalog",
    licence="facts of a public interface",
    taken="row",
    attribution="list prices of OVHcloud, public order catalog (WE, USD)",
)


def reader(name: str) -> "OvhCatalog":
    """The reader of the catalog."""
    return OvhCatalog(name)


@dataclass(frozen=True, slots=True)
class OvhCatalog:
    """Reads the catalog."""

    name: str
    address: str = ADDRESS
    patience: Patience = Patience()

    def fetch(self, wanted: Wanted) -> Fetched:
        """Read the prices of the known instances.

        Raises:
            ProviderError: the catalog cannot be read, is of no known form, or not in USD.
        """
        with Web(self.name, wanted, patience=self.patience) as web:
            answer = web.json(self.address)
            try:
                currency, addons = answer["locale"]["currencyCode"], list(answer["addons"])
            except (LookupError, TypeError) as error:
                reason = f"the catalog is of no known form ({type(error).__name__})"
                raise ProviderError(self.name, "format", reason) from None
            if currency != "USD":
                raise ProviderError(self.name, "format", f"a catalog in {currency!r}, not in USD")
            rows, refused = list[Row](), list[Quarantined]()
            for addon in addons:
                try:
                    rows += _rows(addon)
                except (LookupError, TypeError, AttributeError, ValueError) as error:
                    what = f"an addon: {type(error).__name__} {error}"[:100]
                    refused.append(Quarantined(self.name, "an addon", what, "malformed"))
            ignored = len(addons) - len(rows) - len(refused)
            day = wanted.now.date()
            listed = PublicList(tuple(rows), day, _SOURCE, ignored, tuple(refused))
            return fetched(self.name, wanted, web, listed)


def _rows(addon: Any) -> Iterator[Row]:
    """The price of a GPU instance by the hour, with Linux; nothing for other addons."""
    name, _, paid = addon["planCode"].partition(".")
    blobs = addon.get("blobs") or {}
    if (blobs.get("commercial") or {}).get("brick") != "gpu" or paid != "consumption":
        return
    technical = blobs["technical"]
    if technical["os"]["family"] != "linux":
        return
    (pricing,) = addon["pricings"]
    if pricing.get("intervalUnit", "hour") not in ("hour", "none"):
        raise ValueError(f"{name} is paid by the {pricing['intervalUnit']}")
    usd, gpu = pricing["price"] / 1e8, technical["gpu"]
    yield Row(name, ANY_REGION, "", "on_demand", usd, gpu["model"], float(gpu["number"]))
