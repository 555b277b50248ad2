"""Azure's retail prices by the real client, over real sockets."""

from typing import Any

import pytest

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.providers.azure.provider import ADDRESS, Azure, provider
from tests.catalogs.providers.azure.items import (
    SIZES,
    client,
    fetch,
    item,
    price,
    price_list,
    wanted,
    world,
)
from tests.catalogs.refresh.servers import Reply

T4 = "Standard_NC4as_T4_v3"


def test_machines_are_offered_at_their_retail_prices():
    made = fetch(world())
    for size, (_, usd) in SIZES.items():
        assert price(made.offers, size, "eastus", "on_demand") == usd
        assert price(made.offers, size, "westeurope", "on_demand") == pytest.approx(usd * 1.1)
    assert price(made.offers, T4, "eastus", "spot") == 0.1578
    assert made.quarantined == ()


def test_offers_say_what_they_are():
    made = fetch(world())
    assert {o.kind for o in made.offers} == {"quote"}
    assert {o.zone for o in made.offers} == {""}
    assert {o.as_of for o in made.offers} == {"2026-11-21"}
    assert {o.source for o in made.offers} == {s.source for s in made.sources}
    assert made.markets == {"on_demand", "spot"}


def test_a_machine_without_gpu_is_offered_on_demand_only():
    offers = fetch(world()).offers
    assert price(offers, "Standard_D4s_v5", "eastus", "on_demand") == 0.192
    assert price(offers, "Standard_D4s_v5", "eastus", "spot") is None


def test_the_price_list_is_read_page_by_page():
    whole = fetch(world())
    with price_list(world(), per_page=7) as server:
        made = client(server).fetch(wanted())
    assert made.offers == whole.offers
    assert made.counters.raw_rows == len(world())
    assert made.counters.pages == len(server.asked) > 5


def test_no_account_is_used_and_the_real_address_is_the_public_one():
    assert provider() == Azure()
    assert ADDRESS == "https://prices.azure.com/api/retail/prices"
    with price_list(world()) as server:
        client(server).fetch(wanted())
    assert not any("authorization" in asked.headers for asked in server.asked)


def test_only_the_markets_requested_are_handed_over():
    made = fetch(world(), parts=frozenset({"on_demand"}))
    assert made.markets == {o.market for o in made.offers} == {"on_demand"}


def test_a_large_region_that_is_missing_has_failed():
    failed = {place.region for place in fetch(world(regions=["eastus"])).failed}
    assert "westeurope" in failed
    assert "eastus" not in failed


def test_sizes_with_gpus_that_the_catalog_does_not_describe_are_reported():
    rows = [*world(), item("Standard_NV6ads_A10_v5", "eastus", 0.454)]
    rows += [item("Standard_ND128x_X900_v9", region, 90.0) for region in ("eastus", "westus")]
    known = {u.instance_type: u for u in fetch(rows).unknown_types}
    assert known["Standard_NV6ads_A10_v5"].gpu == "A10"
    assert known["Standard_ND128x_X900_v9"].regions == 2


# --------------------------------------------------------------------------------- faults


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_what_passes_is_tried_again(status: int):
    with price_list(world(), per_page=10) as server:
        server.fail(Reply({}, status), None, Reply({}, status), Reply(b"no", status))
        made = client(server).fetch(wanted())
    assert made.counters.retries == 3
    assert price(made.offers, T4, "eastus", "on_demand") == 0.526


def test_the_server_says_how_long_to_wait():
    waits: list[float] = []
    from recommender.catalogs.providers.http import Patience

    with price_list(world()) as server:
        server.fail(Reply({}, 429, {"Retry-After": "7"}), Reply({}, 429, {"Retry-After": "999"}))
        patience = Patience(tries=3, first_wait_s=0.0, sleep=waits.append)
        Azure(f"{server.address}/api/retail/prices", patience).fetch(wanted())
    assert waits == [7.0, 60.0]  # and not longer than a minute


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (Reply({}, 429), "throttled"),
        (Reply({}, 500), "server"),
        (Reply({}, 400), "server"),
        (Reply({}, 404), "server"),
        (Reply({}, 302, {"Location": "http://elsewhere.invalid/"}), "server"),
        (Reply({}, 403), "credentials"),
        (Reply(b'{"Items": [{"armSk'), "format"),
        (Reply(b"<html>"), "format"),
        (Reply([]), "format"),
        (Reply({"Items": None}), "format"),
        (Reply({"Items": [], "Count": 3}), "format"),
        (Reply({"Items": [], "NextPageLink": 7}), "format"),
        (Reply({"Items": [], "BillingCurrency": "EUR"}), "format"),
        (Reply({"Items": []}, cut=3), "network"),
        (Reply(b"[" * 100_000), "format"),
        (Reply(b"x", headers={"Content-Encoding": "gzip"}), "format"),
        (Reply({"Items": [], "NextPageLink": "http://elsewhere.invalid/"}), "format"),
        (Reply({"Items": [], "NextPageLink": "file:///etc/passwd"}), "format"),
        (Reply({"Items": [], "NextPageLink": "http://[::1"}), "format"),
    ],
)
def test_what_does_not_pass_is_reported(reply: Reply, fault: str):
    with price_list(world(), per_page=10) as server:
        server.fail(None, *[reply] * 9)
        with pytest.raises(ProviderError) as caught:
            client(server).fetch(wanted())
    assert caught.value.fault == fault
    assert "filter" not in str(caught.value)  # an address is named without its query


def test_links_that_lead_in_a_circle_end_the_reading():
    with price_list(world()) as server:
        page = {"Items": world()[:2], "NextPageLink": f"{server.address}/api/retail/prices?a=1"}
        server.fail(*[Reply(page)] * 20)
        with pytest.raises(ProviderError, match="never end"):
            client(server).fetch(wanted())
    assert len(server.asked) == 2


def test_the_port_in_a_link_is_no_other_server():
    from recommender.catalogs.providers.http import _server

    assert _server("https://prices.azure.com:443/api?$skip=100") == _server(ADDRESS)
    assert _server("http://prices.azure.com/api") != _server(ADDRESS)


def test_a_server_that_does_not_answer_in_time_is_reported():
    with price_list(world()) as server:
        server.fail(*[Reply(never=True)] * 9)
        with pytest.raises(ProviderError) as caught:
            client(server).fetch(wanted(call_timeout_s=0.05))
    assert caught.value.fault == "timeout"


def test_a_server_that_is_not_there_is_reported():
    with price_list(world()) as server:
        gone = client(server)
    with pytest.raises(ProviderError) as caught:
        gone.fetch(wanted())
    assert caught.value.fault == "network"


def test_no_request_is_sent_after_the_deadline():
    with price_list(world()) as server, pytest.raises(ProviderError) as caught:
        client(server).fetch(wanted(stop_at=0.0))
    assert caught.value.fault == "timeout"
    assert server.asked == []


@pytest.mark.parametrize("rows", [[], [item("Standard_NP10s", "eastus", 1.65)]])
def test_a_list_without_known_machines_is_no_list(rows: list[Any]):
    with price_list(rows) as server, pytest.raises(ProviderError) as caught:
        client(server).fetch(wanted())
    assert caught.value.fault == "format"
