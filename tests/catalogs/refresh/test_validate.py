"""Each row is believed or quarantined by name; bugs that others shipped, row by row."""

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest

from recommender.catalogs.providers.contract import Fetched
from recommender.catalogs.refresh.draft import usd_per_gpu
from recommender.catalogs.refresh.reference import Reference, Validated
from recommender.catalogs.refresh.validate import validate
from recommender.catalogs.schema import Market, Offer, Source
from tests.shipped import snapshot

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
CATALOG = snapshot()
LAST = [
    replace(offer, as_of="2026-11-20")
    for offer in CATALOG.offers
    if offer.provider == "aws" and offer.kind == "quote"
]


def last(name: str, region: str, market: str) -> Offer:
    """A price of the last good version."""
    return next(o for o in LAST if (o.instance_type, o.region, o.market) == (name, region, market))


P5 = last("p5.48xlarge", "us-east-1", "on_demand")
SPOT = next(o for o in LAST if o.market == "spot" and o.flag == "" and o.region == "us-east-1")


def today(offer: Offer, **changed: Any) -> Offer:
    """The same offer read today."""
    return replace(offer, **({"as_of": "2026-11-21", "source": 1} | changed))


def validated(
    *offers: Offer,
    accept: bool = False,
    markets: frozenset[Market] = frozenset({"on_demand", "spot"}),
    **more: Any,
) -> Validated:
    """What is left of a fetch of AWS."""
    fetched = Fetched(
        provider="aws",
        started=NOW,
        finished=NOW,
        markets=markets,
        offers=offers,
        sources=(Source(1, "price list", "facts", "row", "read nightly"),),
        **more,
    )
    types = {t.instance_type: t for t in CATALOG.instance_types.values() if t.provider == "aws"}
    known = Reference(
        "aws", types, CATALOG.gpus, LAST, usd_per_gpu(CATALOG), date(2026, 11, 21), accept
    )
    return validate(fetched, known)


def rules(found: Validated) -> list[str]:
    """The rules that quarantined something."""
    return [row.rule for row in found.quarantined]


def test_an_honest_fetch_passes_whole() -> None:
    offers = [today(o) for o in LAST if o.usd_per_hour and o.region == "us-east-1"]
    markets = frozenset(offer.market for offer in offers)
    assert markets == {"on_demand", "spot", "reserved_block"}  # Capacity Blocks too
    found = validated(*offers, markets=markets)
    assert found.quarantined == ()
    assert len(found.offers) == len(offers)


@pytest.mark.parametrize(
    ("changed", "rule", "words"),
    [
        ({"usd_per_hour": 0.0}, "price", "not a positive number"),
        ({"usd_per_hour": float("nan")}, "price", "not a positive number"),
        ({"usd_per_hour": "55.04"}, "price", "not a positive number"),
        ({"region": None}, "words", "wrong type"),
        ({"as_of": None}, "words", "wrong type"),
        ({"uncertainty": None}, "words", "wrong type"),
        ({"provider": "gcp"}, "provider", "an offer of gcp"),
        ({"market": "reserved_block"}, "market", "was not read"),
        ({"instance_type": "p9.48xlarge"}, "unknown_type", "no such instance type"),
        ({"region": "us-west-2-lax-1"}, "region", "no region of aws"),
        ({"region": ""}, "region", "no region of aws"),
        ({"zone": "use1-az1"}, "zone", "no zone of us-east-1"),
        ({"as_of": "2026-11-22"}, "date", "dated '2026-11-22'"),
        ({"kind": "guess"}, "words", "kind 'guess'"),
        ({"source": 2}, "words", "source 2"),
        ({"uncertainty": 1.0}, "words", "uncertainty 1.0"),
    ],
)
def test_a_row_that_cannot_be_right_is_quarantined(
    changed: dict[str, Any], rule: str, words: str
) -> None:
    found = validated(today(P5, **changed))
    assert found.offers == ()
    assert rules(found) == [rule]
    assert words in found.quarantined[0].reason


@pytest.mark.parametrize("zone", ["us-east-1a", "use1-atl2-az1", "usw2-wl1-las-wlz1"])
def test_a_spot_price_of_no_zone_id_is_quarantined(zone: str) -> None:
    assert rules(validated(today(SPOT, zone=zone))) == ["zone"]


