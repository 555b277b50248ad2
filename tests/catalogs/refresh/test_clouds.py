"""Refreshes of Google Cloud and Azure from end to end: servers, real clients, guards, store."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recommender.catalogs.providers.contract import Provider
from recommender.catalogs.refresh.report import RefreshReport, facts
from recommender.catalogs.refresh.run import RefreshRequest, refresh
from recommender.catalogs.store import Store, newest_good
from tests.catalogs.providers.azure import items as azure_items
from tests.catalogs.providers.gcp import skus as gcp_skus
from tests.catalogs.providers.gcp.skus import CANARY, NOW
from tests.catalogs.refresh.clouds import azure_list, gcp_list, shipped_prices
from tests.catalogs.refresh.servers import Reply, Server
from tests.recommender.optimize.samples import sampled
from tests.shipped import snapshot

GCP, AZURE = gcp_list(), azure_list()


class Clouds:
    """Both clouds on this machine, and a store."""

    def __init__(self, folder: Path, gcp: Server, azure: Server) -> None:
        self.store = Store(folder)
        self.gcp, self.azure = gcp, azure
        self.said: list[str] = []

    def refresh(self, *names: str) -> RefreshReport:
        made: dict[str, Callable[[], Provider]] = {
            "gcp": lambda: gcp_skus.client(self.gcp),
            "azure": lambda: azure_items.client(self.azure),
        }
        makers = {name: made[name] for name in names or made}
        order = RefreshRequest(
            store=self.store, makers=makers, clock=lambda: NOW, notify=self.said.append
        )
        return refresh(order)

    def prices(self, provider: str) -> dict[tuple[str, str, str], float]:
        return shipped_prices(newest_good(self.store).catalog, provider)


@pytest.fixture
def clouds(tmp_path: Path) -> Any:
    with gcp_skus.price_list(GCP) as gcp, azure_items.price_list(AZURE) as azure:
        yield Clouds(tmp_path / "store", gcp, azure)


def result(report: RefreshReport, provider: str) -> str:
    (found,) = [each for each in report.providers if each.provider == provider]
    return found.result


def test_both_clouds_are_published_at_the_prices_that_they_list(clouds: Clouds):
    report = clouds.refresh()
    assert report.version
    assert [(p.provider, p.result, p.reasons) for p in report.providers] == [
        ("gcp", "published", ()),
        ("azure", "published", ()),
    ]
    assert [row for each in report.providers for row in each.quarantined] == []
    shipped = snapshot()
    for provider in ("gcp", "azure"):
        before, after = shipped_prices(shipped, provider), clouds.prices(provider)
        assert after.keys() == before.keys()
        off = {key: after[key] / before[key] for key in before}
        # Google's larger machines are added up from parts that a small one gave.
        limit = 2e-5 if provider == "gcp" else 1e-9
        assert {key: ratio for key, ratio in off.items() if abs(ratio - 1) > limit} == {}


def test_every_offer_of_google_is_in_a_zone_that_has_the_machine(clouds: Clouds):
    clouds.refresh("gcp")
    found = newest_good(clouds.store).catalog.offers
    now = {(o.instance_type, o.zone or o.region) for o in found if o.provider == "gcp"}
    offers = snapshot().offers
    assert now == {(o.instance_type, o.zone or o.region) for o in offers if o.provider == "gcp"}


@pytest.mark.parametrize("down", sampled(("gcp", "azure"), ("gcp",)))
def test_one_cloud_down_does_not_touch_the_other(clouds: Clouds, down: str):
    clouds.refresh()
    server: Server = getattr(clouds, down)
    server.fail(*[Reply({}, 403)] * 50)
    report = clouds.refresh()
    other = "azure" if down == "gcp" else "gcp"
    assert (result(report, down), result(report, other)) == ("kept", "published")


def test_a_region_that_vanishes_keeps_its_last_good_prices(tmp_path: Path):
    rows = [row for row in GCP if row["serviceRegions"] != ["europe-west4"]]
    with gcp_skus.price_list(GCP) as gcp, azure_items.price_list(AZURE) as azure:
        clouds = Clouds(tmp_path / "store", gcp, azure)
        clouds.refresh("gcp")
        before = clouds.prices("gcp")
    with gcp_skus.price_list(rows) as gcp:
        clouds.gcp = gcp
        report = clouds.refresh("gcp")
    assert result(report, "gcp") == "partial"
    assert [f.region for f in report.providers[0].failed] == ["europe-west4"]
    assert clouds.prices("gcp") == before


def test_half_prices_everywhere_are_not_published(tmp_path: Path):
    """A discount taken for the list price, as in a published catalog of 2026."""
    rows = json.loads(json.dumps(GCP))
    for row in rows:
        if "H100" in row["description"] and "Spot" not in row["description"]:
            gcp_skus.priced(row, 4.2)
    with gcp_skus.price_list(rows) as gcp, azure_items.price_list(AZURE) as azure:
        clouds = Clouds(tmp_path / "store", gcp, azure)
        clouds.refresh("gcp")
        after = clouds.prices("gcp")
    before = shipped_prices(snapshot(), "gcp")
    machine = ("a3-highgpu-8g", "us-central1", "on_demand")
    assert after[machine] == before[machine]


def test_the_key_is_in_no_output_log_report_nor_file(
    clouds: Clouds,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("RECOMMEND_GCP_API_KEY", CANARY)
    caplog.set_level(logging.DEBUG)
    good = clouds.refresh()
    body = {"error": {"message": f"bad key {CANARY}", "details": [{"key": CANARY}]}}
    clouds.gcp.fail(*[Reply(body, 400)] * 9)
    refused = clouds.refresh()
    clouds.gcp.instead.clear()
    clouds.gcp.fail(*[Reply(CANARY.encode())] * 9)
    garbled = clouds.refresh()
    assert [result(r, "gcp") for r in (good, refused, garbled)] == ["published", "kept", "kept"]
    assert any(asked.headers.get("x-goog-api-key") == CANARY for asked in clouds.gcp.asked)
    reports = [json.dumps(facts(report)) for report in (good, refused, garbled)]
    shown = [caplog.text, *capfd.readouterr(), *clouds.said, *reports, repr([good, refused])]
    shown += [f"{a.path}?{a.query}" for s in (clouds.gcp, clouds.azure) for a in s.asked]
    files = [path for path in clouds.store.root.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert not any(CANARY in text for text in shown)
    assert not any(CANARY.encode() in path.read_bytes() for path in files)
