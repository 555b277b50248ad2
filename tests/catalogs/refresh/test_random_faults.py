"""Six weeks of bad nights of Google Cloud and Azure: rows, pages and servers fail at random.

Every night some rows of both price lists are damaged and some answers fail, while the true
prices stay. Whatever is published must cost what it truly costs, at its true age.
"""

from collections.abc import Callable
from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from recommender.catalogs.providers.contract import Provider
from recommender.catalogs.refresh.run import RefreshRequest, refresh
from recommender.catalogs.store import Store, newest_good
from tests.catalogs.providers.azure import items as azure_items
from tests.catalogs.providers.gcp import skus as gcp_skus
from tests.catalogs.providers.gcp.skus import NOW, Raw
from tests.catalogs.refresh.clouds import azure_list, gcp_list
from tests.catalogs.refresh.servers import Reply, http_server

NIGHTS, ROWS, SEED = 42, 12, 20261121
GCP, AZURE = gcp_list(), azure_list()
Damage = Callable[[Random, list[Raw], int], None]


def expression(row: Raw) -> Raw:
    found: Raw = row["pricingInfo"][0]["pricingExpression"]
    return found


def worded(random: Random, rows: list[Raw], at: int) -> None:
    words = rows[at]["description"].split()
    word = random.choice(["Reserved", "DWS", "Custom", "80GB", "Plus", "vGPU", "Spot"])
    words.insert(random.randrange(len(words) + 1), word)
    rows[at]["description"] = " ".join(words)


def twin(random: Random, rows: list[Raw], at: int) -> None:
    rows.append(deepcopy(rows[at]))
    gcp_skus.priced(rows[-1], random.uniform(0.001, 3.0))


def free(random: Random, rows: list[Raw], at: int) -> None:
    gcp_skus.priced(rows[at], 0.0)


def in_other_unit(random: Random, rows: list[Raw], at: int) -> None:
    units = ["h", "mo", "GiBy.h", "GBy.h", "GiBy.mo", "GBy.mo"]
    units.remove(expression(rows[at])["usageUnit"])
    gcp_skus.in_unit(rows[at], random.choice(units))


def on_demand_as_spot(random: Random, rows: list[Raw], at: int) -> None:
    usage = rows[at]["category"]["usageType"]
    rows[at]["category"]["usageType"] = "OnDemand" if usage == "Preemptible" else "Preemptible"


def lost(random: Random, rows: list[Raw], at: int) -> None:
    del rows[at]


def unpriced(random: Random, rows: list[Raw], at: int) -> None:
    rows[at]["pricingInfo"] = []


def in_euros(random: Random, rows: list[Raw], at: int) -> None:
    expression(rows[at])["tieredRates"][0]["unitPrice"]["currencyCode"] = "EUR"


GCP_DAMAGE: tuple[Damage, ...] = (
    worded, twin, free, in_other_unit, on_demand_as_spot, lost, unpriced, in_euros,
)  # fmt: skip


def azure_field(name: str, *values: Any) -> Damage:
    def damage(random: Random, rows: list[Raw], at: int) -> None:
        rows[at] = {**rows[at], name: random.choice(values)}

    return damage


def azure_twin(random: Random, rows: list[Raw], at: int) -> None:
    usd = random.uniform(0.01, 50)
    rows.append({**rows[at], "retailPrice": usd, "unitPrice": usd})


AZURE_DAMAGE: tuple[Damage, ...] = (
    azure_field("retailPrice", 0.0, -1.0, None, "1", 0.001),
    azure_field("unitOfMeasure", "1/Month", "100 Hours", "1 GB", None),
    azure_field("currencyCode", "EUR", "INR", "", None),
    azure_field("type", "Reservation", "DevTestConsumption", None),
    azure_field("skuName", "X Spot", "X", "", "?"),
    azure_field("meterName", "X Spot", "X", "", "X Low Priority"),
    azure_field("productName", "Virtual Machines X Series Windows", "Containers", ""),
    azure_field("armRegionName", "", "nowhere at all", None),
    azure_field("effectiveStartDate", "2030-01-01T00:00:00Z", "soon", ""),
    azure_field("tierMinimumUnits", 10.0, None),
    azure_twin,
    lost,
)
FAULTS = (
    Reply({}, 429),
    Reply({}, 500),
    Reply({}, 503),
    Reply({}, 403),
    Reply(b'{"skus": [{"desc'),
    Reply(b"<html>"),
    Reply({}, cut=1),
    Reply([]),
)


def damaged(random: Random, rows: list[Raw], kinds: tuple[Damage, ...]) -> list[Raw]:
    """A price list with some rows damaged."""
    made = list(rows)
    for at in sorted(random.sample(range(len(rows)), ROWS), reverse=True):
        made[at] = deepcopy(made[at])
        random.choice(kinds)(random, made, at)
    return made


@pytest.mark.slow
def test_six_weeks_of_bad_nights_publish_no_wrong_price_and_no_wrong_age(tmp_path: Path):
    random, store, published, faults = Random(SEED), Store(tmp_path / "store"), 0, 0
    true: dict[tuple[str, ...], float] = {}
    for night in range(NIGHTS + 1):
        now = NOW + timedelta(days=night)
        first = night == 0
        gcp = GCP if first else damaged(random, GCP, GCP_DAMAGE)
        azure = AZURE if first else damaged(random, AZURE, AZURE_DAMAGE)
        with (
            http_server(gcp_skus.pages_of(gcp)) as one,
            http_server(azure_items.server_of(azure)) as other,
        ):
            for server in () if first else (one, other):
                some = random.choices(FAULTS, k=random.choice([0, 0, 1, 2]))
                server.fail(*some)
                faults += ROWS + len(some)
            makers: dict[str, Callable[[], Provider]] = {
                "gcp": lambda server=one: gcp_skus.client(server),  # type: ignore[misc]
                "azure": lambda server=other: azure_items.client(server),  # type: ignore[misc]
            }
            report = refresh(RefreshRequest(store, makers, clock=lambda at=now: at))  # type: ignore[misc]
        published += bool(report.version)
        offers = [o for o in newest_good(store).catalog.offers if o.provider in makers]
        found = {(o.provider, o.instance_type, o.zone or o.region, o.market): o for o in offers}
        true = true or {key: o.usd_per_hour for key, o in found.items()}
        assert len(found) == len(offers)
        wrong = {k: o.usd_per_hour for k, o in found.items() if o.usd_per_hour != true[k]}
        assert wrong == {}, night
        assert all(NOW.date().isoformat() <= o.as_of <= now.date().isoformat() for o in offers)
        kept = {each.provider for each in report.providers if each.result == "kept"}
        assert not any(o.as_of == now.date().isoformat() for o in offers if o.provider in kept)
    assert faults > 1000
    assert published > NIGHTS / 2
    print(f"{faults} faults in {NIGHTS} nights, {published} versions published")
