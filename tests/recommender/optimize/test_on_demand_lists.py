"""Plans of random catalogs against every list of on-demand regions that there could be."""

from array import array
from dataclasses import replace
from itertools import combinations
from random import Random

import pytest

from recommender.market.offer_facts import Pool
from recommender.optimize.space import Site
from recommender.plan.limits import Choice, Limits, Progress, QuotaLimit
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import Problem, planning_problem
from recommender.planner.ranking import ranked_plans
from tests.recommender.optimize.brute_force import every_plan
from tests.recommender.planning import AWS, HOUR, NOW, job, small

REGIONS = ("us-east-1", "us-west-2", "eu-west-1")
TOLERANCE = 2e-3  # near-ties go to the simplest plan


def problem_of(random: Random) -> Problem:
    """A job of some hours on two machines of AWS, at several prices in some regions."""
    catalog = small()
    o = catalog.offers
    usd = [
        AWS[name][4] * random.choice((1.0, 1.0, 1.0015, 1.03, 1.03, 1.3))
        if market == "on_demand" and name in AWS
        else price
        for name, price, market in zip(o.instance_type, o.usd_per_hour, o.market, strict=True)
    ]
    catalog = replace(catalog, offers=replace(o, usd_per_hour=array("d", usd)))
    quotas = tuple(
        QuotaLimit("aws", "g", "on_demand", region, "vcpu", random.choice((4.0, 8.0, 96.0)))
        for region in REGIONS[: random.choice((0, 0, 3))]
    )
    choice = Choice(
        providers=("aws",),
        instances=("g4dn.xlarge", "g4dn.2xlarge"),
        mix="no",
        on_demand_obtainable=random.choice((0.2, 0.5, 0.8)),
        quotas=quotas,
        market=random.choice(("any", "on_demand")),
    )
    trained = job(random.choice(("2", "8")))
    if random.random() < 0.5:
        data = replace(trained.data, at=f"aws:{random.choice(REGIONS)}")
        trained = replace(trained, data=data)
    limits = Limits(
        max_machines=2,
        deadline_s=random.uniform(2.0, 16.0) * HOUR,
        budget_usd=random.choice((None, 20.0)),
        confidence=random.choice((0.8, 0.95)),
        objective=random.choice(("cost", "time")),
    )
    return planning_problem(trained, limits, choice, catalog, Progress(), NOW, 7)


def every_list(problem: Problem) -> tuple[Site, ...]:
    """The provider's site with each set of regions as a list."""
    builder, o = problem.site_space.builder, problem.catalog.offers
    rows = [row for row in problem.rows if o.market[row] == "on_demand"]
    by_type = problem.facts.by(rows, "instance_type")
    lists = []
    for mine in by_type.values():
        key = o.provider[mine[0]], o.instance_type[mine[0]]
        kind, machine = problem.offers.kinds.of[key], problem.catalog.instance_types[key]
        for count in range(1, len(mine) + 1):
            for some in combinations(mine, count):
                lists.append(Pool(some, "on_demand", kind, machine))
    spot = [pool for pools in problem.single_type_sites.pools for pool in pools if pool.spot]
    site = builder.site_of([*lists, *spot], lists).sites[0]
    return (replace(site, region="", singles=True),)


def wrong(seed: int) -> str:
    """What is wrong with an answer, if anything."""
    problem = problem_of(Random(seed))
    best = min(every_plan(problem, every_list(problem)), key=lambda plan: plan.goal, default=None)
    first = next(iter(ranked_plans(PlanPool(problem), 1).plans), None)
    if first is None or best is None:
        return "" if first is None and best is None else f"{first} instead of {best}"
    goal = first.time_s if problem.limits.goal == "time" else first.cost_usd
    if goal < best.goal * (1.0 - 1e-9):
        return f"{goal:.6g} is better than every plan: {best.goal:.6g}, {best.words}"
    if goal > best.goal * (1.0 + TOLERANCE):
        return f"{goal:.6g} leads, but {best.goal:.6g}: {best.words}"
    return ""


@pytest.mark.parametrize("seed", range(3))
def test_no_list_of_regions_makes_a_better_plan(seed: int) -> None:
    assert not wrong(seed)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(10))
def test_no_list_of_regions_makes_a_better_plan_of_many(chunk: int) -> None:
    seeds = range(100 + 10 * chunk, 110 + 10 * chunk)
    found = {seed: wrong(seed) for seed in seeds}
    assert not {seed: words for seed, words in found.items() if words}
