"""The simulation against probability theory, an own simulation, and what any law must obey."""

import math
import random

import numpy as np
import pytest

from recommender.risk.laws import RUN_FAMILY
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.path_inputs import PathInputs, Paths
from recommender.risk.random_numbers import random_numbers
from tests.recommender.optimize.samples import sampled
from tests.recommender.risk.cases import RESCUE, SPOT, path_inputs, random_plan
from tests.recommender.risk.reference import Numbers, Plan, simulate_path

HOUR = 3600.0
PATHS = 4096


def near(sample: np.ndarray, expected: float, sigmas: float = 4.0, slack: float = 0.0) -> bool:
    """Whether a mean agrees within sampling error."""
    error = float(sample.std()) / math.sqrt(sample.size)
    return abs(float(sample.mean()) - expected) <= sigmas * error + slack


@pytest.mark.parametrize("hours", [1.0, 3.0, 8.0])
@pytest.mark.parametrize("runs_from_start", [0.0, 1.0])
def test_the_chance_of_no_interruption_is_that_of_the_run_met(
    hours: float, runs_from_start: float
) -> None:
    row = {
        "run_mean_s": 4 * HOUR,
        "run_sigma": 1.2,
        "runs_from_start": runs_from_start,
        "work_s": hours * HOUR,
    }
    h = simulate_paths(path_inputs(row | {"interval_s": 1e9, "stall_s": 0.0}), None, PATHS)
    need, run, sigma = (np.array(v) for v in (hours * HOUR + 300, 4 * HOUR, 1.2))
    # A run met at random has a residue longer than t with chance E[(X - t)+]/E[X].
    fresh = RUN_FAMILY.survival(need, run, sigma)
    met = RUN_FAMILY.excess(need, run, sigma) / run
    assert near(h.interruptions[0] == 0, float(fresh if runs_from_start else met), slack=1e-3)


@pytest.mark.parametrize("logit", [-0.5, 0.7, 2.0])
def test_over_a_long_time_capacity_is_there_for_its_share(logit: float) -> None:
    row = SPOT | {"availability_logit": logit, "zone_sd": 0.0, "run_sigma": 0.8}
    row |= {"outage_sigma": 0.8, "work_s": 200 * HOUR, "notice_saves": 1.0}
    h = simulate_paths(path_inputs(row), None, 512)
    up = h.running_s.mean() / h.time_s.mean()
    assert up == pytest.approx(1 / (1 + math.exp(-logit)), abs=0.015)


STEADY = {"run_mean_s": 1e7, "run_sigma": 0.1, "runs_from_start": 1.0}


def test_at_the_request_capacity_is_there_with_its_share() -> None:
    row = SPOT | {"zone_sd": 0.0, "availability_logit": 0.7, "work_s": 60.0} | STEADY
    h = simulate_paths(path_inputs(row), None, 1000)
    assert (h.waiting_s[0] > 0).mean() == pytest.approx(1 - 1 / (1 + math.exp(-0.7)), abs=2e-3)


def test_a_second_zone_is_down_with_the_first_as_often_as_their_correlation_says() -> None:
    row = (
        SPOT
        | {"zone_sd": 0.0, "availability_logit": 0.0, "work_s": 60.0, "zone_count": 2.0}
        | STEADY
    )
    h = simulate_paths(path_inputs(row | {"correlation": 0.4}), None, 1000)
    assert (h.waiting_s[0] > 0).mean() == pytest.approx(0.5 * (1 - 0.5 * 0.6), abs=2e-3)


def simulated(row: dict[str, float], deadline_s: float | None, rng: random.Random) -> list[float]:
    """Time and bill of one gang in one zone, one clock tick at a time."""
    tick = 10.0

    def drawn(mean: float, sigma: float) -> float:
        return rng.lognormvariate(math.log(mean) - sigma**2 / 2, sigma)

    up = 1 / (1 + math.exp(-row["availability_logit"]))
    outage = row["run_mean_s"] * (1 - up) / up
    here = rng.random() < up
    mean, sigma = (row["run_mean_s"], row["run_sigma"]) if here else (outage, row["outage_sigma"])
    # The interval met at random: drawn by rejection in proportion to its length.
    top = mean * math.exp(4 * sigma)
    length = drawn(mean, sigma)
    while rng.random() * top > length:
        length = drawn(mean, sigma)
    left, clock, saved, age, bill, since = length * rng.random(), 0.0, 0.0, 0.0, 0.0, 0.0
    f = row["fallback_speed"]
    last = None
    if deadline_s is not None and f > 0:
        last = deadline_s - row["reserve_s"] - row["fallback_start_s"]
    live = 0.0
    while True:
        safe = saved + (max(live - row["interval_s"], 0.0) if here else 0.0)
        if last is not None and clock + (row["work_s"] - safe) / f >= last:
            rest = row["fallback_start_s"] + (row["work_s"] - saved - live) / f
            paid = (bill + since) * row["spot_usd_per_hour"] / HOUR
            return [clock + rest, paid + rest * row["fallback_usd_per_hour"] / HOUR]
        if left <= 0:
            if here:
                bill += 0.0 if age < row["free_s"] else max(age, row["minimum_s"])
                saved += live // row["interval_s"] * row["interval_s"]
            here, age, since, live = not here, 0.0, 0.0, 0.0
            left = drawn(
                *((row["run_mean_s"], row["run_sigma"]) if here else (outage, row["outage_sigma"]))
            )
        clock, left = clock + tick, left - tick
        if here:
            age += tick
            since = age
            live += tick if age > row["changeover_s"] else 0.0
            if saved + live >= row["work_s"]:
                return [clock, (bill + age) * row["spot_usd_per_hour"] / HOUR]


