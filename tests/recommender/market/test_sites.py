"""Sites of the plan space: what of the catalog stands in them."""

import re

import pytest

from recommender.catalogs.registry import OWN_CLIENTS
from recommender.job.jobfile import find_job
from recommender.market.failover_lists import ONE_PRICE
from recommender.plan.limits import OTHERS, Choice, Limits, Progress, QuotaLimit
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import Problem, planning_problem
from recommender.planner.program_facts import reported_program
from tests.recommender.planning import NOW
from tests.shipped import snapshot

HERE = QuotaLimit("aws", "P", "on_demand", "us-east-2", "vcpu", 96.0)
ELSEWHERE = QuotaLimit("aws", "P", "on_demand", "eu-west-2", "vcpu", 192.0)

MOST = Limits().max_machines


def of_everything(amount: float) -> tuple[QuotaLimit, ...]:
    """Quotas of so many machines of any kind, more in some regions."""
    o = snapshot().offers
    regions = sorted(set(zip(o.provider, o.region, strict=True)))
    everywhere = [QuotaLimit(p, OTHERS, "any", "", "machine", amount) for p in OWN_CLIENTS]
    more = [
        QuotaLimit(p, OTHERS, "any", region, "machine", amount + n)
        for n, (p, region) in enumerate(regions)
    ]
    return (*everywhere, *more)


def problem(*quotas: QuotaLimit) -> Problem:
    job, choice = find_job("resnet50-imagenet"), Choice(quotas=quotas)
    return planning_problem(job, Limits(), choice, snapshot(), Progress(), NOW, 7)


@pytest.mark.parametrize("quotas", [(), (HERE, ELSEWHERE)])
def test_no_region_that_is_left_out_on_demand_has_anything_to_offer(
    quotas: tuple[QuotaLimit, ...],
) -> None:
    asked = problem(*quotas)
    facts, o, sites = asked.facts, asked.catalog.offers, asked.single_type_sites
    kept: dict[str, list[tuple[float, float, bool]]] = {}

    def offered(row: int) -> tuple[float, float, bool]:
        machine = asked.catalog.instance_types[o.provider[row], o.instance_type[row]]
        # No part of a machine can be rented.
        most = min(facts.quotas.most_machines(machine, "on_demand", o.region[row]), MOST) // 1.0
        return facts.planning_price(row), most, o.kind[row] != "derived"

    for pools in sites.pools:
        for pool in pools:
            if not pool.spot:
                usd, most, quoted = zip(*map(offered, pool.rows), strict=True)
                whole = max(usd), min(most), all(quoted)
                kept.setdefault(pool.type.instance_type, []).append(whole)
    rows = [row for row in asked.rows if o.market[row] == "on_demand"]
    for row in rows:
        usd, most, quoted = offered(row)
        assert not most or any(
            k_usd <= ONE_PRICE * usd and k_most >= most and k_quoted >= quoted
            for k_usd, k_most, k_quoted in kept[o.instance_type[row]]
        )
    assert sum(map(len, kept.values())) < 0.5 * len(rows)


def test_quotas_with_room_for_the_largest_cluster_leave_a_problem_as_it_is_without_any() -> None:
    asked, free = problem(*of_everything(MOST)), problem()
    assert asked.single_type_sites.pools == free.single_type_sites.pools
    assert [site.quota.tolist() for site in asked.single_type_sites.sites] == [[]] * len(
        OWN_CLIENTS
    )
    assert not asked.quotas_bind
    assert not free.quotas_bind


def test_quotas_without_that_room_bind() -> None:
    asked = problem(*of_everything(MOST - 1))
    assert asked.quotas_bind
    assert all((site.quota == MOST - 1).any() for site in asked.single_type_sites.sites)


def test_a_quota_of_one_cloud_binds_where_those_of_the_others_do_not() -> None:
    asked = problem(HERE, *(q for q in of_everything(MOST) if q.provider != "aws"))
    assert asked.quotas_bind
    assert [len(site.quota) > 0 for site in asked.single_type_sites.sites] == [
        site.provider == "aws" for site in asked.single_type_sites.sites
    ]


def test_rows_of_the_linear_program_carry_the_names_of_the_quotas() -> None:
    quotas = (
        QuotaLimit("aws", "P", "on_demand", "", "vcpu", 384.0),
        QuotaLimit("aws", "P", "spot", "us-east-1", "vcpu", 192.0),
    )
    choice = Choice(quotas=quotas, providers=("aws",))
    limits = Limits(deadline_s=24 * 3600.0)
    asked = planning_problem(find_job("gpt2-xl"), limits, choice, snapshot(), Progress(), NOW, 7)
    pool = PlanPool(asked)
    reported = reported_program(pool, ())
    assert reported is not None
    program = reported.program
    rows = [row for row in program.model.rows if row.startswith("quota_")]
    names = ["quota_aws_P_on_demand", "quota_aws_P_spot_us_east_1"]
    assert rows[: len(names)] == names
    # Sites of mixes have rows of the same quotas: their numbers tell them apart.
    assert {re.sub(r"_\d+_\d+$", "", row) for row in rows} == set(names)
    assert len(set(rows)) == len(rows)


def test_a_more_expensive_region_is_kept_if_its_quota_allows_more_machines() -> None:
    asked = problem(HERE, ELSEWHERE)
    o = asked.catalog.offers
    regions = {
        o.region[pool.rows[0]]
        for pools in asked.single_type_sites.pools
        for pool in pools
        if pool.market == "on_demand" and pool.type.instance_type == "p4d.24xlarge"
    }
    assert regions == {"us-east-2", "eu-west-2"}
