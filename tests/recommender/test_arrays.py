"""Helpers on arrays against numpy's own."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as some

from recommender.arrays import distinct


@given(some.lists(some.floats(allow_nan=False) | some.integers(-3, 3).map(float)))
def test_distinct_values_are_those_of_numpy(values: list[float]) -> None:
    given_ = np.array(values, dtype=float)
    assert distinct(given_).tolist() == np.unique(given_).tolist()
