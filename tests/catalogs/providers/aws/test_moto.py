"""Machines and offerings of moto's server, whose tables are dumps of the real API."""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from recommender.catalogs.providers.aws.client import Caller
from recommender.catalogs.providers.aws.machines import machines_of
from recommender.catalogs.providers.aws.regions import RegionRead, account_regions, read_region
from recommender.catalogs.providers.contract import Wanted
from tests.catalogs.providers.aws.cloud import NOW, Cloud
from tests.shipped import snapshot

pytest.importorskip("moto.server")
NEWER = ("g6.12xlarge", "p5.4xlarge", "trn1.2xlarge", "g6e.24xlarge")  # taken from the catalog


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    """The address of moto's server, in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-p", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr
        found = next(m for line in server.stderr if (m := re.search(r"http://127\S+", line)))
        yield found[0]
        server.terminate()


def wanted() -> Wanted:
    catalog = snapshot()
    types = {
        t.instance_type: t
        for t in catalog.instance_types.values()
        if t.provider == "aws" and t.instance_type not in NEWER
    }
    return Wanted(types=types, gpus=catalog.gpus, now=NOW, parts=frozenset({"on_demand"}))


@pytest.fixture
def region(moto: str, cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> RegionRead:
    """One region as moto describes it."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_EC2", moto)
    caller = Caller(wanted())
    regions = account_regions(caller)
    assert "us-east-1" in regions.enabled
    assert len(regions.enabled) + len(regions.disabled) >= 30
    return read_region(caller, caller.ec2("us-east-1"), "us-east-1")


def test_new_machines_are_made_as_the_shipped_table_has_them(region: RegionRead) -> None:
    """The shipped table was made from the same API by other code."""
    found = machines_of({"us-east-1": region.machines}, wanted())
    made = {machine.instance_type: machine for machine in found.new}
    shipped = snapshot().instance_types
    for name in ("g6.12xlarge", "p5.4xlarge", "trn1.2xlarge"):
        known = shipped["aws", name]
        as_known = {"source": known.source, "as_of": known.as_of, "status": known.status}
        assert replace(made[name], **as_known) == known  # type: ignore[arg-type]


def test_parts_of_gpus_and_other_chips_are_named(region: RegionRead) -> None:
    found = machines_of({"us-east-1": region.machines}, wanted())
    reasons = {each.instance_type: (each.gpu, each.gpus, each.reason) for each in found.unknown}
    assert reasons["g6f.large"] == ("L4", 0.125, "part of a GPU")
    assert reasons["inf2.xlarge"][2] == "GPU not known"


def test_nothing_in_the_catalog_contradicts_the_api(region: RegionRead) -> None:
    assert machines_of({"us-east-1": region.machines}, wanted()).warnings == ()


def test_offerings_are_by_zone_id(region: RegionRead) -> None:
    zones = {zone for name, zone in region.offered if name == "g4dn.xlarge"}
    assert zones
    assert all(re.fullmatch(r"use1-az\d", zone) for zone in zones)
    assert region.sells_on_demand("g4dn.xlarge")
    assert not region.sells_on_demand("p3.2xlarge")  # withdrawn
