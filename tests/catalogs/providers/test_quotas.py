"""Quotas of Google Cloud and Azure, read from servers on this machine by the real clients."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.providers.azure.provider import Azure
from recommender.catalogs.providers.azure.quotas import Account, account_from
from recommender.catalogs.providers.contract import Fetched, QuotaValue, Wanted
from recommender.catalogs.providers.http import Patience
from recommender.catalogs.providers.quotas import quota_text
from recommender.inputs.quota_file import read_quotas
from tests.catalogs.providers.gcp import skus as gcp_skus
from tests.catalogs.providers.gcp.skus import NOW
from tests.catalogs.refresh.servers import Asked, Reply, Server, http_server
from tests.shipped import snapshot

SECRET = "canary~Secret8Q~0123456789abcdef"
TOKEN = "eyJ0.canary-token-0123456789"
PATIENCE = Patience(tries=3, first_wait_s=0.0, sleep=lambda seconds: None)


def wanted(**more: Any) -> Wanted:
    catalog = snapshot()
    parts: Any = frozenset({"quotas"})
    return Wanted(types={}, gpus=catalog.gpus, now=NOW, parts=parts, **more)


def amounts(found: Fetched) -> dict[tuple[str, str, str], float]:
    return {(q.family, q.market, q.region): q.amount for q in found.quotas}


# Google Cloud


def metric(name: str, limit: float) -> Any:
    return {"metric": name, "limit": limit, "usage": 0.0}


REGIONS: Any = [
    {"name": "us-central1", "quotas": [
        metric("NVIDIA_A100_GPUS", 16.0), metric("PREEMPTIBLE_NVIDIA_A100_GPUS", 32.0),
        metric("NVIDIA_A100_80GB_GPUS", 8.0), metric("CPUS", 72.0),
        metric("PREEMPTIBLE_CPUS", 0.0), metric("IN_USE_ADDRESSES", 8.0),
        metric("COMMITTED_NVIDIA_A100_GPUS", 99.0),
    ]},
    {"name": "europe-west4", "quotas": [metric("NVIDIA_A100_GPUS", 0.0)]},
    {"name": "us-east7", "quotaStatusWarning": {"code": "UNKNOWN"}, "quotas": []},
]  # fmt: skip


def gcp_answer(asked: Asked) -> Reply:
    assert asked.headers["authorization"] == f"Bearer {TOKEN}"
    if asked.path == "/compute/v1/projects/lab-1":
        return Reply({"quotas": [metric("GPUS_ALL_REGIONS", 4.0), metric("NETWORKS", 5.0)]})
    assert asked.path == "/compute/v1/projects/lab-1/regions"
    if asked.query.get("pageToken") == "two=/":
        return Reply({"items": REGIONS[1:]})
    return Reply({"items": REGIONS[:1], "nextPageToken": "two=/"})


def gcp(*faults: Reply | None, project: str = "lab-1", **more: Any) -> Fetched:
    with http_server(gcp_answer) as server:
        server.fail(*faults)
        client = gcp_skus.client(server, project=project, token=lambda _: TOKEN)
        return client.fetch(wanted(**more))


def test_the_quotas_of_a_project_are_those_of_its_regions() -> None:
    found = gcp()
    assert amounts(found) == {
        ("NVIDIA A100 GPUs", "on_demand", "us-central1"): 16.0,
        ("Preemptible NVIDIA A100 GPUs", "spot", "us-central1"): 32.0,
        ("NVIDIA A100 80GB GPUs", "on_demand", "us-central1"): 8.0,
        ("CPUs", "on_demand", "us-central1"): 72.0,
        ("Preemptible CPUs", "spot", "us-central1"): 0.0,
        ("NVIDIA A100 GPUs", "on_demand", "europe-west4"): 0.0,
    }
    assert {(q.family, q.unit) for q in found.quotas} >= {
        ("CPUs", "vcpu"), ("NVIDIA A100 GPUs", "gpu")
    }  # fmt: skip
    assert [(place.region, place.reason) for place in found.failed] == [
        ("us-east7", "its quotas could not be counted")
    ]


def test_what_the_quota_file_cannot_say_is_reported() -> None:
    said = gcp().warnings
    assert "GPUs (all regions): 4, whatever each region allows" in said
    assert "no value of the quota 'NVIDIA B200 GPUs'; see the console" in said


def test_only_the_regions_requested_are_read() -> None:
    found = gcp(regions=("europe-west4", "mars-north1"))
    assert {q.region for q in found.quotas} == {"europe-west4"}
    assert [(place.region, place.reason) for place in found.failed] == [
        ("mars-north1", "no such region")
    ]


@pytest.mark.parametrize(
    ("faults", "kind"),
    [
        ([Reply({}, 403)], "credentials"),
        ([Reply({}, 401)], "credentials"),
        ([Reply({"items": [{"quotas": 3}]})], "format"),
        ([Reply([])], "format"),
        ([Reply({}, 500)] * 9, "server"),
        ([Reply({"items": [], "nextPageToken": "x"})] * 30, "format"),
    ],
)
def test_what_keeps_quotas_from_being_read_is_reported(faults: list[Reply], kind: str) -> None:
    with pytest.raises(ProviderError) as refused:
        gcp(*faults)
    assert refused.value.fault == kind
    assert TOKEN not in str(refused.value)


def test_quotas_need_a_project() -> None:
    with pytest.raises(ProviderError, match="set GOOGLE_CLOUD_PROJECT"):
        gcp(project="")


def test_quotas_are_requested_again_after_429_and_500() -> None:
    assert amounts(gcp(Reply({}, 429), Reply({}, 503))) == amounts(gcp())


# Azure


def usage(name: str, limit: float) -> Any:
    value = "".join(name.split())
    return {"name": {"value": value, "localizedValue": name}, "limit": limit, "currentValue": 0}


USAGES = [
    usage("Standard NCADS_A100_v4 Family vCPUs", 48),
    usage("Total Regional Low-priority vCPUs", 3),
    usage("Total Regional vCPUs", 10),
    usage("Availability Sets", 2500),
]


class Cloud:
    """Azure's sign-in and its list of quotas."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def answer(self, asked: Asked) -> Reply:
        if asked.path == "/tenant-1/oauth2/v2.0/token":
            good = asked.body.get("client_secret") == SECRET or asked.body.get("client_assertion")
            return Reply({"access_token": TOKEN} if good else {"error": "x"}, 200 if good else 401)
        assert asked.headers["authorization"] == f"Bearer {TOKEN}"
        match = re.fullmatch(
            r"/subscriptions/sub-1/providers/Microsoft\.Compute/locations/(\w+)/usages", asked.path
        )
        assert match is not None
        assert asked.query["api-version"] == "2024-07-01"
        if match[1] == "nowhere":
            return Reply({"error": {"code": "NoRegisteredProviderFound"}}, 404)
        if "more" in asked.query:
            return Reply({"value": USAGES[2:]})
        address = f"{self.server.address}{asked.path}?api-version=2024-07-01&more=1"
        return Reply({"value": USAGES[:2], "nextLink": address})


