"""What the first runs refuse would not have met the limits in all runs either."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.optimize import early_rejection
from recommender.optimize.early_rejection import surely_infeasible
from recommender.optimize.evaluate import path_inputs_of
from recommender.optimize.space import Space
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.path_inputs import PathInputs, Paths
from recommender.risk.run_statistics import OutcomeCache
from tests.recommender.optimize.palette import oracle, space
from tests.recommender.optimize.samples import sampled
from tests.recommender.risk.cases import path_inputs


@pytest.fixture(autouse=True)
def _every_plan_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_rejection, "LONG", 0)


def untouched(seed: int, confidence: float) -> Space:
    """A random space whose plans have not been simulated yet."""
    q = space(seed, entries=2 + seed % 4)
    return replace(q, limits=replace(q.limits, confidence=confidence), cache=OutcomeCache(128, 7))


def with_its_own_only(inputs: PathInputs) -> PathInputs:
    """Plans with a fallback as a search follows them: what another could save is not asked."""
    usd = np.where(inputs.fallback_speed > 0.0, np.inf, inputs.best_fallback_usd_per_hour)
    return replace(inputs, best_fallback_usd_per_hour=usd)


@pytest.mark.parametrize("confidence", sampled((0.8, 0.95, 0.99), (0.95,)))
def test_no_plan_that_meets_the_limits_is_refused(confidence: float) -> None:
    refused = with_fallback = 0
    for seed in range(20):
        q = untouched(seed, confidence)
        _, values = oracle(replace(q, cache=OutcomeCache(128, 7)))
        plans, _ = oracle(q)
        inputs, _ = path_inputs_of(q, q.sites[0], plans)
        lost = surely_infeasible(replace(q, cache=OutcomeCache(128, 7)), with_its_own_only(inputs))
        assert not np.isfinite(values.goal_value[lost]).any(), seed
        refused += int(lost.sum())
        with_fallback += int((lost & (plans.fallback >= 0)).sum())
    assert refused > 50
    assert with_fallback > 10  # over their budgets


def test_nothing_is_refused_where_any_chance_will_do() -> None:
    for seed in range(10):
        q = untouched(seed, 0.0)
        plans, _ = oracle(q)
        inputs, _ = path_inputs_of(q, q.sites[0], plans)
        assert not surely_infeasible(replace(q, cache=OutcomeCache(128, 7)), inputs).any()


@pytest.mark.parametrize("cycles_of_work", [3.0, 150.0])
def test_the_first_runs_go_as_they_do_among_all(cycles_of_work: float) -> None:
    p = path_inputs(
        {
            "work_s": 3_600.0 * cycles_of_work, "run_mean_s": 3_600.0, "zone_count": 3.0,
            "zone_sd": 1.0, "availability_logit": 0.5, "price_sigma": 0.1, "notice_saves": 0.5,
        }
    )  # fmt: skip
    whole, begun = simulate_paths(p, None, 256), simulate_paths(p, None, 256, first=32)
    for name in Paths.__slots__:
        np.testing.assert_allclose(getattr(begun, name), getattr(whole, name)[:, :32], rtol=1e-6)
