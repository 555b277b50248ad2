"""Patience before a cluster moves, against outages drawn here and against the law without it."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.move_after import patient_wait_s, share_moved
from tests.recommender.risk.cases import SPOT, path_inputs

H = 3600.0
LISTED = SPOT | {"zone_count": 3.0, "correlation": 0.2, "usd_per_move": 20.0, "work_s": 40 * H}


def test_the_mean_wait_and_the_share_moved_are_those_of_drawn_outages() -> None:
    """A million outages by numpy: the wait ends with the outage, the patience, or elsewhere."""
    rng = np.random.default_rng(3)
    patience, mean, sigma, k, nowhere = 2 * H, 3 * H, 1.1, 3, 0.4
    outage = mean * np.exp(sigma * rng.standard_normal(1_000_000) - sigma**2 / 2)
    elsewhere = np.where(rng.random(len(outage)) < nowhere, outage / k, 0.0)
    wait = np.maximum(elsewhere, np.minimum(outage, patience))
    row = {"zone_count": float(k), "move_after_s": patience, "outage_sigma": sigma}
    plan, law = path_inputs(row), np.full((1, 1), mean)
    reported = patient_wait_s(plan, law, np.full((1, 1), nowhere))
    assert reported[0, 0] == pytest.approx(wait.mean(), rel=5e-3)
    assert share_moved(plan, law)[0, 0] == pytest.approx((outage >= patience).mean(), rel=5e-3)


def test_without_patience_the_law_is_what_it_was() -> None:
    plan, law, nowhere = path_inputs(LISTED), np.full((1, 1), 5 * H), np.full((1, 1), 0.3)
    assert patient_wait_s(plan, law, nowhere)[0, 0] == pytest.approx(0.3 * 5 * H / 3)
    assert share_moved(plan, law)[0, 0] == 1.0
    paths = simulate_paths(plan, None, 256)
    assert np.array_equal(paths.moves, paths.interruptions)


def test_a_longer_wait_before_moves_means_fewer_moves_and_never_an_earlier_end() -> None:
    """In every single path."""
    hours = (0.0, 0.5, 1.0, 4.0, 12.0)
    paths = simulate_paths(
        path_inputs(*(LISTED | {"move_after_s": h * H} for h in hours)), None, 512
    )
    drawn = paths.interruptions.max(axis=0) < 100
    assert drawn.mean() > 0.9
    assert (np.diff(paths.waiting_s[:, drawn], axis=0) >= -1.0).all()
    assert (np.diff(paths.moves[:, drawn], axis=0) <= 0.0).all()
    assert (np.diff(paths.moves.mean(axis=1)) < 0.0).all()
    assert paths.moves[-1].mean() < 0.3 * paths.moves[0].mean()


def test_each_move_is_paid_and_nothing_else_of_the_bill_is_touched() -> None:
    plan = path_inputs(LISTED | {"move_after_s": H})
    free = replace(plan, usd_per_move=np.zeros(1))
    paid, unpaid = (simulate_paths(each, None, 256) for each in (plan, free))
    assert paid.cost_usd - unpaid.cost_usd == pytest.approx(20.0 * paid.moves)
