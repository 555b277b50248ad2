"""From AWS on a socket to a published version, with the guards and the store between."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.providers.aws.provider import Aws
from recommender.catalogs.refresh.report import RefreshReport, facts
from recommender.catalogs.refresh.run import RefreshRequest, refresh
from recommender.catalogs.store import Store, newest_good
from recommender.catalogs.validation import CANARIES
from tests.catalogs.providers.aws.cloud import CANARY, NOW, Cloud, dimension_of, make_cloud
from tests.catalogs.providers.aws.server import serving
from tests.shipped import snapshot

NAME, REGION = "p5.48xlarge", "us-east-1"


@contextmanager
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """Everything that the snapshot lists of AWS outside GovCloud."""
    offers = [o for o in snapshot().offers if (o.provider, o.market) == ("aws", "on_demand")]
    regions = {o.region for o in offers if not o.region.startswith("us-gov-")}
    names = {offer.instance_type for offer in offers}
    with serving(make_cloud(tuple(sorted(names)), tuple(sorted(regions)))) as served:
        served.page = 1000
        for service in ("EC2", "PRICING"):
            monkeypatch.setenv(f"AWS_ENDPOINT_URL_{service}", served.url)
        yield served


def night(cloud: Cloud, folder: Path, **more: Any) -> RefreshReport:
    """One refresh of AWS into a store."""
    order = RefreshRequest(
        store=Store(folder),
        makers={"aws": lambda: Aws(cloud.places)},
        canaries=CANARIES,
        clock=lambda: NOW,
        **more,
    )
    return refresh(order)


def here(catalog: Catalog) -> dict[tuple[str, str, str], float]:
    """The offers of a region."""
    return {
        (o.instance_type, o.zone, o.market): o.usd_per_hour
        for o in catalog.offers
        if o.provider == "aws" and o.region == REGION
    }


def test_nights_good_and_bad(cloud: Cloud, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with world(monkeypatch) as aws:
        first = night(aws, tmp_path)
        (report,) = first.providers
        assert (first.outcome, report.reasons) == ("published", ())
        published = newest_good(Store(tmp_path)).catalog
        prices = {
            (o.instance_type, o.region): o.usd_per_hour
            for o in published.offers
            if (o.provider, o.market) == ("aws", "on_demand")
        }
        assert prices[NAME, REGION] == 55.04

        # A wrong price in a perfect row: the last good one stays, the rest is published.
        dimension_of(aws.item(NAME, REGION))["pricePerUnit"] = {"USD": "16.512"}
        aws.trouble["DescribeSpotPriceHistory", "eu-west-1"] = ["truncate"]
        second = night(aws, tmp_path)
        (report,) = second.providers
        assert report.result == "partial"
        assert [(f.region, f.market) for f in report.failed] == [("eu-west-1", "spot")]
        now = newest_good(Store(tmp_path)).catalog
        assert {
            o.usd_per_hour
            for o in now.offers
            if (o.instance_type, o.region, o.market) == (NAME, REGION, "on_demand")
        } == {55.04}
        assert any(o.region == "eu-west-1" and o.market == "spot" for o in now.offers)

        # Half of all lists is lost in silence: the last good prices stay.
        aws.items = aws.items[::2]
        aws.spot = {region: rows[::2] for region, rows in aws.spot.items()}
        third = night(aws, tmp_path)
        (report,) = third.providers
        assert report.result in ("kept", "partial")
        assert report.failed or report.reasons
        later = newest_good(Store(tmp_path)).catalog
        assert here(later) == here(now)
        said = json.dumps([facts(each) for each in (first, second, third)])
        files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
        assert CANARY not in said
        assert not any(CANARY.encode() in content for content in files)
