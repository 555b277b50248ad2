"""Bad days of AWS: what is lost is said, what is left is right, and no secret gets out."""

import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.providers.aws.client import Tasks
from recommender.catalogs.providers.contract import Failed, Fetched
from recommender.catalogs.providers.redact import redacted
from tests.catalogs.providers.aws.cloud import CANARY, REGIONS, SHUT, Cloud
from tests.catalogs.providers.aws.conftest import Read

ALL = frozenset({"on_demand", "spot", "reserved_block"})
PAGE = "/pages/ec2-ondemand-without-sec-sel/US%20East%20%28N.%20Virginia%29/Linux/index.json"
ADVISOR = "/spot-advisor-data.json"
EC2 = (
    "DescribeAvailabilityZones",
    "DescribeInstanceTypes",
    "DescribeInstanceTypeOfferings",
    "DescribeSpotPriceHistory",
)


def truth(cloud: Cloud) -> dict[tuple[str, str, str, str], float]:
    """What a good day reads."""
    found = {}
    for item in cloud.items:
        attributes = item["product"]["attributes"]
        (term,) = item["terms"]["OnDemand"].values()
        (price,) = term["priceDimensions"].values()
        key = (attributes["instanceType"], attributes["regionCode"], "", "on_demand")
        found[key] = float(price["pricePerUnit"]["USD"])
    for region, rows in cloud.spot.items():
        for row in rows:
            key = (row["InstanceType"], region, row["AvailabilityZoneId"], "spot")
            found[key] = float(row["SpotPrice"])
    return found


def prices(fetched: Fetched) -> dict[tuple[str, str, str, str], float]:
    return {
        (o.instance_type, o.region, o.zone, o.market): o.usd_per_hour
        for o in fetched.offers
        if o.market != "reserved_block"
    }


def test_a_good_day_reads_everything(cloud: Cloud, read: Read) -> None:
    fetched = read(parts=ALL)
    assert prices(fetched) == truth(cloud)
    assert fetched.failed == ()
    assert fetched.markets == ALL
    assert fetched.counters.retries == 0
    assert fetched.counters.raw_rows == len(truth(cloud)) + 1
    assert fetched.warnings == (f"not enabled in this account, so without spot prices: {SHUT}",)


@pytest.mark.parametrize("action", ["DescribeRegions", *EC2])
@pytest.mark.parametrize("bad", ["RequestLimitExceeded", 500, "drop"])
def test_two_refusals_and_then_an_answer_lose_nothing(
    cloud: Cloud, read: Read, action: str, bad: Any
) -> None:
    cloud.trouble[action, "us-east-1"] = [bad, bad]
    fetched = read()
    assert prices(fetched) == truth(cloud)
    assert fetched.failed == ()
    assert fetched.counters.retries == 2


@pytest.mark.parametrize("bad", ["ThrottlingException", 500, "drop"])
def test_the_price_list_survives_two_refusals(cloud: Cloud, read: Read, bad: Any) -> None:
    cloud.trouble["GetProducts", ""] = [lambda page: (200, page), bad, bad]
    fetched = read(parts=frozenset({"on_demand"}))
    assert {key[:3] for key in prices(fetched)} == {k[:3] for k in truth(cloud) if not k[2]}
    assert fetched.counters.retries == 2


@pytest.mark.parametrize("action", EC2)
@pytest.mark.parametrize("bad", ["truncate", "UnauthorizedOperation", "AuthFailure"])
def test_one_region_down_is_one_failed_place_gpuhunt_226(
    cloud: Cloud, read: Read, action: str, bad: Any
) -> None:
    cloud.trouble[action, "us-east-1"] = [bad] * 9
    fetched = read()
    lost = {key for key in truth(cloud) if key[1] == "us-east-1" and key[3] == "spot"}
    assert prices(fetched) == {k: usd for k, usd in truth(cloud).items() if k not in lost}
    assert [(f.region, f.market) for f in fetched.failed] == [("us-east-1", "spot")]
    assert fetched.markets == {"on_demand", "spot"}


