"""Why not this machine, on a small catalog; break-evens are checked by whole answers."""

import re
from dataclasses import replace

import pytest

from recommender.catalogs.catalog import Catalog
from recommender.errors import UsageError
from recommender.plan.limits import Choice, Limits, Progress
from recommender.plan.standing import MachineStanding
from recommender.planner.problem import Problem, planning_problem
from recommender.planner.standing import standing
from recommender.risk.random_numbers import SEED
from tests.recommender.planning import HOUR, NOW, ask, job, small, with_prices

LIMITS = Limits(deadline_s=60 * HOUR, max_machines=6)
ON_DEMAND = Choice(market="on_demand")


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return small()


def asked(
    catalog: Catalog, machine: str, choice: Choice = ON_DEMAND, regions: tuple[str, ...] = ()
) -> MachineStanding:
    return standing(machine, problem(catalog, choice=choice), regions)


def problem(
    catalog: Catalog,
    limits: Limits = LIMITS,
    choice: Choice = ON_DEMAND,
    name: str = "resnet50-imagenet",
) -> Problem:
    return planning_problem(job(name=name), limits, choice, catalog, Progress(), NOW, SEED)


def best(catalog: Catalog) -> str:
    answer = ask(catalog, choice=ON_DEMAND, deadline_s=60 * HOUR)
    return answer.plans[answer.best - 1].machines[0].instance_type


def test_a_machine_below_its_break_even_price_leads_the_whole_answer(catalog: Catalog) -> None:
    found = asked(catalog, "g4dn.12xlarge")
    assert found.standing == "behind"
    assert found.rank is None or found.rank > 1
    assert found.price is not None
    assert (found.price.wins, found.price.loses) == (True, True)
    assert found.price.after == pytest.approx(found.price.before * found.price.factor)
    factor = found.price.factor
    assert best(with_prices(catalog, "g4dn.12xlarge", 0.96 * factor)) == "g4dn.12xlarge"
    assert best(with_prices(catalog, "g4dn.12xlarge", 1.04 * factor)) != "g4dn.12xlarge"
    assert found.speed is not None
    assert found.speed.factor > 1.0


def test_the_best_machine_is_named_as_such_and_needs_no_break_even(catalog: Catalog) -> None:
    found = asked(catalog, best(catalog).upper())
    assert (found.standing, found.rank, found.price, found.speed) == ("first", 1, None, None)


def test_what_is_not_sold_there_is_reported_where_it_is(catalog: Catalog) -> None:
    found = asked(catalog, "g4dn.xlarge", regions=("us-central1",))
    assert found.standing == "not offered"
    assert found.reasons == (
        "it is not offered in us-central1, but in eu-west-1, us-east-1, us-west-2",
    )


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (Choice(providers=("gcp",)), "--provider gcp leaves it out"),
        (Choice(deny=("g4dn*",)), "--deny g4dn* leaves it out"),
        (Choice(accelerator="amd"), "--accelerator amd leaves it out"),
    ],
)
def test_the_flag_that_leaves_a_machine_out_is_named(
    catalog: Catalog, choice: Choice, said: str
) -> None:
    found = asked(catalog, "g4dn.xlarge", choice)
    assert (found.standing, found.reasons) == ("not allowed", (said,))


def test_too_little_memory_is_reported_in_gib(catalog: Catalog) -> None:
    found = standing("g4dn.xlarge", problem(catalog, name="llama3-8b-sft"))
    assert found.standing == "cannot train"
    assert re.fullmatch(
        r"a cluster of \d+ of them needs \S+ GiB per GPU, .* has 14.* usable", found.reasons[0]
    )


def test_a_limit_that_it_misses_in_every_number_is_reported_with_the_least_that_would_do(
    catalog: Catalog,
) -> None:
    tight = replace(LIMITS, deadline_s=4 * HOUR, max_machines=2)
    found = standing("g4dn.xlarge", problem(catalog, tight))
    assert found.standing == "over limits"
    assert "is about the minimum that works" in found.reasons[0]
    assert found.price is None  # no price makes it faster


def test_over_a_budget_its_nearest_plan_is_the_cheapest_and_not_the_fastest(
    catalog: Catalog,
) -> None:
    found = standing("g4dn.xlarge", problem(catalog, Limits(budget_usd=0.5, max_machines=6)))
    assert found.standing == "over limits"
    assert found.plan is not None
    said = re.search(r"works: (\d+) USD on average", found.reasons[0])
    assert said is not None
    assert found.plan.estimate.cost.mean == pytest.approx(float(said[1]), rel=0.05)


def test_an_unknown_machine_is_refused_with_the_most_similar_name(catalog: Catalog) -> None:
    with pytest.raises(UsageError, match="did you mean g4dn.xlarge"):
        asked(catalog, "g4dn.xlarg")