def test_a_capacity_block_at_zero_next_to_the_price_leaves_the_price() -> None:
    found = validated(today(P5), today(P5, usd_per_hour=0.0))
    assert [o.usd_per_hour for o in found.offers] == [P5.usd_per_hour]
    assert rules(found) == ["price"]


def test_two_prices_for_one_key_drop_both() -> None:
    found = validated(today(P5), today(P5, usd_per_hour=56.0))
    assert found.offers == ()
    assert rules(found) == ["duplicate", "duplicate"]


def test_a_spot_sku_flagged_on_demand_is_seen_by_its_zone() -> None:
    found = validated(today(P5), today(P5, zone="use1-az1", usd_per_hour=45.0))
    assert [o.zone for o in found.offers] == [""]
    assert rules(found) == ["zone"]


def test_on_demand_prices_that_differ_between_zones_are_held_back() -> None:
    fetched = Fetched(
        provider="gcp",
        started=NOW,
        finished=NOW,
        markets=frozenset({"on_demand"}),
        offers=tuple(
            Offer("gcp", "g2-standard-4", "us-central1", f"us-central1-{zone}", "on_demand", usd,
                  "open", "composed", "", 0.0, None, 1, "2026-11-21")
            for zone, usd in (("a", 0.706832), ("b", 0.6))
        ),
        sources=(Source(1, "price list", "facts", "row", "read nightly"),),
    )  # fmt: skip
    types = {t.instance_type: t for t in CATALOG.instance_types.values() if t.provider == "gcp"}
    found = validate(fetched, Reference("gcp", types, CATALOG.gpus, (), {}, date(2026, 11, 21)))
    assert rules(found) == ["zones_differ", "zones_differ"]
    assert found.held == {("g2-standard-4", "us-central1", "", "on_demand")}


def test_the_same_price_twice_is_one_offer() -> None:
    assert len(validated(today(P5), today(P5)).offers) == 1


def test_a_halved_price_is_held_back_and_the_last_one_stays() -> None:
    found = validated(today(P5, usd_per_hour=P5.usd_per_hour * 0.47))
    assert found.offers == ()
    assert rules(found) == ["price_change"]
    assert found.held == {("p5.48xlarge", "us-east-1", "", "on_demand")}


def test_a_sum_that_the_provider_contradicts_keeps_the_last_price() -> None:
    found = validated(today(P5), contradicted=("p5.48xlarge",))
    assert rules(found) == ["composition"]
    assert found.held == {("p5.48xlarge", "us-east-1", "", "on_demand")}


def test_a_person_can_accept_a_price_cut() -> None:
    found = validated(today(P5, usd_per_hour=P5.usd_per_hour * 0.56), accept=True)
    assert len(found.offers) == 1


@pytest.mark.parametrize(("factor", "offered"), [(1.09, 2), (1.11, 0)])
def test_a_change_of_the_whole_family_is_published_with_an_alert_below_a_tenth(
    factor: float, offered: int
) -> None:
    sizes = [P5, last("p5.4xlarge", "us-east-1", "on_demand")]
    found = validated(*(today(o, usd_per_hour=o.usd_per_hour * factor) for o in sizes))
    assert len(found.offers) == offered
    said = "2 on_demand prices moved, by +9.0% to +9.0%"
    assert (said in found.alerts) == bool(offered)
    assert set(rules(found)) == ({"price_change"} if not offered else set())


def test_a_new_region_far_from_the_others_is_quarantined() -> None:
    found = validated(today(P5, region="eu-south-2", usd_per_hour=P5.usd_per_hour * 0.5))
    assert rules(found) == ["region_spread"]


@pytest.mark.parametrize(
    ("share", "rule"),
    [(1.05, "spot_above_on_demand"), (0.01, "spot_share"), (0.0799, "spot_share")],
)
def test_spot_outside_the_usual_share_is_quarantined(share: float, rule: str) -> None:
    listed = last(SPOT.instance_type, SPOT.region, "on_demand").usd_per_hour
    assert rules(validated(today(SPOT, usd_per_hour=share * listed))) == [rule]


