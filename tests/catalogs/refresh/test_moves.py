"""Prices next to the other sizes of their family, and spot prices next to those of last night."""

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pytest

from recommender.catalogs.providers.contract import Fetched, Quarantined
from recommender.catalogs.refresh.draft import usd_per_gpu
from recommender.catalogs.refresh.price_table import add_history, add_sizes, price_table
from recommender.catalogs.refresh.reference import History, Reference, Validated
from recommender.catalogs.refresh.rules import allowed_factor
from recommender.catalogs.refresh.run import refresh
from recommender.catalogs.refresh.validate import validate
from recommender.catalogs.schema import Offer, Source
from recommender.catalogs.store import newest_good
from tests.catalogs.refresh.test_validate import NOW
from tests.catalogs.refresh.world import World, make_world
from tests.shipped import snapshot

CATALOG = snapshot()
TODAY = NOW.date()


def offers_of(provider: str, market: str, days: int = 1) -> list[Offer]:
    """What the last good version held, read some days ago."""
    read = (TODAY - timedelta(days=days)).isoformat()
    return [
        replace(o, as_of=read)
        for o in CATALOG.offers
        if (o.provider, o.market) == (provider, market) and o.kind != "derived"
    ]


def reference_of(provider: str, last: list[Offer], **more: Any) -> Reference:
    """What offers read today are measured by."""
    types = {t.instance_type: t for t in CATALOG.instance_types.values() if t.provider == provider}
    typical = usd_per_gpu(CATALOG)
    return Reference(provider, types, CATALOG.gpus, last, typical, TODAY, **more)


def night(
    provider: str,
    now: list[Offer],
    last: list[Offer],
    accept: bool = False,
    history: History | None = None,
    **more: Any,
) -> Validated:
    """What is believed of offers read today."""
    read = tuple(replace(o, as_of=TODAY.isoformat(), source=1, flag="") for o in now)
    sources = (Source(1, "price list", "facts", "row", "read nightly"),)
    markets = frozenset(o.market for o in now)
    fetched = Fetched(provider, NOW, NOW, markets, read, sources, **more)
    before = [*offers_of(provider, "on_demand"), *last]
    return validate(
        fetched, reference_of(provider, before, accept=accept, history=history or History())
    )


def changed(offers: list[Offer], name: str, factor: float, region: str = "") -> list[Offer]:
    """The same offers, a machine's price multiplied in a region or everywhere."""
    return [
        replace(o, usd_per_hour=o.usd_per_hour * factor)
        if o.instance_type == name and region in ("", o.region)
        else o
        for o in offers
    ]


@pytest.mark.parametrize("provider", ["aws", "gcp", "azure"])
@pytest.mark.parametrize("market", ["on_demand", "spot"])
def test_sizes_of_every_family_are_in_proportion_in_the_shipped_catalog(
    provider: str, market: str
) -> None:
    known = reference_of(provider, [])
    table = price_table(offers_of(provider, market), (), known.types)
    add_history(table, known)
    add_sizes(table, market, known, 0.05)
    gpus = table[table["gpu"] != ""]
    off = 2 * gpus["odd_sizes"] > gpus["sizes"]
    if (provider, market) == ("aws", "spot"):
        assert off.mean() > 0.3  # so they are no rule there
        return
    assert not off.any()
    if market == "on_demand":
        assert not (gpus["most"] > 3.5 * gpus["least"]).any()


