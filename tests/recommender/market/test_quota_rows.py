"""Quotas of an account: what they limit, and which would limit nothing."""

import random

import pytest

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.registry import OWN_CLIENTS
from recommender.errors import UsageError
from recommender.market.account_quotas import QuotaIndex
from recommender.market.quota_rows import refuse_unknown_quotas
from recommender.plan.limits import QuotaLimit
from tests.shipped import snapshot


def in_region(provider: str, region: str, catalog: Catalog) -> QuotaLimit:
    """A quota of the provider that exists, of nothing."""
    name = next(q.name for q in catalog.quotas if q.provider == provider)
    return QuotaLimit(provider, name, "any", region, "vcpu", 0.0, place="quotas.csv, line 2")


@pytest.mark.parametrize(
    ("provider", "word", "meant"),
    [
        ("aws", "us-east2", "us-east-2"),
        ("aws", "US-EAST-2", "us-east-2"),
        ("aws", "us-east-2a", "us-east-2"),
        ("gcp", "us-centrall1", "us-central1"),
        ("gcp", "us-central1-a", "us-central1"),
        ("azure", "east-us-2", "eastus2"),
    ],
)
def test_a_region_that_does_not_exist_is_refused_with_the_one_that_was_meant(
    provider: str, word: str, meant: str
) -> None:
    """Passed over in silence, a quota of zero would still plan there."""
    with pytest.raises(UsageError) as refused:
        refuse_unknown_quotas([in_region(provider, word, snapshot())], snapshot())
    assert refused.value.problems == (
        f"quotas.csv, line 2: unknown {provider} region '{word}'; did you mean {meant}?",
    )


def test_a_region_of_another_provider_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown gcp region 'us-east-2'"):
        refuse_unknown_quotas([in_region("gcp", "us-east-2", snapshot())], snapshot())


@pytest.mark.parametrize("provider", OWN_CLIENTS)
def test_every_region_with_an_offer_is_known(provider: str) -> None:
    offers = snapshot().offers
    pairs = set(zip(offers.provider, offers.region, strict=True))
    regions = ["", *sorted(region for name, region in pairs if name == provider)]
    refuse_unknown_quotas([in_region(provider, each, snapshot()) for each in regions], snapshot())


def test_of_many_mistakes_the_first_twenty_are_named() -> None:
    wrong = [in_region("aws", f"us-east2{n}", snapshot()) for n in range(500)]
    with pytest.raises(UsageError) as refused:
        refuse_unknown_quotas(wrong, snapshot())
    assert len(refused.value.problems) == 21
    assert refused.value.problems[-1] == "and 480 more"


PLACES = [
    (provider, market, region)
    for provider in ("aws", "gcp")
    for market in ("spot", "on_demand")
    for region in ("a", "b")
]


def falls_under(limit: QuotaLimit, place: tuple[str, str, str], names: list[str]) -> bool:
    """What a quota covers, in the words of the documentation."""
    provider, market, region = place
    return (
        limit.provider == provider
        and limit.market in ("any", market)
        and limit.region in ("", region)
        and limit.quota_family.lower() in [name.lower() for name in names]
    )


def test_the_index_finds_what_asking_every_quota_finds() -> None:
    draw = random.Random(20261123)
    for _ in range(300):
        limits = [
            QuotaLimit(
                draw.choice(("aws", "gcp")),
                draw.choice(("P5", "p5", "G", "All G")),
                draw.choice(("any", "spot", "on_demand")),
                draw.choice(("", "a", "b")),
                draw.choice(("vcpu", "gpu")),
                float(draw.randrange(4)),
            )
            for _ in range(draw.randrange(30))
        ]
        index = QuotaIndex(limits)
        for place in PLACES:
            names = draw.sample(["p5", "g", "ALL G", ""], 2)
            found = index.of(*place, names)
            covering = [limit for limit in limits if falls_under(limit, place, names)]
            assert set(found) <= set(covering)
            for unit in ("vcpu", "gpu"):
                least = min((q.amount for q in covering if q.unit == unit), default=None)
                assert min((q.amount for q in found if q.unit == unit), default=None) == least


def test_an_index_keeps_the_least_of_two_quotas_on_the_same() -> None:
    more, less = (QuotaLimit("aws", "P5", "spot", "a", "vcpu", n) for n in (192.0, 96.0))
    assert QuotaIndex([more, less]).of("aws", "spot", "a", ["p5"]) == (less,)
