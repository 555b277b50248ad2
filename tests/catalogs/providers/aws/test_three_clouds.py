"""A night with all three clouds at their full size: real clients, real sockets, one store."""

from pathlib import Path

import pytest

from recommender.catalogs.providers.aws.provider import Aws
from recommender.catalogs.refresh.report import RefreshReport
from recommender.catalogs.refresh.run import RefreshRequest, refresh
from recommender.catalogs.store import Store, newest_good
from tests.catalogs.providers.aws.cloud import Cloud
from tests.catalogs.providers.aws.full import full_cloud
from tests.catalogs.providers.aws.server import serving
from tests.catalogs.providers.azure import items as azure_items
from tests.catalogs.providers.gcp import skus as gcp_skus
from tests.catalogs.providers.gcp.skus import NOW
from tests.catalogs.refresh import clouds
from tests.catalogs.refresh.servers import Reply, Server
from tests.shipped import snapshot


def night(store: Store, aws: Cloud, gcp: Server, azure: Server) -> RefreshReport:
    """One refresh of all three."""
    places = aws.places
    makers = {
        "aws": lambda: Aws(places),
        "gcp": lambda: gcp_skus.client(gcp),
        "azure": lambda: azure_items.client(azure),
    }
    return refresh(RefreshRequest(store=store, makers=makers, clock=lambda: NOW))  # type: ignore[arg-type]


def outcome(report: RefreshReport) -> list[tuple[str, str]]:
    """What became of each provider."""
    return [(each.provider, each.result) for each in report.providers]


@pytest.mark.slow
def test_forty_thousand_rows_of_three_clouds_become_one_version(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = Store(tmp_path)
    skus, items = clouds.gcp_list(), clouds.azure_list()
    skus += clouds.other_skus(18_000 - len(skus), ["us-central1", "europe-west4"])
    items = clouds.azure_list(17_500 - len(items))
    with (
        serving(full_cloud()) as aws,
        gcp_skus.price_list(skus) as gcp,
        azure_items.price_list(items) as azure,
    ):
        for service in ("EC2", "PRICING"):
            monkeypatch.setenv(f"AWS_ENDPOINT_URL_{service}", aws.url)
        first = night(store, aws, gcp, azure)
        assert outcome(first) == [
            ("aws", "published"),
            ("gcp", "published"),
            ("azure", "published"),
        ]
        assert sum(each.counters.raw_rows for each in first.providers) >= 40_000
        assert [each.quarantined for each in first.providers] == [(), (), ()]

        gcp.fail(*[Reply({}, 403)] * 50)  # the next night one cloud is down
        second = night(store, aws, gcp, azure)
        assert outcome(second) == [("aws", "published"), ("gcp", "kept"), ("azure", "published")]

    shipped, now = snapshot().offers, newest_good(store).catalog.offers
    listed = {
        (o.provider, o.instance_type, o.region): o.usd_per_hour
        for o in now
        if o.market == "on_demand"
    }
    for offer in shipped:
        if offer.market == "on_demand":
            key = (offer.provider, offer.instance_type, offer.region)
            assert listed[key] == pytest.approx(offer.usd_per_hour, rel=2e-5)
