"""Google Cloud by its real client, over real sockets, against small servers."""

from typing import Any

import pytest

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.providers.contract import Wanted
from recommender.catalogs.providers.gcp.client import Settings, settings_from
from recommender.catalogs.providers.gcp.provider import Gcp
from tests.catalogs.providers.gcp.skus import (
    CANARY,
    NOW,
    americas,
    client,
    fetch,
    price_list,
    prices,
    rules,
    sku,
    wanted,
)
from tests.catalogs.refresh.servers import Reply, grpc_server

CENTRAL = "us-central1"


def test_a_machine_is_the_sum_of_its_parts_as_google_prices_it():
    made = fetch(americas(), "a2-highgpu-1g", "g2-standard-4", "a2-ultragpu-1g", "a3-highgpu-8g")
    # Published by a collector of Google's prices on 2026-07-30 (catalogs/canaries.csv).
    assert prices(made.offers, "a2-highgpu-1g", "on_demand", CENTRAL) == {3.673385}
    assert prices(made.offers, "g2-standard-4", "on_demand", CENTRAL) == {0.706832}
    (ultra,) = prices(made.offers, "a2-ultragpu-1g", "on_demand", CENTRAL)
    (high,) = prices(made.offers, "a3-highgpu-8g", "on_demand", CENTRAL)
    assert ultra == pytest.approx(5.068798, rel=1e-3)
    assert high == pytest.approx(88.490, rel=1e-3)


def test_a_gpu_attached_to_an_n1_host_is_added_to_it():
    made = fetch(americas(), "n1-standard-8+1xT4")
    # 8 x 0.031611 + 30 x 0.004237 + 0.35, by hand
    assert prices(made.offers, "n1-standard-8+1xT4", "on_demand", CENTRAL) == {0.729998}


def test_spot_is_composed_of_spot_parts_only():
    made = fetch(americas(share=0.25), "a2-highgpu-1g")
    assert prices(made.offers, "a2-highgpu-1g", "spot", CENTRAL) == {0.918346}


def test_offers_say_what_they_are_and_where():
    made = fetch(americas(), "a2-highgpu-1g", "a3-highgpu-1g")
    offer = next(o for o in made.offers if o.region == CENTRAL and o.market == "on_demand")
    assert (offer.provider, offer.kind, offer.as_of) == ("gcp", "composed", "2026-11-21")
    assert offer.zone.startswith(f"{CENTRAL}-")
    assert {o.source for o in made.offers} == {s.source for s in made.sources} == {1}
    assert {o.obtainable for o in made.offers if "a3" in o.instance_type} == {"spot_only"}
    assert made.markets == {"on_demand", "spot"}
    assert (made.started, made.counters.raw_rows) == (NOW, len(americas()))


def test_a_machine_without_gpu_is_offered_on_demand_only():
    made = fetch(americas(), "e2-standard-4")
    assert {o.market for o in made.offers} == {"on_demand"}
    assert prices(made.offers, "e2-standard-4", "on_demand", CENTRAL) == {0.134023}


