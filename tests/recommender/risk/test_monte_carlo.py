"""Time and bill of single plans, against numbers worked out by hand."""

import numpy as np
import pytest

from recommender.risk.monte_carlo import (
    simulate_paths,
    simulate_with_known_speed,
)
from recommender.risk.path_inputs import Paths
from tests.recommender.risk.cases import NEVER_ENDS, RESCUE, SPOT, path_inputs

HOUR = 3600.0


def one(deadline_s: float | None = None, paths: int = 64, **changed: float) -> Paths:
    return simulate_paths(path_inputs(changed), deadline_s, paths)


def mean(values: np.ndarray) -> float:
    return float(values.mean())


def test_without_interruptions_time_is_changeover_work_and_saves() -> None:
    h = one(work_s=36_000, changeover_s=300, interval_s=1_000, stall_s=20)
    assert np.ptp(h.time_s) == 0.0
    assert mean(h.time_s) == pytest.approx(300 + 36_000 + 35 * 20)  # none after the last interval
    assert mean(h.spot_s) == pytest.approx(37_000)
    assert mean(h.expected_usd) == pytest.approx(10 * 37_000 / HOUR)
    assert h.interruptions.max() == h.waiting_s.max() == h.restarts_s.max() == 0.0


@pytest.mark.parametrize(("work", "saves"), [(999, 0), (1_000, 0), (1_001, 1), (3_000, 2)])
def test_no_save_follows_the_last_interval(work: float, saves: int) -> None:
    assert mean(one(work_s=work).time_s) == pytest.approx(300 + work + 20 * saves)


def test_on_demand_pays_from_the_first_to_the_last_second() -> None:
    h = one(base_usd_per_hour=4.0, spot_usd_per_hour=0.0, interval_s=1e9, stall_s=0, fixed_usd=3.0)
    assert mean(h.cost_usd) == pytest.approx(3.0 + 4.0 * 36_300 / HOUR)
    assert np.array_equal(h.cost_usd, h.expected_usd)


def test_a_very_short_job_pays_the_minimum() -> None:
    h = one(work_s=10, changeover_s=5, minimum_s=60)
    assert mean(h.time_s) == pytest.approx(15)
    assert mean(h.spot_s) == pytest.approx(60)


def test_on_demand_that_is_not_there_at_once_makes_the_job_late_and_not_more_expensive() -> None:
    h = one(paths=1000, at_once=0.9, wait_s=1800, base_usd_per_hour=4.0)
    late = h.time_s[0] > 37_001
    assert 95 <= late.sum() <= 105  # one in ten
    assert np.ptp(h.cost_usd) == 0.0
    waits = h.waiting_s[0][late]
    assert np.median(waits) == pytest.approx(1800, rel=0.1)
    assert waits.max() > 20 * 1800  # one in a hundred of them waits 74 medians


def test_a_failed_machine_on_demand_is_replaced_as_late_as_one_machine_is_there() -> None:
    # Runs of 6 h without a spread and work of 10 h: every job loses one machine, once.
    faulty = {"run_mean_s": 21_600.0, "run_sigma": 0.0, "spot_usd_per_hour": 0.0}
    faulty |= {"base_usd_per_hour": 4.0}
    sure = one(paths=8192, **faulty)
    unsure = one(paths=8192, **faulty, replaced_at_once=0.8, replaced_wait_s=1800.0)
    late = (unsure.time_s - sure.time_s)[0]
    assert (sure.interruptions == 1.0).all()
    assert (unsure.interruptions == 1.0).all()
    assert (late > 1.0).mean() == pytest.approx(0.2, abs=0.02)
    assert np.median(late[late > 1.0]) == pytest.approx(1800, rel=0.12)
    # The other machines are paid meanwhile, unlike before the first start.
    assert (unsure.cost_usd - sure.cost_usd)[0] == pytest.approx(late * 4.0 / HOUR)


def test_the_true_speed_lies_around_the_predicted_one_and_moves_time_and_bill_together() -> None:
    h = one(paths=1024, speed_sigma=0.25, interval_s=1e9, stall_s=0, changeover_s=0)
    # The span whose coverage is scored: 1.645 sd of ln speed on either side of the prediction.
    early, half, late = np.quantile(h.time_s, [0.05, 0.5, 0.95]) / 36_000
    assert (early, half, late) == pytest.approx(np.exp([-0.4112, 0.0, 0.4112]), rel=0.01)
    assert np.std(np.log(h.time_s)) == pytest.approx(0.25, rel=0.01)
    assert np.allclose(h.cost_usd, h.time_s * 10 / HOUR)


def test_spot_prices_move_the_bill_and_not_its_expectation() -> None:
    h = one(paths=1024, spot_price_sigma=0.3)
    assert np.ptp(h.expected_usd) == 0.0
    assert mean(h.cost_usd) == pytest.approx(mean(h.expected_usd), rel=2e-3)
    assert np.std(np.log(h.cost_usd)) == pytest.approx(0.3, rel=0.01)


