"""SKUs in the shape that Google's price list has, and a server that lists them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from recommender.catalogs.providers.contract import Fetched, Wanted
from recommender.catalogs.providers.gcp.client import Settings
from recommender.catalogs.providers.gcp.provider import Gcp
from recommender.catalogs.providers.http import Patience
from recommender.catalogs.schema import Offer
from tests.catalogs.refresh.servers import Asked, Reply, Server, http_server
from tests.shipped import snapshot

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
CANARY = "canary-Zq8wLpT3vN5kR7yB2mXc"  # an API key that must not be seen again
Raw = dict[str, Any]

GROUPS = {"h": "CPU", "GiBy.h": "RAM", "GiBy.mo": "LocalSSD"}
# USD per hour (local SSD: per month) in us-central1, as Google's price pages showed them in 2026.
AMERICAS = {
    "A2 Instance Core": 0.031611,
    "A2 Instance Ram": 0.004237,
    "A3 Instance Core": 0.0255,
    "A3 Instance Ram": 0.00222,
    "G2 Instance Core": 0.024988,
    "G2 Instance Ram": 0.002927,
    "N1 Predefined Instance Core": 0.031611,
    "N1 Predefined Instance Ram": 0.004237,
    "E2 Instance Core": 0.02181159,
    "E2 Instance Ram": 0.00292353,
}
GPUS = {
    "Nvidia Tesla T4 GPU": 0.35,
    "Nvidia Tesla A100 GPU": 2.933908,
    "Nvidia Tesla A100 80GB GPU": 3.927988,
    "Nvidia H100 80GB GPU": 9.796550,
    "Nvidia L4 GPU": 0.560048,
}
SSD = 0.08


def sku(
    description: str,
    usd: float,
    unit: str = "h",
    regions: Sequence[str] = ("us-central1",),
    usage: str = "",
    group: str = "",
    family: str = "Compute",
) -> Raw:
    """A row of the price list."""
    units, nanos = divmod(round(usd * 1e9), 10**9)
    spot = "Preemptible" in description
    group = group or ("GPU" if "GPU" in description else GROUPS.get(unit, "CPU"))
    number = abs(hash_of(description, regions)) % 16**12
    rate = {
        "startUsageAmount": 0,
        "unitPrice": {"currencyCode": "USD", "units": str(units), "nanos": nanos},
    }
    return {
        "name": f"services/6F81-5844-456A/skus/{number:012X}",
        "skuId": f"{number:012X}",
        "description": description,
        "category": {
            "serviceDisplayName": "Compute Engine",
            "resourceFamily": "Storage" if group == "LocalSSD" else family,
            "resourceGroup": group,
            "usageType": usage or ("Preemptible" if spot else "OnDemand"),
        },
        "serviceRegions": list(regions),
        "pricingInfo": [
            {
                "summary": "",
                "pricingExpression": {
                    "usageUnit": unit,
                    "usageUnitDescription": unit,
                    "baseUnit": "s",
                    "baseUnitConversionFactor": 3600,
                    "displayQuantity": 1,
                    "tieredRates": [rate],
                },
                "currencyConversionRate": 1,
                "effectiveTime": "2026-11-20T09:12:30.112Z",
            }
        ],
        "serviceProviderName": "Google",
        "geoTaxonomy": {
            "type": "REGIONAL" if len(regions) == 1 else "MULTI_REGIONAL",
            "regions": list(regions),
        },
    }


def hash_of(description: str, regions: Sequence[str]) -> int:
    """A number for a SKU, the same in every run."""
    text = f"{description}|{','.join(regions)}".encode()
    return int.from_bytes(text[-32:], "big")


def americas(share: float = 0.4, regions: Sequence[str] = ("us-central1", "us-east1")) -> list[Raw]:
    """The parts of the machines of a few families, on demand and as spot."""
    rows = []
    for name, usd in AMERICAS.items():
        unit = "h" if name.endswith("Core") else "GiBy.h"
        rows.append(sku(f"{name} running in Americas", usd, unit, regions))
        spot = f"Spot Preemptible {name} running in Americas"
        rows.append(sku(spot, usd * share, unit, regions))
    for name, usd in GPUS.items():
        rows.append(sku(f"{name} running in Americas", usd, "h", regions))
        spot = f"{name} attached to Spot Preemptible VMs running in Americas"
        rows.append(sku(spot, usd * share, "h", regions))
    rows.append(sku("SSD backed Local Storage", SSD, "GiBy.mo", regions))
    spot = "SSD backed Local Storage attached to Spot Preemptible VMs"
    rows.append(sku(spot, SSD * share, "GiBy.mo", regions, usage="OnDemand"))
    return rows


def found(rows: Sequence[Raw], description: str) -> Raw:
    """The row of a description."""
    (row,) = [row for row in rows if row["description"] == description]
    return row


def priced(row: Raw, usd: float) -> None:
    """Change a row's price."""
    units, nanos = divmod(round(usd * 1e9), 10**9)
    price = row["pricingInfo"][0]["pricingExpression"]["tieredRates"][0]["unitPrice"]
    price.update(units=str(units), nanos=nanos)


def in_unit(row: Raw, unit: str) -> None:
    """Change a row's unit."""
    row["pricingInfo"][0]["pricingExpression"]["usageUnit"] = unit


def pages_of(rows: Sequence[Raw], per_page: int = 5000) -> Callable[[Asked], Reply]:
    """Answer like the price list: pages that name the next one."""

    def answer(asked: Asked) -> Reply:
        start = int(asked.query.get("pageToken", "0") or 0)
        stop = start + per_page
        return Reply({"skus": rows[start:stop], "nextPageToken": str(stop) * (stop < len(rows))})

    return answer


def wanted(*names: str, **more: Any) -> Wanted:
    """Machines of Google Cloud that a refresh asks for; all without a name."""
    catalog = snapshot()
    types = {
        machine.instance_type: machine
        for machine in catalog.instance_types.values()
        if machine.provider == "gcp" and (not names or machine.instance_type in names)
    }
    return Wanted(**{"types": types, "gpus": catalog.gpus, "now": NOW, **more})


def client(server: Server, **more: Any) -> Gcp:
    """The real client, speaking REST to a server of ours."""
    settings = {
        "api_key": CANARY,
        "endpoint": server.address,
        "compute": server.address,
        "first_wait_s": 0.001,
        "retry_s": 2.0,
    }
    rest = {name: more.pop(name) for name in list(more) if name in ("token", "patience")}
    patience = Patience(tries=3, first_wait_s=0.0, sleep=lambda seconds: None)
    return Gcp(Settings(**{**settings, **more}), **{"patience": patience, **rest})


@contextmanager
def price_list(rows: Sequence[Raw], per_page: int = 5000) -> Iterator[Server]:
    """A server of these SKUs."""
    with http_server(pages_of(rows, per_page)) as server:
        yield server


def fetch(rows: Sequence[Raw], *names: str, **more: Any) -> Fetched:
    """What the client hands over of these SKUs."""
    with price_list(rows) as server:
        return client(server).fetch(wanted(*names, **more))


def prices(offers: Sequence[Offer], name: str, market: str, region: str) -> set[float]:
    """The prices of a machine in a region, over its zones."""
    return {
        o.usd_per_hour
        for o in offers
        if (o.instance_type, o.market, o.region) == (name, market, region)
    }


def rules(fetched: Fetched) -> Mapping[str, list[str]]:
    """What was quarantined, by rule."""
    by_rule: dict[str, list[str]] = {}
    for row in fetched.quarantined:
        by_rule.setdefault(row.rule, []).append(row.what)
    return by_rule