@pytest.mark.parametrize(
    ("changed", "deadline_h"),
    [
        ({}, None),
        ({"free_s": 3600.0, "run_sigma": 1.3}, None),
        (RESCUE | {"fallback_at_once": 1.0}, 9.0),
        (RESCUE | {"fallback_at_once": 1.0, "fallback_speed": 1.0}, 14.0),
    ],
    ids=["waiting", "free first hour", "fast fallback", "equal fallback"],
)
def test_an_own_simulation_agrees_in_the_mean(
    changed: dict[str, float], deadline_h: float | None
) -> None:
    row = {
        "work_s": 5 * HOUR,
        "run_mean_s": 2 * HOUR,
        "run_sigma": 0.9,
        "outage_sigma": 0.8,
        "availability_logit": 0.8,
        "runs_from_start": 0.0,
        "spot_usd_per_hour": 10.0,
        "changeover_s": 300.0,
        "interval_s": 900.0,
        "stall_s": 0.0,
        "minimum_s": 60.0,
        "free_s": 0.0,
        "fallback_speed": 0.0,
    } | changed
    deadline_s = None if deadline_h is None else deadline_h * HOUR
    rng = random.Random(5)
    runs = np.array([simulated(row, deadline_s, rng) for _ in range(700)])
    h = simulate_paths(path_inputs(row), deadline_s, PATHS)
    assert near(runs[:, 0], float(h.time_s.mean()), slack=60.0)
    assert near(runs[:, 1], float(h.expected_usd.mean()), slack=0.2)


def chance(h: Paths, deadline_s: float) -> float:
    return float((h.time_s <= deadline_s).mean())


@pytest.mark.parametrize("seed", range(25))
def test_without_a_fallback_a_longer_deadline_is_never_less_likely_met(seed: int) -> None:
    row, _ = random_plan(np.random.default_rng(seed))
    plans = path_inputs(row | {"fallback_speed": 0.0})
    deadlines = row["work_s"] * np.array([0.5, 1.0, 1.3, 2.0, 4.0, 10.0])
    chances = [chance(simulate_paths(plans, float(d), 256), float(d)) for d in deadlines]
    assert all(a <= b for a, b in zip(chances, chances[1:], strict=False))
    assert 0.0 <= chances[0] <= chances[-1] <= 1.0


@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_negative_and_the_parts_fit(seed: int) -> None:
    row, deadline_s = random_plan(np.random.default_rng(100 + seed))
    h = simulate_paths(path_inputs(row), deadline_s, 256)
    for name in Paths.__slots__:
        assert np.isfinite(getattr(h, name)).all(), name
        assert (getattr(h, name) >= -1e-6).all(), name
    if row["elastic_share"]:  # its on-demand part is there when the others wait
        assert (h.waiting_s + h.running_s <= h.time_s * (1 + 1e-3)).all()
        assert (h.waiting_s + h.trained_s <= h.time_s * (1 + 1e-3) + 1).all()
    else:
        assert h.waiting_s + h.running_s == pytest.approx(h.time_s, rel=1e-3)
        assert not h.alone_s.any()
    assert (h.fallback_s <= h.running_s + 1e-6).all()
    up = h.time_s - h.waiting_s - h.alone_s
    assert (h.restarts_s <= up * (1 + 1e-3) + 1.0).all()
    fastest = max(1.0, row.get("fallback_speed", 0.0))
    work = row["work_s"] * np.exp(row["speed_sigma"] * random_numbers(256).speed)
    assert (h.time_s[0] >= work / fastest - 1.0).all()


@pytest.mark.parametrize("seed", range(15))
def test_with_capacity_that_is_always_there_all_paths_are_equal(seed: int) -> None:
    row, _ = random_plan(np.random.default_rng(200 + seed))
    calm = {"run_mean_s": 1e12, "availability_logit": 40.0, "zone_sd": 0.0, "speed_sigma": 0.0}
    h = simulate_paths(path_inputs(row | calm | {"at_once": 1.0, "fallback_speed": 0.0}), None, 128)
    saves = math.ceil(row["work_s"] / row["interval_s"]) - 1
    expected = row["changeover_s"] + row["work_s"] + saves * row["stall_s"]
    assert h.time_s == pytest.approx(expected, rel=1e-6)
    assert np.ptp(h.expected_usd) == pytest.approx(0.0, abs=1e-6)


