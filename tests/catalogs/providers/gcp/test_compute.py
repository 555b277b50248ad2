"""Zones, shapes and spot history from Compute Engine, by HTTP on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import pytest

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.providers.contract import Fetched
from recommender.catalogs.providers.gcp.client import Settings
from tests.catalogs.providers.gcp.skus import americas, client, pages_of, prices, rules, wanted
from tests.catalogs.refresh.servers import Asked, Reply, Server, http_server

CENTRAL = "us-central1"
NAMES = ("a2-highgpu-1g", "a2-ultragpu-1g", "n1-standard-8+1xT4", "e2-standard-4")
TOKEN = "ya29.canary-token-J4kQ"


def machine(name: str, vcpus: int, gib: float, gpu: str = "", gpus: int = 0, disks: int = 0) -> Any:
    row: dict[str, Any] = {"name": name, "guestCpus": vcpus, "memoryMb": int(gib * 1024)}
    if gpu:
        row["accelerators"] = [{"guestAcceleratorType": gpu, "guestAcceleratorCount": gpus}]
    if disks:
        row["bundledLocalSsds"] = {"partitionCount": disks}
    return row


ZONES: dict[str, Any] = {
    "us-central1-a": [
        machine("a2-highgpu-1g", 12, 85, "nvidia-tesla-a100", 1),
        machine("n1-standard-8", 8, 30),
        machine("e2-standard-4", 4, 16),
        machine("a5-newgpu-1g", 16, 128, "nvidia-x900", 1),
    ],
    "us-central1-q": [
        machine("a2-ultragpu-1g", 12, 170, "nvidia-a100-80gb", 1, 1),
        machine("n1-standard-8", 8, 30),
    ],
    "us-east1-b": [
        {**machine("a2-highgpu-1g", 12, 85, "nvidia-tesla-a100", 1), "deprecated": {}},
        {**machine("e2-standard-4", 4, 16), "deprecated": {"state": "OBSOLETE"}},
    ],
}
CARDS = {"us-central1-a": [{"name": "nvidia-tesla-t4", "maximumCardsPerInstance": 4}]}


class Cloud:
    """Google Cloud with a project."""

    def __init__(self) -> None:
        self.zones = deepcopy(ZONES)
        self.unreachable: list[str] = []
        self.history: dict[str, Any] = {}
        self.list_skus = pages_of(americas())

    def answer(self, asked: Asked) -> Reply:
        if asked.path.endswith("/skus"):
            return self.list_skus(asked)
        assert asked.headers["authorization"] == f"Bearer {TOKEN}"
        assert "/projects/lab-1/" in asked.path
        if asked.path.endswith("/capacityHistory"):
            name, region = asked.body["instanceProperties"]["machineType"], asked.path.split("/")[6]
            found = self.history.get(f"{name} {region}", self.history.get(name, {}))
            return Reply(found)
        what = asked.path.rpartition("/")[2]
        rows = self.zones if what == "machineTypes" else CARDS
        names = sorted(rows)
        token = asked.query.get("pageToken", "")
        assert token in ("", "tw=o/+&x")
        first = not token
        shown = names[:1] if first else names[1:]
        items = {f"zones/{zone}": {what: rows[zone]} for zone in shown}
        nothing = {"warning": {"code": "NO_RESULTS_ON_PAGE"}}
        more = {"nextPageToken": "tw=o/+&x"} if first and len(names) > 1 else {}
        lost = [f"projects/lab-1/zones/{zone}" for zone in self.unreachable]
        return Reply({"items": {**items, "zones/x": nothing}, "unreachables": lost, **more})

    @contextmanager
    def server(self) -> Iterator[Server]:
        with http_server(self.answer) as server:
            yield server

    def fetch(self, *faults: Reply | None, **more: Any) -> Fetched:
        settings = {"project": "lab-1", "token": lambda _: TOKEN, **more}
        with self.server() as server:
            server.fail(*faults)
            return client(server, **settings).fetch(wanted(*NAMES))


def zones(fetched: Fetched, name: str) -> set[str]:
    return {offer.zone for offer in fetched.offers if offer.instance_type == name}


def test_machines_are_offered_in_the_zones_that_list_them():
    made = Cloud().fetch()
    assert zones(made, "a2-highgpu-1g") == {"us-central1-a", "us-east1-b"}
    assert zones(made, "a2-ultragpu-1g") == {"us-central1-q"}
    assert zones(made, "e2-standard-4") == {"us-central1-a"}  # in us-east1-b it is obsolete
    assert made.warnings == ()


def test_a_gpu_is_attached_where_both_the_host_and_the_gpu_are():
    assert zones(Cloud().fetch(), "n1-standard-8+1xT4") == {"us-central1-a"}


def test_machines_that_the_catalog_does_not_describe_are_reported():
    (unknown,) = Cloud().fetch().unknown_types
    assert (unknown.instance_type, unknown.gpu, unknown.gpus) == ("a5-newgpu-1g", "nvidia-x900", 1)
    assert unknown.regions == 1


def test_the_shape_that_google_states_is_what_is_priced():
    cloud = Cloud()
    for zone in ("us-central1-a", "us-east1-b"):
        cloud.zones[zone][0]["guestCpus"] = 16
    made = cloud.fetch()
    # 16 x 0.031611 + 85 x 0.004237 + 2.933908, by hand
    assert prices(made.offers, "a2-highgpu-1g", "on_demand", CENTRAL) == {3.799829}
    assert any("a2-highgpu-1g" in warning for warning in made.warnings)


def test_a_machine_with_another_number_of_gpus_is_not_offered():
    cloud = Cloud()
    for zone in ("us-central1-a", "us-east1-b"):
        cloud.zones[zone][0]["accelerators"][0]["guestAcceleratorCount"] = 2
    made = cloud.fetch()
    assert rules(made)["shape"] == ["a2-highgpu-1g"]
    assert zones(made, "a2-highgpu-1g") == set()


def test_a_machine_that_differs_from_zone_to_zone_is_not_offered():
    cloud = Cloud()
    cloud.zones["us-central1-a"][0]["guestCpus"] = 16
    made = cloud.fetch()
    assert rules(made)["shape"] == ["a2-highgpu-1g"]
    assert zones(made, "a2-highgpu-1g") == set()


def test_an_unreachable_zone_stays_as_shipped():
    cloud = Cloud()
    del cloud.zones["us-east1-b"]
    cloud.unreachable = ["us-east1-b"]
    made = cloud.fetch()
    assert zones(made, "a2-highgpu-1g") == {"us-central1-a", "us-east1-b"}
    assert any("us-east1-b" in warning for warning in made.warnings)


@pytest.mark.parametrize(
    "reply",
    [
        Reply({}, 403),
        Reply({}, 404),
        Reply(b"{"),
        Reply({"items": []}),
        Reply({"items": {"zones/us-central1-a": {"machineTypes": [{"name": "a2-highgpu-1g"}]}}}),
    ],
    ids=["forbidden", "not found", "truncated", "other form", "without a shape"],
)
def test_prices_are_handed_over_where_compute_engine_fails(reply: Reply):
    made = Cloud().fetch(None, reply)
    assert prices(made.offers, "a2-highgpu-1g", "on_demand", CENTRAL) == {3.673385}
    assert zones(made, "a2-highgpu-1g") > {"us-central1-a", "us-central1-f"}  # as shipped
    assert any("as shipped" in warning for warning in made.warnings)


def test_an_expired_token_costs_the_zones_and_not_the_prices():
    def expired(_: Settings) -> str:
        raise ProviderError("gcp", "credentials", "the token has expired")

    made = Cloud().fetch(token=expired)
    assert prices(made.offers, "a2-highgpu-1g", "on_demand", CENTRAL) == {3.673385}
    assert any("expired" in warning for warning in made.warnings)


def test_throttled_calls_are_tried_again():
    made = Cloud().fetch(None, Reply({}, 429), Reply({}, 503))
    assert made.warnings == ()
    assert made.counters.retries == 2


def test_without_a_project_compute_engine_is_not_called():
    cloud = Cloud()
    with cloud.server() as server:
        client(server, capacity_history=True).fetch(wanted(*NAMES))
        assert all(asked.path.endswith("/skus") for asked in server.asked)


# ---------------------------------------------------------------------- spot price history


def record(end: str, usd: float) -> Any:
    units, nanos = divmod(round(usd * 1e9), 10**9)
    price = {"currencyCode": "USD", "units": str(units), "nanos": nanos}
    return {"interval": {"startTime": "2026-01-01T00:00:00Z", "endTime": end}, "listPrice": price}


def test_the_price_history_is_not_requested_unless_switched_on():
    cloud = Cloud()
    with cloud.server() as server:
        client(server, project="lab-1", token=lambda _: TOKEN).fetch(wanted(*NAMES))
        assert not any("capacityHistory" in asked.path for asked in server.asked)


def test_a_spot_price_contradicted_by_the_price_history_is_quarantined():
    cloud = Cloud()
    spot = 3.673385 * 0.4
    old, new = record("2026-02-01T00:00:00Z", 9.0), record("2026-11-20T00:00:00Z", spot * 1.01)
    cloud.history["a2-highgpu-1g"] = {"priceHistory": [new, old]}
    agreed = cloud.fetch(capacity_history=True)
    assert "capacity_history" not in rules(agreed)
    cloud.history["a2-highgpu-1g"] = {"priceHistory": [record("2026-11-20T00:00:00Z", spot * 1.1)]}
    contradicted = cloud.fetch(capacity_history=True)
    assert len(rules(contradicted)["capacity_history"]) == 2  # in two regions
    assert prices(contradicted.offers, "a2-highgpu-1g", "spot", CENTRAL) == set()
    assert prices(contradicted.offers, "a2-highgpu-1g", "on_demand", CENTRAL) == {3.673385}


def test_a_machine_that_most_regions_contradict_is_doubted_as_a_sum():
    """As in the NSDI'27 artifact: 96 of 208 cores and no disks, 6 % low in all regions."""
    cloud = Cloud()
    wrong = {"priceHistory": [record("2026-11-20T00:00:00Z", 3.673385 * 0.4 * 1.06)]}
    right = {"priceHistory": [record("2026-11-20T00:00:00Z", 3.673385 * 0.4)]}
    cloud.history["a2-highgpu-1g"] = wrong
    assert cloud.fetch(capacity_history=True).contradicted == ("a2-highgpu-1g",)
    cloud.history["a2-highgpu-1g us-central1"] = right  # one of two regions is one wrong price
    assert cloud.fetch(capacity_history=True).contradicted == ()
    cloud.history["a2-highgpu-1g us-central1"] = {}  # one region alone judges no sum
    assert cloud.fetch(capacity_history=True).contradicted == ()


def test_the_preemption_rate_is_reported():
    cloud = Cloud()
    cloud.history["a2-highgpu-1g"] = {
        "preemptionHistory": [{"preemptionRate": 0.1}, {"preemptionRate": 0.3}]
    }
    made = cloud.fetch(capacity_history=True)
    assert any("a2-highgpu-1g: preemption rate 0.20" in warning for warning in made.warnings)


@pytest.mark.parametrize(
    "history",
    [
        {"priceHistory": "none"},
        {"priceHistory": [{}]},
        {"preemptionHistory": [{"preemptionRate": "often"}]},
        [],
        {"priceHistory": [record("2026-11-20T00:00:00Z", 0.0)]},
    ],
)
def test_an_unreadable_price_history_contradicts_no_price(history: Any):
    cloud = Cloud()
    cloud.history["a2-highgpu-1g"] = history
    made = cloud.fetch(capacity_history=True)
    assert len(prices(made.offers, "a2-highgpu-1g", "spot", CENTRAL)) == 1
    assert "capacity_history" not in rules(made)