def test_the_price_list_is_read_page_by_page():
    rows = americas()
    with price_list(rows, per_page=10) as server:
        made = client(server).fetch(wanted("a2-highgpu-1g"))
    assert made.counters.pages == -(-len(rows) // 10) == len(server.asked)
    assert prices(made.offers, "a2-highgpu-1g", "on_demand", CENTRAL) == {3.673385}


def test_only_the_markets_requested_are_handed_over():
    made = fetch(americas(), "a2-highgpu-1g", parts=frozenset({"spot"}))
    assert made.markets == {o.market for o in made.offers} == {"spot"}


def test_a_region_that_no_sku_names_has_failed_and_the_others_have_not():
    made = fetch(americas(regions=["us-central1"]), "a2-highgpu-1g")
    assert {o.region for o in made.offers} == {"us-central1"}
    assert "us-east1" in {place.region for place in made.failed}
    assert "us-central1" not in {place.region for place in made.failed}


def test_prices_in_a_region_without_known_machines_are_reported():
    made = fetch([*americas(), sku("G2 Instance Core running in Oslo", 0.03, regions=["x1"])])
    assert any("x1" in warning for warning in made.warnings)


# ------------------------------------------------------------------------- faults, by REST


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_what_passes_is_tried_again(status: int):
    with price_list(americas(), per_page=20) as server:
        server.fail(Reply({}, status), None, Reply({}, status), Reply({}, status))
        made = client(server).fetch(wanted("a2-highgpu-1g"))
    assert made.counters.retries == 3
    assert prices(made.offers, "a2-highgpu-1g", "on_demand", CENTRAL) == {3.673385}


@pytest.mark.parametrize(
    ("status", "fault"), [(429, "throttled"), (500, "server"), (503, "server"), (504, "timeout")]
)
def test_what_does_not_pass_is_reported_after_all_retries(status: int, fault: str):
    with price_list(americas()) as server:
        server.fail(*[Reply({"error": {"message": "no"}}, status)] * 2000)
        with pytest.raises(ProviderError) as caught:
            client(server, retry_s=0.05).fetch(wanted("a2-highgpu-1g"))
    assert caught.value.fault == fault


@pytest.mark.parametrize("status", [400, 401, 403])
def test_a_refused_key_is_reported_at_once_and_without_the_key(status: int):
    body = {"error": {"code": status, "message": f"API key not valid: {CANARY}"}}
    with price_list(americas()) as server:
        server.fail(*[Reply(body, status)] * 9)
        with pytest.raises(ProviderError) as caught:
            client(server).fetch(wanted("a2-highgpu-1g"))
    assert caught.value.fault == "credentials"
    assert "RECOMMEND_GCP_API_KEY" in caught.value.reason
    assert CANARY not in str(caught.value)
    assert len(server.asked) <= 3  # Google's client renews credentials twice on a 401


def test_the_key_travels_in_a_header_and_in_no_address():
    with price_list(americas()) as server:
        client(server).fetch(wanted("a2-highgpu-1g"))
    assert {asked.headers["x-goog-api-key"] for asked in server.asked} == {CANARY}
    assert not any(CANARY in f"{asked.path} {asked.query}" for asked in server.asked)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(b'{"skus": [{"description": "A2 Inst'),
        Reply(b"<html>Sign in to the hotel</html>"),
        Reply({"skus": "none"}),
        Reply(b"\xff\xfe\x00"),
    ],
    ids=["truncated", "html", "other form", "no text"],
)
def test_a_page_that_is_no_page_ends_the_reading(reply: Reply):
    with price_list(americas(), per_page=20) as server:
        server.fail(None, reply)
        with pytest.raises(ProviderError) as caught:
            client(server).fetch(wanted("a2-highgpu-1g"))
    assert caught.value.fault == "format"


def test_a_connection_that_breaks_in_a_page_is_tried_again():
    with price_list(americas(), per_page=20) as server:
        server.fail(None, Reply({"skus": []}, cut=5))
        made = client(server).fetch(wanted("a2-highgpu-1g"))
    assert made.counters.retries == 1
    assert prices(made.offers, "a2-highgpu-1g", "on_demand", CENTRAL) == {3.673385}


def test_pages_that_lead_in_a_circle_end_the_reading():
    with price_list(americas(), per_page=20) as server:
        server.fail(None, *[Reply({"skus": americas()[:1], "nextPageToken": "20"})] * 9)
        with pytest.raises(ProviderError, match="never end"):
            client(server).fetch(wanted("a2-highgpu-1g"))
    assert len(server.asked) < 5


@pytest.mark.parametrize("rows", [[], [sku("Storage PD Capacity", 0.04, "GiBy.mo", group="SSD")]])
def test_a_list_without_machines_is_no_list(rows: list[Any]):
    with price_list(rows) as server, pytest.raises(ProviderError) as caught:
        client(server).fetch(wanted("a2-highgpu-1g"))
    assert caught.value.fault == "format"


def test_a_server_that_does_not_answer_in_time_is_reported():
    with price_list(americas()) as server:
        server.fail(*[Reply(never=True)] * 50)
        with pytest.raises(ProviderError) as caught:
            client(server, retry_s=0.05).fetch(wanted("a2-highgpu-1g", call_timeout_s=0.05))
    assert caught.value.fault == "timeout"


def test_a_server_that_is_not_there_is_reported():
    with price_list(americas()) as server:
        gone = client(server, retry_s=0.05)
    with pytest.raises(ProviderError) as caught:
        gone.fetch(wanted("a2-highgpu-1g"))
    assert caught.value.fault == "network"


def test_no_request_is_sent_after_the_deadline():
    with price_list(americas()) as server, pytest.raises(ProviderError) as caught:
        client(server).fetch(wanted("a2-highgpu-1g", stop_at=0.0))
    assert caught.value.fault == "timeout"
    assert server.asked == []


