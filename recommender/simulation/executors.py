"""Simulates a plan as an export target really runs it, on the paths of the plan's own rule.

A plan with a deadline waits for spot and switches to on-demand machines in time. Scripts for the
clouds' own tools do so too. Other targets follow their own rules:

* SkyPilot (0.14.1, `sky.jobs.recovery_strategy`) tries the locations of `ordered` from the top at
  each start and recovery, and again after a round without machines. It knows no deadline: on-demand
  machines at the end of the list are rented after the first round without spot and are kept; if
  they are not listed nothing takes over.
* dstack (0.22) keeps a run with a volume in one region; Slurm, Terraform and torchrun start what
  the user says so. Nothing takes over unless the user does it.
"""

from dataclasses import replace

import numpy as np

from recommender.catalogs.frozen import dataclass
from recommender.plan.limits import Limits
from recommender.plan.plan import Plan
from recommender.plan.simulation import ExecutorRun
from recommender.risk.path_inputs import PathInputs
from recommender.risk.policy import failover_round_s
from recommender.risk.spot_capacity import Capacity
from recommender.simulation.paths import simulate
from recommender.simulation.summary import limit_chances, quantiles

AS_COUNTED = "as the plan counts"
_SWITCH = ("aws-cli", "gcloud", "azure-cli")  # their launch.sh applies the plan's rule


@dataclass(frozen=True, slots=True)
class _Behaviour:
    """How an executor carries out a plan."""

    name: str
    inputs: PathInputs
    most_away_s: float | None = None  # until on-demand takes over; None: the plan's rule, if any


def executor_runs(
    executor: str,
    plan: Plan,
    inputs: PathInputs,
    limits: Limits,
    capacity: Capacity,
    runs: int,
    seed: int,
) -> tuple[ExecutorRun, ...]:
    """Simulate the plan by its own rule, then as an executor runs it."""
    found = []
    for each in _behaviours(executor, plan, inputs):
        sample = simulate(
            each.inputs, limits.deadline_s, runs, seed, capacity, most_away_s=each.most_away_s
        )
        _, together = limit_chances(sample, limits, plan.max_usd_per_hour)
        found.append(
            ExecutorRun(
                each.name,
                quantiles(sample.cost_usd, sample.expected_usd),
                quantiles(sample.time_s),
                float(together.mean()),
                float((sample.fallback_s > 0.0).mean()),
            )
        )
    return tuple(found)


def _behaviours(executor: str, plan: Plan, inputs: PathInputs) -> list[_Behaviour]:
    own, late = _Behaviour(AS_COUNTED, inputs), plan.fallback
    if executor in _SWITCH:
        return [own]
    alone = replace(inputs, fallback_speed=np.zeros(1))
    if executor == "dstack":
        here = sum(site.region == plan.sites[0].region for site in plan.sites)
        alone = replace(alone, zone_count=np.array([float(max(here, 1))]))
        return [own, _Behaviour("dstack, one region, no switch", alone)]
    if late is None:
        return [own]
    rows = [own, _Behaviour(f"{executor}, no switch", alone)]
    if executor == "skypilot" and late.machines[0].count == sum(m.count for m in plan.machines):
        most_away_s = failover_round_s(int(inputs.zone_count[0]))
        rows.append(_Behaviour("skypilot, on-demand ends its list", inputs, most_away_s))
    return rows
