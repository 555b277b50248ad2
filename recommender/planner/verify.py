"""Simulates printed plans again on more paths of another seed, and reports the differences."""

import math
from collections.abc import Sequence

import numpy as np

from recommender.arrays import Floats
from recommender.plan.answer import Check, Difference
from recommender.planner.plan_builder import Evaluated
from recommender.planner.problem import PRINTED, Problem
from recommender.risk.run_statistics import median_error
from recommender.simulation.paths import simulate
from recommender.simulation.summary import limit_chances

RUNS = 20_480  # ten times those behind the printed figures
OTHER = 500_009  # from the seed of the printed figures to that of the check


def checks(problem: Problem, plans: Sequence[Evaluated]) -> tuple[Check, ...]:
    """One check per plan, in their order."""
    return tuple(_check(problem, evaluated, rank) for rank, evaluated in enumerate(plans, 1))


def _check(problem: Problem, evaluated: Evaluated, rank: int) -> Check:
    limits, seed = problem.limits, problem.seed + OTHER
    sample = simulate(evaluated.inputs, limits.deadline_s, RUNS, seed)
    _, together = limit_chances(sample, limits, evaluated.plan.max_usd_per_hour)
    estimate = evaluated.plan.estimate
    return Check(
        rank,
        RUNS,
        seed,
        (
            _of_mean("cost_usd", estimate.cost.mean, sample.cost_usd),
            _of_median("time_s", estimate.time.p50, sample.time_s),
            _of_mean("chance", estimate.chance, together * evaluated.inputs.fits[0]),
        ),
    )


def _of_mean(figure: str, printed: float, values: Floats) -> Difference:
    error = float(values.std()) / math.sqrt(len(values))
    return _difference(figure, printed, float(values.mean()), error)


def _of_median(figure: str, printed: float, values: Floats) -> Difference:
    return _difference(figure, printed, float(np.median(values)), median_error(values))


def _difference(figure: str, printed: float, simulated: float, error: float) -> Difference:
    """The error counts both samples; strata make the printed one a little smaller than that."""
    return Difference(figure, printed, simulated, error * math.sqrt(1.0 + RUNS / PRINTED))