# Runs of exactly 5,000 s and no gaps: 300 s changeover leave 4,700 s, four intervals of 1,000 s
# with their saves (4,080 s) and 620 s that are lost.
STEADY = {"run_mean_s": 5_000.0, "run_sigma": 0.0}


def test_an_interrupted_run_keeps_its_complete_intervals() -> None:
    h = one(**STEADY, work_s=10_000)
    # Two lost runs save 8,000; the third does 2,000 with one save in between.
    assert mean(h.time_s) == pytest.approx(2 * 5_000 + 300 + 2_000 + 20)
    assert mean(h.interruptions) == 2
    assert mean(h.restarts_s) == pytest.approx(600)
    assert mean(h.spot_s) == pytest.approx(12_320)


def test_a_notice_long_enough_keeps_everything_but_the_share_of_the_saves() -> None:
    h = one(**STEADY, work_s=10_000, notice_saves=1.0)
    kept = 4_700 * 1_000 / 1_020
    left = 10_000 - 2 * kept
    assert mean(h.time_s) == pytest.approx(10_000 + 300 + left)


def test_the_chance_that_a_notice_suffices_is_the_share_of_saved_runs() -> None:
    h = one(**STEADY, paths=2048, work_s=4_800, notice_saves=0.95)
    # The first run keeps 4,608 s with a timely save and 4,000 s without.
    early = h.time_s[0] < 5_000 + 300 + 500
    assert early.mean() == pytest.approx(0.95, abs=0.02)


def test_a_run_cut_short_within_the_free_hour_costs_nothing() -> None:
    free = one(**(STEADY | {"run_mean_s": 3_500}), work_s=5_000, free_s=3_600)
    paid = one(**(STEADY | {"run_mean_s": 3_500}), work_s=5_000)
    assert np.array_equal(free.time_s, paid.time_s)
    assert mean(paid.spot_s) == pytest.approx(3_500 + 300 + 2_000 + 20)
    assert mean(free.spot_s) == pytest.approx(300 + 2_000 + 20)  # its own stop is charged


def test_an_interrupted_run_is_charged_the_minimum_unless_it_was_free() -> None:
    short = STEADY | {"run_mean_s": 1_400}
    assert mean(one(**short, work_s=1_500, minimum_s=3_000).spot_s) == pytest.approx(6_000)
    h = one(**short, work_s=1_500, minimum_s=3_000, free_s=1_500)
    assert mean(h.spot_s) == pytest.approx(3_000)


def test_every_move_to_another_zone_costs_its_egress() -> None:
    h = one(**STEADY, work_s=10_000, usd_per_move=0.5, spot_usd_per_hour=0.0)
    assert mean(h.expected_usd) == pytest.approx(1.0)


def test_an_elastic_cluster_trains_on_while_its_spot_part_is_away() -> None:
    h = one(**STEADY, work_s=10_000, elastic_share=0.5, boot_s=200, resize_s=50)
    # Twice the on-demand part trains from 50 s after spot left until it has booted again.
    alone = 2 * (200 - 50) * 0.5 / 1.02
    left = 10_000 - 8_000 - alone
    assert mean(h.time_s) == pytest.approx(10_000 + 300 + left + 20, rel=1e-6)
    assert mean(h.alone_s) == pytest.approx(alone / 0.5, rel=1e-4)
    # Twice: four saves and 620 s of unsaved work; half of the 50 s; the whole restart of 100 s.
    saves = 2 * 150 * 0.5 * (1 - 1 / 1.02) + 20
    lost = 2 * (4_700 - 4_000 + 25 + 100) + saves
    assert mean(h.lost_work_s) == pytest.approx(lost, rel=1e-3)
    assert h.waiting_s.max() == 0.0


def test_a_run_shorter_than_its_boot_does_not_disturb_the_on_demand_part() -> None:
    short = {"run_mean_s": 500, "run_sigma": 0.0, "outage_sigma": 0.0, "work_s": 5_000}
    h = one(**short, changeover_s=900, boot_s=600, elastic_share=0.5, resize_s=50)
    assert mean(h.time_s) == pytest.approx(900 + 5_000 / 0.5 * 1.02, rel=1e-5)
    disturbed = one(**short, changeover_s=900, boot_s=400, elastic_share=0.5, resize_s=50)
    # Each 500 s: 50 s of restart on fewer machines, 350 s of training, 100 s of a vain restart.
    assert mean(disturbed.alone_s) == pytest.approx(10_000, rel=1e-3)
    assert mean(disturbed.time_s) > 900 + 10_000 * 500 / 350


def test_an_elastic_job_can_end_before_spot_ever_comes() -> None:
    # Half of the time spot is away, for very long.
    h = one(
        availability_logit=0.0, run_mean_s=1e8, run_sigma=0.1, outage_sigma=0.1, elastic_share=0.5
    )
    alone = h.spot_s[0] == 0.0
    assert 0.4 < alone.mean() < 0.6
    # Its own start, then half speed: the on-demand part does not begin before it has booted.
    assert h.time_s[0][alone] == pytest.approx(300 + 72_000 * 1.02, rel=1e-3)


# Capacity that never comes.
GONE = {"run_mean_s": 20_000.0, "run_sigma": 0.0, "availability_logit": -25.0, "outage_sigma": 0.0}


