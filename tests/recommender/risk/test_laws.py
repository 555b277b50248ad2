"""Laws of runs behind one interface: means, residues, the engine, and the lognormal path."""

import math

import numpy as np
import pytest

from recommender.risk.laws import RUN_FAMILY, Lognormal, RunLaw, SurvivalCurve, Weibull
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.normal_law import normal_quantile
from recommender.risk.random_numbers import random_numbers, uniforms
from recommender.risk.spot_capacity import ClassCapacity
from tests.recommender.risk.cases import SPOT, path_inputs

U = (np.arange(200_000) + 0.5) / 200_000
CURVE = SurvivalCurve((0.0, 3600.0, 7200.0, 36_000.0), (1.0, 0.5, 0.4, 0.0))
LAWS: dict[str, RunLaw] = {
    "exponential": Weibull(1.0),
    "Weibull": Weibull(0.6),
    "lognormal": Lognormal(1.2),
    "curve": CURVE,
}


@pytest.mark.parametrize("name", LAWS)
def test_runs_of_every_law_have_mean_one(name: str) -> None:
    assert LAWS[name].lengths(U).mean() == pytest.approx(1.0, rel=3e-3)


@pytest.mark.parametrize("name", LAWS)
def test_what_is_left_of_a_run_met_at_random_has_the_mean_of_renewal_theory(name: str) -> None:
    runs = LAWS[name].lengths(U)
    expected = (runs**2).mean() / (2.0 * runs.mean())  # E[X²]/2E[X]
    assert LAWS[name].residues(U).mean() == pytest.approx(expected, rel=0.01)


def test_the_exponential_law_has_no_memory() -> None:
    law = Weibull(1.0)
    assert law.lengths(U[:-1]) == pytest.approx(-np.log1p(-U[:-1]))
    assert law.residues(U[1000:-1000]) == pytest.approx(law.lengths(U[1000:-1000]), rel=2e-3)


def test_weibull_runs_of_shape_below_one_die_early() -> None:
    runs = Weibull(0.6).lengths(U)
    scale = 1.0 / math.gamma(1.0 + 1.0 / 0.6)
    alive = [float((runs > t).mean()) for t in (0.1, 0.2, 1.0, 1.1)]
    assert alive == pytest.approx(
        [math.exp(-((t / scale) ** 0.6)) for t in (0.1, 0.2, 1.0, 1.1)], abs=1e-4
    )
    assert 1 - alive[1] / alive[0] > 1 - alive[3] / alive[2]


def test_a_survival_curve_is_met_at_its_points() -> None:
    hours = CURVE.lengths(U) * CURVE.mean_s / 3600.0
    assert CURVE.mean_s == pytest.approx(0.75 * 3600 + 0.45 * 3600 + 0.2 * 8 * 3600)
    assert [(hours > t).mean() for t in (1.0, 2.0, 6.0)] == pytest.approx([0.5, 0.4, 0.2], abs=1e-3)


def test_a_curve_that_ends_before_everybody_died_goes_on_with_its_later_hazard() -> None:
    open_ended = SurvivalCurve(
        (0.0, 10.0, 20.0, 30.0), (1.0, 0.5, 0.5 * math.exp(-1), 0.5 * math.exp(-2))
    )
    assert open_ended.mean_s == pytest.approx(
        7.5 + 3.420 + 1.258 + 0.5 * math.exp(-2) * 10.0, abs=0.01
    )
    runs = open_ended.lengths(U) * open_ended.mean_s
    assert (runs > 40.0).mean() == pytest.approx(0.5 * math.exp(-3), abs=1e-3)


def test_lognormal_runs_given_as_another_law_have_the_outcomes_of_the_built_in_law() -> None:
    plan = path_inputs(SPOT)
    own = simulate_paths(plan, None, 8192)
    law = simulate_paths(plan, None, 8192, capacity=ClassCapacity(Lognormal(SPOT["run_sigma"])))
    for name in ("cost_usd", "interruptions", "running_s"):
        ours, theirs = getattr(own, name), getattr(law, name)
        error = np.sqrt((ours.var() + theirs.var()) / 8192)
        assert abs(ours.mean() - theirs.mean()) < 3 * error, name


def test_the_uniforms_of_the_runs_are_those_behind_their_normals() -> None:
    sample = random_numbers(64, 3)
    drawn = sample.uniforms("run", 0)
    expected = RUN_FAMILY.lengths(normal_quantile(drawn), 1.3)
    assert sample.factors("run", 1.3, 0) == pytest.approx(expected, rel=1e-6)
    plain = uniforms(3, 1, 64 * 8).reshape(64, 8)
    assert np.array_equal(drawn.T[:, 3:], plain[:, 3:])  # the first are spread


def test_survival_at_the_median_is_a_half():
    mean, sigma = np.array([3600.0]), np.array([1.2])
    median = mean * np.exp(-0.5 * sigma**2)
    assert RUN_FAMILY.survival(median, mean, sigma)[0] == pytest.approx(0.5)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("t", [0.0, 600.0, 20_000.0])
def test_excess_is_the_integral_of_survival(sigma, t):
    mean, spread = np.array([3600.0]), np.array([sigma])
    grid = np.concatenate([[t], t + np.geomspace(1e-3, 1e8, 200_001)])
    area = np.trapezoid(RUN_FAMILY.survival(grid, mean, spread), grid)
    found = RUN_FAMILY.excess(np.array([t]), mean, spread)[0]
    assert found == pytest.approx(area, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("shape", [0.3, 1.2, 2.0])
def test_the_shape_is_found_again_from_the_variation(shape):
    variation = float(RUN_FAMILY.mean_square(np.array(shape))) - 1.0
    assert RUN_FAMILY.shape_of_variation(variation) == pytest.approx(shape)
