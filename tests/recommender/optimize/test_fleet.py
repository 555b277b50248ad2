"""The program of a fleet against every plan of small fleets, and against planning one by one."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from recommender.optimize import fleet as program
from recommender.optimize.fleet import (
    Chosen,
    Fleet,
    FleetJob,
    Way,
    columns_of,
    fleet_usd,
    in_order,
    plan_fleet,
)
from tests.recommender.optimize.samples import one_in

Places = dict[str, tuple[Way, int]]  # what runs, how, and from which slot on


def drawn(seed: int, most: int = 6, slots: int = 8) -> Fleet:
    """A small fleet with few machines, little money and jobs that wait for others."""
    rng = np.random.default_rng(seed)
    jobs = list[FleetJob]()
    for number in range(int(rng.integers(2, most + 1))):
        ways = tuple(
            Way(
                round(float(rng.uniform(5, 60)), 2),
                int(rng.integers(1, 5)),
                {f"q{rng.integers(2)}": float(rng.integers(1, 5)), "jobs": 1.0},
            )
            for _ in range(rng.integers(1, 4))
        )
        jobs.append(
            FleetJob(
                f"job {number}", ways, float(rng.uniform(20, 200)), int(rng.integers(3, slots + 1)),
                int(rng.integers(0, 3)), f"team {number % 2}",
                (f"job {number - 1}",) if number and rng.random() < 0.25 else (),
            )
        )  # fmt: skip
    quotas = {"q0": float(rng.integers(3, 8)), "q1": float(rng.integers(3, 8)), "jobs": 3.0}
    budgets = {("team 0", "may"): float(rng.uniform(20, 120)), ("team 0", "june"): 60.0}
    return Fleet(tuple(jobs), ("may",) * 5 + ("june",) * (slots - 5), quotas, budgets)


def keeps(fleet: Fleet, places: Places) -> bool:
    """Whether all rules hold, slot by slot and dollar by dollar."""
    used: dict[tuple[str, int], float] = {}
    spent: dict[tuple[str, str], float] = {}
    for job in fleet.jobs:
        if job.name not in places:
            continue
        way, start = places[job.name]
        if start < job.first or start + way.slots > min(job.end, len(fleet.months)):
            return False
        for name in job.after:
            if name not in places or sum((places[name][1], places[name][0].slots)) > start:
                return False
        for slot in range(start, start + way.slots):
            for quota, use in way.uses.items():
                used[quota, slot] = used.get((quota, slot), 0.0) + use
            key = job.team, fleet.months[slot]
            spent[key] = spent.get(key, 0.0) + way.usd / way.slots
    within = all(use <= fleet.quotas.get(quota, np.inf) + 1e-9 for (quota, _), use in used.items())
    return within and all(
        usd <= fleet.budgets.get(key, np.inf) + 1e-6 for key, usd in spent.items()
    )


def cost(fleet: Fleet, places: Places) -> float:
    lost = sum(job.worth for job in fleet.jobs if job.name not in places)
    return lost + sum(way.usd for way, _ in places.values())


def least(fleet: Fleet, known: Places, number: int, below: float) -> float:
    """The least cost of all plans, job by job; what cannot be less than one is passed over."""
    spare = [min([job.worth, *(way.usd for way in job.ways)]) for job in fleet.jobs[number:]]
    later = {job.name for job in fleet.jobs[number:]}
    so_far = cost(fleet, known) - sum(job.worth for job in fleet.jobs if job.name in later)
    if so_far + sum(spare) >= below:
        return below
    if number == len(fleet.jobs):
        return so_far
    job = fleet.jobs[number]
    for way in job.ways:
        for start in range(len(fleet.months)):
            there = {**known, job.name: (way, start)}
            if keeps(fleet, there):
                below = min(below, least(fleet, there, number + 1, below))
    return min(below, least(fleet, known, number + 1, below))


def places_of(fleet: Fleet, chosen: Sequence[Chosen]) -> Places:
    return {
        fleet.jobs[each.job].name: (fleet.jobs[each.job].ways[each.way], each.start)
        for each in chosen
    }


# Forty-two of the fleets in every run, all 500 with the slow ones.
SEEDS = one_in(12, 500)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_small_fleet_is_planned_as_well_as_any_plan_of_it(seed: int) -> None:
    fleet = drawn(seed)
    found = plan_fleet(fleet)
    places = places_of(fleet, found.chosen)
    assert keeps(fleet, places)
    assert found.usd == pytest.approx(cost(fleet, places))
    best = least(fleet, {}, 0, np.inf)
    assert found.usd == pytest.approx(best, rel=2 * program.CLOSE)
    assert found.bound == pytest.approx(best, rel=2 * program.CLOSE)


@pytest.mark.parametrize("seed", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_twelve_jobs_are_planned_as_well_as_any_plan_of_them(seed: int) -> None:
    fleet = drawn(seed + 900, most=12)
    fleet = replace(fleet, jobs=tuple(replace(j, ways=j.ways[:2]) for j in fleet.jobs))
    found = plan_fleet(fleet)
    assert found.usd == pytest.approx(least(fleet, {}, 0, found.usd * 1.001), rel=1e-5)


def test_a_fleet_is_never_worse_than_its_jobs_one_by_one() -> None:
    rng = np.random.default_rng(5)
    for seed in range(4):
        fleet = drawn(seed + 2000, most=30, slots=12)
        found, columns = plan_fleet(fleet), columns_of(fleet)
        assert keeps(fleet, places_of(fleet, found.chosen))
        orders = [rng.permutation(len(fleet.jobs)).tolist() for _ in range(100)]
        plain = [in_order(columns, order) for order in orders]
        assert found.usd <= min(fleet_usd(columns, each) for each in plain) + 1e-6


def test_a_large_fleet_ends_within_its_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "MOST", 400)  # as if it were ten times as large
    rng = np.random.default_rng(3)
    jobs = [
        FleetJob(
            f"{n}", tuple(Way(float(rng.uniform(10, 40)), d, {f"q{d}": 1.0}) for d in (2, 3)),
            120.0, int(rng.integers(8, 21)), team="a",
        )
        for n in range(90)
    ]  # fmt: skip
    fleet = Fleet(tuple(jobs), ("may",) * 20, {"q2": 5.0, "q3": 6.0}, {("a", "may"): 1400.0})
    found = plan_fleet(fleet)
    places = places_of(fleet, found.chosen)
    assert keeps(fleet, places)
    assert found.usd == pytest.approx(cost(fleet, places))
    assert found.bound <= found.usd
    assert 0.0 <= found.gap <= 0.05


def test_more_of_something_is_worth_no_more_than_its_price_says() -> None:
    """The relaxation is convex: its price bounds what any amount more can save."""
    for seed in range(0, 60, 5):
        fleet = drawn(seed)
        found = plan_fleet(fleet)
        for group, usd in found.worth.items():
            assert usd >= 0.0
            name, more = group[1], 1.0
            if group[0] == "quota":
                other = replace(fleet, quotas={**fleet.quotas, name: fleet.quotas[name] + more})
            else:
                key = group[1], group[2]
                other = replace(fleet, budgets={**fleet.budgets, key: fleet.budgets[key] + more})
            saved = relaxed_usd(fleet) - relaxed_usd(other)
            assert -1e-6 <= saved <= usd * more + 1e-4 * relaxed_usd(fleet)


def relaxed_usd(fleet: Fleet) -> float:
    columns = columns_of(fleet)
    return program._relaxed(columns, np.ones(len(columns.usd), dtype=bool), np.inf)[0]


def test_what_is_worth_least_is_left_out_first_and_patience_helps() -> None:
    ways = (Way(10.0, 2, {"q": 1.0}),)
    jobs = [FleetJob(n, ways, worth, 2) for n, worth in (("a", 90.0), ("b", 30.0), ("c", 60.0))]
    found = plan_fleet(Fleet(tuple(jobs), ("may",) * 6, {"q": 1.0}))
    assert [each.job for each in found.chosen] == [0]
    assert found.later[1] > 0.0  # with more time it runs after the others
    assert found.later[2] > 0.0
    assert list(np.argsort(found.margin)) == [1, 2, 0]


def test_a_job_that_nothing_fits_is_left_out() -> None:
    found = plan_fleet(Fleet((FleetJob("a", (Way(5.0, 9),), 7.0, 4),), ("may",) * 4))
    assert (found.chosen, found.usd, found.gap) == ((), 7.0, 0.0)