# --------------------------------------------------------------------------- faults, by gRPC


def by_grpc(rows: list[Any], faults: list[Any], request: Wanted) -> Any:
    """Fetch over gRPC; the server first fails with these status codes."""
    import grpc
    from google.cloud.billing_v1 import CloudCatalogClient, ListSkusResponse
    from google.cloud.billing_v1.services.cloud_catalog.transports import (
        CloudCatalogGrpcTransport,
    )
    from google.protobuf.json_format import ParseDict

    left = list(faults)

    def list_skus(asked: Any, context: Any) -> Any:
        if left and (code := left.pop(0)) is not None:
            context.abort(code, "as configured")
        start = int(asked.page_token or 0)
        page = ListSkusResponse.pb(ListSkusResponse())
        more = str(start + 20) if start + 20 < len(rows) else ""
        return ParseDict({"skus": rows[start : start + 20], "nextPageToken": more}, page)

    with grpc_server(lambda a, c: ListSkusResponse.wrap(list_skus(a, c))) as address:
        made = Gcp(
            Settings(first_wait_s=0.001, retry_s=1.0),
            client=lambda _: CloudCatalogClient(
                transport=CloudCatalogGrpcTransport(channel=grpc.insecure_channel(address))
            ),
        )
        return made.fetch(request)


def test_grpc_reads_the_same_prices_as_rest():
    over_grpc = by_grpc(americas(), [], wanted("a2-highgpu-1g"))
    over_rest = fetch(americas(), "a2-highgpu-1g")
    assert over_grpc.offers == over_rest.offers
    assert over_grpc.quarantined == over_rest.quarantined


def test_an_unavailable_or_exhausted_service_is_tried_again_on_any_page():
    import grpc

    again = [grpc.StatusCode.UNAVAILABLE, None, grpc.StatusCode.RESOURCE_EXHAUSTED]
    made = by_grpc(americas(), again, wanted("a2-highgpu-1g"))
    assert made.counters.retries == 2
    assert prices(made.offers, "a2-highgpu-1g", "on_demand", CENTRAL) == {3.673385}


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("UNAUTHENTICATED", "credentials"),  # an expired token
        ("PERMISSION_DENIED", "credentials"),
        ("INTERNAL", "server"),
        ("RESOURCE_EXHAUSTED", "throttled"),
    ],
)
def test_a_service_that_refuses_for_good_is_reported(code: str, fault: str):
    import grpc

    with pytest.raises(ProviderError) as caught:
        by_grpc(americas(), [grpc.StatusCode[code]] * 500, wanted("a2-highgpu-1g"))
    assert caught.value.fault == fault


# -------------------------------------------------------------------------------- settings


def test_a_key_comes_from_the_environment_or_from_a_file(tmp_path: Any):
    path = tmp_path / "key"
    path.write_text(f"{CANARY}\n")
    assert settings_from({"RECOMMEND_GCP_API_KEY": CANARY}).api_key == CANARY
    assert settings_from({"RECOMMEND_GCP_API_KEY_FILE": str(path)}).api_key == CANARY
    assert settings_from({}) == Settings()
    with pytest.raises(ProviderError, match="cannot be read"):
        settings_from({"RECOMMEND_GCP_API_KEY_FILE": str(tmp_path / "none")})


def test_settings_that_are_printed_do_not_show_the_key():
    assert CANARY not in f"{Settings(api_key=CANARY)} {Gcp(Settings(api_key=CANARY))!r}"


def test_the_price_history_is_requested_only_if_switched_on():
    assert not settings_from({"GOOGLE_CLOUD_PROJECT": "p"}).capacity_history
    assert settings_from({"RECOMMEND_GCP_CAPACITY_HISTORY": "1"}).capacity_history


def test_without_any_credentials_the_reason_says_what_to_set():
    def nothing(_: Settings) -> Any:
        from google.auth.exceptions import DefaultCredentialsError

        raise DefaultCredentialsError("not found")

    with pytest.raises(ProviderError, match="RECOMMEND_GCP_API_KEY") as caught:
        Gcp(client=nothing).fetch(wanted("a2-highgpu-1g"))
    assert caught.value.fault == "credentials"


def test_rules_are_names_that_can_be_counted():
    made = fetch([*americas(), sku("Nvidia Z9 GPU running in Americas", 1.0)], "a2-highgpu-1g")
    assert rules(made)["unknown_description"] == ["Nvidia Z9 GPU running in Americas"]
