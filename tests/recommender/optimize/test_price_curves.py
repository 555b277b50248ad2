"""The pieces of a price curve that clusters reach say what all of its pieces say."""

import numpy as np
import pytest

from recommender.optimize.price_curves import (
    Groups,
    OtherMachines,
    curves,
    min_product,
    reach,
    weights_of,
)

ENTRIES, MACHINES, STEP_S, SAMPLES = 40, 16, 0.2, 64.0


@pytest.mark.parametrize("seed", range(20))
def test_pieces_beyond_the_reach_of_all_machines_bound_nothing(seed: int) -> None:
    """Forty machines with a number each, next to one of each, in clusters of sixteen."""
    draw = np.random.default_rng(seed)
    speed = draw.uniform(1.0, 9.0, ENTRIES)
    bill = speed * draw.uniform(0.5, 1.5, ENTRIES)
    amount = draw.integers(1, 5, ENTRIES).astype(np.float64)
    one = np.eye(ENTRIES)
    groups = Groups(np.arange(ENTRIES), amount * speed, one, one, amount)
    both = [
        curves(bill, speed, groups, weights_of(bill, speed), np.zeros(ENTRIES, bool), machines)
        for machines in (MACHINES, ENTRIES * 100)
    ]
    assert both[0].start.shape[1] < both[1].start.shape[1] == ENTRIES
    shape = (ENTRIES, 1)
    most = np.full(shape, MACHINES - 1)
    others = OtherMachines(
        own_price=bill[:, None],
        share=np.ones(shape),
        own_speed=speed,
        min_machines=np.zeros(1, dtype=np.int64),
        max_machines=np.array([MACHINES - 1]),
        min_types=np.zeros(shape, dtype=np.int64),
        begin=np.zeros(ENTRIES, dtype=np.int64),
    )
    money = np.array([draw.uniform(5.0, 60.0)])
    short, whole = (reach(each, others, money) for each in both)
    limit = speed[:, None] + most * speed.max()
    assert np.minimum(short, limit) == pytest.approx(np.minimum(whole, limit))
    lines = ((np.full(shape, STEP_S), np.full(shape, SAMPLES)),)
    found = [min_product(c, others, lines, np.zeros(shape), limit) for c in both]
    assert found[0] == pytest.approx(found[1])
