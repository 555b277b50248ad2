"""What a printed plan comes to as tools run it that cannot do all of it."""

from dataclasses import replace

import numpy as np

from recommender.optimize.evaluate import chance_of
from recommender.performance.checkpoint import USUAL_S, VOLUME_BYTES_PER_S, usual_at_least
from recommender.plan.as_run import (
    IN_BUCKET,
    ON_VOLUME,
    Lacking,
    variants,
)
from recommender.plan.plan import AsRun, Checkpointing, Plan
from recommender.planner.plan_details import PlanDetails
from recommender.planner.problem import PRINTED
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.path_inputs import OF_FALLBACKS, PathInputs
from recommender.risk.run_statistics import quantiles
from recommender.simulation.executors import most_away_s, without


def as_run(plan: Plan, own: PlanDetails, stored: PlanDetails) -> tuple[AsRun, ...]:
    """The plan without what one tool or another lacks; `stored`: it saves to a bucket."""
    return tuple(_simulated(own, stored, each) for each in variants(plan))


def _simulated(own: PlanDetails, stored: PlanDetails, lacking: Lacking) -> AsRun:
    inputs = _inputs(own, stored, lacking)
    limits = own.space.limits
    asked = inputs, limits.deadline_s, PRINTED, own.space.seed
    paths = simulate_paths(*asked, most_away_s=most_away_s(inputs, lacking))
    return AsRun(
        lacking=lacking,
        cost_usd=float(paths.expected_usd.mean()),
        time_s=quantiles(paths.time_s[0], 0.5)[0],
        chance=float(chance_of(limits, paths, inputs)[0]),
        probability=float((paths.fallback_s > 0).mean()),
    )


def _inputs(own: PlanDetails, stored: PlanDetails, lacking: Lacking) -> PathInputs:
    inputs, saving = own.inputs, stored.checkpointing()
    if IN_BUCKET in lacking or ON_VOLUME in lacking:  # with the numbers of the plan's own policy
        policy = {name: getattr(own.inputs, name) for name in OF_FALLBACKS}
        inputs = replace(stored.inputs, **policy)
    if ON_VOLUME in lacking:
        inputs = _on_volume(inputs, saving, own.problem.job.checkpoint_bytes)
    return without(inputs, lacking)


def _on_volume(inputs: PathInputs, saving: Checkpointing, size_bytes: float) -> PathInputs:
    """The plan with a network volume in place of a bucket: what is written to it is safe."""
    written_s = size_bytes / VOLUME_BYTES_PER_S
    waits = saving.stall_s >= saving.transfer_s  # training stops for its saves
    copy_s = saving.stall_s - (saving.transfer_s if waits else 0.0)
    there_s = written_s + copy_s + (0.0 if waits else written_s)  # back, and safe
    interval_s = max(saving.interval_s, usual_at_least(written_s, USUAL_S))
    return replace(
        inputs,
        interval_s=np.array([interval_s]),
        stall_s=np.array([copy_s + (written_s if waits else 0.0)]),
        changeover_s=inputs.changeover_s - saving.restore_s - saving.lag_s + there_s,
    )