def _gone(deadline_s: float | None, **changed: float) -> Paths:
    return one(deadline_s, **(GONE | RESCUE | {"fallback_at_once": 1.0} | changed))


def test_a_fallback_that_starts_while_waiting_meets_the_deadline_exactly() -> None:
    h = _gone(50_000.0)
    # Never any capacity: nothing is done; 18,000 s on the fallback, 600 s start, 200 s reserve.
    assert h.time_s[0] == pytest.approx(50_000 - 200)
    assert mean(h.fallback_s) == pytest.approx(18_600)
    assert mean(h.waiting_s) == pytest.approx(31_200)
    assert mean(h.cost_usd) == pytest.approx(80 * 18_600 / HOUR)
    assert h.interruptions.max() == h.spot_s.max() == 0


def test_a_deadline_too_near_for_waiting_starts_the_fallback_at_once() -> None:
    h = _gone(15_000.0)
    assert h.time_s[0] == pytest.approx(18_600)
    assert mean(h.waiting_s) == 0.0
    assert mean(h.spot_s) == 0.0


def test_a_fallback_that_is_not_there_at_once_delays_by_its_wait() -> None:
    sure, unsure = _gone(50_000.0), _gone(50_000.0, fallback_at_once=0.75)
    late = (unsure.time_s - sure.time_s)[0]
    assert 14 <= (late > 0).sum() <= 18  # a quarter of 64
    assert np.median(late[late > 0]) == pytest.approx(3_600, rel=0.3)
    assert late.max() > 10 * 3_600


def test_a_fallback_can_start_in_the_middle_of_a_run() -> None:
    # One endless run, but the deadline is too near even for that: f = 2, D = 30,000.
    h = one(30_000.0, **(RESCUE | {"fallback_at_once": 1.0}))
    # 2t - safe(t) = 2·(30,000 - 800) - 36,000 = 22,400 with safe = (t - 300 - 1,020)·1,000/1,020
    t = (22_400 - 1_320 / 1.02) / (2 - 1 / 1.02)
    trained = (t - 300) / 1.02
    assert mean(h.spot_s) == pytest.approx(t, rel=1e-6)
    assert mean(h.fallback_s) == pytest.approx(600 + (36_000 - trained) / 2, rel=1e-6)
    assert mean(h.time_s) < 30_000 - 200


def test_a_plan_that_ends_before_its_fallback_starts_never_rents_it() -> None:
    h = one(60_000.0, **RESCUE)
    assert h.fallback_s.max() == 0.0
    assert mean(h.time_s) == pytest.approx(37_000)


def test_without_a_deadline_there_is_no_fallback() -> None:
    with_net, without = one(None, **SPOT, **RESCUE), one(None, **SPOT)
    assert np.array_equal(with_net.time_s, without.time_s)


def test_plans_simulated_together_have_the_outcomes_of_each_alone() -> None:
    rows = [
        SPOT,
        SPOT | RESCUE,
        SPOT | RESCUE | {"fallback_speed": 0.7, "reserve_s": 4_000.0},  # on the runs of the others
        SPOT | RESCUE | {"wait_above": 0.3, "back_above": 0.1},
        SPOT | RESCUE | {"fallback_speed": 1.5, "wait_above": 0.1, "back_above": 0.02},
        STEADY,
        SPOT | {"elastic_share": 0.4, "run_sigma": 1.0},
        SPOT | RESCUE | {"elastic_share": 0.4, "run_sigma": 1.0},
        SPOT | RESCUE | {"run_mean_s": 1_500.0, "free_s": 3_600.0},
        {"run_mean_s": NEVER_ENDS},
    ] * 7
    together = simulate_paths(path_inputs(*rows), 80_000.0, 64)
    for place, row in enumerate(rows):
        alone = simulate_paths(path_inputs(row), 80_000.0, 64)
        for name in Paths.__slots__:
            assert np.array_equal(getattr(together, name)[place], getattr(alone, name)[0]), name


def test_the_seed_decides_the_paths() -> None:
    plans = path_inputs(SPOT)
    assert np.array_equal(
        simulate_paths(plans, None, 64, 7).time_s, simulate_paths(plans, None, 64, 7).time_s
    )
    assert not np.array_equal(
        simulate_paths(plans, None, 64, 7).time_s, simulate_paths(plans, None, 64, 8).time_s
    )


@pytest.mark.parametrize("deadline_s", [None, 90_000.0])
def test_a_plan_with_its_speed_known_goes_as_it_would_alone(deadline_s: float | None) -> None:
    plan = SPOT | RESCUE | {"work_s": 50_000.0, "cautious_work_s": 50_000.0}
    uncertain, known = path_inputs(plan | {"speed_sigma": 0.3}), path_inputs(plan)
    both = simulate_with_known_speed(uncertain, deadline_s, 256)
    for found, alone in zip(both, (uncertain, known), strict=True):
        expected = simulate_paths(alone, deadline_s, 256)
        for name in Paths.__slots__:
            assert (getattr(found, name) == getattr(expected, name)).all(), name
