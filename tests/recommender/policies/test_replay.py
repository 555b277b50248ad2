"""The tick rules, one by one, on series small enough to follow by hand."""

from itertools import product

import numpy as np
import pytest

from recommender.errors import UsageError
from recommender.policies.hindsight import optimum
from recommender.policies.replay import replay
from recommender.policies.rules import Greedy, OnDemand, SpotOnly, UniformProgress
from recommender.policies.state import NONE, ON_DEMAND, SPOT, ModePrices, Task
from tests.recommender.policies.markets import one

HOUR = 3600.0
PRICES = ModePrices(spot=1.0, on_demand=3.0)
FIRST = np.array([0])


def up(text: str) -> np.ndarray:
    return np.array([each == "1" for each in text])


def test_a_tick_is_paid_in_full_and_the_changeover_takes_work():
    result = replay(
        OnDemand(), one(up("0000"), HOUR, PRICES), FIRST, Task(2 * HOUR, 4 * HOUR, 1800.0)
    )
    assert result.cost_usd[0] == pytest.approx(9.0)  # 2.5 h of machine, three ticks paid
    assert result.finish_s[0] == 3 * HOUR
    assert result.starts[0] == 1


def test_work_done_survives_an_interruption_and_the_next_start_is_paid_again():
    task = Task(2 * HOUR, 9 * HOUR, 1800.0)
    result = replay(SpotOnly(), one(up("1010110"), HOUR, PRICES), FIRST, task)
    # 0.5 h of work in each of three first ticks, then a full one.
    assert (result.finish_s[0], result.cost_usd[0], result.starts[0]) == (6 * HOUR, 4.0, 3)


def test_a_start_up_longer_than_a_tick_goes_on_in_the_next():
    task = Task(HOUR, 9 * HOUR, 1.5 * HOUR)
    result = replay(SpotOnly(), one(up("110111"), HOUR, PRICES), FIRST, task)
    # 0.5 h of work by the second tick; again 1.5 h of start-up, then the other half.
    assert (result.finish_s[0], result.cost_usd[0]) == (5 * HOUR, 4.0)


def test_waiting_spot_that_never_returns_is_not_finished_and_late():
    result = replay(SpotOnly(), one(up("100"), HOUR, PRICES), FIRST, Task(2 * HOUR, 3 * HOUR, 0.0))
    assert np.isinf(result.finish_s[0])
    assert result.late(3 * HOUR)[0]


def test_on_demand_goes_on_beyond_the_end_of_the_series():
    result = replay(OnDemand(), one(up("00"), HOUR, PRICES), FIRST, Task(3 * HOUR, 4 * HOUR, 0.0))
    assert result.finish_s[0] == 3 * HOUR


def test_windows_do_not_touch_each_other():
    rng = np.random.default_rng(3)
    series = rng.random(60) < 0.6
    task, starts = Task(8 * HOUR, 14 * HOUR, 900.0), np.arange(0, 40, 3)
    for rule in (Greedy(), UniformProgress(), SpotOnly()):
        together = replay(rule, one(series, HOUR, PRICES), starts, task)
        alone = [
            replay(rule, one(series, HOUR, PRICES), starts[i : i + 1], task) for i in range(14)
        ]
        assert [float(each.cost_usd[0]) for each in alone] == list(together.cost_usd)


def test_waiting_costs_what_stays_rented():
    prices = ModePrices(spot=1.0, on_demand=3.0, idle=0.25)
    result = replay(SpotOnly(), one(up("0011"), HOUR, prices), FIRST, Task(2 * HOUR, 4 * HOUR, 0.0))
    assert result.cost_usd[0] == pytest.approx(2.5)


def test_a_window_lies_inside_the_series():
    task = Task(2 * HOUR, 4 * HOUR, 0.0)
    assert list(one(np.ones(10, dtype=bool), HOUR, PRICES).windows(task, 2 * HOUR)) == [0, 2, 4, 6]
    assert len(one(np.ones(3, dtype=bool), HOUR, PRICES).windows(task, HOUR)) == 0


def test_spot_that_is_not_there_cannot_be_chosen():
    class Wishful:
        name = "wishful"

        def begin(self, task, offers, count):
            return lambda state: np.full(count, SPOT)

    with pytest.raises(UsageError, match="where there is none"):
        replay(Wishful(), one(up("10"), HOUR, PRICES), FIRST, Task(2 * HOUR, 3 * HOUR, 0.0))


def cheapest_by_enumeration(series, tick_s, task, prices):
    """Every sequence of modes, with the published rule that a start takes its changeover."""
    ticks = int(task.deadline_s // tick_s)
    best = np.inf
    for modes in product((NONE, SPOT, ON_DEMAND), repeat=ticks):
        if any(m == SPOT and not series[i] for i, m in enumerate(modes)):
            continue
        before = (NONE, *modes[:-1])
        starts = sum(m not in (NONE, b) for m, b in zip(modes, before, strict=True))
        for end in range(1, ticks + 1):  # stop paying once the work is done
            ran = sum(m != NONE for m in modes[:end])
            begun = sum(m not in (NONE, b) for m, b in zip(modes[:end], before[:end], strict=True))
            if ran * tick_s - begun * task.changeover_s >= task.work_s - 1e-6:
                usd = sum(prices.by_mode[m] for m in modes[:end]) * tick_s / 3600.0
                best = min(best, usd)
        assert starts >= 0
    return best


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("idle", [0.0, 0.4])
def test_the_optimum_is_the_best_of_all_sequences(seed, idle):
    rng = np.random.default_rng(seed)
    series, prices = rng.random(7) < 0.5, ModePrices(1.0, 2.2, idle)
    task = Task(rng.integers(5, 15) * 900.0, 7 * HOUR, rng.integers(0, 4) * 900.0)
    found = optimum(one(series, HOUR, prices), FIRST, task)[0]
    assert found == pytest.approx(cheapest_by_enumeration(series, HOUR, task, prices))


def test_no_rule_beats_the_optimum():
    rng = np.random.default_rng(5)
    series = np.repeat(rng.random(40) < 0.5, rng.integers(1, 12, 40))
    task = Task(20 * HOUR, 30 * HOUR, 600.0)
    starts = one(series, HOUR, PRICES).windows(task, 5 * HOUR)
    best = optimum(one(series, HOUR, PRICES), starts, task)
    for rule in (OnDemand(), Greedy(), UniformProgress()):
        assert (replay(rule, one(series, HOUR, PRICES), starts, task).cost_usd >= best - 1e-9).all()
