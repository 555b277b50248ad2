"""The fallbacks that plans may have: none that some cluster would want is left out."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.arrays import Floats
from recommender.optimize.fallback_choices import (
    ALL_TRIED,
    LIKELY,
    SLOW,
    SLOWEST,
    SPEEDUPS,
    choices_of,
    every_choice,
    undominated,
)
from recommender.optimize.space import Fallbacks, Space
from tests.recommender.optimize.palette import no_fallbacks, space

STEPS, BOOT_S = 1000.0, 300.0


def asked(max_overhead: float | None = None, hourly_usd: float | None = None) -> Space:
    q = replace(space(0), steps_left=STEPS)
    return replace(q, limits=replace(q.limits, max_overhead=max_overhead, hourly_usd=hourly_usd))


def fallbacks(step_s: Floats, usd: Floats, at_once: Floats) -> Fallbacks:
    """Slowest first, as a site has them."""
    return replace(
        no_fallbacks(), step_s=step_s, usd_per_hour=usd, boot_s=np.full(len(usd), BOOT_S),
        at_once=at_once, wait_s=np.zeros(len(usd)), kind=np.zeros(len(usd), dtype=np.int64),
        count=np.ones(len(usd), dtype=np.int64), offer=np.arange(len(usd)),
    )  # fmt: skip


def random_fallbacks(seed: int, count: int = 40) -> Fallbacks:
    draw = np.random.default_rng(seed)
    step_s = np.sort(draw.uniform(0.1, 5.0, count))[::-1]
    return fallbacks(step_s, draw.uniform(1.0, 50.0, count), draw.choice([0.7, 1.0], count))


def listed(found: Floats) -> list[list[int]]:
    return [sorted(row for row in each.tolist() if row >= 0) for each in found]


def test_of_few_each_is_tried() -> None:
    some = fallbacks(np.arange(ALL_TRIED, 0.0, -1.0), np.ones(ALL_TRIED), np.ones(ALL_TRIED))
    assert choices_of(asked(), some, np.ones(3)).tolist() == [[*range(ALL_TRIED)]] * 3


@pytest.mark.parametrize("seed", range(8))
def test_of_many_the_cheapest_of_each_speed_are_tried_and_no_one_twice(seed: int) -> None:
    some, cluster = random_fallbacks(seed), 2.0
    bill = some.usd_per_hour * (BOOT_S + STEPS * some.step_s)
    found = choices_of(asked(), some, np.array([cluster]))[0]
    wanted = set()
    for least in (0.0, LIKELY):
        for times in SPEEDUPS:
            likely = np.flatnonzero(some.at_once >= least)
            able = likely[some.step_s[likely] <= cluster / times]
            able = able if len(able) else likely[-1:]  # the fastest at worst
            wanted.add(int(able[bill[able].argmin()]))
    chosen = [row for row in found.tolist() if row >= 0]
    assert sorted(chosen) == sorted(wanted)


@pytest.mark.parametrize("seed", range(8))
def test_under_an_overhead_limit_the_cheapest_of_the_slow_ones_is_tried_too(seed: int) -> None:
    some, steps = random_fallbacks(seed), np.array([0.5, 1.0, 2.0, 3.0])
    plain = listed(choices_of(asked(), some, steps))
    limited = listed(choices_of(asked(max_overhead=0.05), some, steps))
    for step, without, found in zip(steps.tolist(), plain, limited, strict=True):
        speed = step / some.step_s
        slow = np.flatnonzero((speed >= SLOWEST) & (speed < SLOW))
        cost = (some.step_s * some.usd_per_hour)[slow]
        extra = {int(slow[cost.argmin()])} if len(slow) else set()
        assert set(found) == set(without) | extra


def test_those_above_the_hourly_limit_are_not_tried() -> None:
    some = random_fallbacks(1)
    dear = some.usd_per_hour > 25.0
    for found in (choices_of, every_choice):
        rows = listed(found(asked(hourly_usd=25.0), some, np.array([2.0])))[0]
        assert rows
        assert not dear[rows].any()


def test_all_but_those_far_slower_are_tried_of_the_best_plans() -> None:
    some = random_fallbacks(2)
    found = listed(every_choice(asked(), some, np.array([1.0, 100.0])))
    assert found[0] == np.flatnonzero(some.step_s <= 1.0 / SLOWEST).tolist()
    assert found[1] == list(range(len(some)))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("figures", [1, 2, 3, 5])
def test_what_none_beats_is_kept_and_nothing_else(seed: int, figures: int) -> None:
    """Of rows that are equal in everything the first; of more rows than are compared at once."""
    draw = np.random.default_rng(seed)
    table = draw.integers(0, 8, (700, figures)).astype(float)

    def beaten(row: int) -> bool:
        no_worse = (table <= table[row]).all(axis=1)
        better = no_worse & (table < table[row]).any(axis=1)
        return bool(better.any() or no_worse[:row].any())

    kept = [row for row in range(len(table)) if not beaten(row)]
    assert undominated(*table.T).tolist() == kept
