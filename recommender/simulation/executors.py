"""Simulates a plan as an export target really runs it, on the paths of the plan's own rule.

What each target lacks is in `plan/as_run.py`.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from recommender.plan.as_run import (
    IN_BUCKET,
    LIST_ENDS_ON_DEMAND,
    MOVES_AT_ONCE,
    NO_SWITCH,
    ON_VOLUME,
    ONE_ZONE,
    Lacking,
    lacking,
)
from recommender.plan.limits import Limits
from recommender.plan.plan import Plan
from recommender.plan.simulation import ExecutorRun
from recommender.risk.path_inputs import PathInputs
from recommender.risk.policy import failover_round_s
from recommender.risk.spot_capacity import Capacity
from recommender.simulation.paths import simulate
from recommender.simulation.summary import limit_chances, quantiles

AS_COUNTED = "as the plan counts"


def executor_runs(
    executor: str,
    plan: Plan,
    inputs: PathInputs,
    limits: Limits,
    capacity: Capacity,
    runs: int,
    seed: int,
) -> tuple[ExecutorRun, ...]:
    """Simulate the plan by its own rule, then as an executor runs it; nothing without one."""
    found = []
    for name, asked, away_s in _behaviours(executor, plan, inputs) if executor else ():
        sample = simulate(asked, limits.deadline_s, runs, seed, capacity, most_away_s=away_s)
        _, together = limit_chances(sample, limits, plan.max_usd_per_hour)
        found.append(
            ExecutorRun(
                name,
                quantiles(sample.cost_usd, sample.expected_usd),
                quantiles(sample.time_s),
                float(together.mean()),
                float((sample.fallback_s > 0.0).mean()),
            )
        )
    return tuple(found)


def without(inputs: PathInputs, lacking: Lacking) -> PathInputs:
    """A plan's inputs as a tool runs it that lacks the switch, patience or zones."""
    for each, name, value in (
        (MOVES_AT_ONCE, "move_after_s", 0.0),
        (ONE_ZONE, "zone_count", 1.0),
        (NO_SWITCH, "fallback_speed", 0.0),
    ):
        if each in lacking:
            inputs = replace(inputs, **{name: np.array([value])})
    return inputs


def _behaviours(
    executor: str, plan: Plan, inputs: PathInputs
) -> Iterator[tuple[str, PathInputs, float | None]]:
    """By the plan's own rule, and by the target with its own script and without.

    With the time that spot may be away until on-demand takes over; None: the plan's rule, if any.
    """
    yield AS_COUNTED, inputs, None
    alone = ((NO_SWITCH,), (LIST_ENDS_ON_DEMAND,)) if executor == "skypilot" else ()
    for extra in ((), *alone):
        lacks = lacking(executor, plan, *extra)
        simulated = [each for each in lacks if each not in (IN_BUCKET, ON_VOLUME)]
        if set(extra) <= set(lacks) and simulated:
            name, changed = f"{executor}, {', '.join(simulated)}", without(inputs, lacks)
            yield name, changed, most_away_s(inputs, lacks)


def most_away_s(inputs: PathInputs, lacking: Lacking) -> float | None:
    """How long spot may be away until on-demand takes over; None: the plan's rule, if any."""
    listed = LIST_ENDS_ON_DEMAND in lacking
    return failover_round_s(int(inputs.zone_count[0])) if listed else None
