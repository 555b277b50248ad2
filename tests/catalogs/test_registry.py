"""The registry of providers: plain data that every part of the program reads."""

import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

from recommender.benchmarks import metadata
from recommender.catalogs.registry import CLOUDS, NAMES, OWN, OWN_CLIENTS
from tests.shipped import every_cloud

_CLIENTS = {"boto3", "google", "httpx", "recommender.catalogs.providers"}


def test_importing_the_registry_imports_no_client() -> None:
    code = f"import recommender.catalogs.registry, sys; print({_CLIENTS!r} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("name", OWN_CLIENTS)
def test_a_registered_provider_has_a_client_of_its_name(name: str) -> None:
    assert find_spec(f"recommender.catalogs.providers.{name}.provider") is not None


def test_a_provider_is_registered_by_its_name() -> None:
    assert [info.name for info in CLOUDS.values()] == list(CLOUDS)


def test_the_bundled_benchmarks_know_the_same_providers() -> None:
    assert metadata.PROVIDERS == NAMES == (*CLOUDS, OWN)


def test_the_patterns_match_the_places_of_the_shipped_offers() -> None:
    offers = every_cloud().offers
    places = set(zip(offers.provider, offers.region, offers.zone, strict=True))
    for provider, region, zone in places:
        info = CLOUDS[provider]
        assert re.fullmatch(info.region_pattern, region)
        assert not zone or info.zones
        assert not (zone and info.zones == "id") or re.fullmatch(info.zone_pattern, zone)
