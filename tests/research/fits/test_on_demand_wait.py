"""Waits met away, by hand, and a planted Lomax law that comes back."""

import numpy as np
import pytest

from tests.research.fits.on_demand_wait import lomax_tail, waits_met_away
from tests.research.fits.spot_fit import Trace


def test_every_tick_without_the_machines_waits_for_the_next_with_them() -> None:
    nodes = np.array([0, 2, 1, 0, 0, 2, 1])
    trace = Trace("t", "c", "z", 2, 0.5, nodes)
    assert waits_met_away(trace, 1).tolist() == [0.5, 1.0, 0.5]
    assert waits_met_away(trace, 2).tolist() == [0.5, 1.5, 1.0, 0.5, np.inf]


def test_a_planted_tail_and_median_come_back() -> None:
    level = (np.arange(20_000) + 0.5) / 20_000
    waits = 3.0 * ((1.0 - level) ** (-1.0 / 1.25) - 1.0) / (2.0**0.8 - 1.0)
    tail, median = lomax_tail(waits)
    assert tail == pytest.approx(1.25, abs=0.03)
    assert median == pytest.approx(3.0, rel=0.02)