def hazards(changed: dict[str, float]) -> Paths:
    """The same spot zone with hazards ×1 ... ×16; outages stay as long as they are."""
    rows = []
    for factor in (1.0, 2.0, 4.0, 8.0, 16.0):
        law = {"run_mean_s": SPOT["run_mean_s"] / factor, "zone_sd": 0.0}
        law["availability_logit"] = 3.0 - math.log(factor)
        # The best interval shrinks like the root of the run; the same rule for all.
        law["interval_s"] = 2000.0 / math.sqrt(factor)
        rows.append(SPOT | law | {"work_s": 10 * HOUR, "stall_s": 5.0} | changed)
    return simulate_paths(path_inputs(*rows), None, 2048)


@pytest.mark.parametrize("runs_from_start", [0.0, 1.0])
@pytest.mark.parametrize("changeover", [60.0, 600.0])
def test_the_makespan_never_falls_when_the_hazard_rises(
    runs_from_start: float, changeover: float
) -> None:
    times = hazards({"runs_from_start": runs_from_start, "changeover_s": changeover}).time_s.mean(
        axis=1
    )
    assert (np.diff(times) > -0.005 * times[:-1]).all()
    assert times[-1] > 1.2 * times[0]


def test_the_bill_rises_with_the_hazard_unless_interrupted_first_hours_are_free() -> None:
    """Review A3: on AWS a higher hazard can be cheaper, since short runs cost nothing."""
    charged = hazards({"free_s": 0.0}).expected_usd.mean(axis=1)
    free = hazards({"free_s": 3600.0}).expected_usd.mean(axis=1)
    assert (np.diff(charged) > -0.005 * charged[:-1]).all()
    assert free[4] < 0.8 * free[0]
    assert (free <= charged + 1e-9).all()


def long_job(run_mean_s: float, work_h: float, **changed: float) -> tuple[PathInputs, dict]:
    row = SPOT | {"run_mean_s": run_mean_s, "work_s": work_h * HOUR, "zone_sd": 0.3} | changed
    return path_inputs(row), row


def test_paths_longer_than_the_draws_go_on_at_their_own_rate() -> None:
    plans, _ = long_job(1800.0, 1500.0, run_sigma=1.0, interval_s=300.0, stall_s=2.0)
    h = simulate_paths(plans, None, 32)
    assert h.interruptions.min() > 512
    numbers = Numbers(32, 1 << 14)
    outcome = [simulate_path(Plan(plans, 0), numbers, path, None) for path in range(32)]
    for name in ("time_s", "expected_usd", "spot_s", "waiting_s", "interruptions"):
        expected = np.array([getattr(t, name) for t in outcome])
        assert getattr(h, name).mean() == pytest.approx(expected.mean(), rel=0.03), name
        assert np.median(getattr(h, name)[0] / expected) == pytest.approx(1.0, abs=0.05), name


@pytest.mark.parametrize("deadline_h", sampled((5_000.0, 6_000.0), (5_000.0,)))
def test_a_fallback_after_the_last_drawn_run_starts_as_with_more_draws(
    deadline_h: float,
) -> None:
    law = {"run_sigma": 1.0, "interval_s": 300.0, "stall_s": 2.0}
    plans, _ = long_job(1800.0, 4500.0, **law, **(RESCUE | {"fallback_speed": 3.0}))
    h = simulate_paths(plans, deadline_h * HOUR, 32)
    assert np.quantile(h.interruptions, 0.2) > 512
    numbers = Numbers(32, 1 << 14)
    outcome = [
        simulate_path(Plan(plans, 0), numbers, path, deadline_h * HOUR) for path in range(32)
    ]
    assert np.mean([t.fallback_s > 0 for t in outcome]) > 0.8
    for name in ("time_s", "expected_usd", "spot_s", "fallback_s", "waiting_s", "interruptions"):
        expected = np.array([getattr(t, name) for t in outcome])
        assert getattr(h, name).mean() == pytest.approx(expected.mean(), rel=0.03), name


def test_a_job_that_never_gets_on_takes_very_long_and_costs_very_much() -> None:
    plans, row = long_job(200.0, 10.0, run_sigma=0.1, changeover_s=600.0)
    h = simulate_paths(plans, None, 64)
    assert np.isfinite(h.time_s).all()
    assert h.time_s.min() > 100 * row["work_s"]
    assert (
        h.expected_usd.min() > 100 * row["work_s"] * row.get("spot_usd_per_hour", 10.0) / HOUR * 0.1
    )


def test_a_job_that_makes_no_progress_on_spot_is_finished_by_the_fallback() -> None:
    plans, row = long_job(200.0, 10.0, run_sigma=0.1, changeover_s=600.0, **RESCUE)
    h = simulate_paths(plans, 24 * HOUR, 64)
    assert (h.fallback_s > 0).all()
    sure = random_numbers(64).supply >= 1.0 - RESCUE["fallback_at_once"]
    assert (h.time_s[0][sure] <= 24 * HOUR).all()
    assert row["work_s"] / 2 <= h.fallback_s.min()
