"""Rights, quotas and the sum of it: what is called, and what the guards make of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.providers.aws.provider import provider
from recommender.catalogs.providers.aws.quotas import SETTING
from recommender.catalogs.providers.clients import makers
from recommender.catalogs.providers.contract import Fetched, QuotaValue
from recommender.catalogs.refresh.reference import Reference, Validated
from recommender.catalogs.refresh.validate import validate
from tests.catalogs.providers.aws.cloud import NOW, REGIONS, Cloud, block_of, dimension_of
from tests.catalogs.providers.aws.conftest import Read
from tests.shipped import snapshot

POLICY = Path(__file__).parents[4] / "deploy" / "aws-iam-policy.json"
QUOTAS, SPOT = frozenset({"quotas"}), frozenset({"spot"})
ALL = frozenset({"on_demand", "spot", "reserved_block"})


def service(action: str) -> str:
    """An operation as a policy names it."""
    names = {"GetProducts": "pricing", "ListServiceQuotas": "servicequotas"}
    return f"{names.get(action, 'ec2')}:{action}"


def held(found: Validated) -> set[tuple[str, str]]:
    """Machines and regions whose last good price stays."""
    return {(key[0], key[1]) for key in found.held}


def validated(fetched: Fetched, cloud: Cloud) -> Validated:
    catalog = snapshot()
    last = [o for o in catalog.offers if o.provider == "aws" and o.instance_type in cloud.types]
    return validate(fetched, Reference("aws", cloud.types, catalog.gpus, last, {}, NOW.date()))


def test_the_operations_called_are_those_of_the_policy(
    cloud: Cloud, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTING, "1")
    with_three_of(cloud, "T4")
    read(parts=ALL)
    read(parts=QUOTAS)
    called = {service(action) for action in cloud.seen if action != "GET"}
    policy = json.loads(POLICY.read_text("utf-8"))
    allowed = [action for s in policy["Statement"] for action in s["Action"]]
    assert called == set(allowed)
    assert len(allowed) == len(set(allowed))
    assert all(s["Effect"] == "Allow" and s["Resource"] == "*" for s in policy["Statement"])


def with_three_of(cloud: Cloud, gpu: str) -> None:
    """The catalog knows three machines with a GPU."""
    types = snapshot().instance_types.values()
    cloud.types |= {t.instance_type: t for t in types if t.provider == "aws" and t.gpu == gpu}


def test_scores_are_reported_where_they_are_requested(
    cloud: Cloud, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTING, "1")
    with_three_of(cloud, "T4")
    said = "spot placement now, one machine with T4, of 10: euw1-az1 9, use1-az1 9, euw1-az2 3"
    assert any(note.startswith(said) for note in read(parts=SPOT).warnings)
    assert cloud.seen["GetSpotPlacementScores"] == 1


def test_too_many_questions_about_scores_are_a_warning(
    cloud: Cloud, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTING, "1")
    with_three_of(cloud, "T4")
    cloud.trouble["GetSpotPlacementScores", ""] = ["MaxConfigLimitExceeded"]
    fetched = read(parts=SPOT)
    assert any("MaxConfigLimitExceeded" in note for note in fetched.warnings)
    assert fetched.failed == ()


def test_only_the_second_statement_is_optional(cloud: Cloud, read: Read) -> None:
    read()
    needed, _ = json.loads(POLICY.read_text("utf-8"))["Statement"]
    assert {service(action) for action in cloud.seen if action != "GET"} == set(needed["Action"])


def test_every_call_only_reads(cloud: Cloud, read: Read) -> None:
    read(parts=ALL)
    read(parts=QUOTAS)
    assert all(action.startswith(("Describe", "Get", "List", "GET")) for action in cloud.seen)


def test_quotas_are_found_by_name_in_each_region(cloud: Cloud, read: Read) -> None:
    cloud.page = 1
    fetched = read(parts=QUOTAS)
    assert fetched.quotas == tuple(
        QuotaValue("aws", name, market, region, "vcpu", amount)  # type: ignore[arg-type]
        for region in REGIONS
        for name, market, amount in (
            ("All P5 Spot Instance Requests", "spot", 0.0),
            ("Running On-Demand P instances", "on_demand", 192.0),
        )
    )
    assert fetched.offers == ()


def test_every_quota_written_is_one_that_the_quota_file_takes(cloud: Cloud, read: Read) -> None:
    names = {quota.name for quota in snapshot().quotas if quota.provider == "aws"}
    cloud.quotas["us-east-1"] = [{"QuotaName": name.upper(), "Value": 8.0} for name in names]
    written = [q.family for q in read(parts=QUOTAS).quotas if q.region == "us-east-1"]
    assert sorted(written) == sorted(names)


def test_a_quota_without_a_usable_value_is_named(cloud: Cloud, read: Read) -> None:
    cloud.quotas["us-east-1"] = [{"QuotaName": "Running On-Demand P instances", "Value": -1.0}]
    fetched = read(parts=QUOTAS, regions=("us-east-1",))
    assert fetched.quotas == ()
    assert any("'Running On-Demand P instances'" in said for said in fetched.warnings)


def test_a_region_without_quotas_fails_alone(cloud: Cloud, read: Read) -> None:
    cloud.trouble["ListServiceQuotas", "us-east-1"] = ["AccessDeniedException"] * 3
    fetched = read(parts=QUOTAS)
    assert [f.region for f in fetched.failed] == ["us-east-1"]
    assert {q.region for q in fetched.quotas} == {"us-west-2", "eu-west-1"}


def test_quotas_need_credentials(cloud: Cloud, read: Read, nobody: None) -> None:
    with pytest.raises(ProviderError) as error:
        read(parts=QUOTAS)
    assert error.value.fault == "credentials"


def test_the_client_is_found_by_its_name() -> None:
    assert makers(("aws",))["aws"]().name == provider().name == "aws"


def test_the_real_client_speaks_https_only() -> None:
    places: Any = provider()._places
    assert places.documents.startswith("https://")
    assert places.advisor.startswith("https://")


def test_the_guards_believe_a_good_day(cloud: Cloud, read: Read) -> None:
    fetched = read(parts=ALL)
    found = validated(fetched, cloud)
    assert found.quarantined == ()
    assert len(found.offers) == len(fetched.offers)


def test_a_spot_price_in_a_perfect_on_demand_row_is_held_skypilot_8125(
    cloud: Cloud, read: Read
) -> None:
    """Nothing in the row tells: only its price next to the last one and the other regions'."""
    dimension_of(cloud.item("p5.48xlarge", "us-east-1"))["pricePerUnit"] = {"USD": "16.512"}
    found = validated(read(), cloud)
    assert ("p5.48xlarge", "us-east-1") in held(found)
    assert "price_change" in {row.rule for row in found.quarantined}