@pytest.mark.parametrize(
    ("provider", "market", "name", "region"),
    [
        ("aws", "on_demand", "g5.12xlarge", "us-east-1"),
        ("aws", "on_demand", "g5.48xlarge", ""),  # in all regions: the other sizes stand still
        ("gcp", "on_demand", "g2-standard-24", "us-central1"),
        ("azure", "on_demand", "Standard_NC16as_T4_v3", "westeurope"),
        ("gcp", "spot", "a2-highgpu-2g", "us-central1"),
        ("azure", "spot", "Standard_NC16as_T4_v3", "westeurope"),
    ],
)
@pytest.mark.parametrize("larger", [False, True])
def test_one_size_that_leaves_its_family_keeps_the_last_price(
    provider: str, market: str, name: str, region: str, larger: bool
) -> None:
    """By less than any other rule would hold back."""
    last = offers_of(provider, market)
    factor = {"on_demand": (0.92, 1.08), "spot": (0.85, 1.2)}[market][larger]
    found = night(provider, changed(last, name, factor, region), last)
    touched = [o for o in last if o.instance_type == name and region in ("", o.region)]
    assert touched
    assert {row.rule for row in found.quarantined} == {"family"}
    assert len(found.held) == len({(o.region, o.zone if market == "spot" else "") for o in touched})
    assert name not in {o.instance_type for o in found.offers if region in ("", o.region)}


@pytest.mark.parametrize(("provider", "market"), [("aws", "on_demand"), ("azure", "spot")])
def test_a_family_that_moves_as_one_is_believed(provider: str, market: str) -> None:
    last = offers_of(provider, market)
    now = [replace(o, usd_per_hour=o.usd_per_hour * 1.09) for o in last]
    assert night(provider, now, last).quarantined == ()


def test_a_person_can_accept_new_proportions() -> None:
    last = offers_of("aws", "on_demand")
    now = changed(last, "p5.48xlarge", 0.85)
    assert night("aws", now, last, accept=True).quarantined == ()


def test_eight_gpus_read_as_one_are_noticed_even_in_an_unknown_family() -> None:
    """A new region, a new size: no last price, no proportion, but USD per GPU."""
    p5 = next(o for o in offers_of("aws", "on_demand") if o.instance_type == "p5.48xlarge")
    small = replace(p5, instance_type="p5.4xlarge", usd_per_hour=p5.usd_per_hour * 0.6)
    both = [replace(o, region="eu-south-9", usd_per_hour=o.usd_per_hour) for o in (p5, small)]
    last: list[Offer] = []
    found = night("aws", both, last)
    assert {row.rule for row in found.quarantined} <= {"region_spread", "family", "per_gpu"}
    assert found.offers == ()
    known = reference_of("aws", [])
    table = price_table(both, (), known.types)
    add_sizes(table, "on_demand", known, 0.05)
    assert (table["most"] > 3.5 * table["least"]).all()  # as no other rule could tell


AWS_SPOT = offers_of("aws", "spot")
# A quote in the middle of the usual shares, so that no other guard sees a factor of two.
QUOTE = next(o for o in AWS_SPOT if o.instance_type == "g4dn.12xlarge" and o.flag == "")


@pytest.mark.parametrize("factor", [0.55, 1.3, 1.9])
def test_a_spot_price_of_aws_that_moves_farther_than_any_has_in_a_night_is_held(
    factor: float,
) -> None:
    found = night("aws", [replace(QUOTE, usd_per_hour=QUOTE.usd_per_hour * factor)], [QUOTE])
    assert [row.rule for row in found.quarantined] == ["spot_move"]
    assert found.held == {(QUOTE.instance_type, QUOTE.region, QUOTE.zone, "spot")}
    assert "1 prices are held back: 1 spot_move" in found.alerts


@pytest.mark.parametrize(
    ("days", "factor", "flag"),
    [(1, 1.2, ""), (4, 1.7, "jump"), (9, 2.0, "jump"), (31, 2.0, "jump")],
)
def test_a_move_that_lasts_is_believed_and_flagged(days: int, factor: float, flag: str) -> None:
    last = replace(QUOTE, as_of=(TODAY - timedelta(days=days)).isoformat())
    found = night("aws", [replace(QUOTE, usd_per_hour=QUOTE.usd_per_hour * factor)], [last])
    assert [o.flag for o in found.offers] == [flag]


