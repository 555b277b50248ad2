"""Mistakes that other catalogs of Google Cloud and Azure have shipped, one test for each.

Named after where they were: issues and pull requests of gpuhunt, SkyPilot, dstack, infracost,
OpenCost and Vantage, and three catalogs whose published prices were wrong by up to two times.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from recommender.catalogs.refresh.run import RefreshRequest, refresh
from recommender.catalogs.store import Store, newest_good
from tests.catalogs.providers.azure import items as azure_items
from tests.catalogs.providers.gcp.skus import (
    NOW,
    Raw,
    americas,
    client,
    fetch,
    found,
    price_list,
    priced,
    prices,
    rules,
    sku,
    wanted,
)
from tests.catalogs.refresh.clouds import gcp_list, shipped_prices
from tests.catalogs.refresh.servers import Reply
from tests.shipped import snapshot

CENTRAL = "us-central1"
GCP = gcp_list()
SHIPPED = shipped_prices(snapshot(), "gcp")


def published(rows: list[Raw], folder: Path) -> tuple[dict[Any, float], set[str]]:
    """Google's prices after a refresh of these SKUs, and the rules that rows have broken."""
    with price_list(rows) as server:
        makers = {"gcp": lambda: client(server)}
        store = Store(folder / "store")
        (report,) = refresh(RefreshRequest(store=store, makers=makers, clock=lambda: NOW)).providers
    return shipped_prices(newest_good(store).catalog, "gcp"), {q.rule for q in report.quarantined}


def changed(text: str, usd: float) -> list[Raw]:
    """The whole list, with the SKUs whose description begins so at another price."""
    rows: list[Raw] = json.loads(json.dumps(GCP))
    meant = [row for row in rows if row["description"].startswith(text)]
    assert meant
    for row in meant:
        priced(row, usd)
    return rows


def test_gpuhunt_170_part_of_a_gpu_is_no_cpu_machine():
    text = "G4 Instance 1/8 vGPU no lssd running in Americas"
    made = fetch([*americas(), sku(text, 0.56, group="GPU")], "a2-highgpu-1g")
    assert rules(made)["fractional_gpu"] == [text]
    small = azure_items.item("Standard_NV6ads_A10_v5", "eastus", 0.454)
    parts = azure_items.fetch([*azure_items.world(), small])
    assert [u.instance_type for u in parts.unknown_types] == ["Standard_NV6ads_A10_v5"]
    assert "Standard_NV6ads_A10_v5" not in {o.instance_type for o in parts.offers}


def test_skypilot_4652_a_new_gpu_is_neither_dropped_in_silence_nor_guessed():
    text = "Nvidia B300 GPU running in Americas"
    made = fetch([*americas(), sku(text, 20.0)], "a2-highgpu-1g")
    assert rules(made)["unknown_description"] == [text]
    new = azure_items.item("Standard_ND128isr_GB300_v6", "eastus", 120.0)
    (unknown,) = azure_items.fetch([*azure_items.world(), new]).unknown_types
    assert (unknown.instance_type, unknown.gpu) == ("Standard_ND128isr_GB300_v6", "GB300")


def test_gpuhunt_226_one_region_down_does_not_break_the_run():
    made = fetch(americas(regions=["us-east1"]), "a2-highgpu-1g")
    assert {o.region for o in made.offers} == {"us-east1"}
    assert CENTRAL in {place.region for place in made.failed}


@pytest.mark.parametrize("name", ["H100 80GB Mega", "H100 Mega 80GB", "H100 80GB Plus"])
def test_gpuhunt_132_and_infracost_3123_all_names_of_a_renamed_sku_are_known(name: str):
    rows = [*americas(), sku("A3Plus Instance Core running in Americas", 0.0269)]
    rows.append(sku("A3Plus Instance Ram running in Americas", 0.00234, "GiBy.h"))
    rows.append(sku(f"Nvidia {name} GPU running in Americas", 10.344276))
    made = fetch(rows, "a3-megagpu-8g", "a3-highgpu-8g")
    (mega,) = prices(made.offers, "a3-megagpu-8g", "on_demand", CENTRAL)
    # 208 cores, 1,872 GiB, 8 GPUs, 6,000 GiB of disks at 0.08 a month, by hand
    assert mega == pytest.approx(5.5952 + 4.38048 + 82.754208 + 0.657534, abs=1e-5)
    (high,) = prices(made.offers, "a3-highgpu-8g", "on_demand", CENTRAL)
    assert high == pytest.approx(88.49, rel=1e-3)  # the Mega card is not the H100


