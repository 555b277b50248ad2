"""The shipped snapshot: complete, plausible, and free of what cannot be rented."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import date

import pytest

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.load import SNAPSHOT, load_snapshot
from recommender.catalogs.provider_info import ANY_REGION
from recommender.catalogs.registry import CLOUDS, OWN_CLIENTS
from recommender.catalogs.schema import BOOKED, InstanceType, Offer
from recommender.catalogs.tables import TABLES
from recommender.catalogs.validation import CANARIES, on_demand_prices, publication_problems

AWS_REGIONS = {"us-east-1", "us-east-2", "us-west-2", "eu-west-1", "eu-central-1", "ap-northeast-1"}
GCP_REGIONS = {"us-central1", "us-east4", "us-west1", "europe-west4", "asia-southeast1"}
AZURE_REGIONS = {"eastus", "westus3", "northeurope", "westeurope", "swedencentral", "southeastasia"}
PLANNED = ("open", "spot_only")
TODAY = date(2026, 11, 29)  # when this snapshot was built: no figure can be newer


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The snapshot as users get it."""
    return load_snapshot()


def gpu_offers(catalog: Catalog) -> Iterator[tuple[Offer, InstanceType]]:
    """All offers of machines with GPUs, with the machine."""
    for offer in catalog.offers:
        machine = catalog.type_of(offer)
        if machine.gpu:
            yield offer, machine


def test_no_guard_complains(catalog: Catalog) -> None:
    assert publication_problems(catalog) == []


def test_the_manifest_lists_every_table_and_its_rows(catalog: Catalog) -> None:
    manifest = json.loads((SNAPSHOT / "manifest.json").read_text())
    assert set(manifest["tables"]) == set(TABLES)
    assert manifest["tables"]["offers"]["rows"] == len(catalog.offers)
    assert sum(entry["offers"] for entry in manifest["prices"]) == len(catalog.offers)
    assert {entry["source"] for entry in manifest["sources"]} == set(catalog.source_by_key)


def test_the_snapshot_holds_the_breadth_of_the_three_clouds(catalog: Catalog) -> None:
    counts = Counter((o.provider, o.market) for o, _ in gpu_offers(catalog))
    # Those of docs/catalog.md.
    assert counts["aws", "on_demand"] == 889
    assert counts["gcp", "on_demand"] == 885
    assert counts["azure", "on_demand"] == 668
    assert counts["gcp", "spot"] == 987
    assert counts["azure", "spot"] == 600
    assert counts["aws", "spot"] > 1300


GPU_CLOUDS = [name for name in CLOUDS if name not in OWN_CLIENTS]


@pytest.mark.parametrize("provider", GPU_CLOUDS)
def test_every_gpu_cloud_has_dated_prices_of_machines_with_gpus(
    catalog: Catalog, provider: str
) -> None:
    mine = [(o, m) for o, m in gpu_offers(catalog) if o.provider == provider]
    assert len(GPU_CLOUDS) >= 9
    assert any(o.obtainable == "open" for o, _ in mine)
    # A marketplace's prices are medians of its hosts, or of one host on an unknown day of 2026.
    hosts = CLOUDS[provider].marketplace
    for offer, machine in mine:
        assert ("2026-01-01" if hosts else "2026-08-01") <= offer.as_of <= "2026-11-20"
        assert offer.kind == "quote"
        assert not hosts or machine.network_basis == "one_host"
        assert machine.network_gbit_per_s or machine.network_basis in ("unknown", "one_host")


def test_a_price_that_holds_anywhere_is_the_only_one_of_its_machine(catalog: Catalog) -> None:
    keys = Counter((o.provider, o.instance_type, o.market) for o in catalog.offers)
    for o in catalog.offers:
        assert o.region != ANY_REGION or keys[o.provider, o.instance_type, o.market] == 1


@pytest.mark.parametrize(
    ("provider", "pattern", "market", "regions"),
    [
        ("aws", r"p5\.4xlarge", "on_demand", r"us-.*"),
        ("aws", r"p6-b300\.48xlarge", "on_demand", r".*"),
        ("gcp", r"a3-highgpu-[124]g|a3-ultragpu-8g.*|a4-.*", "on_demand", r".*"),
        ("azure", r".*GB200.*", "on_demand", r".*"),
        ("crusoe", r"[ha]100-80gb-sxm.*", "on_demand", r".*"),
    ],
)
def test_what_nobody_can_rent_is_in_no_plan(
    catalog: Catalog, provider: str, pattern: str, market: str, regions: str
) -> None:
    for o in catalog.offers:
        if (o.provider, o.market) == (provider, market) and re.fullmatch(pattern, o.instance_type):
            assert o.obtainable not in PLANNED or not re.fullmatch(regions, o.region), o


