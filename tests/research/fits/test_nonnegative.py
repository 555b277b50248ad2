"""Small fits against grids, and against the constants they were given."""

import numpy as np
import pytest

from tests.research.fits.nonnegative import nonnegative


@pytest.mark.parametrize("seed", range(6))
def test_no_point_of_a_grid_of_non_negative_constants_misses_less(seed):
    rng = np.random.default_rng(seed)
    columns, target = rng.normal(size=(12, 3)), rng.normal(size=12)
    found = nonnegative(columns, target)
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1.5, 31)] * 3), axis=-1).reshape(-1, 3)
    missed = ((grid @ columns.T - target) ** 2).sum(axis=1)
    assert (found >= 0).all()
    assert ((columns @ found - target) ** 2).sum() <= missed.min() + 1e-12


def test_where_every_constant_would_be_negative_all_are_zero():
    assert nonnegative(np.eye(2), np.array([-1.0, -2.0])).tolist() == [0.0, 0.0]