def test_skypilot_8125_spot_b200_under_the_usage_type_of_on_demand():
    plain = "A4 Nvidia B200 (1 gpu slice) running in Americas"
    rows = [*americas(), sku(plain, 16.11, group="GPU")]
    rows.append(sku(f"Spot Preemptible {plain}", 4.9542, usage="OnDemand", group="GPU"))
    made = fetch(rows, "a4-highgpu-8g")
    assert prices(made.offers, "a4-highgpu-8g", "spot", CENTRAL) == {39.6336}
    assert prices(made.offers, "a4-highgpu-8g", "on_demand", CENTRAL) == {128.88}


def test_gpuhunt_183_a_preview_for_nothing_is_no_price(tmp_path: Path):
    rows = changed("RTX 6000 96GB", 0.0)
    assert not any("g4-" in offer.instance_type for offer in fetch(rows).offers)
    after, broken = published(rows, tmp_path)
    assert "zero_price" in broken
    assert after == SHIPPED  # a well-known price is missing, so nothing is published


def test_skypilot_9156_a_b200_for_a_cent_is_no_price(tmp_path: Path):
    after, broken = published(changed("Spot Preemptible A4", 0.01), tmp_path)
    assert "spot_share" in broken
    found = {key: usd for key, usd in after.items() if key[0] == "a4-highgpu-8g"}
    assert found == {key: usd for key, usd in SHIPPED.items() if key[0] == "a4-highgpu-8g"}


def test_skypilot_9156_a_cent_for_an_on_demand_gpu_keeps_the_last_price(tmp_path: Path):
    after, broken = published(changed("Nvidia L4 GPU running", 0.01), tmp_path)
    assert "price_change" in broken
    machine = ("g2-standard-96", CENTRAL, "on_demand")
    assert after[machine] == SHIPPED[machine]


def test_gpuhunt_195_a_missing_ram_sku_costs_its_machines_and_no_more():
    rows = americas()
    rows.remove(found(rows, "G2 Instance Ram running in Americas"))
    made = fetch(rows, "g2-standard-4", "a2-highgpu-1g")
    assert prices(made.offers, "g2-standard-4", "on_demand", CENTRAL) == set()
    assert prices(made.offers, "a2-highgpu-1g", "on_demand", CENTRAL) == {3.673385}
    reasons = {q.reason for q in made.quarantined if q.rule == "missing_part"}
    assert reasons == {"no price of: G2 ram"}


def test_dstack_1355_local_disks_are_part_of_the_price():
    made = fetch(americas(), "a2-ultragpu-8g")
    (usd,) = prices(made.offers, "a2-ultragpu-8g", "spot", CENTRAL)
    without = 0.4 * (96 * 0.031611 + 1360 * 0.004237 + 8 * 3.927988)
    assert usd - without == pytest.approx(0.4 * 3000 * 0.08 / 730, abs=1e-5)


def test_vantage_and_opencost_2215_a_gpu_machine_without_its_gpu_has_no_price():
    rows = [row for row in americas() if "A100" not in row["description"]]
    made = fetch(rows, "a2-highgpu-1g", "g2-standard-4")
    assert {o.instance_type for o in made.offers} == {"g2-standard-4"}


def test_gpuhunt_176_a4_is_priced_by_its_slices(tmp_path: Path):
    after, _ = published(GCP, tmp_path)
    usd = after["a4-highgpu-8g", CENTRAL, "spot"]
    assert usd == pytest.approx(39.6336)  # 8 slices of 4.9542 on the page of 2026-10


def test_skypilot_1367_a_second_sku_at_another_price_is_not_used():
    rows = americas()
    rows.append(sku("Nvidia L4 GPU running in Americas", 0.7, regions=[CENTRAL, "us-east1"]))
    made = fetch(rows, "g2-standard-4")
    assert prices(made.offers, "g2-standard-4", "on_demand", CENTRAL) == set()
    assert "duplicate" in rules(made)


