"""The first-order law: the inverse Gaussian's own figures, and how near simulation it is."""

import numpy as np
import pytest

from recommender.risk.laws import Lognormal
from recommender.simulation.closed_form import _first_passage, closed_form
from recommender.simulation.paths import simulate
from tests.recommender.risk.cases import RESCUE, path_inputs

H = 3600.0
STEADY = {
    "work_s": 400 * H, "run_mean_s": 3 * H, "run_sigma": 0.8, "outage_sigma": 0.8,
    "availability_logit": 1.5,
}  # fmt: skip


@pytest.mark.parametrize(("mean", "shape"), [(1.0, 1.0), (3.0, 10.0), (50.0, 4e5)])
def test_the_first_passage_law_is_the_inverse_gaussian(mean: float, shape: float) -> None:
    rng = np.random.default_rng(1)
    times = rng.wald(mean, shape, 400_000)
    for level in (0.05, 0.5, 0.95):
        at = float(np.quantile(times, level))
        found = _first_passage(at, np.array([mean]), np.array([shape]))[0]
        assert found == pytest.approx(level, abs=0.004)


def test_a_long_job_takes_and_costs_what_drift_and_variance_say() -> None:
    plan = path_inputs(STEADY)
    found = closed_form(plan, None, Lognormal(0.8), 7)
    sample = simulate(plan, None, 8192, 7)
    assert found.time_s == pytest.approx(sample.time_s.mean(), rel=0.02)
    assert found.time_p95_s == pytest.approx(np.quantile(sample.time_s, 0.95), rel=0.05)
    assert found.cost_usd == pytest.approx(sample.expected_usd.mean(), rel=0.02)
    due = float(np.quantile(sample.time_s, 0.8))
    assert closed_form(plan, due, Lognormal(0.8), 7).chance == pytest.approx(0.8, abs=0.05)


def test_a_job_of_a_few_cycles_is_known_to_come_out_low() -> None:
    plan = path_inputs(STEADY | {"work_s": 12 * H, "run_sigma": 1.5, "outage_sigma": 1.3})
    ratio = (
        closed_form(plan, None, Lognormal(1.5), 7).time_s
        / simulate(plan, None, 20_480, 7).time_s.mean()
    )
    assert 0.7 < ratio < 1.0


def test_without_interruptions_it_is_exact() -> None:
    found = closed_form(path_inputs({}), None, Lognormal(1.0), 7)
    # 300 s of start, 36,000 s of work, 20 s of saving in 1,020.
    assert found.time_s == pytest.approx(300 + 36_000 * 1.02, rel=1e-6)
    assert found.fallback_share == 0.0


def test_the_fallback_starts_when_the_slack_is_used_up() -> None:
    # Capacity is never there: g = 0, so the fallback starts at D - R - W/f.
    never = STEADY | RESCUE | {"work_s": 20 * H, "availability_logit": -30.0}
    found = closed_form(path_inputs(never), 30 * H, Lognormal(0.8), 7)
    assert found.law == "fallback rule"
    assert found.fallback_share == 1.0
    assert found.fallback_from_s == pytest.approx(30 * H - 200 - 600 - 10 * H, rel=1e-3)
    assert found.cost_usd == pytest.approx((10 + 1 / 6) * 80, rel=1e-3)
    assert (found.chance, found.time_p95_s) == (None, None)
