"""Hundreds of injected faults: no wrong price is published, no good version lost, ages true."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from recommender.catalogs.errors import ProviderError, StoreError
from recommender.catalogs.load import load
from recommender.catalogs.refresh.run import refresh
from recommender.catalogs.schema import Offer
from recommender.catalogs.store import GENERATIONS, NIGHTS, newest_good, write_lock
from tests.catalogs.refresh.false_data import FAULTS
from tests.catalogs.refresh.world import NAMES, make_published_world, make_world
from tests.recommender.optimize.samples import sampled

STEPS = ("clean", "folder", "file manifest.json", "synced", "read back", "pointer", "rename",
         "swap", "published", "prune")  # fmt: skip
Key = tuple[str, str, str, str, str]


class Stopped(BaseException):
    """The program ends here."""


def key(offer: Offer) -> Key:
    return offer.provider, offer.instance_type, offer.region, offer.zone, offer.market


class Harasser:
    """A world that changes every day, clients that fail, and what was ever true."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.world = make_world(folder)
        self.random = Random(seed)
        self.true: dict[tuple[Key, str], float] = {
            (key(o), o.as_of): o.usd_per_hour for o in load(self.world.base).offers
        }
        self.faults = 0
        self.drift: dict[str, float] = {}  # of a day, by region
        self.published: list[str] = []

    def new_day(self) -> None:
        """Spot prices drift: those of AWS each by itself, those of GCP by region."""
        world, random = self.world, self.random
        world.next_day()
        self.drift = {o.region: random.uniform(0.99, 1.01) for o in world.truth["gcp"]}
        for name in NAMES:
            world.truth[name] = [self._drifted(offer) for offer in world.truth[name]]
            for offer in world.truth[name]:
                self.true[key(offer), world.now.date().isoformat()] = offer.usd_per_hour
        world.honest_again()
        random.shuffle(world.truth["aws"])

    def _drifted(self, offer: Offer) -> Offer:
        if offer.market != "spot" or offer.provider == "azure":
            return offer
        factor = self.random.uniform(0.99, 1.01)
        if offer.provider == "gcp":
            factor = self.drift[offer.region]
        return replace(offer, usd_per_hour=offer.usd_per_hour * factor)

    def inject(self, name: str) -> None:
        """Put a fault into a client."""
        self.faults += 1
        fault = self.random.choice([*FAULTS, "expired token", "crash of the client"])
        if fault == "expired token":
            self.world.errors[name] = ProviderError(name, "credentials", "the token has expired")
        elif fault == "crash of the client":
            self.world.errors[name] = KeyError("pricingInfo")
        else:
            self.world.faults[name] = FAULTS[fault](self.random)

    def run(self) -> None:
        """One refresh; one in six is stopped, or finds the store in use."""
        world = self.world
        held = world.store.current()
        step = self.random.choice([None] * 5 + [self.random.choice(STEPS)])
        if self.random.random() < 0.05:
            self.faults += 1
            with (
                write_lock(world.store),
                pytest.raises(StoreError, match="another refresh"),
                write_lock(world.store, wait_s=0),
            ):
                raise AssertionError("two writers at once")
        if step is None:
            report = refresh(world.order())
            assert not report.problems
            assert len(world.store.names()) <= GENERATIONS + NIGHTS
            assert (report.version == "") == (report.outcome == "nothing")
            return
        self.faults += 1

        def stop(at: str) -> None:
            if at == step:
                raise Stopped

        try:
            refresh(world.order(at=stop))
        except Stopped:
            after = world.store.current()
            assert (after != held) == (step in ("published", "prune"))

    def check(self) -> None:
        """What readers now get is true, and no version that could be read is damaged."""
        store = self.world.store
        found = newest_good(store)
        assert found.skipped == ()
        if not found.name:
            return
        if not self.published or found.name != self.published[-1]:
            self.published.append(found.name)
        assert self.published[-1] in store.names()
        for offer in found.catalog.offers:
            truth = self.true.get((key(offer), offer.as_of))
            assert truth == offer.usd_per_hour, f"{offer}: true was {truth}"
        today = self.world.now.date().isoformat()
        for f in store.fetch_times(found.name):
            assert f.fetched_at[:10] <= today
            newest = max(
                (o.as_of for o in found.catalog.offers
                 if (o.provider, o.market) == (f.provider, f.market)
                 and f.region in ("", o.region)),
                default="",
            )  # fmt: skip
            assert newest <= today


def survive(folder: Path, faults: int, seed: int) -> Harasser:
    tester = Harasser(folder, seed)
    while tester.faults < faults:
        tester.new_day()
        for name in tester.random.sample(NAMES, tester.random.choice((1, 2, 3, 3))):
            tester.inject(name)
        tester.run()
        tester.check()
    tester.new_day()
    assert refresh(tester.world.order()).outcome == "published"
    tester.check()
    return tester


def test_some_faults_do_no_harm(tmp_path: Path) -> None:
    assert survive(tmp_path, 15, seed=1).faults >= 15


@pytest.mark.slow
def test_a_thousand_faults_do_no_harm(tmp_path: Path) -> None:
    tester = survive(tmp_path, 1000, seed=2)
    assert tester.faults >= 1000
    assert len(tester.published) > 100


EVERYWHERE = [(fault, name) for fault in FAULTS for name in NAMES]
SOMEWHERE = {(fault, NAMES[number % 3]) for number, fault in enumerate(FAULTS)}


@pytest.mark.parametrize("case", sampled(EVERYWHERE, SOMEWHERE), ids=" of ".join)
def test_each_fault_is_refused_or_quarantined_by_name(
    tmp_path: Path, case: tuple[str, str]
) -> None:
    (fault, name), world = case, make_published_world(tmp_path)
    world.faults[name] = FAULTS[fault](Random(fault))
    (each,) = refresh(world.order(name)).providers
    named = [*each.quarantined, *each.failed, *each.alerts, *each.reasons, *(each.ignored or {})]
    assert named, f"{name} took {fault} for good"
