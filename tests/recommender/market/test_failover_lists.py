"""Failover lists of checkpoints that are cheap and expensive to move."""

from array import array
from dataclasses import replace
from itertools import permutations

import pytest

from recommender.job.jobfile import find_job
from recommender.market.failover_lists import MOVE_AFTER_S
from recommender.market.offer_facts import Facts, Pool, move_usd
from recommender.plan.limits import Choice, Limits, Progress, QuotaLimit
from recommender.planner.problem import Problem, planning_problem
from tests.recommender.planning import NOW
from tests.research.metamorphic.catalogs import repriced, scaled
from tests.shipped import snapshot


def problem(checkpoint_gb: float, **chosen: object) -> Problem:
    job = replace(find_job("llama3-70b-sft"), checkpoint_bytes=checkpoint_gb * 1e9)
    choice = replace(Choice(providers=("aws",), gpus=()), **chosen)
    return planning_problem(job, Limits(), choice, snapshot(), Progress(), NOW, 7)


def lists(asked: Problem) -> list[Pool]:
    return [p for pools in asked.single_type_sites.pools for p in pools if p.spot]


def regions(facts: Facts, pool: Pool) -> set[str]:
    return {facts.catalog.offers.region[row] for row in pool.rows}


@pytest.mark.parametrize("checkpoint_gb", [50.0, 1_000.0])
def test_no_patience_at_an_eighth_of_the_price_costs_more_than_the_move(
    checkpoint_gb: float,
) -> None:
    asked = problem(checkpoint_gb)
    found, price = lists(asked), asked.facts.planning_price
    patient = [p for p in found if p.move_after_s]
    assert len(patient) > 10
    for pool in patient:
        worth_s = 8.0 * 3600.0 * move_usd(asked.facts, pool) / price(pool.rows[0])
        assert len(regions(asked.facts, pool)) > 1
        same = [
            p.move_after_s
            for p in found
            if replace(p, move_after_s=0.0) == replace(pool, move_after_s=0.0)
        ]
        assert same == [0.0, *(each for each in MOVE_AFTER_S if each <= worth_s)]


def test_small_checkpoints_move_at_once() -> None:
    assert not any(pool.move_after_s for pool in lists(problem(0.05)))


def test_small_machines_wait_for_a_checkpoint_that_large_ones_move() -> None:
    patient = {p.type.instance_type for p in lists(problem(5.0)) if p.move_after_s}
    assert "g4dn.xlarge" in patient
    assert "p5.48xlarge" not in patient


def test_the_currency_decides_no_patience() -> None:
    """Prices in another currency leave the lists as they are."""
    asked = problem(50.0)
    other = asked.with_catalog(scaled(asked.catalog, 8.717))
    assert lists(other) == lists(asked)
    assert any(pool.move_after_s for pool in lists(asked))


def test_a_plan_within_one_region_has_no_wait_before_a_move() -> None:
    asked = problem(1_000.0, failover="zone")
    assert not any(pool.move_after_s for pool in lists(asked))


def test_a_list_inside_the_cheapest_region_is_kept_next_to_those_across_regions() -> None:
    asked = problem(1_000.0)
    facts, found = asked.facts, lists(asked)
    here = [p for p in found if len(p.rows) > 1 and len(regions(facts, p)) == 1]
    away = {(p.kind, len(p.rows)) for p in found if len(regions(facts, p)) > 1}
    assert {(p.kind, len(p.rows)) for p in here} & away
    narrower = lists(problem(1_000.0, failover="zone"))
    for pool in here:
        same = [p for p in narrower if (p.kind, len(p.rows)) == (pool.kind, len(pool.rows))]
        assert _mean_usd(facts, pool) <= min(_mean_usd(facts, p) for p in same) + 1e-9


AMERICA = {"us", "ca", "mx"}  # how names of AWS's regions begin


@pytest.mark.parametrize("checkpoint_gb", [0.05, 988.0])
def test_no_list_of_spot_machines_leaves_its_continent(checkpoint_gb: float) -> None:
    """A list went from London to Mumbai to Ohio, and a checkpoint of 988 GB with it."""
    asked = problem(checkpoint_gb)
    across = 0
    for pool in lists(asked):
        begins = {region.split("-")[0] for region in regions(asked.facts, pool)}
        assert len(begins) == 1 or begins <= AMERICA
        across += len(regions(asked.facts, pool)) > 1
    assert across > 20


def test_the_cheapest_list_of_as_many_zones_is_kept() -> None:
    """Of p5.48xlarge: no list costs more than another one that has as many zones."""
    asked = problem(0.05)
    found = [p for p in lists(asked) if p.type.instance_type == "p5.48xlarge"]
    assert {len(pool.rows) for pool in found} == {1, 2, 4}
    for one, other in permutations(found, 2):
        better = len(other.rows) >= len(one.rows)
        assert not (better and _mean_usd(asked.facts, other) < _mean_usd(asked.facts, one))


def on_demand(asked: Problem, instance_type: str) -> list[list[str]]:
    """The regions of each list of a type on demand."""
    region = asked.catalog.offers.region
    return [
        [region[row] for row in pool.rows]
        for pools in asked.single_type_sites.pools
        for pool in pools
        if pool.market == "on_demand" and pool.type.instance_type == instance_type
    ]