def test_skypilot_5438_throttling_is_waited_out():
    with price_list(americas()) as server:
        server.fail(*[Reply({}, 429)] * 3)
        made = client(server).fetch(wanted("a2-highgpu-1g"))
    assert made.counters.retries == 3


def test_opencost_3725_a_missing_spot_price_is_not_the_on_demand_price():
    rows = [row for row in americas() if "Preemptible" not in row["description"]]
    made = fetch(rows, "a2-highgpu-1g")
    assert {o.market for o in made.offers} == {"on_demand"}
    usual = azure_items.world()
    rows = [row for row in usual if "Spot" not in row["meterName"]]
    assert {o.market for o in azure_items.fetch(rows).offers} == {"on_demand"}


def test_vantage_964_the_price_of_a_region_wins_over_that_of_a_continent():
    rows = [*americas(), sku("Nvidia L4 GPU running in Iowa", 0.61)]
    made = fetch(rows, "g2-standard-4")
    assert prices(made.offers, "g2-standard-4", "on_demand", CENTRAL) == {0.756784}


def test_an_a100_of_80_gb_is_not_one_of_40():
    rows = [row for row in americas() if "A100 GPU" not in row["description"]]
    made = fetch(rows, "a2-highgpu-1g", "a2-ultragpu-1g")
    assert {o.instance_type for o in made.offers} == {"a2-ultragpu-1g"}


# -------------------------------------------------- three published catalogs that were wrong


def test_wrong_catalog_1_the_discount_of_dws_is_not_the_list_price():
    dws = [
        ("Nvidia H100 80GB GPU attached to DWS Defined Duration VMs running in Americas", 4.2),
        ("Nvidia Tesla A100 80GB GPU attached to DWS Defined Duration VMs in Americas", 1.846),
        ("Reserved Nvidia H100 80GB GPU in Americas in Calendar Mode", 4.84),
    ]
    usual = fetch(americas(), "a3-highgpu-8g", "a2-ultragpu-1g")
    made = fetch([*[sku(*row) for row in dws], *americas()], "a3-highgpu-8g", "a2-ultragpu-1g")
    assert made.offers == usual.offers


def test_wrong_catalog_1_half_the_price_in_every_region_is_held_back(tmp_path: Path):
    after, broken = published(changed("Nvidia H100 80GB GPU running", 4.2), tmp_path)
    assert "price_change" in broken
    machine = ("a3-highgpu-8g", CENTRAL, "on_demand")
    assert after[machine] == SHIPPED[machine] == pytest.approx(88.49, rel=1e-3)


def test_wrong_catalog_1_spot_above_on_demand_is_refused(tmp_path: Path):
    rows = changed("Nvidia L4 GPU attached to Spot", 0.9)
    after, broken = published(rows, tmp_path)
    assert "spot_above_on_demand" in broken
    assert ("g2-standard-4", CENTRAL, "spot") not in after or (
        after["g2-standard-4", CENTRAL, "spot"] == SHIPPED["g2-standard-4", CENTRAL, "spot"]
    )


def test_wrong_catalog_2_a3_has_208_cores_1872_gib_and_its_disks():
    rows = americas()
    (usd,) = prices(fetch(rows, "a3-highgpu-8g").offers, "a3-highgpu-8g", "on_demand", CENTRAL)
    by_hand = 208 * 0.0255 + 1872 * 0.00222 + 8 * 9.79655 + 6000 * 0.08 / 730
    assert usd == pytest.approx(by_hand, abs=1e-6)
    assert usd - (96 * 0.0255 + 768 * 0.00222 + 8 * 9.79655) > 5.9  # what was published


def test_wrong_catalog_3_cores_and_memory_alone_are_not_believed(tmp_path: Path):
    """Where the GPU's own SKU would cost next to nothing, the sum is still refused."""
    after, broken = published(changed("Nvidia Tesla A100 GPU running", 1e-6), tmp_path)
    assert "price_change" in broken
    machine = ("a2-highgpu-8g", CENTRAL, "on_demand")
    assert after[machine] == SHIPPED[machine]
