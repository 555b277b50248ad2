"""The fallbacks that plans may have: none that some cluster would want is left out."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.arrays import Floats
from recommender.optimize.fallback_choices import (
    ALL_TRIED,
    LIKELY,
    SPEEDUPS,
    fallback_choices,
    faster_choices,
    of_each_speed,
    slower_choices,
    undominated,
    worth_trying,
)
from recommender.optimize.space import Fallbacks
from tests.recommender.optimize.palette import no_fallbacks

STEPS = 1000.0


def kept(*rows: tuple[float, float, float, float]) -> list[int]:
    """Which of some clusters are worth trying: step, price, start and chance to be there."""
    return worth_trying(*np.array(rows).T, STEPS).tolist()


def test_one_that_is_slower_and_more_expensive_is_not_tried() -> None:
    assert kept((2.0, 10.0, 60.0, 1.0), (1.0, 9.0, 60.0, 1.0)) == [1]


def test_a_cheaper_one_that_is_waited_for_leaves_the_one_that_is_there() -> None:
    assert kept((1.0, 38.0, 60.0, 1.0), (1.0, 31.0, 60.0, 0.7)) == [0, 1]


def test_one_that_starts_for_less_is_tried_though_all_of_the_work_costs_more_on_it() -> None:
    # 1,000 steps: 4.2 USD against 1.2; a tenth of them and the start: 0.43 against 1.07.
    assert kept((3.0, 5.0, 10.0, 1.0), (0.1, 6.0, 630.0, 1.0)) == [0, 1]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_left_out_is_beaten_in_speed_and_for_all_of_the_work(seed: int) -> None:
    draw = np.random.default_rng(seed)
    step_s = np.sort(draw.uniform(0.1, 5.0, 60))[::-1]
    usd, boot_s = draw.uniform(1.0, 50.0, 60), draw.uniform(60.0, 600.0, 60)
    at_once = draw.choice([0.6, 0.9, 0.99], 60)
    bill = usd * (boot_s + STEPS * step_s)
    rows = worth_trying(step_s, usd, boot_s, at_once, STEPS)
    for out in set(range(60)) - set(rows.tolist()):
        as_sure = (at_once[rows] >= LIKELY) | (at_once[out] < LIKELY)
        assert ((bill[rows] <= bill[out]) & (step_s[rows] <= step_s[out]) & as_sure).any()


def fallbacks(step_s: Floats, usd: Floats, at_once: Floats) -> Fallbacks:
    many = no_fallbacks().take(np.zeros(0, dtype=np.int64))
    return replace(
        many, step_s=step_s, usd_per_hour=usd, boot_s=np.full(len(usd), 300.0), at_once=at_once,
        kind=np.zeros(len(usd), dtype=np.int64),
    )  # fmt: skip


def test_of_few_each_is_tried() -> None:
    some = fallbacks(np.arange(ALL_TRIED, 0.0, -1.0), np.ones(ALL_TRIED), np.ones(ALL_TRIED))
    assert fallback_choices(some, np.ones(3), STEPS).tolist() == [[-1, *range(ALL_TRIED)]] * 3


def test_of_many_the_cheapest_of_each_speed_are_tried_and_no_one_twice() -> None:
    draw = np.random.default_rng(7)
    step_s = np.sort(draw.uniform(0.1, 5.0, 40))[::-1]
    usd, at_once = draw.uniform(1.0, 50.0, 40), draw.choice([0.7, 1.0], 40)
    bill = usd * (300.0 + STEPS * step_s)
    cluster = 2.0
    found = fallback_choices(fallbacks(step_s, usd, at_once), np.array([cluster]), STEPS)[0]
    wanted = set()
    for least in (0.0, LIKELY):
        for times in SPEEDUPS:
            able = np.flatnonzero((at_once >= least) & (step_s <= cluster / times))
            wanted.add(int(able[bill[able].argmin()]))
    assert sorted(row for row in found.tolist() if row >= 0) == sorted(wanted)


def test_slower_ones_are_a_quarter_as_fast_as_the_cluster_at_least() -> None:
    steps = np.array([9.0, 8.0, 5.0, 3.0, 2.0, 1.0, 0.5])
    some = fallbacks(steps, np.ones(7), np.ones(7))
    tried = np.zeros((2, 7), dtype=bool)
    tried[0, 3] = True
    found = slower_choices(some, np.array([2.0, 1.0]), np.array([1.0, 3.0]), tried)
    assert [sorted(row for row in each.tolist() if row >= 0) for each in found] == [[1, 2, 4], []]


def test_faster_ones_are_slower_than_the_next_that_is_tried_or_than_twice_as_fast() -> None:
    steps = np.array([9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0])
    some = fallbacks(steps, np.ones(7), np.ones(7))
    tried = np.zeros((3, 7), dtype=bool)
    tried[:, 0] = tried[0, 3] = tried[2, 1] = True
    found = faster_choices(some, np.array([9.0, 9.0, 9.0]), tried)
    listed = [sorted(row for row in each.tolist() if row >= 0) for each in found]
    assert listed == [[1, 2], [1, 2, 3, 4], []]


def test_of_each_speed_the_cheapest_are_kept_though_faster_ones_cost_less() -> None:
    # Steps of 2 s: 20 and 30 USD/h; of 1 s: 8 USD/h, less for all of the work.
    step_s, usd = np.array([2.01, 2.0, 1.0]), np.array([20.0, 30.0, 8.0])
    rows = of_each_speed(step_s, usd, np.full(3, 60.0), np.ones(3), STEPS)
    assert rows.tolist() == [0, 2]
    assert worth_trying(step_s, usd, np.full(3, 60.0), np.ones(3), STEPS).tolist() == [2]


@pytest.mark.parametrize("seed", range(10))
def test_what_none_beats_is_kept_and_nothing_else(seed: int) -> None:
    """One by one: cheaper for the work, faster, surer, fewer GPUs, or as good in all of them."""
    draw = np.random.default_rng(seed)
    step_s, usd = draw.choice([0.5, 1.0, 2.0, 3.0], 40), draw.uniform(1.0, 50.0, 40)
    boot_s, at_once = draw.uniform(60.0, 600.0, 40), draw.choice([0.6, 0.9, 0.99], 40)
    gpus = draw.choice([1.0, 2.0, 8.0, 16.0], 40)
    measures = list(zip(usd * (boot_s + STEPS * step_s), step_s, -at_once, gpus, strict=True))

    def beats(one: int, other: int) -> bool:
        pairs = list(zip(measures[one], measures[other], strict=True))
        return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)

    kept = [row for row in range(40) if not any(beats(other, row) for other in range(40))]
    assert undominated(step_s, usd, boot_s, at_once, gpus, STEPS).tolist() == kept
