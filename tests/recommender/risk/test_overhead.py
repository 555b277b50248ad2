"""Checkpoint overhead against numbers worked out by hand."""

import pytest

from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.run_statistics import checkpoint_overhead
from tests.recommender.risk.cases import path_inputs

# Runs of 3,400 s each, there again at once: 300 s changeover, 3,100 s in which three intervals of
# 1,000 s and their saves of 20 s fit; 40 s of the fourth are lost.
STEADY = {"run_mean_s": 3_400.0, "run_sigma": 1e-9, "outage_sigma": 1e-9}
TAKEN = 3 * 20.0 + 40.0  # lost in a run that is interrupted


def overhead(deadline_s: float | None = None, **changed: float) -> float:
    return float(checkpoint_overhead(simulate_paths(path_inputs(changed), deadline_s, 64))[0])


def test_without_interruptions_only_saves_are_lost() -> None:
    assert overhead(work_s=36_000) == pytest.approx(35 * 20 / 36_000)


def test_saves_lost_work_and_every_restart_but_the_first_count() -> None:
    lost = TAKEN + 300.0 + 20.0  # the first run, then a restart and one save between 2 × 1,000 s
    assert overhead(**STEADY, work_s=5_000) == pytest.approx(lost / 5_000, rel=1e-4)


def test_waiting_for_capacity_does_not_dilute_it() -> None:
    waits = STEADY | {"availability_logit": -2.0}
    assert overhead(**waits, work_s=5_000) == pytest.approx(overhead(**STEADY, work_s=5_000))


def test_the_restart_on_a_fallback_counts_by_its_speed() -> None:
    fallback = {"fallback_speed": 4.0, "fallback_start_s": 500.0, "fallback_usd_per_hour": 1.0}
    steady = {"work_s": 36_000.0, "interval_s": 1_000.0, "stall_s": 20.0}
    found = overhead(20_000.0, **steady, **fallback)
    # t + (36,000 - P)/4 + 500 = 20,000 with P = (t - 300)·1000/1020, the last cycle not yet safe.
    moment = (20_000 - 500 - 9_000 - 300 / 4 / 1.02 - 1_000 / 4) / (1 - 1 / 4.08)
    saves = (moment - 300) * 20 / 1020
    assert found == pytest.approx((saves + 4 * 500) / 36_000, rel=1e-3)


def test_a_fallback_from_the_start_is_a_first_start_up() -> None:
    fallback = {"fallback_speed": 4.0, "fallback_start_s": 500.0, "reserve_s": 1e9}
    never = {"availability_logit": -30.0, "run_mean_s": 3_600.0}
    assert overhead(20_000.0, **never, **fallback) == 0.0
