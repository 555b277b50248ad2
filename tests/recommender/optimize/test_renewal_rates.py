"""Estimates of fallbacks that take over earlier, because an overhead limit requires it."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.optimize.renewal_rates import FallbackRates, Rates, with_fallback, within_overhead

HOUR = 3600.0


def rates_of(count: int = 1) -> Rates:
    """Ten hours without an interruption; with some twenty, of which four are lost."""

    def each(*values: float) -> np.ndarray:
        return np.tile(np.array(values), (count, 1))

    return Rates(
        weight=each(0.5, 0.5),
        time_s=each(20 * HOUR, 10 * HOUR),
        usd=each(14.0, 10.0),
        work_s=each(10 * HOUR, 10 * HOUR),
        lost=each(0.4, 0.0),
        fallback_share=each(0.0, 0.0),
    )


FALLBACK = FallbackRates(
    start_s=np.array([360.0]),
    step_ratio=np.array([1.0]),
    usd_per_hour=np.array([5.0]),
    latest_s=np.array([40 * HOUR]),
    wait_s=np.zeros(1),
)


@pytest.mark.parametrize("most", [0.03, 0.05, 0.1, 0.15])
def test_a_fallback_takes_over_before_more_is_lost_than_allowed(most: float) -> None:
    last, early = with_fallback(rates_of(), FALLBACK), within_overhead(rates_of(), FALLBACK, most)
    assert float(last.mean(last.lost)[0]) == pytest.approx(0.2)
    assert 0.0 < float(early.mean(early.lost)[0]) <= most
    assert float(early.mean(early.usd)[0]) > float(last.mean(last.usd)[0])
    assert float(early.mean(early.time_s)[0]) < float(last.mean(last.time_s)[0])


def test_the_tighter_the_limit_the_more_a_plan_costs() -> None:
    found = [within_overhead(rates_of(), FALLBACK, most) for most in (0.15, 0.1, 0.05, 0.03)]
    usd = [float(each.mean(each.usd)[0]) for each in found]
    assert usd == sorted(usd)


def test_a_limit_that_no_moment_meets_leaves_the_least_overhead() -> None:
    """A start of an hour is a tenth of the work in every run that is handed over."""
    slow = replace(FALLBACK, start_s=np.array([HOUR]))
    early = within_overhead(rates_of(), slow, 0.001)
    assert 0.001 < float(early.mean(early.lost)[0]) < 0.2
    assert float(early.weight.sum()) == pytest.approx(1.0)
