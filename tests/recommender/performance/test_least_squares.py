"""The small robust fit with priors, against closed forms."""

import numpy as np
import pytest

from recommender.performance.least_squares import ParameterPrior, solve, solve_relative, spread

SLOPES = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
WIDE = ParameterPrior(np.array([0.5, 0.0]), np.array([1.0, 2.0]), np.full(2, -9.0), np.full(2, 9.0))


def line(theta):
    return SLOPES @ theta


def by_bayes(target, noise):
    """Mean and covariance of a linear model with normal prior and noise, in closed form."""
    precision = SLOPES.T @ SLOPES / noise**2 + np.diag(1 / WIDE.sd**2)
    pull = SLOPES.T @ target / noise**2 + WIDE.mean / WIDE.sd**2
    return np.linalg.solve(precision, pull), np.linalg.inv(precision)


def test_a_linear_model_gets_the_posterior_of_the_closed_form():
    target = np.array([1.0, 1.52, 1.98, 2.51])
    fit = solve(line, target, 0.1, WIDE)
    mean, covariance = by_bayes(target, 0.1)
    assert fit.value == pytest.approx(mean, abs=1e-6)
    assert fit.covariance(0.1) == pytest.approx(covariance, rel=1e-6)


def test_the_sd_of_a_prediction_is_that_of_the_posterior():
    target = np.array([1.0, 1.5, 2.0, 2.5])
    fit = solve(line, target, 0.1, WIDE)
    _, covariance = by_bayes(target, 0.1)
    far = np.array([[1.0, 10.0]])
    assert spread(lambda theta: far @ theta, fit, 0.1) == pytest.approx(
        np.sqrt(far @ covariance @ far.T)[0], rel=1e-6
    )


def test_one_disturbed_measurement_moves_the_fit_little():
    right = np.array([1.0, 1.5, 2.0, 2.5])
    wrong = right + np.array([0.0, 0.0, 3.0, 0.0])
    robust = solve(line, wrong, 0.1, WIDE).value
    plain, _ = by_bayes(wrong, 0.1)
    truth, _ = by_bayes(right, 0.1)
    assert np.abs(robust - truth).max() < 0.2 * np.abs(plain - truth).max()


def test_without_measurements_worth_their_name_the_prior_stays():
    fit = solve(line, np.array([9.0, -9.0, 9.0, -9.0]), 1e6, WIDE)
    assert fit.value == pytest.approx(WIDE.mean, abs=1e-6)
    assert fit.determined_parameters(1e6) == pytest.approx(0.0, abs=1e-6)


def test_parameters_stay_inside_their_bounds():
    tight = ParameterPrior(np.zeros(2), np.ones(2), np.zeros(2), np.array([0.8, 9.0]))
    fit = solve(line, np.array([3.0, 3.5, 4.0, 4.5]), 0.01, tight)
    assert 0.0 <= fit.value[0] <= 0.8


def test_a_curved_model_finds_the_truth():
    def decay(theta):
        return theta[0] * np.exp(-theta[1] * np.arange(6.0))

    belief = ParameterPrior(np.array([1.0, 1.0]), np.full(2, 3.0), np.zeros(2), np.full(2, 9.0))
    fit = solve(decay, decay(np.array([2.5, 0.3])), 0.001, belief)
    assert fit.value == pytest.approx([2.5, 0.3], rel=1e-3)
    assert fit.determined_parameters(0.001) == pytest.approx(2.0, abs=1e-3)


def test_a_relative_fit_minimises_the_error_that_is_reported():
    """One free level through two times: (m/1 - 1)² + (m/2 - 1)² is least at m = 1.2."""
    free = ParameterPrior(np.zeros(1), np.full(1, 1e6), np.full(1, -9.0), np.full(1, 9.0))
    fit = solve_relative(
        lambda theta: np.full(2, theta[0]), np.array([1.0, 2.0]), 0.1, free, huber=np.inf
    )
    assert np.exp(fit.value[0]) == pytest.approx(1.2, rel=1e-4)
    assert fit.residual == pytest.approx([0.2, -0.4], abs=1e-4)


def test_a_weight_pulls_and_is_not_in_the_residuals():
    free = ParameterPrior(np.zeros(1), np.full(1, 1e6), np.full(1, -9.0), np.full(1, 9.0))
    fit = solve_relative(
        lambda theta: np.full(2, theta[0]),
        np.array([1.0, 2.0]),
        0.1,
        free,
        huber=np.inf,
        weight=np.array([100.0, 1.0]),
    )
    assert np.exp(fit.value[0]) == pytest.approx(1.0, abs=1e-3)
    assert fit.residual == pytest.approx([0.0, -0.5], abs=1e-3)