@contextmanager
def azure(**account: Any) -> Iterator[tuple[Server, Callable[..., Fetched]]]:
    cloud: list[Cloud] = []
    with http_server(lambda asked: cloud[0].answer(asked)) as server:
        cloud.append(Cloud(server))
        settings = {
            "subscription": "sub-1", "tenant": "tenant-1", "client": "client-1", "secret": SECRET,
            "login": server.address, "management": server.address, "signed_in": lambda: "",
        }  # fmt: skip
        client = Azure(patience=PATIENCE, account=Account(**{**settings, **account}))

        def read(*regions: str) -> Fetched:
            return client.fetch(wanted(regions=regions))

        yield server, read


def test_the_quotas_of_a_subscription_are_those_of_its_regions() -> None:
    with azure() as (server, read):
        found = read("eastus", "westeurope")
        assert amounts(found) == {
            (family, market, region): amount
            for region in ("eastus", "westeurope")
            for family, market, amount in [
                ("Standard NCADS_A100_v4 Family vCPUs", "on_demand", 48.0),
                ("Total Regional Low-priority vCPUs", "spot", 3.0),
                ("Total Regional vCPUs", "on_demand", 10.0),
            ]
        }
        assert server.asked[0].body == {
            "client_secret": SECRET, "grant_type": "client_credentials",
            "client_id": "client-1", "scope": "https://management.azure.com/.default",
        }  # fmt: skip
        assert not any(SECRET in f"{asked.path}{asked.query}" for asked in server.asked)


