"""Rows in the shape of Azure's retail prices, and a server that lists them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from recommender.catalogs.providers.azure.provider import Azure
from recommender.catalogs.providers.contract import Fetched, Wanted
from recommender.catalogs.providers.http import Patience
from recommender.catalogs.schema import Offer
from tests.catalogs.providers.gcp.skus import NOW
from tests.catalogs.refresh.servers import Asked, Reply, Server, http_server
from tests.shipped import snapshot

Raw = dict[str, Any]

# Sizes, their series, and what an hour costs in East US, as Microsoft's page showed it in 2026.
SIZES = {
    "Standard_NC4as_T4_v3": ("NCasT4 v3", 0.526),
    "Standard_NC24ads_A100_v4": ("NCadsA100v4", 3.673),
    "Standard_ND96isr_H100_v5": ("NDsr H100 v5", 98.32),
    "Standard_NV36ads_A10_v5": ("NVadsA10v5", 3.2),
    "Standard_D4s_v5": ("Dsv5", 0.192),
}


def item(size: str, region: str, usd: float, spot: bool = False, **changed: Any) -> Raw:
    """A row of the price list."""
    meter = size.removeprefix("Standard_").replace("_", " ") + " Spot" * spot
    series = SIZES.get(size, (size.removeprefix("Standard_"), 0))[0]
    return {
        "currencyCode": "USD",
        "tierMinimumUnits": 0.0,
        "retailPrice": usd,
        "unitPrice": usd,
        "armRegionName": region,
        "location": region.upper(),
        "effectiveStartDate": "2025-04-01T00:00:00Z",
        "meterId": "0c6f3a30-0000-4000-8000-000000000000",
        "meterName": meter,
        "productId": "DZH318Z0CSHJ",
        "skuId": "DZH318Z0CSHJ/00KX",
        "productName": f"Virtual Machines {series} Series",
        "skuName": meter,
        "serviceName": "Virtual Machines",
        "serviceId": "DZH313Z7MMC8",
        "serviceFamily": "Compute",
        "unitOfMeasure": "1 Hour",
        "type": "Consumption",
        "isPrimaryMeterRegion": True,
        "armSkuName": size,
        **changed,
    }


def world(regions: Sequence[str] = ("eastus", "westeurope")) -> list[Raw]:
    """Every size in some regions, on demand and as spot, among what is not meant."""
    rows = []
    for number, region in enumerate(regions):
        for size, (series, usd) in SIZES.items():
            usd = round(usd * (1 + 0.1 * number), 6)
            windows = f"Virtual Machines {series} Series Windows"
            rows += [
                item(size, region, usd),
                item(size, region, round(usd * 0.3, 6), spot=True),
                item(size, region, usd * 1.9, productName=windows),
                item(size, region, usd * 0.2, meterName=f"{size[9:]} Low Priority"),
            ]
    return rows


def server_of(rows: Sequence[Raw], per_page: int = 1000) -> Any:
    """Answer like the retail prices API."""

    def answer(asked: Asked) -> Reply:
        terms = asked.query["$filter"]
        assert "serviceName eq 'Virtual Machines' and priceType eq 'Consumption'" in terms
        assert asked.query["currencyCode"] == "'USD'"
        kind = terms.rpartition(" and ")[2]
        value = kind.split("'")[1]
        whole = kind.startswith("armSkuName eq ")
        meant = [
            row
            for row in rows
            if (row["armSkuName"] == value if whole else value in row["armSkuName"])
        ]
        start = int(asked.query.get("$skip", 0))
        shown = meant[start : start + per_page]
        following = {**asked.query, "$skip": start + per_page}
        link = f"http://{asked.headers['host']}{asked.path}?{urlencode(following)}"
        more = start + per_page < len(meant)
        page = {
            "BillingCurrency": "USD",
            "CustomerEntityId": "Default",
            "CustomerEntityType": "Retail",
            "Items": shown,
            "NextPageLink": link if more else None,
            "Count": len(shown),
        }
        return Reply(page)

    return answer


def wanted(*names: str, **more: Any) -> Wanted:
    """Machines of Azure that a refresh asks for; those of this world without a name."""
    catalog = snapshot()
    types = {
        machine.instance_type: machine
        for machine in catalog.instance_types.values()
        if machine.provider == "azure" and machine.instance_type in (names or SIZES)
    }
    return Wanted(**{"types": types, "gpus": catalog.gpus, "now": NOW, **more})


def client(server: Server) -> Azure:
    """The real client on a server of ours."""
    patience = Patience(tries=3, first_wait_s=0.0, sleep=lambda seconds: None)
    return Azure(f"{server.address}/api/retail/prices", patience)


@contextmanager
def price_list(rows: Sequence[Raw], per_page: int = 1000) -> Iterator[Server]:
    """A server of these rows."""
    with http_server(server_of(rows, per_page)) as server:
        yield server


def fetch(rows: Sequence[Raw], *names: str, **more: Any) -> Fetched:
    """What the client hands over of these rows."""
    with price_list(rows) as server:
        return client(server).fetch(wanted(*names, **more))


def price(offers: Sequence[Offer], size: str, region: str, market: str) -> float | None:
    """What a machine costs in a region; None where it is not offered."""
    found = [
        o.usd_per_hour
        for o in offers
        if (o.instance_type, o.region, o.market) == (size, region, market)
    ]
    assert len(found) <= 1
    return found[0] if found else None
