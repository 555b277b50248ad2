"""Plans judged by runs that they were not chosen by: fresh simulated ones, and recorded zones."""

import math
from functools import cache
from pathlib import Path

import numpy as np

from recommender.plan.limits import Limits
from recommender.planner.plan_builder import Evaluated
from recommender.risk.run_statistics import trimmed_mean
from recommender.simulation.paths import simulate
from recommender.simulation.recorded import recorded_capacity
from recommender.simulation.scenario import _as_recorded
from recommender.simulation.summary import limit_chances
from recommender.traces.trace import Trace
from tests.research.accuracy.tables import SPOT
from tests.research.fits.spot_fit import HOUR, read_traces
from tests.research.mixes.records import Judged

RUNS = 100_000
RECORDED_RUNS = 20_480
SEED = 500_009 * 7  # from the seed of the printed figures to that of the fresh runs
# Campaigns that watched gangs: 16 p3.2xlarge in two zones, 16 a3-highgpu-1g in eight.
CAMPAIGNS = ("cbl-aws-08-27-2023", "skynomad-gcp-2025-10")


def fresh(plan: Evaluated, limits: Limits, seed: int) -> Judged:
    """A plan in 100,000 simulated runs of another seed."""
    runs = simulate(plan.inputs, limits.deadline_s, RUNS, seed + SEED)
    return _judged("fresh", runs, plan, limits)


def recorded(
    plan: Evaluated, limits: Limits, seed: int, reference: Path | None
) -> tuple[Judged, ...]:
    """A spot plan from random moments of each recorded campaign on, in one zone at a time."""
    machines = sum(m.count for m in plan.plan.machines if m.market == "spot")
    if reference is None or not all((reference / name).is_file() for name in SPOT):
        return ()
    return tuple(
        _recorded(campaign, machines, plan, limits, seed, reference)
        for campaign in CAMPAIGNS
        if 0 < machines <= 16
    )


def _recorded(
    campaign: str, machines: int, plan: Evaluated, limits: Limits, seed: int, reference: Path
) -> Judged:
    capacity = recorded_capacity(_series(reference, campaign), machines)
    inputs = _as_recorded(plan.inputs, capacity)
    runs = simulate(inputs, limits.deadline_s, RECORDED_RUNS, seed + SEED, capacity)
    return _judged(campaign, runs, plan, limits)


@cache
def _series(reference: Path, campaign: str) -> tuple[Trace, ...]:
    return tuple(
        Trace(
            campaign,
            len(trace.nodes) * trace.gap_h * HOUR,
            t_s=np.arange(len(trace.nodes)) * trace.gap_h * HOUR,
            machines=np.asarray(trace.nodes),
        )
        for trace in read_traces(reference, campaign)
    )


def _judged(on: str, runs, plan: Evaluated, limits: Limits) -> Judged:  # type: ignore[no-untyped-def]
    _, together = limit_chances(runs, limits, plan.plan.max_usd_per_hour)
    count, chance = len(together), float(together.mean())
    return Judged(
        on,
        count,
        float(runs.expected_usd.mean()),
        float(runs.expected_usd.std()) / math.sqrt(count),
        float(trimmed_mean(runs.time_s)),
        chance,
        math.sqrt(chance * (1.0 - chance) / count),
    )
