"""Memory of lifetimes matters: the exponential assumption picks the more expensive plan."""

import numpy as np

from recommender.risk.laws import Weibull
from recommender.risk.spot_capacity import CLASS_CAPACITY, Capacity, ClassCapacity
from recommender.simulation.paths import simulate
from tests.recommender.risk.cases import path_inputs

H = 3600.0
RUNS = 20_480
# p3.16xlarge on AWS, 2022: runs of 0.91 h on average, lognormal sigma 1.68
# (docs/research/risk-facts.md); AWS does not charge a run that it ends within the first hour.
SPOT = {
    "work_s": 40 * H, "run_mean_s": 0.91 * H, "run_sigma": 1.68, "outage_sigma": 1.36,
    "availability_logit": -0.45, "zone_sd": 0.0, "runs_from_start": 1.0, "free_s": 3600.0,
    "changeover_s": 1080.0, "interval_s": 900.0, "stall_s": 20.0, "spot_usd_per_hour": 8.0,
}  # fmt: skip
ON_DEMAND = {
    "work_s": 40 * H, "run_mean_s": 1e9, "runs_from_start": 1.0, "changeover_s": 400.0,
    "stall_s": 0.0,
    "spot_usd_per_hour": 0.0, "base_usd_per_hour": 8.95,
}  # fmt: skip


def cost(plan: dict[str, float], capacity: Capacity = CLASS_CAPACITY) -> float:
    return float(np.mean(simulate(path_inputs(plan), None, RUNS, 3, capacity).expected_usd))


def test_the_exponential_assumption_picks_a_plan_that_simulation_shows_to_cost_more() -> None:
    """Most runs are short, and short runs are free; few long ones do the work.

    An exponential law of the same mean has few runs below an hour, finds spot more expensive than
    on-demand at this price, and rents on-demand.
    """
    believed = cost(SPOT, ClassCapacity(Weibull(1.0)))
    on_demand = cost(ON_DEMAND)
    assert believed > 1.02 * on_demand
    assert cost(SPOT) < 0.98 * on_demand
