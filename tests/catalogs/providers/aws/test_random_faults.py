"""Weeks of bad nights of AWS at its full size, read by the real clients."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.providers.aws.provider import Aws
from recommender.catalogs.providers.contract import Fetched, Wanted
from recommender.catalogs.providers.http import Patience
from recommender.catalogs.refresh.run import RefreshRequest, refresh
from recommender.catalogs.store import Store, newest_good
from tests.catalogs.providers.aws import test_prices, test_spot
from tests.catalogs.providers.aws.cloud import NOW, Cloud
from tests.catalogs.providers.aws.full import FullCloud, full_cloud
from tests.catalogs.providers.aws.server import serving
from tests.shipped import snapshot

# Words that a row may hold instead of its own, and answers that a server may give instead.
LISTED = [
    change
    for name, (change, _) in test_prices.REFUSED.items()
    if name not in ("usage type renamed", "of another machine", "of other vCPUs")  # of one machine
]
QUOTED = [change for change, _ in test_spot.REFUSED.values()]
CALLS = (
    "GetProducts", "DescribeAvailabilityZones", "DescribeInstanceTypes",
    "DescribeInstanceTypeOfferings", "DescribeSpotPriceHistory", "DescribeCapacityBlockOfferings",
)  # fmt: skip
BAD = (
    500, "RequestLimitExceeded", "ThrottlingException", "AuthFailure", "ExpiredTokenException",
    "truncate", "drop", lambda good: (200, good[: len(good) // 2]), lambda good: (200, b"<html>"),
)  # fmt: skip
Key = tuple[str, str, str, str]  # machine, region, zone, market


class Late(Aws):
    """A client that believes the night that the test says it is."""

    def __init__(self, cloud: Cloud, now: datetime) -> None:
        super().__init__(cloud.places, Patience(sleep=lambda seconds: None))
        self._now = now

    def fetch(self, wanted: Wanted) -> Fetched:
        return super().fetch(replace(wanted, now=self._now))


class FaultPlan:
    """What AWS really charges each night, and what goes wrong on the way."""

    def __init__(self, cloud: FullCloud, folder: Path) -> None:
        self.cloud, self.store, self.random = cloud, Store(folder), Random(8)
        self.items, self.spot, self.now = deepcopy(cloud.items), deepcopy(cloud.spot), NOW
        self.faults = self.refused = self.lost = 0
        self.true: dict[tuple[Key, str], float] = {
            ((o.instance_type, o.region, o.zone, o.market), o.as_of): o.usd_per_hour
            for o in snapshot().offers
            if o.provider == "aws"
        }

    def night(self, count: int) -> None:
        """A day passes, spot moves by 2 % at most; then so many faults, and a refresh."""
        self.now += timedelta(days=1)
        for quotes in self.spot.values():
            half = len(quotes) // 2  # the second half is of the other Linux product
            for one, twin in zip(quotes[:half], quotes[half:], strict=True):
                usd = float(one["SpotPrice"]) * self.random.uniform(0.98, 1.02)
                one["SpotPrice"] = twin["SpotPrice"] = f"{usd:.6f}"
        self.cloud.items, self.cloud.spot = deepcopy(self.items), deepcopy(self.spot)
        self.cloud.trouble.clear()
        self._remember()
        for _ in range(count):
            self.random.choice((self._wrong_item, self._wrong_quote, self._bad_answer))()
        self.cloud.prices_changed()
        makers: Any = {"aws": lambda: Late(self.cloud, self.now)}
        report = refresh(RefreshRequest(store=self.store, makers=makers, clock=lambda: self.now))
        self.refused += len(report.providers[0].quarantined)
        self.lost += len(report.providers[0].failed)

    def _remember(self) -> None:
        day = self.now.date().isoformat()
        for item in self.items:
            about = item["product"]["attributes"]
            key = (about["instanceType"], about["regionCode"], "", "on_demand")
            usd = test_prices.dimension_of(item)["pricePerUnit"]["USD"]
            self.true[key, day] = float(usd)
        for region, quotes in self.spot.items():
            for quote in quotes:
                key = (quote["InstanceType"], region, quote["AvailabilityZoneId"], "spot")
                self.true[key, day] = float(quote["SpotPrice"])
        self.true[("p5.48xlarge", "us-east-1", "use1-az2", "reserved_block"), day] = 900.48 / 24

    def _wrong_item(self) -> None:
        item = self.random.choice(self.cloud.items)
        self.random.choice(LISTED)(item)
        item["product"]["attributes"]["mutant"] = "yes"
        self.faults += 1

    def _wrong_quote(self) -> None:
        regions = list(self.cloud.spot.values())
        (quotes,) = self.random.choices(regions, [len(each) for each in regions])
        at = self.random.randrange(len(quotes))
        twin = (at + len(quotes) // 2) % len(quotes)  # of the other Linux product
        if self.random.random() < 0.7:
            self.random.choice(QUOTED)(quotes[at])
        else:  # wrong by less than three, by more than prices have moved in five nights
            factor = self.random.choice((0.4, 0.5))
            usd = f"{float(quotes[at].get('SpotPrice') or 1) * factor:.6f}"
            quotes[at]["SpotPrice"] = quotes[twin]["SpotPrice"] = usd
        self.faults += 1

    def _bad_answer(self) -> None:
        action = self.random.choice(CALLS)
        region = "" if action == "GetProducts" else self.random.choice(self.cloud.regions)
        bad = [self.random.choice(BAD)] * self.random.choice((1, 2, 9))
        self.cloud.trouble[action, region] += bad
        self.faults += len(bad)

    def check(self) -> Catalog:
        """Everything that readers get was true on the day that it is dated."""
        found = newest_good(self.store)
        assert found.skipped == ()
        for o in found.catalog.offers:
            if o.provider == "aws":
                key = (o.instance_type, o.region, o.zone, o.market)
                assert self.true.get((key, o.as_of)) == pytest.approx(o.usd_per_hour), o
        return found.catalog


@pytest.fixture
def fault_plan(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[FaultPlan]:
    with serving(full_cloud()) as aws:
        for service in ("EC2", "PRICING"):
            monkeypatch.setenv(f"AWS_ENDPOINT_URL_{service}", aws.url)
        assert isinstance(aws, FullCloud)
        yield FaultPlan(aws, tmp_path)


@pytest.mark.slow
def test_bad_nights_of_aws_publish_no_wrong_price_and_no_wrong_age(fault_plan: FaultPlan) -> None:
    fault_plan.night(0)
    first = fault_plan.check()
    nights = 0
    while fault_plan.faults < 1000:
        fault_plan.night(40)
        fault_plan.check()
        nights += 1
    fault_plan.night(0)
    last = fault_plan.check()
    today = fault_plan.now.date().isoformat()
    assert {o.as_of for o in last.offers if o.provider == "aws"} == {today}
    assert len(last.offers) == len(first.offers)
    assert fault_plan.refused > 100
    assert fault_plan.lost > 50
    print(
        f"{fault_plan.faults} faults in {nights} nights: {fault_plan.refused} rows refused, "
        f"{fault_plan.lost} places not read"
    )
