"""The least value of a limit is narrowed in a few tries, and none of them misses it."""

from types import SimpleNamespace

import numpy as np
import pytest

from recommender.optimize.search_state import Candidate
from recommender.planner.least_value import SUGGESTED_MARGIN, Met, Tried
from recommender.planner.narrowing import CLOSER, narrowed

PLAN = Candidate(0, (0,), (1,), 0, -1)
MOST_TRIES = 25
MOST_LOOKS = 4


class OnePlan:
    """Stands for a limit of which the only plan needs less where less is allowed."""

    def __init__(self, least: float, slope: float) -> None:
        self.least, self.slope, self.tries, self.looks = least, slope, 0, 0
        self.limit, self.limits = None, SimpleNamespace(value=lambda limit: 1.0, max_overhead=None)

    def half_without_limits(self) -> float:
        return 0.5 * self.least

    def likely(self, value: float) -> list[Candidate]:
        self.looks += 1
        return [PLAN]

    def least_of(self, tried: list[Candidate], most: float) -> Tried:
        self.tries += 1
        assert self.tries < MOST_TRIES
        need = self._need(most)
        with_margin = min(need * SUGGESTED_MARGIN, most)
        met = next((Met(v, PLAN) for v in (with_margin, most) if self._need(v) <= v), None)
        return Tried(met, need, tried)

    def _need(self, value: float) -> float:
        return float(self.least * (value / self.least) ** self.slope)


@pytest.mark.parametrize("slope", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("first", [1.02, 1.5, 4.0])
def test_the_value_found_is_at_most_a_step_above_the_least(slope: float, first: float) -> None:
    # Many, because a step down and up again is another number for one value of 400 only.
    for least in np.random.default_rng(7).uniform(1e3, 1e6, 3000).tolist():
        limit = OnePlan(least, slope)
        found = narrowed(limit, Met(first * least, PLAN))
        assert least <= found.value <= CLOSER * SUGGESTED_MARGIN * least


@pytest.mark.parametrize("first", [1.02, 1.5, 4.0, 100.0])
def test_all_plans_are_looked_at_a_few_times_only(first: float) -> None:
    """A plan that needs just less than any value allowed is followed down without the others."""
    limit = OnePlan(1000.0, 0.999)
    found = narrowed(limit, Met(first * 1000.0, PLAN))
    assert found.value <= CLOSER * SUGGESTED_MARGIN * 1000.0
    assert limit.looks <= MOST_LOOKS
