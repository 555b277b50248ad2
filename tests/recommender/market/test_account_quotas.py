"""Quotas of an account by machine, market and region: what is not named of a cloud is 0."""

import math
from itertools import product

import pytest

from recommender.catalogs.catalog import Catalog
from recommender.market.account_quotas import AccountQuotas, quota_names
from recommender.plan.limits import OTHERS, QuotaLimit
from tests.shipped import snapshot

CATALOG = snapshot()
TYPES = [t for t in CATALOG.instance_types.values() if t.gpu]
REGIONS = {"aws": "us-east-1", "gcp": "us-central1", "azure": "eastus"}


def limit(family: str, amount: float, provider: str = "aws", **more: str) -> QuotaLimit:
    """A quota in machines."""
    where = {"market": "any", "region": "", "unit": "machine"} | more
    return QuotaLimit(provider, family, amount=amount, **where)  # type: ignore[arg-type]


def most(*limits: QuotaLimit, catalog: Catalog = CATALOG) -> dict[tuple[str, str, str], float]:
    """Most machines of each type and market in one region of its cloud."""
    index = AccountQuotas(catalog, limits)
    return {
        (t.provider, t.instance_type, market): index.most_machines(t, market, REGIONS[t.provider])
        for t, market in product(TYPES, ("spot", "on_demand"))
    }


def test_without_quotas_nothing_is_limited() -> None:
    assert set(most().values()) == {math.inf}


def test_what_a_cloud_that_is_listed_does_not_name_is_0() -> None:
    found = most(limit("P5", 3, market="spot"))
    for (provider, name, market), machines in found.items():
        if provider != "aws":
            assert machines == math.inf
        elif name.startswith("p5") and market == "spot":
            assert machines == pytest.approx(3)
        else:
            assert machines == pytest.approx(0, abs=1e-6)


def test_a_region_or_a_market_that_is_not_named_is_0_too() -> None:
    index = AccountQuotas(CATALOG, (limit("g", 2, region="us-east-1"),))
    machine = CATALOG.instance_types["aws", "g5.xlarge"]
    assert index.most_machines(machine, "spot", "us-east-1") == pytest.approx(2)
    assert index.most_machines(machine, "spot", "us-west-2") == pytest.approx(0, abs=1e-6)


def test_others_are_unlimited_where_the_file_says_so() -> None:
    named = limit("g", 2)
    found = most(named, limit("Others", math.inf, market="spot"))
    for (provider, name, market), machines in found.items():
        is_g = CATALOG.instance_types[provider, name].quota_family == "g"
        if provider == "aws" and is_g:
            assert machines == pytest.approx(2)
        elif provider == "aws" and market == "on_demand":
            assert machines == pytest.approx(0, abs=1e-6)
        else:
            assert machines == math.inf


def test_own_machines_are_as_many_as_they_are() -> None:
    """A count of one label says nothing of another."""
    machine = CATALOG.instance_types["aws", "g5.xlarge"]
    index = AccountQuotas(CATALOG, (limit("lab", 2, provider="own"), limit(OTHERS, math.inf)))
    assert index.given == {"aws"}
    assert index.most_machines(machine, "on_demand", "us-east-1") == math.inf