def test_a_price_in_cents_is_held(cloud: Cloud, read: Read) -> None:
    dimension_of(cloud.item("g5.xlarge", "us-west-2"))["pricePerUnit"] = {"USD": "100.6"}
    found = validated(read(), cloud)
    assert ("g5.xlarge", "us-west-2") in held(found)


def test_spot_more_expensive_than_on_demand_is_refused(cloud: Cloud, read: Read) -> None:
    cloud.quote("p5.48xlarge", "us-east-1a")["SpotPrice"] = "55.05"
    found = validated(read(), cloud)
    assert [row.rule for row in found.quarantined] == ["spot_above_on_demand"]


def test_spot_at_the_on_demand_price_is_no_bargain(cloud: Cloud, read: Read) -> None:
    cloud.quote("p5.48xlarge", "us-east-1a")["SpotPrice"] = "55.04"
    found = validated(read(), cloud)
    assert found.quarantined == ()
    assert found.ignored == {"spot at the on-demand price": 1}


def test_a_capacity_block_is_never_listed_as_an_hourly_price(cloud: Cloud, read: Read) -> None:
    cloud.blocks["us-east-1"] = [block_of("p5.48xlarge", "us-east-1a", "240.00")]
    found = validated(read(parts=ALL), cloud)
    cheap = [o.market for o in found.offers if o.usd_per_hour == 10.0]
    assert cheap == ["reserved_block"]