def test_p6_b300_is_planned_on_spot(catalog: Catalog) -> None:
    held = {o.obtainable for o in catalog.offers if o.instance_type == "p6-b300.48xlarge"
            and o.market == "spot"}  # fmt: skip
    assert held == {"open"}


@pytest.mark.parametrize(("provider", "regions"), [("aws", 30), ("gcp", 34), ("azure", 51)])
def test_all_regions_with_gpus_are_there(catalog: Catalog, provider: str, regions: int) -> None:
    held = {o.region for o, _ in gpu_offers(catalog) if o.provider == provider}
    required = {"aws": AWS_REGIONS, "gcp": GCP_REGIONS, "azure": AZURE_REGIONS}[provider]
    assert len(held) == regions
    assert required <= held


@pytest.mark.parametrize(
    ("provider", "gpus"),
    [
        ("aws", "T4 T4G A10G L4 L40S RTX-PRO-4500 RTX-PRO-6000 V100 V100-32GB K80 M60 A100"),
        ("aws", "A100-80GB H100 H200 B200 B300 Trainium1"),
        ("gcp", "T4 P4 P100 V100 L4 RTX-PRO-6000 A100 A100-80GB H100 H200 B200"),
        ("azure", "T4 A10 M60 V100-PCIe V100-32GB A100 A100-80GB A100-80GB-PCIe H100 H100-NVL"),
        ("azure", "H200 GB200 MI300X"),
    ],
)
def test_all_gpus_of_a_cloud_are_there(catalog: Catalog, provider: str, gpus: str) -> None:
    held = {m.gpu for o, m in gpu_offers(catalog) if o.provider == provider}
    assert set(gpus.split()) <= held


def test_both_markets_are_there_for_every_large_cloud(catalog: Catalog) -> None:
    for provider in OWN_CLIENTS:
        markets = {d.market for d in catalog.price_dates() if d.provider == provider}
        assert {"on_demand", "spot"} == markets - {*BOOKED, "committed"}


def test_cheap_cpu_machines_are_there_for_every_cloud_and_never_spot(catalog: Catalog) -> None:
    cpu = [o for o in catalog.offers if not catalog.type_of(o).gpu]
    assert {o.provider for o in cpu} == {"aws", "gcp", "azure"}
    assert {o.market for o in cpu} == {"on_demand"}


def test_every_canary_is_exact(catalog: Catalog) -> None:
    prices = on_demand_prices(catalog)
    lines = CANARIES.read_text().splitlines()[1:]
    assert len(lines) == 20
    for line in lines:
        provider, name, region, usd = line.split(",")[:4]
        assert prices[provider, name, region] == pytest.approx(float(usd), rel=1e-5), name


def test_a_dead_canary_stops_publication(catalog: Catalog) -> None:
    offers = catalog.offers
    at = next(
        i
        for i, o in enumerate(offers)
        if (o.instance_type, o.region, o.market) == ("p5.48xlarge", "us-east-1", "on_demand")
    )
    prices = offers.usd_per_hour[:]
    prices[at] *= 0.47  # the mistake of a published catalog: a calendar-mode price
    wrong = replace(catalog, offers=replace(offers, usd_per_hour=prices))
    assert any("p5.48xlarge us-east-1" in problem for problem in publication_problems(wrong))


def test_no_offer_is_in_a_local_or_wavelength_zone(catalog: Catalog) -> None:
    for offer in catalog.offers:
        if offer.provider == "aws":
            assert re.fullmatch(r"[a-z]{2}(-[a-z]+)+-\d", offer.region)
            assert re.fullmatch(r"([a-z]+\d-az\d+)?", offer.zone)


def test_google_zones_lie_in_their_regions(catalog: Catalog) -> None:
    for offer in catalog.offers:
        if offer.provider == "gcp" and offer.zone:
            assert re.fullmatch(re.escape(offer.region) + "-[a-f]", offer.zone)


def test_azure_offers_have_no_zone(catalog: Catalog) -> None:
    assert {o.zone for o in catalog.offers if o.provider == "azure"} == {""}


def test_nothing_retired_is_planned_with(catalog: Catalog) -> None:
    for offer, machine in gpu_offers(catalog):
        if machine.status in ("retired", "reservation_only", "on_request", "unknown"):
            assert offer.obtainable not in PLANNED, offer


@pytest.mark.parametrize(
    "pattern", [r"p[23]\..*", r"g3s?\..*", r"Standard_NC\d+r?s_v3", r"Standard_NV\d+s_v3"]
)
def test_retired_families_are_marked(catalog: Catalog, pattern: str) -> None:
    held = {o.obtainable for o in catalog.offers if re.fullmatch(pattern, o.instance_type)}
    assert held == {"retired"}


