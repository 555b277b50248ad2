"""Rules that compare with more than last night: creep, mass moves, parts, and what is gone."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from recommender.catalogs.providers.contract import Fetched, PartPrice
from recommender.catalogs.refresh.reference import History, held_key
from recommender.catalogs.refresh.run import refresh
from recommender.catalogs.refresh.validate import validate
from recommender.catalogs.schema import Offer, Source
from recommender.catalogs.store import newest_good
from tests.catalogs.refresh.test_moves import TODAY, changed, night, offers_of, reference_of
from tests.catalogs.refresh.test_validate import NOW
from tests.catalogs.refresh.world import make_published_world

P5 = [o for o in offers_of("aws", "on_demand") if o.instance_type == "p5.48xlarge"][:1]
GCP_SPOT, AZURE_SPOT = offers_of("gcp", "spot"), offers_of("azure", "spot")


def times(offers: list[Offer], factor: float) -> list[Offer]:
    return [replace(o, usd_per_hour=o.usd_per_hour * factor) for o in offers]


def rules(provider: str, now: list[Offer], last: list[Offer], history: History) -> set[str]:
    return {row.rule for row in night(provider, now, last, history=history).quarantined}


@pytest.mark.parametrize(
    ("ago", "rule"),
    [({"week": 0.93}, "creep"), ({"month": 0.93}, "creep"), ({"shipped": 0.79}, "creep"),
     ({"week": 0.97}, ""), ({"month": 1.04}, ""), ({"shipped": 0.9}, ""), ({}, "")],
)  # fmt: skip
def test_small_steps_that_add_up_are_held_back(ago: dict[str, float], rule: str) -> None:
    """Tonight it moves by 4.9 %: too little for the rule of a night."""
    history = History(**{
        name: {held_key(o): o.usd_per_hour * share for o in P5} for name, share in ago.items()
    })  # fmt: skip
    family = [o for o in offers_of("aws", "on_demand") if o.instance_type.startswith("p5.")]
    here = [o for o in family if o.region == P5[0].region]
    assert rules("aws", times(here, 1.049), [], history) == ({rule} if rule else set())


def test_what_stands_still_is_no_creep_whatever_it_was_before() -> None:
    history = History(week={held_key(o): o.usd_per_hour / 2 for o in P5})
    assert rules("aws", P5, [], history) == set()


@pytest.mark.parametrize(("provider", "last"), [("gcp", GCP_SPOT), ("azure", AZURE_SPOT)])
def test_posted_spot_prices_move_once_a_week(provider: str, last: list[Offer]) -> None:
    now = times(last, 1.07)
    moved = History(week={held_key(o): o.usd_per_hour / 1.07 for o in last})
    still = History(week={held_key(o): o.usd_per_hour for o in last})
    assert rules(provider, now, last, moved) == {"spot_again"}
    assert rules(provider, now, last, still) == set()


@pytest.mark.parametrize(
    ("theirs", "days", "held"), [(1.0, 1, True), (1.05, 1, False), (1.0, 8, False)]
)
def test_a_quote_that_leaves_its_family_step_by_step_waits_for_a_week(
    theirs: float, days: int, held: bool
) -> None:
    """5 % last night, 5 % tonight: true quotes do so too, mostly with the others of their family.

    What lasts is believed.
    """
    quotes = [o for o in offers_of("aws", "spot", days) if o.instance_type.startswith("g5.")]
    one, *others = [o for o in quotes if o.region == quotes[0].region]
    assert others
    before = {held_key(o): o.usd_per_hour / theirs for o in others}
    history = History(week={**before, held_key(one): one.usd_per_hour / 1.06})
    found = rules("aws", [*times([one], 1.06), *others], [one, *others], history)
    assert found == ({"spot_creep"} if held else set())


@pytest.mark.parametrize(
    ("factor", "days", "held"), [(1.12, 1, True), (1.12, 8, False), (1.08, 1, False)]
)
def test_a_far_move_in_a_list_too_short_to_show_a_new_one_waits_for_a_week(
    factor: float, days: int, held: bool
) -> None:
    last = offers_of("azure", "spot", days)[:6]
    assert rules("azure", times(last, factor), last, History()) == (
        {"spot_alone"} if held else set()
    )


@pytest.mark.parametrize("factor", [0.4, 0.88, 1.12, 1.6])
def test_google_s_spot_prices_are_held_as_azure_s_when_they_move_alone(factor: float) -> None:
    name = "a3-highgpu-8g"
    family = {o.instance_type for o in GCP_SPOT if o.instance_type.startswith("a3-highgpu")}
    now = [o for o in GCP_SPOT if o.instance_type not in family]
    here = [o for o in GCP_SPOT if o.instance_type in family][:8]
    found = night("gcp", [*now, *times(here, factor)], [*now, *here])
    assert name in family
    assert len(found.held) == len(here)
    assert found.problems == ()


def test_google_s_spot_prices_may_move_far_with_a_new_list() -> None:
    """H100 fell by half in 2025, when two thirds of all spot prices moved."""
    steps = {"a2-highgpu": 0.95, "g2-standard": 1.1, "a2-ultragpu": 0.9}
    now = [
        replace(o, usd_per_hour=o.usd_per_hour * next(
            (f for family, f in steps.items() if o.instance_type.startswith(family)),
            0.6 if o.instance_type == "a3-megagpu-8g" else 1.0))
        for o in GCP_SPOT
    ]  # fmt: skip
    found = night("gcp", now, GCP_SPOT)
    mega = [o for o in found.offers if (o.instance_type, o.market) == ("a3-megagpu-8g", "spot")]
    assert mega
    assert {o.flag for o in mega} == {"jump"}


@pytest.mark.parametrize("share", [2, 3])
def test_prices_in_another_currency_on_a_part_of_the_list_are_not_believed(share: int) -> None:
    last = offers_of("azure", "on_demand")
    now = [replace(o, usd_per_hour=o.usd_per_hour * (0.92 if i % share == 0 else 1))
           for i, o in enumerate(last)]  # fmt: skip
    found = night("azure", now, [])
    assert any("by the same factor, -8.0%" in problem for problem in found.problems)


def test_a_third_of_the_list_that_moves_by_anything_is_not_believed() -> None:
    last = offers_of("aws", "on_demand")
    now = [replace(o, usd_per_hour=o.usd_per_hour * (1.01 + i % 7 / 200 if i % 3 == 0 else 1))
           for i, o in enumerate(last)]  # fmt: skip
    found = night("aws", now, [])
    assert any("prices moved at once" in problem for problem in found.problems)


def test_a_market_of_an_auction_that_moves_at_once_counts_as_not_read() -> None:
    last = offers_of("aws", "spot")
    now = [replace(o, usd_per_hour=o.usd_per_hour * (1 + i % 9 / 100)) for i, o in enumerate(last)]
    found = night("aws", now, last)
    assert ("", "spot") in {(place.region, place.market) for place in found.failed}


def fetched_with_part(usd: float, offers: list[Offer]) -> Fetched:
    part = PartPrice("L4 gpu", "us-central1", "on_demand", usd, ("g2-standard-4",))
    read = tuple(replace(o, as_of=TODAY.isoformat(), source=1, kind="quote") for o in offers)
    found = night("gcp", offers, [])  # an honest one, to be sure of the rest
    assert found.quarantined == ()
    markets = frozenset({"on_demand"})
    return Fetched("gcp", NOW, NOW, markets, read, (SOURCE,), parts=(part,))  # type: ignore[arg-type]


SOURCE = Source(1, "price list", "facts", "row", "read nightly")


@pytest.mark.parametrize(("factor", "held"), [(1.0, 0), (1.05, 0), (1.2, 1)])
def test_a_part_is_checked_before_the_sums_that_contain_it(factor: float, held: int) -> None:
    """The sum here has not moved at all: only its part tells."""
    listed = offers_of("gcp", "on_demand")
    g2 = [o for o in listed if o.instance_type == "g2-standard-4"]
    key = ("L4 gpu", "us-central1", "", "on_demand")
    known = reference_of("gcp", listed, history=History(parts={key: 0.56}))
    found = validate(fetched_with_part(0.56 * factor, g2), known)
    sums = {k for k in found.held if k[0] == "g2-standard-4"}
    assert sums == ({("g2-standard-4", "us-central1", "", "on_demand")} if held else set())


def test_every_offer_that_is_gone_is_named_and_counted() -> None:
    last = offers_of("azure", "on_demand")
    name = "Standard_NC4as_T4_v3"
    gone = [o for o in last if o.instance_type == name]
    found = night("azure", [o for o in last if o.instance_type != name], [])
    assert len(found.gone) == len(gone)
    assert set(found.gone) == {f"{name} {o.region} on_demand" for o in gone}
    assert f"{len(gone)} offers are gone: {len(gone)} {name} on_demand" in found.alerts


def test_creep_is_measured_from_what_a_person_accepted(tmp_path: Path) -> None:
    """Accepted steps are no creep in the nights that follow."""
    world = make_published_world(tmp_path)

    def step(factor: float, accept: bool) -> float:
        world.truth["aws"] = changed(world.truth["aws"], "g5.xlarge", factor, "eu-west-1")
        world.faults["aws"] = lambda f: replace(
            f, offers=tuple(o for o in f.offers if o.market == "on_demand"),
            markets=frozenset({"on_demand"}))  # fmt: skip
        refresh(world.order("aws", accept=accept))
        world.next_day()
        return next(o.usd_per_hour for o in newest_good(world.store).catalog.offers
                    if (o.instance_type, o.region, o.market)
                    == ("g5.xlarge", "eu-west-1", "on_demand"))  # fmt: skip

    first = step(1.0, False)
    assert step(1.04, False) == pytest.approx(1.04 * first)
    world.now += timedelta(days=1)
    assert step(1.09, True) == pytest.approx(1.04 * 1.09 * first)
    assert step(1.04, False) == pytest.approx(1.04 * 1.09 * 1.04 * first)
    assert step(1.09, False) == pytest.approx(1.04 * 1.09 * 1.04 * first)  # from what was accepted
