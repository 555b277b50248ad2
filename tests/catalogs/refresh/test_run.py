"""A refresh renews what can be believed and keeps the rest with its true age."""

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recommender.catalogs.errors import CatalogError, ProviderError, StoreError
from recommender.catalogs.load import load
from recommender.catalogs.providers.contract import Failed, Fetched, Quarantined, Wanted
from recommender.catalogs.refresh.collect import Deadlines
from recommender.catalogs.refresh.report import RefreshReport, facts
from recommender.catalogs.refresh.run import RefreshRequest, refresh
from recommender.catalogs.serialize import write_catalog
from recommender.catalogs.store import Store, newest_good, roll_back, write_lock
from recommender.catalogs.tables import TABLES
from tests.catalogs.refresh.world import MORNING, World, make_published_world, make_world


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A world with one good version of yesterday."""
    return make_published_world(tmp_path)


def result(report: RefreshReport, name: str) -> str:
    return next(each.result for each in report.providers if each.provider == name)


def reasons(report: RefreshReport, name: str) -> str:
    return "; ".join(next(each.reasons for each in report.providers if each.provider == name))


def dates(world: World, provider: str, market: str = "") -> Counter[str]:
    """How many offers of a provider were read on each day."""
    offers = newest_good(world.store).catalog.offers
    return Counter(o.as_of for o in offers if o.provider == provider and market in ("", o.market))


def files(world: World) -> dict[str, bytes]:
    """The offers of each provider in the version that holds, as bytes."""
    folder = world.store.path(world.store.current() or "")
    return {path.name: path.read_bytes() for path in folder.glob("offers-*.csv.gz")}


def test_a_provider_that_fails_keeps_its_file_byte_for_byte(world: World) -> None:
    before = files(world)
    world.errors["gcp"] = ProviderError("gcp", "throttled", "429 after 6 tries")
    report = refresh(world.order())
    assert report.outcome == "partial"
    assert result(report, "gcp") == "kept"
    assert reasons(report, "gcp") == "throttled: 429 after 6 tries"
    after = files(world)
    assert after["offers-gcp.csv.gz"] == before["offers-gcp.csv.gz"]
    assert after["offers-aws.csv.gz"] != before["offers-aws.csv.gz"]


def test_the_age_of_what_was_kept_is_never_reset(world: World) -> None:
    world.errors["gcp"] = ProviderError("gcp", "network", "no route")
    for _ in range(3):
        refresh(world.order())
        world.next_day()
    assert set(dates(world, "gcp")) == {"2026-11-21"}
    assert set(dates(world, "aws")) == {"2026-11-24"}
    fetch_times = world.store.fetch_times(world.store.current() or "")
    gcp = {f.fetched_at for f in fetch_times if f.provider == "gcp"}
    assert gcp == {"2026-11-21T03:00:00Z"}
    assert {f.reason for f in fetch_times if f.provider == "gcp"} == {"network: no route"}


def test_when_all_providers_fail_nothing_is_published(world: World) -> None:
    held = world.store.current()
    for name in ("aws", "gcp", "azure"):
        world.errors[name] = ValueError("bad")
    report = refresh(world.order())
    assert (report.outcome, report.version) == ("nothing", "")
    assert "the client failed (ValueError: bad)" in reasons(report, "aws")
    assert world.store.current() == held
    assert world.store.last_attempt()["outcome"] == "nothing"


def test_a_region_that_is_down_keeps_its_offers_with_their_age(world: World) -> None:
    def down(fetched: Fetched) -> Fetched:
        kept = tuple(o for o in fetched.offers if o.region != "us-east-1")
        return replace(fetched, offers=kept, failed=(Failed("us-east-1", "", "HTTP 503"),))

    world.faults["aws"] = down
    report = refresh(world.order())
    assert (report.outcome, result(report, "aws")) == ("partial", "partial")
    found = newest_good(world.store)
    ages = {(o.region == "us-east-1", o.as_of) for o in found.catalog.offers if o.provider == "aws"}
    assert ages == {(True, "2026-11-21"), (False, "2026-11-22")}
    late = [f for f in world.store.fetch_times(found.name) if f.region == "us-east-1"]
    assert {(f.fetched_at[:10], f.reason) for f in late} == {("2026-11-21", "HTTP 503")}


def test_a_region_lost_in_silence_is_kept_as_one_that_failed(world: World) -> None:
    world.faults["gcp"] = lambda h: replace(
        h, offers=tuple(o for o in h.offers if o.region != "us-central1")
    )
    report = refresh(world.order())
    assert result(report, "gcp") == "partial"
    offers = newest_good(world.store).catalog.offers
    assert "us-central1" in {o.region for o in offers if o.provider == "gcp"}


def test_a_market_that_was_not_read_stays(world: World) -> None:
    world.faults["aws"] = lambda h: replace(
        h,
        markets=frozenset({"on_demand"}),
        offers=tuple(o for o in h.offers if o.market == "on_demand"),
    )
    refresh(world.order())
    assert set(dates(world, "aws", "on_demand")) == {"2026-11-22"}
    assert set(dates(world, "aws", "spot")) == {"2026-11-21"}


def test_an_older_spot_price_above_todays_on_demand_price_goes(world: World) -> None:
    """On-demand fell while spot could not be read: the older quote is no bargain any more."""
    world.faults["aws"] = lambda h: replace(
        h,
        markets=frozenset({"on_demand"}),
        offers=tuple(
            replace(o, usd_per_hour=0.76 * o.usd_per_hour)
            for o in h.offers
            if o.market == "on_demand"
        ),
    )
    report = refresh(world.order("aws", accept=True))
    assert report.problems == ()
    catalog = newest_good(world.store).catalog
    listed = {
        (o.instance_type, o.region): o.usd_per_hour
        for o in catalog.offers
        if (o.provider, o.market) == ("aws", "on_demand")
    }
    assert all(
        o.usd_per_hour < listed.get((o.instance_type, o.region), float("inf"))
        for o in catalog.offers
        if (o.provider, o.market) == ("aws", "spot")
    )


def test_offers_of_providers_that_were_not_refreshed_stay(world: World) -> None:
    before = files(world)
    assert refresh(world.order("azure")).outcome == "published"
    after = files(world)
    assert after["offers-aws.csv.gz"] == before["offers-aws.csv.gz"]
    fetch_times = world.store.fetch_times(world.store.current() or "")
    assert {f.reason for f in fetch_times if f.provider == "aws"} == {"not asked"}


def test_rows_that_break_the_checks_cost_their_provider_only(world: World) -> None:
    def odd(fetched: Fetched) -> Fetched:
        row = Quarantined("aws", None, "", "price")  # type: ignore[arg-type]
        return replace(fetched, quarantined=(row,))

    world.faults["aws"] = odd
    report = refresh(world.order())
    assert [p.result for p in report.providers] == ["kept", "published", "published"]
    assert "please report it" in reasons(report, "aws")
    dates = {o.provider: o.as_of for o in newest_good(world.store).catalog.offers}
    assert dates == {"aws": "2026-11-21", "gcp": "2026-11-22", "azure": "2026-11-22"}


def upgraded(world: World, day: str) -> None:
    """Ship a snapshot of another day, in which all prices are a little higher."""
    base = load(world.base)
    rows = {name: list(getattr(base, name)) for name in TABLES}
    for name in ("instance_types", "gpus", "achieved"):
        rows[name] = list(getattr(base, name).values())
    rows["offers"] = [
        replace(o, as_of=day, usd_per_hour=1.004 * o.usd_per_hour) for o in base.offers
    ]
    write_catalog(world.base, rows)


def test_newer_shipped_prices_replace_those_of_an_unreadable_provider(world: World) -> None:
    """After an upgrade years later: not the prices that the first version happened to ship."""
    world.errors["gcp"] = ProviderError("gcp", "credentials", "none found")
    upgraded(world, "2027-05-01")
    world.now = world.now.replace(year=2027, month=6)
    report = refresh(world.order())
    assert result(report, "gcp") == "kept"
    found = newest_good(world.store)
    dates = {o.provider: o.as_of for o in found.catalog.offers}
    assert dates == {"aws": "2027-06-22", "gcp": "2027-05-01", "azure": "2027-06-22"}
    ages = {f.fetched_at for f in world.store.fetch_times(found.name) if f.provider == "gcp"}
    assert ages == {"2027-05-01T00:00:00Z"}


def test_older_shipped_prices_never_replace_what_was_read(world: World) -> None:
    world.errors["gcp"] = ProviderError("gcp", "server", "HTTP 500")
    upgraded(world, "2026-11-20")
    refresh(world.order())
    offers = newest_good(world.store).catalog.offers
    assert {o.as_of for o in offers if o.provider == "gcp"} == {"2026-11-21"}


def test_a_dry_run_needs_no_lock(world: World) -> None:
    with write_lock(world.store):
        assert refresh(world.order(dry_run=True)).outcome == "published"


def test_a_dry_run_reports_and_writes_nothing(world: World) -> None:
    held, attempt = world.store.current(), world.store.last_attempt()
    report = refresh(world.order(dry_run=True))
    assert (report.outcome, report.version) == ("published", "")
    assert world.store.current() == held
    assert world.store.last_attempt() == attempt


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (lambda h: replace(h, offers=()), "none is believed"),
        (lambda h: replace(h, offers=h.offers[:100]), "in the last refresh"),
        (
            lambda h: replace(
                h, offers=tuple(replace(o, usd_per_hour=o.usd_per_hour * 0.3) for o in h.offers)
            ),
            "are not believed",
        ),
    ],
)
def test_a_fetch_that_trips_a_guard_is_refused_whole(world, fault, words) -> None:  # type: ignore[no-untyped-def]
    before = files(world)
    world.faults["aws"] = fault
    report = refresh(world.order())
    assert result(report, "aws") == "kept"
    assert words in reasons(report, "aws")
    assert files(world)["offers-aws.csv.gz"] == before["offers-aws.csv.gz"]


def test_a_refresh_that_lacks_a_required_gpu_is_refused(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    world.faults["aws"] = lambda h: replace(
        h, offers=tuple(o for o in h.offers if not o.instance_type.startswith("p5.48"))
    )
    assert "no offer with H100" in reasons(refresh(world.order()), "aws")


def test_a_dead_canary_stops_a_provider_until_a_person_updates_it(world: World) -> None:
    """A real cut of a fifth, which a person accepts without a look at the canary."""
    cut = {o: replace(o, usd_per_hour=0.8 * o.usd_per_hour) for o in world.truth["aws"]
           if o.instance_type == "p5.48xlarge" and o.market == "on_demand"}  # fmt: skip
    world.truth["aws"] = [cut.get(o, o) for o in world.truth["aws"]]
    report = refresh(world.order(accept=True))
    assert "p5.48xlarge us-east-1" in reasons(report, "aws")
    assert "says 55.04" in reasons(report, "aws")
    header = "provider,instance_type,region,usd_per_hour,as_of,source\n"
    own = f"{header}aws,p5.48xlarge,us-east-1,{0.8 * 55.04},2026-11-22,read by me\n"
    (world.store.root / "canaries.csv").write_text(own)
    assert result(refresh(world.order(accept=True)), "aws") == "published"


@pytest.mark.parametrize(
    ("provider", "usd", "said"),
    [
        ("aws", "nan", "not a positive number"),
        ("aws", "0", "not a positive number"),
        ("aws", "-1", "not a positive number"),
        ("AWS", "55.04", "none of aws, azure, cloudrift"),
    ],
)
def test_an_unusable_canary_is_refused_before_any_request(
    world: World, provider: str, usd: str, said: str
) -> None:
    """A price that is no number differs from none, so the guard would be off in silence."""
    header = "provider,instance_type,region,usd_per_hour,as_of,source\n"
    row = f"{provider},p5.48xlarge,us-east-1,{usd},2026-11-22,read by me\n"
    (world.store.root / "canaries.csv").write_text(header + row)
    world.errors["aws"] = AssertionError("asked")
    with pytest.raises(CatalogError, match=said):
        refresh(world.order())
    attempt = world.store.last_attempt()  # what `catalog status` tells
    assert attempt["outcome"] == "nothing"
    assert said in attempt["problems"][0]


def test_the_loss_of_most_of_a_provider_cannot_be_accepted(world: World) -> None:
    refresh(world.order())
    world.next_day()
    world.faults["gcp"] = lambda f: replace(f, offers=f.offers[: len(f.offers) // 3])
    report = refresh(world.order(accept=True))
    gcp = next(each for each in report.providers if each.provider == "gcp")
    assert gcp.result == "kept"
    assert [f"{len(world.truth['gcp'])} before" in reason for reason in gcp.reasons].count(
        True
    ) == 1


def test_a_price_held_back_keeps_the_last_one_until_it_is_accepted(world: World) -> None:
    def cut(fetched: Fetched) -> Fetched:
        return replace(
            fetched,
            offers=tuple(
                replace(o, usd_per_hour=0.7 * o.usd_per_hour)
                if o.instance_type == "p4d.24xlarge" and o.region == "eu-west-1"
                and o.market == "on_demand"
                else o
                for o in fetched.offers
            ),
        )  # fmt: skip

    world.faults["aws"] = cut
    report = refresh(world.order())
    assert result(report, "aws") == "partial"
    assert "1 changed prices are held back" in reasons(report, "aws")
    held = _price(world, "p4d.24xlarge", "eu-west-1")
    assert held[1] == "2026-11-21"
    world.next_day()
    report = refresh(world.order(accept=True))
    assert (result(report, "aws"), reasons(report, "aws")) == ("published", "")
    assert _price(world, "p4d.24xlarge", "eu-west-1") == (
        pytest.approx(0.7 * held[0]),
        "2026-11-23",
    )


def _price(world: World, name: str, region: str) -> tuple[float, str]:
    offers = newest_good(world.store).catalog.offers
    return next(
        (o.usd_per_hour, o.as_of)
        for o in offers
        if (o.instance_type, o.region, o.market) == (name, region, "on_demand")
    )


def test_a_client_that_never_answers_is_left_behind(world: World) -> None:
    import threading

    release = threading.Event()

    class Stuck:
        name = "aws"

        def fetch(self, wanted: Wanted) -> Fetched:
            release.wait(30)
            wanted.check_time("aws")
            raise AssertionError("the deadline had passed")

    order = world.order()
    order = replace(order, makers={**order.makers, "aws": Stuck}, deadlines=Deadlines(1, -4.9, 1))
    report = refresh(order)
    release.set()
    assert reasons(report, "aws") == "no answer before the deadline"


def test_a_clock_that_goes_back_publishes_and_says_so(world: World) -> None:
    world.now = MORNING - timedelta(days=30)
    report = refresh(world.order())
    assert report.version
    assert "the clock went back" in report.notes[0]
    assert newest_good(world.store).name == report.version
    assert set(dates(world, "aws")) == {"2026-10-22"}


def test_a_clock_before_the_shipped_prices_is_refused(world: World) -> None:
    world.now = datetime(1970, 1, 1, tzinfo=UTC)
    held = world.store.current()
    with pytest.raises(CatalogError, match="set the clock"):
        refresh(world.order())
    assert world.store.current() == held


def test_a_second_refresh_at_the_same_time_is_refused(world: World) -> None:
    with (
        write_lock(world.store),
        pytest.raises(StoreError, match="try again later"),
        write_lock(world.store, wait_s=0),
    ):
        raise AssertionError("two writers")


def test_a_refresh_after_a_rollback_starts_from_the_version_that_holds(world: World) -> None:
    refresh(world.order())
    roll_back(world.store)
    world.next_day()
    world.errors["gcp"] = ProviderError("gcp", "server", "HTTP 500")
    refresh(world.order())
    assert set(dates(world, "gcp")) == {"2026-11-21"}


def test_the_report_is_kept_with_the_version_and_lists_the_quarantine(world: World) -> None:
    seen = Quarantined("gcp", "SKU 12-34 B300 Core", "no such description", "unknown_description")
    world.faults["gcp"] = lambda h: replace(h, quarantined=(seen,))
    report = refresh(world.order())
    kept = world.store.report(report.version)
    gcp = next(each for each in kept["providers"] if each["provider"] == "gcp")
    assert gcp["rules"] == {"unknown_description": 1}
    assert gcp["quarantined"][0]["what"] == "SKU 12-34 B300 Core"
    assert json.loads(json.dumps(facts(report)))["outcome"] == "published"


def test_what_was_quarantined_before_is_not_new(world: World) -> None:
    def strange(*names: str) -> None:
        rows = tuple(Quarantined("gcp", name, "no such text", "unknown") for name in names)
        world.faults["gcp"] = lambda h: replace(h, quarantined=rows)

    def alerts(report: RefreshReport) -> tuple[str, ...]:
        return next(each.alerts for each in report.providers if each.provider == "gcp")

    strange("SKU 1", "SKU 2")
    assert alerts(refresh(world.order())) == ("2 of 2 quarantined rows are new",)
    assert alerts(refresh(world.order())) == ()
    strange("SKU 1", "SKU 3")
    assert alerts(refresh(world.order())) == ("1 of 2 quarantined rows are new",)


def test_sources_keep_their_numbers_from_night_to_night(world: World) -> None:
    def numbers() -> dict[str, int]:
        sources = newest_good(world.store).catalog.sources
        return {s.name: s.source for s in sources if s.source > 1000}

    first = numbers()
    assert set(first) == {"aws price list", "gcp price list", "azure price list"}
    world.faults["aws"] = lambda h: replace(
        h, sources=(replace(h.sources[0], name="aws bulk files"),)
    )
    refresh(world.order())
    assert numbers() == {
        "gcp price list": first["gcp price list"],
        "azure price list": first["azure price list"],
        "aws bulk files": 1004,
    }


def test_a_new_machine_is_described_in_the_version_as_long_as_it_is_offered(world: World) -> None:
    known = newest_good(world.store).catalog.instance_types["aws", "p5.48xlarge"]
    size = replace(known, instance_type="p5.96xlarge", gpus=16)

    def bigger(fetched: Fetched) -> Fetched:
        offer = next(o for o in fetched.offers if o.instance_type == "p5.48xlarge"
                     and o.region == "us-east-1")  # fmt: skip
        more = replace(offer, instance_type="p5.96xlarge", usd_per_hour=110.0, zone="",
                       market="on_demand")  # fmt: skip
        return replace(fetched, types=(size,), offers=(*fetched.offers, more))

    world.faults["aws"] = bigger
    (report, *_) = refresh(world.order()).providers
    assert any(said.startswith("new machine p5.96xlarge waits: ") for said in report.alerts)
    assert ("aws", "p5.96xlarge") not in newest_good(world.store).catalog.instance_types
    refresh(world.order(accept=True))
    assert ("aws", "p5.96xlarge") in newest_good(world.store).catalog.instance_types
    world.honest_again()
    world.errors["aws"] = ProviderError("aws", "server", "HTTP 500")
    refresh(world.order())
    assert ("aws", "p5.96xlarge") in newest_good(world.store).catalog.instance_types
    world.honest_again()
    refresh(world.order())
    assert ("aws", "p5.96xlarge") not in newest_good(world.store).catalog.instance_types


def test_a_refresh_request_has_defaults(tmp_path: Path) -> None:
    order = RefreshRequest(Store(tmp_path), {})
    assert order.deadlines == Deadlines(30.0, 600.0, 1200.0)
    assert order.clock().tzinfo is UTC
