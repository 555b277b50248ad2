"""The sampling error of few paths against many, over a grid of real plans. By hand:

    python -P tests/run.py tests.recommender.simulation.sampling_error

Plans are the five shown for each question of a fixed grid. For each, mean and 95 % quantile
of cost and time, and the trimmed mean of time, from 256 paths (what the search compares plans on)
and 2,048 (what is printed) are compared with 200,704 of another seed.
"""

import json
from dataclasses import dataclass

import numpy as np

from recommender.inputs.units import parse_instant
from recommender.job.jobfile import find_job
from recommender.plan.limits import Choice, Limits, Progress
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import PRINTED, SEARCHED, planning_problem
from recommender.planner.ranking import ranked_plans
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.path_inputs import PathInputs
from recommender.risk.random_numbers import SEED
from recommender.risk.run_statistics import trimmed_mean
from recommender.simulation.paths import simulate
from tests.shipped import snapshot

MANY = 98 * 2048
OTHER_SEED = 90_001
NOW = "2026-11-21T12:00Z"
H = 3600.0
# Frozen before the first look at an error: short and long jobs, each under a deadline with
# room (a fallback is part of the plan), under a budget and without a fallback.
GRID = (
    ("resnet50-imagenet", Limits(deadline_s=24 * H)),
    ("resnet50-imagenet", Limits(budget_usd=60.0)),
    ("bert-large-pretrain", Limits(deadline_s=24 * H)),
    ("bert-large-pretrain", Limits(deadline_s=72 * H)),
    ("llama3-8b-lora", Limits(deadline_s=12 * H)),
    ("llama3-8b-sft", Limits(deadline_s=24 * H)),
    ("llama3-8b-sft", Limits(budget_usd=500.0)),
)


@dataclass(frozen=True)
class Row:
    """Relative errors of one plan: few paths against many."""

    plan: str
    waits: bool  # without a fallback nothing bounds the time
    errors: dict[str, float]  # "256 cost mean": 0.01


def plans_of(name: str, limits: Limits) -> list[tuple[str, PathInputs]]:
    """The plans shown for one question, as the engine sees them."""
    problem = planning_problem(
        find_job(name), limits, Choice(), snapshot(), Progress(), parse_instant(NOW), SEED
    )
    plans = ranked_plans(PlanPool(problem), 5).plans
    return [(f"{name} plan {i}", evaluated.inputs) for i, evaluated in enumerate(plans, 1)]


def study() -> list[Row]:
    """The errors of every plan of the grid."""
    rows = []
    for name, limits in GRID:
        plans = plans_of(name, limits)
        rows += [row_of(label, inputs, limits.deadline_s) for label, inputs in plans]
    return rows


def row_of(label: str, inputs: PathInputs, deadline_s: float | None) -> Row:
    """One plan's errors."""
    many = simulate(inputs, deadline_s, MANY, OTHER_SEED)
    true = figures(many.time_s, many.cost_usd, many.expected_usd)
    errors = {}
    for paths in (SEARCHED, PRINTED):
        h = simulate_paths(inputs, deadline_s, paths, SEED)
        found = figures(h.time_s[0], h.cost_usd[0], h.expected_usd[0])
        errors |= {f"{paths} {key}": found[key] / true[key] - 1.0 for key in true}
    return Row(label, bool(inputs.fallback_speed[0] <= 0.0), errors)


def figures(time_s: np.ndarray, cost: np.ndarray, expected: np.ndarray) -> dict[str, float]:
    """What is compared."""
    return {
        "cost mean": float(expected.mean()),
        "cost p95": float(np.quantile(cost, 0.95)),
        "time mean": float(time_s.mean()),
        "time trimmed mean": float(trimmed_mean(time_s[None])[0]),
        "time p95": float(np.quantile(time_s, 0.95)),
    }


def main() -> None:
    """Print every plan's errors in per cent, end with JSON."""
    rows = study()
    keys = list(rows[0].errors)
    for row in rows:
        said = "  ".join(f"{100 * row.errors[key]:+6.1f}" for key in keys)
        print(f"{row.plan:32} {'waits   ' if row.waits else 'fallback'} {said}")
    kinds = (("waits", True), ("fallback", False))
    worst = {
        f"{key}, {kind}": round(worst_of(rows, key, w), 4) for key in keys for kind, w in kinds
    }
    print(json.dumps({"plans": len(rows), "worst": worst}))


def worst_of(rows: list[Row], key: str, waits: bool) -> float:
    """Largest error of a figure among the plans of one kind."""
    return max(abs(row.errors[key]) for row in rows if row.waits == waits)


if __name__ == "__main__":
    main()