def test_without_regions_those_of_the_catalog_are_read() -> None:
    with azure() as (_, read):
        found = read()
    offers = snapshot().offers
    assert {q.region for q in found.quotas} == {o.region for o in offers if o.provider == "azure"}


def test_a_region_that_fails_is_a_failed_place() -> None:
    with azure() as (_, read):
        found = read("eastus", "nowhere")
        assert {q.region for q in found.quotas} == {"eastus"}
        assert [place.region for place in found.failed] == ["nowhere"]
        with pytest.raises(ProviderError, match="answered 404"):
            read("nowhere")


def test_a_workload_identity_signs_in_with_its_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("assertion-1\n")
    with azure(secret="", token_file=str(file)) as (server, read):
        assert read("eastus").quotas
        assert server.asked[0].body["client_assertion"] == "assertion-1"
    with (
        azure(secret="", token_file=str(tmp_path / "none")) as (_, read),
        pytest.raises(ProviderError, match="AZURE_FEDERATED_TOKEN_FILE cannot be read"),
    ):
        read("eastus")


def test_without_a_service_principal_the_signed_in_user_is_used() -> None:
    with azure(secret="", signed_in=lambda: TOKEN) as (server, read):
        assert read("eastus").quotas
        assert all("oauth2" not in asked.path for asked in server.asked)
    with azure(secret="") as (_, read), pytest.raises(ProviderError, match="`az login`"):
        read("eastus")


def test_a_wrong_secret_is_reported_without_it() -> None:
    wrong = "wrong-Secret8Q~0123456789"
    with azure(secret=wrong) as (_, read), pytest.raises(ProviderError) as refused:
        read("eastus")
    assert refused.value.fault == "credentials"
    assert wrong not in str(refused.value)


def test_quotas_need_a_subscription() -> None:
    with (
        azure(subscription="") as (_, read),
        pytest.raises(ProviderError, match="set AZURE_SUBSCRIPTION_ID"),
    ):
        read("eastus")


@pytest.mark.parametrize(
    "reply",
    [Reply([]), Reply({"value": [{"name": "x"}]}), Reply(b"<html>"),
     Reply({"value": [], "nextLink": "https://example.org/usages"})],
)  # fmt: skip
def test_an_answer_of_no_known_form_fails_its_region(reply: Reply) -> None:
    with azure(secret="", signed_in=lambda: TOKEN) as (server, read):
        server.fail(reply)
        found = read("eastus", "westeurope")
        assert [place.region for place in found.failed] == ["eastus"]
        assert {q.region for q in found.quotas} == {"westeurope"}


def test_the_account_is_that_of_azures_own_variables_and_hides_its_secret() -> None:
    names = ("SUBSCRIPTION_ID", "TENANT_ID", "CLIENT_ID", "CLIENT_SECRET", "FEDERATED_TOKEN_FILE")
    account = account_from({f"AZURE_{name}": f"my-{name}" for name in names})
    assert (account.subscription, account.secret) == ("my-SUBSCRIPTION_ID", "my-CLIENT_SECRET")
    assert "my-CLIENT_SECRET" not in repr(account)


def test_what_is_read_is_the_file_that_the_planner_takes(tmp_path: Path) -> None:
    with azure() as (_, read):
        values: list[QuotaValue] = [*gcp().quotas, *read("eastus").quotas]
    file = tmp_path / "quotas.csv"
    file.write_text(quota_text(values))
    limits = read_quotas(file)
    assert len(limits) == len(values)
    assert {limit.amount for limit in limits} == {value.amount for value in values}
