"""Robust least squares with priors."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.frozen import dataclass

HUBER = 2.0  # residuals beyond so many sd count linearly: a run that was disturbed
ROUNDS = 60  # of Levenberg-Marquardt from one start; a dozen are usual
STEP = 1e-6  # of a finite difference, in prior sd of at most 1
CONVERGED = 1e-5  # fall of the objective that ends the rounds
MAX_DAMPING = 1e9


@dataclass(frozen=True, slots=True)
class ParameterPrior:
    """The prior of each parameter; shape (parameters,)."""

    mean: Floats
    sd: Floats
    least: Floats
    most: Floats


@dataclass(frozen=True, slots=True)
class PosteriorFit:
    """The most probable parameters, and their uncertainty."""

    value: Floats  # (parameters,)
    information: Floats  # (parameters, parameters), J'WJ: of the measurements at unit noise
    residual: Floats  # (points,) model less measurement
    objective: float
    prior: ParameterPrior

    def covariance(self, noise: float) -> Floats:
        """Posterior covariance from the Jacobian, if `noise` is the sd of a measurement."""
        curve = self.information / noise**2 + np.diag(1.0 / self.prior.sd**2)
        return np.asarray(np.linalg.inv(curve), dtype=np.float64)

    def determined_parameters(self, noise: float) -> float:
        """The number of parameters determined by the measurements rather than the prior."""
        return float(np.sum(1.0 - np.diag(self.covariance(noise)) / self.prior.sd**2))


def solve(
    model: Callable[[Floats], Floats],
    target: Floats,
    noise: float,
    prior: ParameterPrior,
    start: Floats | None = None,
    huber: float = HUBER,
) -> PosteriorFit:
    """Maximum a posteriori of theta under target = model(theta) + noise.

    Minimises sum huber((model - target) / noise) + sum ((theta - mean) / sd)^2 / 2 inside the
    bounds, from the prior's mean or `start`; W are Huber's weights (Robust Statistics, 1981).
    `model` maps (parameters,) to (points,). Residuals beyond `huber` sd count linearly. A parameter
    whose bounds are equal is not fitted, but its uncertainty counts.
    """
    theta = np.clip(prior.mean if start is None else start, prior.least, prior.most)
    missed = model(theta) - target
    value, damping = _objective(theta, missed, noise, prior, huber), 1e-6
    free = prior.least < prior.most
    for _ in range(ROUNDS):
        slope = _jacobian(model, theta, missed + target, prior) * free
        pull, curve = _normal(theta, missed, slope, noise, prior, huber)
        moved = False
        while not moved and damping < MAX_DAMPING:
            step = np.linalg.solve(curve + damping * np.diag(np.diag(curve)), -pull)
            tried = np.clip(theta + step, prior.least, prior.most)
            then = model(tried) - target
            worth = _objective(tried, then, noise, prior, huber)
            moved = worth < value
            damping = max(damping / 5, 1e-9) if moved else damping * 4
        if not moved:
            break
        fell, theta, missed, value = value - worth, tried, then, worth
        if fell < CONVERGED:
            break
    slope = _jacobian(model, theta, missed + target, prior)
    weight = _weights(missed, noise, huber)
    return PosteriorFit(theta, (slope.T * weight) @ slope, missed, value, prior)


def solve_relative(
    model: Callable[[Floats], Floats],
    took: Floats,
    noise: float,
    prior: ParameterPrior,
    *starts: Floats,
    huber: float = HUBER,
    weight: Floats | float = 1.0,
) -> PosteriorFit:
    """Fit ln times to times: residuals are relative, as errors are reported.

    The search starts with residuals of ln, which are symmetric, and continues from the best of the
    starts; a later start is tried only if the earlier ones leave more than `noise`. `weight`
    multiplies residuals; the returned ones are unweighted.
    """
    target = np.zeros(len(took))
    best: PosteriorFit | None = None
    for start in starts or (prior.mean,):
        if best is None or np.abs(best.residual).max() >= noise:
            logs = solve(
                lambda at: (model(at) - np.log(took)) * weight, target, noise, prior, start, huber
            )
            best = logs if best is None else min(best, logs, key=lambda fit: fit.objective)
    assert best is not None
    found = solve(
        lambda at: np.expm1(model(at) - np.log(took)) * weight,
        target,
        noise,
        prior,
        best.value,
        huber,
    )
    return replace(found, residual=found.residual / weight)


def spread(model: Callable[[Floats], Floats], fit: PosteriorFit, noise: float) -> Floats:
    """Sd of another model's predictions under a fit's posterior, without their noise; (points,)."""
    slope = _jacobian(model, fit.value, model(fit.value), fit.prior)
    variance = np.einsum("rk,kl,rl->r", slope, fit.covariance(noise), slope)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)), dtype=np.float64)


def students_excess(free: float) -> float:
    """The factor by which an sd estimated from so few errors must be widened.

    Student's 95th percentile over the normal one, by Cornish and Fisher's series: within 1 % from
    four degrees of freedom on, 2 % low at three.
    """
    return 1.0 + 0.9264 / free + 0.863 / free**2


def _weights(missed: Floats, noise: float, huber: float) -> Floats:
    return np.asarray(1.0 / np.maximum(np.abs(missed) / (huber * noise), 1.0))


def _objective(
    theta: Floats, missed: Floats, noise: float, prior: ParameterPrior, huber: float
) -> float:
    far = np.abs(missed) / noise
    near = np.minimum(far, huber)
    lost = near * (far - 0.5 * near)
    return float(lost.sum() + 0.5 * (((theta - prior.mean) / prior.sd) ** 2).sum())


def _normal(
    theta: Floats, missed: Floats, slope: Floats, noise: float, prior: ParameterPrior, huber: float
) -> tuple[Floats, Floats]:
    """Gradient and Gauss-Newton curvature of the objective."""
    weight = _weights(missed, noise, huber) / noise**2
    pull = slope.T @ (weight * missed) + (theta - prior.mean) / prior.sd**2
    curve = (slope.T * weight) @ slope + np.diag(1.0 / prior.sd**2)
    return pull, curve


def _jacobian(
    model: Callable[[Floats], Floats], theta: Floats, here: Floats, prior: ParameterPrior
) -> Floats:
    """Forward differences, backward at an upper bound; (points, parameters)."""
    columns = []
    for k in range(len(theta)):
        step = STEP * min(prior.sd[k], 1.0)
        step = -step if theta[k] + step > prior.most[k] else step
        moved = theta.copy()
        moved[k] += step
        columns.append((model(moved) - here) / step)
    return np.stack(columns, axis=1)
