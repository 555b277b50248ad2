"""Countries of regions: every region of the large clouds has one, on the continent of its name."""

import pytest

from recommender.catalogs.countries import EU, countries_of, known_countries
from recommender.catalogs.load import load_snapshot
from recommender.catalogs.registry import OWN_CLIENTS
from recommender.errors import UsageError
from recommender.inputs.units import parse_country
from recommender.market.allowed import allowed_offers
from recommender.market.offer_facts import continent
from recommender.plan.limits import Choice
from tests.shipped import snapshot

CONTINENTS = {
    "oceania": "AU NZ",
    "europe": "AT BE CH DE DK ES FI FR GB IE IT NL NO PL SE",
    "south america": "BR CL",
    "africa": "ZA",
    "middle east": "AE BH IL QA SA",
    "asia": "AU HK ID IN JP KR MY NZ SG TH TW",
    "north america": "CA MX US",
}


def test_every_region_of_a_large_cloud_is_in_one_country_of_its_continent() -> None:
    offers = snapshot().offers
    places = set(zip(offers.provider, offers.region, strict=True))
    for provider, region in sorted(places):
        if provider in OWN_CLIENTS:
            (country,) = countries_of(provider, region)
            named = continent(region)
            if named:
                assert country in CONTINENTS[named].split(), region


def rented(*countries: str) -> set[tuple[str, str]]:
    found = allowed_offers(load_snapshot(), Choice(countries=countries, accelerator="any"))
    o = load_snapshot().offers
    return {(o.provider[row], o.region[row]) for row in found.rows}


def test_only_machines_that_are_surely_in_a_country_are_rented_there() -> None:
    german = rented("DE")
    assert ("aws", "eu-central-1") in german
    assert ("gcp", "europe-west3") in german
    assert not {provider for provider, _ in german} & {"lambda", "verda", "runpod", "oci"}
    assert ("verda", "anywhere") not in rented("FI")  # or in Iceland
    assert ("verda", "anywhere") in rented("FI", "IS")
    union = rented(*EU)
    assert german < union
    assert ("scaleway", "anywhere") in union
    assert not {region for provider, region in union if provider == "aws"} & {"us-east-1"}


def test_a_country_is_a_code_and_eu_its_members() -> None:
    assert parse_country("de", "--country") == ("DE",)
    assert set(parse_country("EU", "--country")) == EU
    assert len(EU) == 27
    assert "US" in known_countries()
    with pytest.raises(UsageError, match="unknown country 'UK'"):
        parse_country("uk", "--country")
