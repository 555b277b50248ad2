"""Any order of refresh, failure, partial failure, rollback, damage and reading keeps the rules."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from recommender.catalogs.errors import ProviderError, StoreError
from recommender.catalogs.load import load
from recommender.catalogs.providers.contract import Failed, Fetched
from recommender.catalogs.refresh.run import refresh
from recommender.catalogs.schema import Offer
from recommender.catalogs.store import GENERATIONS, newest_good, roll_back
from tests.catalogs.refresh.world import NAMES, World, make_world

Content = frozenset[tuple[str, str, str, str, str, float, str]]


def content_of(offers: object) -> Content:
    """The offers as readers see them, with their dates."""
    return frozenset(
        (o.provider, o.instance_type, o.region, o.zone, o.market, o.usd_per_hour, o.as_of)
        for o in offers  # type: ignore[attr-defined]
    )


class StoreMachine(RuleBasedStateMachine):
    """A store next to a model of it: what each version holds, and which one readers get."""

    @initialize()
    def start(self) -> None:
        """An empty store: the shipped tables hold."""
        self.folder = Path(tempfile.mkdtemp())
        self.world: World = make_world(self.folder)
        self.kept: dict[str, Content] = {}  # by name, oldest first
        self.first_prices = list(self.world.truth["gcp"])
        self.damaged: set[str] = set()
        self.held: str | None = None

    def teardown(self) -> None:
        """Nothing stays behind."""
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    def readable(self) -> str | None:
        """The version that readers must get."""
        names = sorted(self.kept)
        upto = names[: names.index(self.held) + 1] if self.held else []
        good = [name for name in upto if name not in self.damaged]
        return good[-1] if good else None

    def last(self) -> Content:
        """What a refresh starts from."""
        name = self.readable()
        return self.kept[name] if name else content_of(load(self.world.base).offers)

    @rule(failing=st.sets(st.sampled_from(NAMES)), lost=st.sampled_from([None, *NAMES]))
    def refresh_some(self, failing: set[str], lost: str | None) -> None:
        """A day passes; some providers fail, one may lose a region."""
        world = self.world
        world.next_day()
        world.honest_again()
        for name in failing:
            world.errors[name] = ProviderError(name, "server", "HTTP 500")
        region = ""
        if lost is not None:
            region = sorted({offer.region for offer in world.truth[lost]})[0]
            world.faults[lost] = lambda fetched: without(fetched, region)
        before = self.last()
        report = refresh(world.order())
        assert (report.version == "") == (failing == set(NAMES))
        if not report.version:
            return
        expected = {row for row in before if row[0] in failing}
        expected |= {row for row in before if row[0] == lost and row[2] == region}
        day = world.now.date().isoformat()
        for name in set(NAMES) - failing:
            for o in world.truth[name]:
                if (name, o.region) != (lost, region):
                    expected.add(row_of(o, day))
        self.publish(report.version, frozenset(expected))

    def publish(self, name: str, content: Content) -> None:
        """Write down a new version, and which old ones had to go."""
        self.kept[name] = content
        self.held = name
        names = set(self.world.store.names())
        assert names >= set(sorted(self.kept)[-GENERATIONS:])
        self.kept = {each: self.kept[each] for each in names}

    @rule(cents=st.integers(-2, 2))
    def prices_move(self, cents: int) -> None:
        """Spot prices of GCP are a few percent off their first ones, in half of the regions."""
        regions = sorted({o.region for o in self.first_prices})[::2]
        self.world.truth["gcp"] = [
            replace(o, usd_per_hour=o.usd_per_hour * (1 + cents / 100))
            if o.market == "spot" and o.region in regions
            else o
            for o in self.first_prices
        ]

    @rule()
    def rolled_back(self) -> None:
        """A person goes back by one version."""
        names = sorted(self.kept)
        earlier = names[: names.index(self.held)] if self.held else []
        if not earlier:
            try:
                roll_back(self.world.store)
            except StoreError:
                return
            raise AssertionError("rolled back to nothing")
        if earlier[-1] in self.damaged:
            return
        assert roll_back(self.world.store) == earlier[-1]
        self.held = earlier[-1]

    @rule()
    def a_disk_damages_the_version_that_holds(self) -> None:
        """A file of the newest version is cut short."""
        if self.held and self.held not in self.damaged:
            path = self.world.store.path(self.held) / "offers-aws.csv.gz"
            path.write_bytes(path.read_bytes()[:-10])
            self.damaged.add(self.held)

    @invariant()
    def readers_get_the_newest_good_version(self) -> None:
        """The content is that of the model, to the last digit and date."""
        if not hasattr(self, "world"):
            return
        found = newest_good(self.world.store)
        name = self.readable()
        assert found.name == (name or "")
        if name:
            assert content_of(found.catalog.offers) == self.kept[name]

    @invariant()
    def no_more_versions_are_kept_than_said(self) -> None:
        """The store holds what the model holds."""
        if hasattr(self, "world"):
            assert set(self.world.store.names()) == set(self.kept)


def row_of(offer: Offer, day: str) -> tuple[str, str, str, str, str, float, str]:
    """An offer read on a day, as the model keeps it."""
    place = (offer.provider, offer.instance_type, offer.region, offer.zone, offer.market)
    return (*place, offer.usd_per_hour, day)


def without(fetched: Fetched, region: str) -> Fetched:
    """One region could not be read."""
    kept = tuple(offer for offer in fetched.offers if offer.region != region)
    return replace(fetched, offers=kept, failed=(Failed(region, "", "HTTP 503"),))


TestStore = StoreMachine.TestCase
TestStore.settings = settings(
    max_examples=4,
    stateful_step_count=10,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
