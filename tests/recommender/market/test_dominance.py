"""Offers that others like them beat are left out, and no better plan with them."""

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from recommender.api.calls import recommend
from recommender.catalogs.catalog import Catalog, extended
from recommender.inputs.offers_file import read_offers
from recommender.job.jobfile import find_job
from recommender.market import dominance
from recommender.market.dominance import OwnOffers, undominated, undominated_by_count
from recommender.plan.answer import Answer
from recommender.plan.limits import Choice, Limits, Progress
from recommender.planner.problem import planning_problem
from tests.recommender.optimize.samples import sampled
from tests.shipped import snapshot

NOW = datetime(2026, 11, 20, tzinfo=UTC)
INF = float("inf")


def test_the_cheapest_of_a_kind_stays() -> None:
    assert undominated("aabb", [3.0, 2.0, 5.0, 6.0], [()] * 4, [INF] * 4, 64) == [1, 2]


def test_a_more_expensive_offer_stays_if_it_has_more_machines() -> None:
    usd = [1.0, 2.0, 3.0, 4.0]
    assert undominated("aaaa", usd, [(8,), (4,), (64,), (64,)], [8, 4, 100, 90], 64) == [0, 1, 2]


def test_offers_stay_until_enough_machines_can_be_mixed() -> None:
    usd = [1.0, 2.0, 3.0, 4.0]
    assert undominated("aaaa", usd, [(2,)] * 4, [2, 2, 2, 2], 6) == [0, 1, 2]


def test_a_list_stays_if_its_most_expensive_place_costs_less() -> None:
    assert undominated("aaa", [1.0, 1.1, 1.2], [(-3.0,), (-1.2,), (-1.3,)], [INF] * 3, 64) == [0, 1]


def test_one_that_has_the_most_of_nothing_stays_if_none_matches_it_in_all() -> None:
    merits = [(1.0, 3.0), (3.0, 1.0), (2.0, 2.0), (1.0, 1.0)]
    assert undominated("aaaa", [1.0, 2.0, 3.0, 4.0], merits, [INF] * 4, 0) == [0, 1, 2]


@pytest.mark.parametrize("seed", range(30))
def test_offers_that_differ_in_their_number_are_compared_at_once_as_one_by_one(seed: int) -> None:
    draw, most = random.Random(seed), 16
    rows = draw.randrange(60)
    alike = [draw.choice("abc") for _ in range(rows)]
    usd = [float(draw.randrange(1, 6)) for _ in range(rows)]  # with ties
    machines = [draw.choice((INF, *(n + 1e-9 for n in range(20)))) for _ in range(rows)]
    merits = [(min(each, most),) for each in machines]
    one_by_one = undominated(alike, usd, merits, machines, most)
    assert undominated_by_count(alike, usd, machines, most) == one_by_one


@pytest.fixture
def all_offers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every offer enters plans, also one that another of the same hardware beats."""
    with monkeypatch.context() as patch:
        for name in ("undominated", "undominated_by_count"):
            patch.setattr(dominance, name, lambda alike, *rest, **more: [*range(len(alike))])
        yield


@pytest.mark.parametrize("seed", sampled(range(6), (0, 5)))
def test_no_better_plan_is_left_out(
    tmp_path: Path, seed: int, request: pytest.FixtureRequest
) -> None:
    catalog, choice = _random_offers(tmp_path, seed)
    few = _best(catalog, choice)
    request.getfixturevalue("all_offers")
    assert dominance.undominated is not undominated
    every = _best(catalog, choice)
    best, same = few.plans[0], every.plans[0]
    assert best.estimate.cost.mean <= same.estimate.cost.mean * 1.002  # a tie, as in `ranking`
    names = {m.instance_type for plan in few.plans for m in plan.machines}
    assert names <= set(name for _, name in catalog.instance_types)


def _best(catalog: Catalog, choice: Choice) -> Answer:
    limits = Limits(objective="cost", deadline_s=86400.0, max_machines=8)
    return recommend(find_job("resnet50-imagenet"), limits, choice, catalog=catalog, now=NOW)


def _random_offers(folder: Path, seed: int) -> tuple[Catalog, Choice]:
    """A hundred quotes of six kinds of machines; of odd seeds, some are counted."""
    draw = random.Random(seed)
    lines = ["label,gpu,gpus,usd_per_hour,market,region,count"]
    for number in range(100):
        gpu, usd = draw.choice([("L4", 0.6), ("A100-80GB", 1.5), ("H100", 2.5)])
        gpus = draw.choice([1, 4])
        price = round(usd * gpus * draw.uniform(0.7, 1.6), 3)
        market = draw.choice(["spot", "on-demand"])
        count = draw.choice(["", "1", "3"]) if seed % 2 else ""
        label = f"q{number // 2}-{gpu}-{gpus}" if number % 3 else f"q{number}"
        label = f"{label}-{number}" if seed % 2 else label
        lines.append(f"{label},{gpu},{gpus},{price},{market},dc-{draw.randrange(6)},{count}")
    (folder / "o.csv").write_text("\n".join(_without_twins(lines)) + "\n")
    shipped = snapshot()
    memory = {name: gpu.memory_mib for name, gpu in shipped.gpus.items()}
    known = shipped.instance_types.values()
    own = read_offers(folder / "o.csv", memory, known, date(2026, 11, 20))
    grown = extended(shipped, own.hardware, own.offers)
    return grown, Choice(providers=("own",), quotas=own.limits)


def _without_twins(lines: list[str]) -> list[str]:
    """The lines but those whose name another machine has."""
    kept, named = [], dict[str, tuple[str, str]]()
    for line in lines:
        label, gpu, gpus = line.split(",")[:3]
        if named.setdefault(label, (gpu, gpus)) == (gpu, gpus):
            kept.append(line)
    return kept


@pytest.mark.parametrize("seed", range(8))
def test_own_offers_beaten_anywhere_are_those_whose_pools_are_beaten(
    tmp_path: Path, seed: int
) -> None:
    catalog, choice = _random_offers(tmp_path, seed)
    asked = planning_problem(
        find_job("resnet50-imagenet"), Limits(max_machines=8), choice, catalog, Progress(), NOW, 7
    )
    rows, builder = list(asked.rows), asked.site_space.builder
    few = OwnOffers(asked.facts, asked.offers.kinds.of, 8).undominated_anywhere(rows)
    assert len(few) < len(rows)
    found = builder.provider_sites(rows).pools
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OwnOffers, "undominated_anywhere", lambda self, given: given)
        assert builder.provider_sites(rows).pools == found
