"""Other rules for the fallback of a printed plan, and what they would cost."""

from dataclasses import replace

import numpy as np

from recommender.optimize.evaluate import limits_met
from recommender.plan.plan import AtFirstOutage, Fallback
from recommender.planner.plan_details import PlanDetails
from recommender.planner.problem import PRINTED
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.policy import failover_round_s
from recommender.risk.run_statistics import quantiles


def with_rules(fallback: Fallback, d: PlanDetails) -> Fallback:
    """Add the step of a plan's fallback, and what a switch at once or never would cost."""
    limits = d.space.limits
    max_outage_s = failover_round_s(int(d.inputs.zone_count[0]))
    asked = limits.deadline_s, PRINTED, d.space.seed
    early = simulate_paths(d.inputs, *asked, most_away_s=max_outage_s)
    never = simulate_paths(replace(d.inputs, fallback_speed=np.zeros(1)), *asked)
    at_first_outage = AtFirstOutage(
        cost_usd=float(early.expected_usd.mean()),
        time_s=quantiles(early.time_s[0], 0.5)[0],
        chance=float(limits_met(limits, early).mean()),
        probability=float((early.fallback_s > 0).mean()),
    )
    return replace(
        fallback,
        at_first_outage=None if d.inputs.elastic_share[0] > 0.0 else at_first_outage,
        chance_without=float(limits_met(limits, never).mean()),
        step=d.fallback_step(),
    )