@pytest.mark.parametrize("action", EC2)
def test_a_page_that_is_malformed_fails_its_region(cloud: Cloud, read: Read, action: str) -> None:
    cloud.trouble[action, "eu-west-1"] = [lambda page: (200, page[: len(page) // 2])]
    fetched = read()
    (failed,) = fetched.failed
    assert (failed.region, failed.market) == ("eu-west-1", "spot")
    assert "no known form" in failed.reason


def test_a_number_that_is_none_fails_its_region(cloud: Cloud, read: Read) -> None:
    def worded(page: bytes) -> tuple[int, bytes]:
        return 200, page.replace(b"<defaultVCpus>4<", b"<defaultVCpus>four<")

    cloud.trouble["DescribeInstanceTypes", "eu-west-1"] = [worded]
    assert [failed.region for failed in read().failed] == ["eu-west-1"]


def test_an_answer_without_machines_or_zones_is_no_answer(cloud: Cloud, read: Read) -> None:
    cloud.gone |= {(name, "eu-west-1") for name in cloud.infos}
    (failed,) = read().failed
    assert "no machine is listed" in failed.reason


def test_a_region_that_hangs_is_given_up_after_the_time_of_a_call(cloud: Cloud, read: Read) -> None:
    cloud.trouble["DescribeSpotPriceHistory", "us-west-2"] = ["hang"]
    fetched = read(call_timeout_s=2.0)  # had it waited on, the server would have answered
    assert [(f.region, f.market) for f in fetched.failed] == [("us-west-2", "spot")]
    assert "no answer in time" in fetched.failed[0].reason
    assert {o.region for o in fetched.offers if o.market == "spot"} == {"us-east-1", "eu-west-1"}


def test_a_place_that_hangs_at_the_deadline_does_not_take_the_others(cloud: Cloud) -> None:
    stuck = threading.Event()
    places: dict[str, Callable[[], bool]] = {"us-west-2": stuck.wait, "us-east-1": lambda: True}
    tasks = Tasks(places, len(places))
    found, failed = tasks.results(cloud.wanted(stop_at=time.monotonic() + 1))
    stuck.set()
    assert found == {"us-east-1": True}
    assert [(name, error.fault) for name, error in failed.items()] == [("us-west-2", "timeout")]


def test_after_the_deadline_no_call_is_made(cloud: Cloud, read: Read) -> None:
    with pytest.raises(ProviderError) as error:
        read(stop_at=time.monotonic() - 1)
    assert error.value.fault == "timeout"
    assert sum(cloud.seen.values()) == 0


def test_the_whole_of_ec2_down_is_one_line(cloud: Cloud, read: Read) -> None:
    for action in ("DescribeRegions", *EC2):
        cloud.trouble[action, ""] = ["always down"]
    fetched = read()
    assert [(f.region, f.market) for f in fetched.failed] == [("", "spot")]
    assert prices(fetched) == {k: usd for k, usd in truth(cloud).items() if k[3] == "on_demand"}


@pytest.mark.parametrize("bad", ["always down", "ExpiredTokenException", "AccessDeniedException"])
def test_without_the_price_list_api_the_price_pages_are_read(
    cloud: Cloud, read: Read, bad: Any
) -> None:
    cloud.trouble["GetProducts", ""] = [bad] * 20
    fetched = read()
    assert prices(fetched) == truth(cloud)
    assert fetched.failed == ()
    assert any("the public price pages are read" in said for said in fetched.warnings)
    assert fetched.sources[0].name == "AWS on-demand price documents"


def test_without_credentials_on_demand_prices_are_read_and_spot_fails(
    cloud: Cloud, read: Read, nobody: None
) -> None:
    fetched = read()
    assert prices(fetched) == {k: usd for k, usd in truth(cloud).items() if k[3] == "on_demand"}
    (failed,) = fetched.failed
    assert failed == Failed("", "spot", failed.reason)
    assert "no credentials were found" in failed.reason
    assert set(cloud.seen) == {"GET"}


def test_an_expired_token_is_said_and_leaves_the_public_prices(cloud: Cloud, read: Read) -> None:
    for action in ("DescribeRegions", "GetProducts"):
        cloud.trouble[action, ""] = ["ExpiredTokenException"] * 3
    fetched = read()
    (failed,) = fetched.failed
    assert (failed.region, failed.market) == ("", "spot")
    assert "ExpiredTokenException; get new credentials" in failed.reason
    assert {key[3] for key in prices(fetched)} == {"on_demand"}


def test_a_token_that_expires_between_regions_loses_only_the_rest(cloud: Cloud, read: Read) -> None:
    for region in ("us-east-1", "us-west-2"):
        cloud.trouble["DescribeSpotPriceHistory", region] = ["RequestExpired"] * 3
    fetched = read()
    assert {f.region for f in fetched.failed} == {"us-east-1", "us-west-2"}
    assert {o.region for o in fetched.offers if o.market == "spot"} == {"eu-west-1"}


def test_all_of_aws_down_is_an_error_with_its_kind(cloud: Cloud, read: Read) -> None:
    for action in ("DescribeRegions", "GetProducts"):
        cloud.trouble[action, ""] = ["always down"]
    cloud.trouble["GET", ""] = [503] * 200
    with pytest.raises(ProviderError) as error:
        read()
    assert (error.value.provider, error.value.fault) == ("aws", "server")


def test_no_connection_is_an_error_with_its_kind(
    cloud: Cloud, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    for service in ("EC2", "PRICING"):
        monkeypatch.setenv(f"AWS_ENDPOINT_URL_{service}", "http://127.0.0.1:9")
    cloud.url = "http://127.0.0.1:9"
    with pytest.raises(ProviderError) as error:
        read()
    assert error.value.fault == "network"


def test_a_region_that_is_not_enabled_is_a_failed_place(cloud: Cloud, read: Read) -> None:
    fetched = read(regions=(SHUT, "us-east-1"))
    assert fetched.failed == (Failed(SHUT, "", "not enabled in this account"),)
    assert {offer.region for offer in fetched.offers} == {"us-east-1"}


def test_blocks_that_are_not_allowed_are_left_out(cloud: Cloud, read: Read) -> None:
    """The right to read them is optional: no failed place every night."""
    cloud.trouble["DescribeCapacityBlockOfferings", ""] = ["UnauthorizedOperation"] * 50
    fetched = read(parts=ALL)
    assert fetched.markets == {"on_demand", "spot"}
    assert fetched.failed == ()
    assert any("Capacity Blocks are left out" in said for said in fetched.warnings)


def test_blocks_of_one_region_fail_alone(cloud: Cloud, read: Read) -> None:
    cloud.trouble["DescribeCapacityBlockOfferings", "us-east-1"] = ["truncate"]
    fetched = read(parts=ALL)
    assert [(f.region, f.market) for f in fetched.failed] == [("us-east-1", "reserved_block")]
    assert prices(fetched) == truth(cloud)


def test_a_region_that_sells_no_blocks_is_no_failure(cloud: Cloud, read: Read) -> None:
    cloud.trouble["DescribeCapacityBlockOfferings", "eu-west-1"] = ["UnsupportedOperation"] * 9
    assert read(parts=ALL).failed == ()


@pytest.mark.parametrize("bad", [[404], ["truncate"], [500] * 9, [lambda _: (200, b"{")]])
def test_no_advisor_is_a_warning(cloud: Cloud, read: Read, bad: list[Any]) -> None:
    cloud.file = _without_advisor(cloud.file, bad)  # type: ignore[method-assign]
    cloud.trouble["GET", ADVISOR] = bad
    fetched = read(parts=frozenset({"spot"}))
    assert any("no ranges of interruption" in said for said in fetched.warnings)
    assert fetched.failed == ()


def _without_advisor(
    file: Callable[[str], bytes | None], bad: list[Any]
) -> Callable[[str], bytes | None]:
    return lambda path: b"{" if path == ADVISOR and callable(bad[0]) else file(path)


def test_a_public_file_is_requested_again_after_429_skypilot_5438(
    cloud: Cloud, read: Read, nobody: None
) -> None:
    cloud.trouble["GET", PAGE] = [429, 503]
    fetched = read(parts=frozenset({"on_demand"}))
    assert len(fetched.offers) == len(cloud.items)


@pytest.mark.parametrize("bad", [404, 403])
def test_a_price_page_that_is_not_there_fails_its_region(
    cloud: Cloud, read: Read, nobody: None, bad: Any
) -> None:
    cloud.trouble["GET", PAGE] = [bad]
    fetched = read(parts=frozenset({"on_demand"}))
    assert [(f.region, f.market) for f in fetched.failed] == [("us-east-1", "on_demand")]
    assert {o.region for o in fetched.offers} == {"us-west-2", "eu-west-1"}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"regions": {}}', b'{"regions": 1}'])
def test_price_pages_of_another_form_are_an_error(
    cloud: Cloud, read: Read, nobody: None, content: bytes
) -> None:
    cloud.file = lambda path: content  # type: ignore[method-assign]
    with pytest.raises(ProviderError) as error:
        read(parts=frozenset({"on_demand"}))
    assert error.value.fault == "format"


def test_pages_are_read_of_the_regions_asked_for(cloud: Cloud, read: Read, nobody: None) -> None:
    fetched = read(parts=frozenset({"on_demand"}), regions=("eu-west-1",))
    assert {o.region for o in fetched.offers} == {"eu-west-1"}
    assert cloud.seen["GET"] == 2  # and the spot advisor


def test_no_secret_in_any_fetch_or_error(
    cloud: Cloud, read: Read, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []
    bads = ("SignatureDoesNotMatch", "ExpiredTokenException", "truncate", "always down", "drop")
    actions = ("DescribeRegions", "GetProducts", "DescribeSpotPriceHistory")
    for bad, action in zip(bads, [*actions, *actions], strict=False):
        cloud.trouble.clear()
        cloud.trouble[action, ""] = [bad] * 30
        said.append(repr(asdict(read(parts=ALL, progress=said.append))))
    cloud.trouble["GET", ""] = [500] * 200
    cloud.trouble["DescribeRegions", ""] = cloud.trouble["GetProducts", ""] = ["AuthFailure"] * 9
    with pytest.raises(ProviderError) as error:
        read(progress=said.append)
    text = "\n".join([*said, str(error.value), repr(error.value), caplog.text, *capfd.readouterr()])
    assert len(text) > 10_000
    for secret in (CANARY, CANARY[:16], "AKIAIOSFODNN7EXAMPLE", "123456789012", "Signature="):
        assert secret not in text
    assert CANARY not in redacted(f"a client that says {CANARY}")


def test_regions_are_those_of_the_account(cloud: Cloud, read: Read) -> None:
    assert {o.region for o in read().offers if o.market == "spot"} == set(REGIONS)
