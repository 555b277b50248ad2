"""A plan that is exported, parsed back and priced from the catalog is the plan at its price."""

import re
import shlex
from datetime import UTC, datetime

import pytest
import yaml

from recommender.api.calls import recommend
from recommender.catalogs.catalog import Catalog
from recommender.export.description import description_of
from recommender.export.targets import export_files
from recommender.job.jobfile import find_job
from recommender.plan.limits import Choice, GpuFilter, Limits
from recommender.plan.plan import Plan
from tests.shipped import snapshot

Rented = tuple[str, str, str, bool]  # region, zone, instance type, spot
LIMITS = Limits(deadline_s=48 * 3600.0)
JOB = find_job("resnet50-imagenet")


def answered(provider: str, gpu: str, market: str = "any") -> Plan:
    """The best plan of a narrow question on the shipped catalog."""
    choice = Choice(providers=(provider,), gpus=(GpuFilter(gpu),), market=market)  # type: ignore[arg-type]
    now = datetime(2026, 11, 20, tzinfo=UTC)
    answer = recommend(JOB, LIMITS, choice, catalog=snapshot(), now=now, top=1)
    return answer.plans[answer.best - 1]


PLANS = {
    "aws spot": ("aws", "A10G", "spot"),
    "gcp spot": ("gcp", "L4", "spot"),
    "azure on demand": ("azure", "H100-NVL", "on_demand"),  # a list of regions
}


@pytest.fixture(scope="module", params=PLANS)
def plan(request: pytest.FixtureRequest) -> Plan:
    return answered(*PLANS[request.param])


def exported(plan: Plan, target: str) -> str:
    run = description_of(plan, "plan 1", JOB, LIMITS, tool="recommend", catalog="shipped")
    return export_files(run, target, "")[0].text


def of_skypilot(text: str) -> tuple[int, list[Rented]]:
    made = yaml.safe_load(text)
    rented = []
    for each in made["resources"]["ordered"]:
        _, region, *zone = each["infra"].split("/")
        rented.append((region, "".join(zone), each["instance_type"], each["use_spot"]))
    return made["num_nodes"], rented


def of_terraform(text: str) -> tuple[int, list[Rented]]:
    """What applies as long as the fallback has not taken over."""

    def decided(name: str) -> str:
        line = re.search(rf"^  {name} += (.*)$", text, re.MULTILINE)
        assert line is not None
        return line[1].rpartition(" : ")[2].strip('"')

    places = text.partition("places = [")[2].partition("]")[0]
    found = re.findall(r'region = "([^"]*)", zone = "([^"]*)"', places)
    kind, spot = decided("machine_type"), decided("spot") == "true"
    return int(decided("nodes")), [(region, zone, kind, spot) for region, zone in found]


def of_script(text: str) -> tuple[int, list[Rented]]:
    places = shlex.split(text.partition("PLACES=(")[2].partition("\n)")[0])
    kept = text.partition("keep_plan() {")[2]
    kind = re.search(r"machine_type=(\S+) market=(\S+) count=(\d+)", kept)
    assert kind is not None
    split = [place.partition(" ") for place in places]
    return int(kind[3]), [(r, zone, kind[1], kind[2] == "spot") for r, _, zone in split]


READERS = {"skypilot": of_skypilot, "terraform": of_terraform, "script": of_script}


def price(catalog: Catalog, provider: str, rented: Rented) -> float:
    """The least price in the catalog of what a file asks for."""
    o = catalog.offers
    region, zone, kind, spot = rented
    wanted = (provider, kind, "spot" if spot else "on_demand", region)
    rows = zip(o.provider, o.instance_type, o.market, o.region, o.zone, o.usd_per_hour, strict=True)
    return min(row[5] for row in rows if row[:4] == wanted and zone in ("", row[4]))


@pytest.mark.parametrize("reader", READERS)
def test_what_is_read_back_costs_what_the_plan_says_at_every_place(plan: Plan, reader: str) -> None:
    first = plan.machines[0]
    scripts = {"aws": "aws-cli", "gcp": "gcloud", "azure": "azure-cli"}
    target = scripts[first.provider] if reader == "script" else reader
    nodes, rented = READERS[reader](exported(plan, target))
    assert nodes == first.count
    assert {(kind, spot) for _, _, kind, spot in rented} == {
        (first.instance_type, first.market == "spot")
    }
    usd = [price(snapshot(), first.provider, each) for each in rented]
    assert nodes * usd[0] == pytest.approx(plan.usd_per_hour)
    listed: dict[str, float] = {}
    for site in plan.sites or ():
        listed.setdefault(site.region, site.usd_per_hour)
    assert listed or first.market != "spot"
    for (region, zone, *_), paid in zip(rented, usd, strict=True):
        of_zone = [s.usd_per_hour for s in plan.sites if (s.region, s.zone) == (region, zone)]
        expected = of_zone[0] if of_zone else listed.get(region, first.usd_per_hour)
        assert paid == pytest.approx(expected)
    assert list(dict.fromkeys(region for region, *_ in rented)) == (
        list(dict.fromkeys(site.region for site in plan.sites)) or [first.region]
    )
