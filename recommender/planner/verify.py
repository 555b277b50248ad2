"""Follows shown plans again, through more histories of another seed, and tells the difference."""

import math
from collections.abc import Sequence

from recommender.arrays import Floats
from recommender.plan.plan import Check, Difference, Plan
from recommender.planner.plan_builder import Presenter
from recommender.planner.problem import PRINTED
from recommender.risk.outcomes import trimmed_mean, trimmed_mean_error
from recommender.simulate.paths import simulate
from recommender.simulate.summary import kept

RUNS = 20_480  # ten times those behind the printed figures
OTHER = 500_009  # from the seed of the printed figures to that of the check


def checks(presenter: Presenter, plans: Sequence[Plan]) -> tuple[Check, ...]:
    """One check per plan, in their order."""
    return tuple(_check(presenter, plan, rank) for rank, plan in enumerate(plans, 1))


def _check(presenter: Presenter, plan: Plan, rank: int) -> Check:
    limits, seed = presenter.question.limits, presenter.question.seed + OTHER
    journey = presenter.journey(presenter.candidate_of(plan))
    sample = simulate(journey, limits.deadline_s, RUNS, seed)
    _, together = kept(sample, limits, plan.usd_per_hour)
    estimate = plan.estimate
    return Check(
        rank,
        RUNS,
        seed,
        (
            _of_mean("cost_usd", estimate.cost.mean, sample.expected_usd),
            _of_typical("time_s", estimate.time.typical, sample.time_s),
            _of_mean("chance", estimate.chance, together),
        ),
    )


def _of_mean(figure: str, printed: float, values: Floats) -> Difference:
    error = float(values.std()) / math.sqrt(len(values))
    return _difference(figure, printed, float(values.mean()), error)


def _of_typical(figure: str, printed: float, values: Floats) -> Difference:
    return _difference(figure, printed, float(trimmed_mean(values)), trimmed_mean_error(values))


def _difference(figure: str, printed: float, found: float, error: float) -> Difference:
    """The error counts both samples; strata make the printed one a little smaller than that."""
    return Difference(figure, printed, found, error * math.sqrt(1.0 + RUNS / PRINTED))