def test_govcloud_is_never_planned_with(catalog: Catalog) -> None:
    held = {o.obtainable for o in catalog.offers if o.region.startswith("us-gov-")}
    assert held == {"unknown", "retired"}


def test_machines_sold_as_spot_only_have_no_on_demand_offer(catalog: Catalog) -> None:
    spot_only = {
        o.instance_type
        for o in catalog.offers
        if catalog.type_of(o).status == "spot_only" and o.market == "on_demand"
    }
    assert spot_only == set()


def test_no_fraction_of_a_gpu_is_offered(catalog: Catalog) -> None:
    names = {o.instance_type for o in catalog.offers}
    assert not {n for n in names if re.match(r"gr?6f|Standard_NV(6|12|18)ads_A10|.*as_v4", n)}


def test_machines_without_training_speed_are_left_out(catalog: Catalog) -> None:
    names = {o.instance_type for o in catalog.offers}
    assert not {n for n in names if re.match(r"(dl1|dl2q|inf\d|g4ad|g2|vt1)\.|.*(V620|V710)", n)}


def test_arm_and_other_makers_can_be_distinguished(catalog: Catalog) -> None:
    odd = {
        m.family
        for o, m in gpu_offers(catalog)
        if m.arch != "x86_64" or catalog.gpus[m.gpu].vendor != "nvidia"
    }
    # GPU clouds name no families: theirs are GPUs.
    assert odd == {
        *("g5g", "NDGB200v6", "NDMI300Xv5", "trn1", "trn1n"),
        *("GB200", "GB300", "MI300X"),
    }


def test_no_spot_price_is_nine_tenths_of_on_demand(catalog: Catalog) -> None:
    prices = on_demand_prices(catalog)
    for offer in catalog.offers:
        listed = prices.get((offer.provider, offer.instance_type, offer.region))
        if offer.market == "spot" and listed:
            assert offer.usd_per_hour < 0.9 * listed, offer


def test_derived_prices_are_marked_and_state_their_error(catalog: Catalog) -> None:
    for offer in catalog.offers:
        if offer.flag in ("zone_median", "sibling", "advisor"):
            assert (offer.provider, offer.market, offer.kind) == ("aws", "spot", "derived")
        assert (offer.uncertainty > 0) == (offer.kind == "derived"), offer


def test_most_azure_spot_prices_are_at_the_price_floor(catalog: Catalog) -> None:
    flags = Counter(o.flag for o in catalog.offers if o.provider == "azure" and o.market == "spot")
    assert set(flags) == {"floor", ""}
    assert flags["floor"] > flags[""]


def test_aws_quotes_of_one_region_differ_between_zones(catalog: Catalog) -> None:
    quotes = {
        o.zone: o.usd_per_hour
        for o in catalog.offers
        if o.instance_type == "p5.48xlarge" and o.region == "us-east-1" and o.market == "spot"
    }
    assert len(quotes) > 4
    assert len(set(quotes.values())) > 4


def test_interruption_ranges_are_known_where_aws_publishes_them(catalog: Catalog) -> None:
    ranges = {o.interruption_range for o in catalog.offers}
    assert ranges == {None, 0, 1, 2, 3, 4}
    assert all(o.provider == "aws" for o in catalog.offers if o.interruption_range is not None)


def test_every_date_is_a_day_that_has_been(catalog: Catalog) -> None:
    for name in TABLES:
        if name != "sources":
            rows = getattr(catalog, name)
            for row in rows.values() if isinstance(rows, dict) else rows:
                assert date.fromisoformat(row.as_of) <= TODAY, row


def test_every_row_names_a_listed_source(catalog: Catalog) -> None:
    for name in TABLES:
        rows = getattr(catalog, name)
        for row in rows.values() if isinstance(rows, dict) else rows:
            assert row.source in catalog.source_by_key, row


def test_every_source_has_a_licence_and_an_attribution(catalog: Catalog) -> None:
    for source in catalog.sources:
        assert source.licence, source
        assert source.attribution, source
        assert source.taken in ("figure", "fit", "row")


def test_no_rows_come_from_share_alike_sources(catalog: Catalog) -> None:
    assert not [s for s in catalog.sources if "BY-SA" in s.licence and s.taken == "row"]


def test_every_gpu_has_a_speed_at_every_precision_it_has(catalog: Catalog) -> None:
    for gpu in catalog.gpus.values():
        peaks = {
            "fp32": gpu.peak_fp32_tflops,
            "tf32": gpu.peak_tf32_tflops,
            "fp16": gpu.peak_fp16_tflops,
            "bf16": gpu.peak_bf16_tflops,
            "fp8": gpu.peak_fp8_tflops,
        }
        for precision, peak in peaks.items():
            speed = catalog.achieved.get((gpu.gpu, precision))
            assert (speed is None) == (peak is None), (gpu.gpu, precision)
            assert speed is None or speed.tflops < (peak or 0)


