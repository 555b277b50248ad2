"""SKUs changed by mistake: refused by name, never an offer with a wrong price.

Every list is served by a local server and read by the real client.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.catalogs.providers.gcp.price_parts import Sku, read_parts
from tests.catalogs.providers.gcp.skus import (
    Raw,
    americas,
    fetch,
    found,
    in_unit,
    priced,
    prices,
    rules,
    sku,
)

CENTRAL = "us-central1"
MACHINES = ("a2-highgpu-1g", "a2-ultragpu-1g", "g2-standard-4", "a3-highgpu-8g", "a3-highgpu-1g")
CORE, RAM = "A2 Instance Core running in Americas", "A2 Instance Ram running in Americas"
A100 = "Nvidia Tesla A100 GPU running in Americas"
A100_SPOT = "Nvidia Tesla A100 GPU attached to Spot Preemptible VMs running in Americas"
SSD = "SSD backed Local Storage"
TRUTH = fetch(americas(), *MACHINES).offers
TRUE = {(o.instance_type, o.zone, o.market): o.usd_per_hour for o in TRUTH}

Change = Callable[[list[Raw]], None]


def renamed(old: str, new: str) -> Change:
    def change(rows: list[Raw]) -> None:
        found(rows, old)["description"] = new

    return change


def dropped(text: str) -> Change:
    def change(rows: list[Raw]) -> None:
        rows.remove(found(rows, text))

    return change


def costing(text: str, usd: float) -> Change:
    return lambda rows: priced(found(rows, text), usd)


def unit(text: str, other: str) -> Change:
    return lambda rows: in_unit(found(rows, text), other)


def used_as(text: str, usage: str) -> Change:
    def change(rows: list[Raw]) -> None:
        found(rows, text)["category"]["usageType"] = usage

    return change


def twin(text: str, usd: float) -> Change:
    def change(rows: list[Raw]) -> None:
        rows.append(deepcopy(found(rows, text)))
        priced(rows[-1], usd)

    return change


def more(description: str, usd: float, **other: str) -> Change:
    return lambda rows: rows.append(sku(description, usd, regions=[CENTRAL, "us-east1"], **other))


def first_rate(text: str, **fields: object) -> Change:
    def change(rows: list[Raw]) -> None:
        expression = found(rows, text)["pricingInfo"][0]["pricingExpression"]
        expression["tieredRates"][0].update(fields)

    return change


def pricing(text: str, **fields: object) -> Change:
    def change(rows: list[Raw]) -> None:
        found(rows, text)["pricingInfo"][0]["pricingExpression"].update(fields)

    return change


def priced_twice_at_once(text: str) -> Change:
    def change(rows: list[Raw]) -> None:
        row = found(rows, text)
        honest = deepcopy(row["pricingInfo"][0])
        priced(row, 1.05 * float(TRUE["a2-highgpu-1g", "us-central1-a", "on_demand"]))
        row["pricingInfo"].append(honest)

    return change


def without(text: str, *path: str) -> Change:
    def change(rows: list[Raw]) -> None:
        found(rows, text)[path[-1]] = []

    return change


MUTATIONS: dict[str, tuple[Change, str, tuple[str, str]]] = {
    # name: the change, the rule that names it, the offer that must be gone
    "core renamed": (
        renamed(CORE, "A2 Machine Core running in Americas"),
        "unknown_description",
        ("a2-highgpu-1g", "on_demand"),
    ),
    "GPU renamed": (
        renamed(A100, "Nvidia Ampere A100 GPU running in Americas"),
        "unknown_description",
        ("a2-highgpu-1g", "on_demand"),
    ),
    "RAM dropped": (dropped(RAM), "missing_part", ("a2-highgpu-1g", "on_demand")),
    "GPU dropped": (dropped(A100), "missing_part", ("a2-highgpu-1g", "on_demand")),
    "SSD dropped": (dropped(SSD), "missing_part", ("a2-ultragpu-1g", "on_demand")),
    "spot GPU dropped": (dropped(A100_SPOT), "missing_part", ("a2-highgpu-1g", "spot")),
    "GPU for nothing": (costing(A100, 0.0), "zero_price", ("a2-highgpu-1g", "on_demand")),
    "RAM for nothing": (costing(RAM, 0.0), "zero_price", ("a2-highgpu-1g", "on_demand")),
    "negative price": (costing(A100, -2.0), "zero_price", ("a2-highgpu-1g", "on_demand")),
    "RAM per GB": (unit(RAM, "GBy.h"), "unit", ("a2-highgpu-1g", "on_demand")),
    "RAM per MiB": (unit(RAM, "MiBy.h"), "unit", ("a2-highgpu-1g", "on_demand")),
    "RAM per month": (unit(RAM, "GiBy.mo"), "unit", ("a2-highgpu-1g", "on_demand")),
    "core per month": (unit(CORE, "mo"), "unit", ("a2-highgpu-1g", "on_demand")),
    "an hour of a minute": (
        pricing(A100, baseUnitConversionFactor=60),
        "unit",
        ("a2-highgpu-1g", "on_demand"),
    ),
    "an hour in minutes": (pricing(A100, baseUnit="min"), "unit", ("a2-highgpu-1g", "on_demand")),
    "two prices of one moment": (
        priced_twice_at_once(A100),
        "duplicate",
        ("a2-highgpu-1g", "on_demand"),
    ),
    "GPU per month": (unit(A100, "mo"), "unit", ("a2-highgpu-1g", "on_demand")),
    "SSD per hour": (unit(SSD, "GiBy.h"), "unit", ("a2-ultragpu-1g", "on_demand")),
    "SSD per GB": (unit(SSD, "GBy.mo"), "unit", ("a2-ultragpu-1g", "on_demand")),
    "twin at another price": (twin(A100, 1.37), "duplicate", ("a2-highgpu-1g", "on_demand")),
    "spot price flagged on-demand": (
        renamed(A100_SPOT, A100),
        "market",
        ("a2-highgpu-1g", "spot"),
    ),
    "on-demand flagged as spot": (
        used_as(A100, "Preemptible"),
        "market",
        ("a2-highgpu-1g", "on_demand"),
    ),
    "commitment under a plain name": (
        used_as(A100, "Commit1Yr"),
        "missing_part",
        ("a2-highgpu-1g", "on_demand"),
    ),
    "half a GPU": (
        renamed(A100, "Nvidia Tesla A100 1/2 vGPU running in Americas"),
        "fractional_gpu",
        ("a2-highgpu-1g", "on_demand"),
    ),
    "other currency": (
        first_rate(A100, unitPrice={"currencyCode": "EUR", "units": "2", "nanos": 0}),
        "currency",
        ("a2-highgpu-1g", "on_demand"),
    ),
    "cheaper above an amount": (
        first_rate(A100, startUsageAmount=100),
        "tiers",
        ("a2-highgpu-1g", "on_demand"),
    ),
    "no price": (without(A100, "pricingInfo"), "no_price", ("a2-highgpu-1g", "on_demand")),
    "no region": (without(A100, "serviceRegions"), "region", ("a2-highgpu-1g", "on_demand")),
    "no description": (renamed(A100, ""), "unknown_description", ("a2-highgpu-1g", "on_demand")),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_changed_sku_is_refused_by_name_and_its_machine_not_offered(name: str):
    change, rule, (machine, market) = MUTATIONS[name]
    rows = americas()
    change(rows)
    made = fetch(rows, *MACHINES)
    assert rule in rules(made)
    assert prices(made.offers, machine, market, CENTRAL) == set()
    left = {(o.instance_type, o.zone, o.market): o.usd_per_hour for o in made.offers}
    assert left.items() <= TRUE.items()  # every other offer costs what it did
    assert left  # and the rest of the fetch is there


def test_a_spot_price_under_the_usage_type_of_on_demand_is_still_spot():
    rows = americas()
    used_as(A100_SPOT, "OnDemand")(rows)
    left = fetch(rows, *MACHINES).offers
    assert {(o.instance_type, o.zone, o.market): o.usd_per_hour for o in left} == TRUE


HARMLESS: dict[str, Change] = {
    "DWS twin": more("Nvidia Tesla A100 GPU attached to DWS Defined Duration VMs", 1.37),
    "DWS core": more("DWS Defined Duration A2 Instance Core running in Americas", 0.015),
    "calendar mode": more("Reserved Nvidia Tesla A100 GPU in Americas in Calendar Mode", 1.37),
    "calendar mode in a plain name": more(f"{A100} in Calendar Mode", 1.37),
    "flex-start": more("Nvidia Tesla A100 GPU Flex-start running in Americas", 1.37),
    "sole tenancy": more("Nvidia Tesla A100 GPU attached to Sole Tenancy VMs", 3.2),
    "commitment": more(
        "Commitment v1: Nvidia Tesla A100 GPU running in Americas for 1 Year",
        1.9,
        usage="Commit1Yr",
    ),
    "five years": more("Commitment v1: A2 Core in Americas for 5 Years", 0.01, usage="Commit"),
    "custom machine": more("Custom Instance Core running in Americas", 0.03),
    "premium": more("Premium for A2 Instance Core running in Americas", 0.001),
    "virtual workstation": more(
        "Nvidia Tesla T4 Virtual Workstation GPU running in Americas", 0.55
    ),
    "suspended": more("VM state: preserved local SSD in Americas", 0.08, group="LocalSSD"),
    "TPU": more("TpuV5e running in Americas", 1.2, group="TPU"),
    "other series": more("N2D AMD Instance Core running in Americas", 0.0275),
    "same twin": twin(A100, 2.933908),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_no_plain_machine_changes_no_price_and_is_counted(name: str):
    rows = americas()
    HARMLESS[name](rows)
    made = fetch(rows, *MACHINES)
    assert {(o.instance_type, o.zone, o.market): o.usd_per_hour for o in made.offers} == TRUE
    assert made.counters.ignored == (0 if name == "same twin" else 1)


def test_a_price_of_the_dynamic_scheduler_alone_is_not_used():
    rows = americas()
    renamed(A100, "Nvidia Tesla A100 GPU attached to DWS Defined Duration VMs running in Iowa")(
        rows
    )
    made = fetch(rows, *MACHINES)
    assert prices(made.offers, "a2-highgpu-1g", "on_demand", CENTRAL) == set()


def test_all_ram_in_decimal_gigabytes_is_converted():
    rows = americas()
    for row in rows:
        if row["description"].endswith("A2 Instance Ram running in Americas"):
            in_unit(row, "GBy.h")
    (usd,) = prices(fetch(rows, *MACHINES).offers, "a2-highgpu-1g", "on_demand", CENTRAL)
    # 12 cores, 85 GiB of 1.073741824 GB, one A100
    assert usd == pytest.approx(12 * 0.031611 + 85 * 1.073741824 * 0.004237 + 2.933908, abs=1e-6)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (A100_SPOT, A100_SPOT.replace("Spot Preemptible", "Preemptible")),
        (f"Spot Preemptible {CORE}", f"Preemptible {CORE}"),
        ("Nvidia H100 80GB GPU running in Americas", "H100 80GB GPU running in Americas"),
    ],
)
def test_cloud_pricing_api_230_names_of_before_and_after_a_renaming_are_known(old: str, new: str):
    rows = americas()
    renamed(old, new)(rows)
    left = fetch(rows, *MACHINES).offers
    assert {(o.instance_type, o.zone, o.market): o.usd_per_hour for o in left} == TRUE


def test_the_price_of_one_region_wins_over_that_of_many():
    rows = [*americas(), sku("Nvidia Tesla A100 GPU running in Iowa", 3.0)]
    made = fetch(rows, "a2-highgpu-1g")
    assert prices(made.offers, "a2-highgpu-1g", "on_demand", CENTRAL) == {3.739477}
    assert prices(made.offers, "a2-highgpu-1g", "on_demand", "us-east1") == {3.673385}


def test_two_regional_prices_that_differ_are_both_dropped():
    iowa = ["Nvidia Tesla A100 GPU running in Iowa", "Nvidia Tesla A100 GPU running in Council"]
    rows = [*americas(), sku(iowa[0], 3.0), sku(iowa[1], 2.0)]
    made = fetch(rows, "a2-highgpu-1g")
    assert prices(made.offers, "a2-highgpu-1g", "on_demand", CENTRAL) == set()
    assert len(rules(made)["duplicate"]) == 3  # the price for many regions is named as well


def test_a_disk_of_the_family_wins_over_the_disk_of_all():
    rows = [*americas(), sku("A2 Instance Local SSD running in Iowa", 0.16, "GiBy.mo")]
    made = fetch(rows, "a2-ultragpu-1g")
    usual = fetch(americas(), "a2-ultragpu-1g")
    (dearer,) = prices(made.offers, "a2-ultragpu-1g", "on_demand", CENTRAL)
    (plain,) = prices(usual.offers, "a2-ultragpu-1g", "on_demand", CENTRAL)
    assert dearer - plain == pytest.approx(375 * 0.08 / 730, abs=2e-6)


WORDS = ("Reserved", "Calendar", "DWS", "Spot", "Preemptible", "80GB", "Custom", "vGPU", "for", "2")


def read_back(row: Raw) -> Sku:
    """A row as the client reads it."""
    price = row["pricingInfo"][0]["pricingExpression"]
    rate = price["tieredRates"][0]["unitPrice"]
    return Sku(
        description=row["description"],
        group=row["category"]["resourceGroup"],
        usage=row["category"]["usageType"],
        regions=tuple(row["serviceRegions"]),
        unit=price["usageUnit"],
        currency="USD",
        rates=((0.0, int(rate["units"]) + rate["nanos"] / 1e9),),
    )


SKUS = [read_back(row) for row in americas()]
PARTS = read_parts(SKUS).usd


@given(st.integers(0, len(SKUS) - 1), st.integers(0, 12), st.sampled_from(WORDS), st.booleans())
def test_a_word_more_or_another_word_never_makes_another_price(
    number: int, place: int, word: str, instead: bool
):
    words = SKUS[number].description.split()
    words[place : place + instead] = [word]
    rows = [*SKUS]
    rows[number] = replace(rows[number], description=" ".join(words))
    for key, by_region in read_parts(rows).usd.items():
        assert by_region.items() <= PARTS[key].items()