@pytest.mark.parametrize("share", [0.9, 1.0])
def test_spot_at_the_on_demand_price_is_no_offer(share: float) -> None:
    listed = last(SPOT.instance_type, SPOT.region, "on_demand").usd_per_hour
    found = validated(today(SPOT, usd_per_hour=share * listed))
    assert (found.offers, found.quarantined) == ((), ())
    assert found.ignored == {"spot at the on-demand price": 1}


def test_spot_at_a_tenth_of_the_list_price_is_flagged_as_the_price_floor() -> None:
    listed = last(SPOT.instance_type, SPOT.region, "on_demand").usd_per_hour
    found = validated(today(SPOT, zone="use1-az9", usd_per_hour=0.1 * listed))
    assert [o.flag for o in found.offers] == ["floor"]


def test_spot_of_a_machine_without_on_demand_price_is_quarantined() -> None:
    unlisted = today(SPOT, region="eu-south-2", zone="eus2-az1")
    if any((o.instance_type, o.region) == (SPOT.instance_type, "eu-south-2") for o in LAST):
        unlisted = replace(unlisted, region="af-south-9", zone="afs9-az1")
    assert rules(validated(unlisted)) == ["no_on_demand"]


def test_a_client_cannot_call_a_machine_spot_only_to_escape_the_guard() -> None:
    escaped = today(SPOT, region="af-south-9", zone="afs9-az1", obtainable="spot_only")
    assert rules(validated(escaped)) == ["no_on_demand"]


def test_a_spot_only_machine_is_measured_by_its_gpu() -> None:
    only = next(t for t in CATALOG.instance_types.values()
                if t.provider == "aws" and t.status == "spot_only")  # fmt: skip
    typical = usd_per_gpu(CATALOG)[only.gpu] * only.gpus
    offer = today(SPOT, instance_type=only.instance_type)
    assert len(validated(replace(offer, usd_per_hour=0.4 * typical)).offers) == 1
    assert rules(validated(replace(offer, usd_per_hour=0.01 * typical))) == ["spot_share"]


def test_a_retired_machine_stays_retired_whatever_the_price_list_says() -> None:
    retired = next(o for o in LAST if CATALOG.type_of(o).status == "retired"
                   and o.market == "on_demand")  # fmt: skip
    found = validated(today(retired, obtainable="open"))
    assert [o.obtainable for o in found.offers] == ["retired"]


def test_a_new_size_of_a_known_gpu_is_taken_and_one_of_an_unknown_gpu_is_not() -> None:
    known = CATALOG.instance_types["aws", "p5.48xlarge"]
    size = replace(known, instance_type="p5.96xlarge", gpus=16)
    strange = replace(known, instance_type="p7.48xlarge", gpu="NVIDIA")
    found = validated(
        today(P5, instance_type="p5.96xlarge", usd_per_hour=110.0),
        today(P5, instance_type="p7.48xlarge", usd_per_hour=110.0),
        types=(size, strange),
    )
    assert [o.instance_type for o in found.offers] == ["p5.96xlarge"]
    assert [t.instance_type for t in found.types] == ["p5.96xlarge"]
    assert rules(found) == ["type", "unknown_type"]
    assert "no facts about its GPU 'NVIDIA'" in found.quarantined[0].reason


@pytest.mark.parametrize(
    "wrong",
    [{"gpus": 0}, {"gpu_memory_mib": 0}, {"vcpus": 0}, {"memory_gib": 0.0}, {"provider": "gcp"}],
)
def test_a_machine_described_wrongly_is_quarantined(wrong: dict[str, Any]) -> None:
    known = CATALOG.instance_types["aws", "p5.48xlarge"]
    machine = replace(known, instance_type="g6f.large", **wrong)
    found = validated(today(P5, instance_type="g6f.large"), types=(machine,))
    assert rules(found) == ["type", "unknown_type"]


def test_every_offer_is_either_kept_quarantined_or_ignored() -> None:
    offers = [today(o) for o in LAST]
    found = validated(*offers)
    total = len(found.offers) + len(found.quarantined) + sum(found.ignored.values())
    assert total == len(offers)