@pytest.mark.parametrize("gpu", ["T4", "V100", "V100-32GB", "P100", "T4G", "K80", "M60", "P4"])
def test_old_gpus_have_no_bf16(catalog: Catalog, gpu: str) -> None:
    assert (gpu, "bf16") not in catalog.achieved


@pytest.mark.parametrize(
    ("gpu", "precision", "low", "high"),
    [
        ("T4", "fp16", 39, 47),
        ("V100", "fp16", 95, 112),
        ("V100", "fp32", 13, 15),
        ("A100", "tf32", 106, 130),
        ("A100", "bf16", 224, 272),
        ("H100", "bf16", 730, 795),
        ("H100", "fp8", 1400, 1530),
        ("B200", "bf16", 1740, 1750),
        ("MI300X", "bf16", 660, 670),
    ],
)
def test_measured_speeds_are_the_published_ones(
    catalog: Catalog, gpu: str, precision: str, low: float, high: float
) -> None:
    speed = catalog.achieved[gpu, precision]
    assert speed.kind == "measured"
    assert low <= speed.tflops <= high


def test_an_a10g_is_no_a10(catalog: Catalog) -> None:
    assert catalog.gpus["A10G"].peak_bf16_tflops == 70
    assert catalog.gpus["A10"].peak_bf16_tflops == 125


@pytest.mark.parametrize(
    ("name", "gpu", "gpus", "mib"),
    [
        ("p2.16xlarge", "K80", 16, 12288),
        ("g6.xlarge", "L4", 1, 22888),
        ("p5en.48xlarge", "H200", 8, 144384),
        ("trn2.48xlarge", "Trainium2", 16, 98304),
        ("g5g.metal", "T4G", 2, 16384),
    ],
)
def test_gpus_are_counted_and_sized_as_the_provider_does(
    catalog: Catalog, name: str, gpu: str, gpus: int, mib: int
) -> None:
    machine = catalog.instance_types["aws", name]
    assert (machine.gpu, machine.gpus, machine.gpu_memory_mib) == (gpu, gpus, mib)


@pytest.mark.parametrize(
    ("provider", "name", "gbit"),
    [
        ("aws", "g6e.24xlarge", 200),
        ("aws", "g6e.48xlarge", 400),
        ("aws", "p6-b300.48xlarge", 6400),
        ("aws", "trn2.3xlarge", 200),
        ("aws", "g5.xlarge", 2.5),
        ("gcp", "a3-megagpu-8g", 1600),
        ("azure", "Standard_ND96isr_H100_v5", 3200),
        ("azure", "Standard_ND96is_MI300X_v5", None),
    ],
)
def test_networks_are_sustained_rates_of_whole_machines(
    catalog: Catalog, provider: str, name: str, gbit: float | None
) -> None:
    assert catalog.instance_types[provider, name].network_gbit_per_s == gbit


def test_an_unknown_network_says_so(catalog: Catalog) -> None:
    for machine in catalog.instance_types.values():
        unknown = machine.network_basis in ("unknown", "one_host")
        assert (machine.network_gbit_per_s is None) == unknown


def test_one_gpu_needs_no_link_and_several_have_one(catalog: Catalog) -> None:
    for machine in catalog.instance_types.values():
        assert (machine.intra_kind != "") == (machine.gpus > 1), machine.instance_type


def test_every_machine_draws_on_a_named_quota_in_both_markets(catalog: Catalog) -> None:
    named = {(q.provider, q.quota_family, q.market) for q in catalog.quotas}
    counted = {(rule.provider, rule.market): rule.quota_market for rule in catalog.billing}
    for offer in catalog.offers:
        if offer.provider not in OWN_CLIENTS:
            continue  # GPU clouds publish no quotas
        family = catalog.type_of(offer).quota_family
        market = counted.get((offer.provider, offer.market)) or offer.market
        if market not in ("none", "committed"):
            assert (offer.provider, family, market) in named, offer


def test_new_accounts_may_rent_no_gpu_on_demand(catalog: Catalog) -> None:
    for machine in catalog.instance_types.values():
        if machine.gpu and machine.provider in OWN_CLIENTS:
            key = (machine.provider, machine.quota_family, "on_demand")
            defaults = {
                q.default_new
                for q in catalog.quotas
                if (q.provider, q.quota_family, q.market) == key
            }
            assert defaults == {0.0}, key


def test_gpu_names_in_other_tables_are_known(catalog: Catalog) -> None:
    named = {g for row in catalog.spot_classes for g in row.gpus}
    named |= {g for row in catalog.obtainability for g in row.gpus}
    assert named - {"*"} <= catalog.gpus.keys()
