"""Other rules for the fallback of a printed plan, and what they would cost."""

from dataclasses import replace
from typing import TYPE_CHECKING

from recommender.optimize.evaluate import limits_met
from recommender.plan.plan import AtFirstOutage, Fallback
from recommender.planner.plan_details import PlanDetails
from recommender.planner.problem import PRINTED
from recommender.risk.fallback import AS_FAST, failover_round_s
from recommender.risk.monte_carlo import simulate_other_rules
from recommender.risk.run_statistics import quantiles

if TYPE_CHECKING:
    from recommender.policies.thresholds import TwoThresholds


def with_rules(fallback: Fallback, d: PlanDetails) -> Fallback:
    """Add the step and the thresholds of a plan's fallback, and a switch at once or never."""
    limits, rule = d.space.limits, _thresholds(d)
    max_outage_s = failover_round_s(int(d.inputs.zone_count[0]))
    early, never = simulate_other_rules(
        d.one_plan, limits.deadline_s, PRINTED, max_outage_s, d.space.seed
    )
    at_first_outage = AtFirstOutage(
        cost_usd=float(early.expected_usd.mean()),
        time_s=quantiles(early.time_s[0], 0.5)[0],
        chance=float(limits_met(limits, early).mean()),
        probability=float((early.fallback_s > 0).mean()),
    )
    return replace(
        fallback,
        wait_above=None if rule is None else rule.wait,
        back_above=None if rule is None else rule.back,
        at_first_outage=None if d.inputs.elastic_share[0] > 0.0 else at_first_outage,
        chance_without=float(limits_met(limits, never).mean()),
        step=d.fallback_step(),
    )


def _thresholds(d: PlanDetails) -> "TwoThresholds | None":
    """When to wait for spot and when to go back to it, from the tables of its class.

    They hold for all-spot clusters and on-demand ones at least as fast.
    """
    inputs, first = d.inputs, d.pools[0]
    speed, deadline_s = float(inputs.fallback_speed[0]), d.space.limits.deadline_s
    law = d.problem.facts.spot_class(first.type, first.rows)
    mixed = not d.site.entries.spot.all()
    if deadline_s is None or law is None or mixed or speed < AS_FAST:
        return None
    # Most plans have no such rule.
    from recommender.policies.state import ModePrices, Task
    from recommender.policies.thresholds import shipped_rule

    task = Task(float(inputs.work_s[0]), deadline_s, float(inputs.changeover_s[0]))
    usd = float(d.site.fallbacks.usd_per_hour[d.candidate.fallback]) / speed
    return shipped_rule(law.spot_class, task, ModePrices(float(inputs.spot_usd_per_hour[0]), usd))