# What people call families, and the machines that they mean.
SHORT = [
    ("aws", "P", ("p2", "p3", "p3dn", "p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "p6-b300")),
    ("aws", "G", ("g3", "g3s", "g4dn", "g5", "g5g", "g6", "g6e", "g7", "g7e", "gr6")),
    ("aws", "p5", ("p5", "p5e", "p5en")),
    ("aws", "p5en", ("p5en",)),
    ("aws", "Trn", ("trn1", "trn1n", "trn2")),
    ("gcp", "a3", ("a3-highgpu", "a3-megagpu", "a3-ultragpu")),
    ("gcp", "A2", ("a2-highgpu", "a2-megagpu", "a2-ultragpu")),
    ("gcp", "a3-megagpu", ("a3-megagpu",)),
    ("gcp", "H100", ("a3-highgpu",)),
    ("gcp", "g2", ("g2-standard",)),
    ("azure", "nd", ("NDA100v4", "NDGB200v6", "NDH100v5", "NDH200v5", "NDMI300Xv5",
                      "NDv2", "NDv4")),
    ("azure", "NDH100v5", ("NDH100v5",)),
    ("aws", "Running On-Demand P instances", ("p2", "p3", "p3dn", "p4d", "p4de", "p5", "p5e",
                                             "p5en", "p6-b200", "p6-b300")),
]  # fmt: skip


@pytest.mark.parametrize(("provider", "word", "families"), SHORT)
def test_families_have_short_names_next_to_the_official_ones(
    provider: str, word: str, families: tuple[str, ...]
) -> None:
    found = most(limit(word, 5, provider=provider))
    named = {
        CATALOG.instance_types[key[:2]].family
        for key, machines in found.items()
        if key[0] == provider and 0.5 < machines < math.inf and key[2] == "on_demand"
    }
    assert named == set(families)


def test_every_quota_of_the_catalog_is_found_by_its_code_and_its_name() -> None:
    for t, market in product(TYPES, ("spot", "on_demand")):
        quota = AccountQuotas(CATALOG, ()).quota(t, market)
        assert quota is not None
        assert {t.quota_family, t.family, quota.name} <= set(quota_names(t, quota))


def test_the_least_of_several_quotas_counts() -> None:
    machine = CATALOG.instance_types["aws", "p5.48xlarge"]
    several = (limit("P", 5), limit("p5", 3), limit("p5", 700, unit="vcpu", region="us-east-1"))
    index = AccountQuotas(CATALOG, several)
    assert index.most_machines(machine, "spot", "us-east-2") == pytest.approx(3)
    assert index.most_machines(machine, "spot", "us-east-1") == pytest.approx(3)
    tighter = AccountQuotas(CATALOG, (*several, limit("p5", 200, unit="vcpu")))
    assert tighter.most_machines(machine, "spot", "us-east-1") == pytest.approx(200 / 192)


def shared(provider: str, market: str, *limits: QuotaLimit) -> dict[str, float]:
    """The amounts that apply to a machine of each of some families, by the names of quotas."""
    index = AccountQuotas(CATALOG, limits)
    machine = {
        "aws": CATALOG.instance_types["aws", "p5.48xlarge"],
        "azure": CATALOG.instance_types["azure", "Standard_ND96isr_H100_v5"],
    }[provider]
    found = index.of(machine, market, REGIONS[provider])
    return {each.quota_family: each.amount for each in found}


def by_code(amounts: dict[str, float], provider: str, market: str) -> list[QuotaLimit]:
    """One quota in vCPUs for each of some codes of the catalog."""
    return [
        limit(code, amount, provider, market=market, unit="vcpu")
        for code, amount in amounts.items()
    ]


@pytest.mark.parametrize(
    ("provider", "market", "amounts", "name"),
    [
        ("aws", "on_demand", {"p4": 96, "p5": 192, "p6": 96}, "Running On-Demand P instances"),
        ("azure", "spot", {"NDH100v5": 96, "NDA100v4": 192}, "Total Regional Low-priority vCPUs"),
    ],
)
def test_families_of_one_quota_count_together_up_to_the_most_given_for_one(
    provider: str, market: str, amounts: dict[str, float], name: str
) -> None:
    limits = by_code(amounts, provider, market)
    own = next(code for code in amounts if code in ("p5", "NDH100v5"))
    assert shared(provider, market, *limits) == {own: amounts[own], name: 192}
    regional = [limit(q.quota_family, q.amount, provider, market=market, unit="vcpu",
                      region=REGIONS[provider]) for q in limits]  # fmt: skip
    assert shared(provider, market, *regional) == {own: amounts[own], name: 192}


def test_families_under_one_name_or_with_quotas_of_their_own_count_as_given() -> None:
    codes = by_code({"p4": 96, "p5": 96}, "aws", "on_demand")
    together = limit("P", 384, market="on_demand", unit="vcpu")
    assert shared("aws", "on_demand", *codes, together) == {"p5": 96, "P": 384}
    spot = by_code({"p4": 96, "p5": 96}, "aws", "spot")  # a quota each
    assert shared("aws", "spot", *spot) == {"p5": 96}
    assert shared("aws", "on_demand", limit(OTHERS, 96, unit="vcpu")) == {OTHERS: 96}