THREE = ["us-east-1", "us-east-2", "us-west-2"]  # where AWS asks 55.04 USD/h for p5.48xlarge


def test_scarce_machines_are_requested_on_demand_in_all_regions_of_one_price() -> None:
    asked = problem(5.0)
    assert on_demand(asked, "p5.48xlarge") == [THREE]
    price, o = asked.facts.planning_price, asked.catalog.offers
    several = 0
    for pools in asked.single_type_sites.pools:
        for pool in pools:
            if pool.spot:
                continue
            regions, usd = [o.region[row] for row in pool.rows], list(map(price, pool.rows))
            assert len(set(regions)) == len(regions) <= 4
            assert usd == sorted(usd)
            assert len(regions) <= 3 or usd[3] <= 1.002 * usd[2]
            several += len(regions) > 1
    assert several >= 5


def test_a_cheaper_region_hides_no_list_of_more() -> None:
    asked = problem(5.0)
    o = asked.catalog.offers
    usd = array("d", o.usd_per_hour)
    for row in range(len(o)):
        if (o.instance_type[row], o.region[row]) == ("p5.48xlarge", "eu-north-1"):
            usd[row] = 54.0 if o.market[row] == "on_demand" else usd[row]
    cheaper = asked.with_catalog(replace(asked.catalog, offers=replace(o, usd_per_hour=usd)))
    found = on_demand(cheaper, "p5.48xlarge")
    assert found == [["eu-north-1", *THREE[:count]] for count in range(4)]


def test_a_region_that_becomes_cheaper_stays_in_the_lists() -> None:
    """With it the other regions are as many as before, at a lower price."""
    asked = problem(5.0)
    o = asked.catalog.offers
    row = next(
        row
        for row in range(len(o))
        if (o.instance_type[row], o.region[row]) == ("p6-b200.48xlarge", "us-west-2")
        if o.market[row] == "on_demand"
    )
    cheaper = asked.with_catalog(repriced(asked.catalog, row, 0.95 * o.usd_per_hour[row]))
    assert sorted(map(sorted, on_demand(asked, "p6-b200.48xlarge"))) == [THREE]
    assert on_demand(cheaper, "p6-b200.48xlarge") == [
        ["us-west-2"],
        ["us-west-2", "us-east-1"],
        ["us-west-2", "us-east-1", "us-east-2"],
    ]
    e = cheaper.single_type_sites.sites[0].entries
    three = (e.zone_count == 3.0) & (e.kind == cheaper.offers.kinds.of["aws", "p6-b200.48xlarge"])
    mean = asked.catalog.offers.usd_per_hour[row] * (2.0 + 0.95) / 3.0
    assert e.usd_per_hour[three & ~e.spot] == pytest.approx(mean, rel=1e-3)


def test_what_is_nearly_always_there_has_one_region() -> None:
    asked = problem(5.0)
    assert {len(each) for each in on_demand(asked, "g6e.xlarge")} == {1}
    unsure = problem(5.0, on_demand_obtainable=0.5)
    assert on_demand(unsure, "g6e.xlarge") == [THREE]
    sure = problem(5.0, on_demand_obtainable=1.0)
    assert on_demand(sure, "p5.48xlarge") == [["us-east-1"]]


def test_a_plan_within_one_region_has_no_on_demand_list() -> None:
    for failover in ("none", "zone"):
        assert on_demand(problem(5.0, failover=failover), "p5.48xlarge") == [["us-east-1"]]


def test_a_list_on_demand_holds_the_regions_whose_quota_is_as_large() -> None:
    vcpus = {"us-east-1": 384.0, "us-east-2": 192.0, "us-west-2": 96.0}
    quotas = tuple(
        QuotaLimit("aws", "P", "on_demand", region, "vcpu", each) for region, each in vcpus.items()
    )
    found = on_demand(problem(5.0, quotas=quotas, quotas_known=True), "p5.48xlarge")
    assert found == [["us-east-1", "us-east-2"], ["us-east-1"]]


def test_data_that_would_be_copied_shorten_a_list_on_demand() -> None:
    asked = problem(5.0)
    data = replace(asked.job.data, at="aws:us-west-2", gib=1000.0)
    found = on_demand(asked.with_job(replace(asked.job, data=data)), "p5.48xlarge")
    home = sorted((each for each in found if each[0] == "us-west-2"), key=len)
    assert home == [["us-west-2"], ["us-west-2", "us-east-1"], ["us-west-2", *THREE[:2]]]


def test_a_list_on_demand_moves_no_checkpoint() -> None:
    asked = problem(1_000.0)
    e = asked.single_type_sites.sites[0].entries
    several = ~e.spot & (e.zone_count > 1.0)
    assert several.any()
    assert not e.usd_per_move[several].any()
    assert not e.move_after_s[several].any()


def _mean_usd(facts: Facts, pool: Pool) -> float:
    return sum(map(facts.planning_price, pool.rows)) / len(pool.rows)