@pytest.mark.parametrize(("rule", "stays"), [("price", True), ("not_offered", False)])
def test_a_damaged_quote_does_not_make_a_zone_forget_its_price(rule: str, stays: bool) -> None:
    what = f"{QUOTE.instance_type} {QUOTE.zone} spot ({QUOTE.region})"
    found = night("aws", [], [QUOTE], quarantined=(Quarantined("aws", what, "'n/a'", rule),))
    key = (QUOTE.instance_type, QUOTE.region, QUOTE.zone, "spot")
    assert (key in found.held) == stays


def test_the_room_grows_with_age_and_holds_all_that_was_measured() -> None:
    farthest = pd.Series({1: 1.216, 2: 1.351, 3: 1.534, 4: 1.705, 5: 1.894, 6: 2.105, 7: 2.339})
    assert (allowed_factor(pd.Series(farthest.index, farthest.index)) > farthest).all()
    days = allowed_factor(pd.Series(range(40)))
    assert days.is_monotonic_increasing
    assert (days.iloc[0], days.iloc[-1]) == (1.25, 3.0)


def test_a_quote_of_before_the_clock_went_back_has_the_room_of_a_night() -> None:
    ahead = replace(QUOTE, as_of=date(2027, 1, 1).isoformat())
    found = night("aws", [replace(QUOTE, usd_per_hour=QUOTE.usd_per_hour * 1.9)], [ahead])
    assert [row.rule for row in found.quarantined] == ["spot_move"]


def test_spot_wrong_by_less_than_three_for_a_night_is_never_published(tmp_path: Path) -> None:
    """Six nights, each with some quotes of AWS wrong by a factor of 1.3 to 2.9."""
    world, random = make_world(tmp_path), Random(5)
    true = {o.zone + o.instance_type: o.usd_per_hour for o in world.truth["aws"]}
    listed = {
        (o.instance_type, o.region): o.usd_per_hour
        for o in world.truth["aws"]
        if o.market == "on_demand"
    }

    def wrong(offer: Offer) -> Offer:
        usd, factor = offer.usd_per_hour, random.uniform(1.3, 2.9)
        capped = usd * factor > 0.89 * listed[offer.instance_type, offer.region]  # no spot offer
        return replace(offer, usd_per_hour=usd / factor if capped else usd * factor)

    def fault(fetched: Fetched) -> Fetched:
        offers = (
            wrong(o) if o.market == "spot" and random.random() < 0.02 else o for o in fetched.offers
        )
        return replace(fetched, offers=tuple(offers))

    refresh(world.order("aws"))
    for _ in range(6):
        world.next_day()
        world.faults["aws"] = fault
        refresh(world.order("aws"))
        for offer in newest_good(world.store).catalog.offers:
            if (offer.provider, offer.market) == ("aws", "spot"):
                assert offer.usd_per_hour == true[offer.zone + offer.instance_type]


def test_a_spot_price_held_back_stays_with_its_age(tmp_path: Path) -> None:
    world: World = make_world(tmp_path)
    refresh(world.order("aws"))
    before = world.now.date().isoformat()
    spot = next(o for o in world.truth["aws"] if o.market == "spot" and o.flag == "")
    key = (spot.instance_type, spot.zone)
    world.next_day()
    world.truth["aws"] = [
        replace(o, usd_per_hour=o.usd_per_hour * 1.4) if o is spot else o
        for o in world.truth["aws"]
    ]
    report = refresh(world.order("aws"))
    assert report.outcome == "published"  # no review is needed: a move that lasts is believed
    assert "1 prices are held back: 1 spot_move" in report.providers[0].alerts
    found = {
        (o.instance_type, o.zone): o
        for o in newest_good(world.store).catalog.offers
        if o.market == "spot"
    }
    assert (found[key].usd_per_hour, found[key].as_of) == (spot.usd_per_hour, before)
    for _ in range(3):  # it lasts
        world.next_day()
        refresh(world.order("aws"))
    found = {
        (o.instance_type, o.zone): o
        for o in newest_good(world.store).catalog.offers
        if o.market == "spot"
    }
    assert found[key].usd_per_hour == pytest.approx(1.4 * spot.usd_per_hour)
