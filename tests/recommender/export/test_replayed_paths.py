"""The exported launch.sh on drawn paths: it does what was simulated, at the cost that was told."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recommender.export.description import RunDescription
from recommender.plan.limits import Limits
from recommender.risk.monte_carlo import cycles_needed, market_of, queues_of
from recommender.risk.path_inputs import PathInputs, Paths
from recommender.risk.random_numbers import random_numbers
from recommender.risk.spot_capacity import simulate_runs
from recommender.risk.walk import walk
from tests.recommender import answers
from tests.recommender.export.replayed import Cloud, Market, planned, replayed, script_of
from tests.recommender.export.runs import described
from tests.recommender.risk.cases import PLAIN, SPOT, path_inputs
from tests.recommender.simulation.events import plan_of

HOUR = 3600.0
TARGETS = {
    "aws-cli": answers.AWS_H100, "gcloud": answers.GCP, "azure-cli": answers.AZURE,
    "skypilot": answers.GCP,
}  # fmt: skip
CASE = {
    **PLAIN, **SPOT, "work_s": 20 * HOUR, "speed_sigma": 0.2, "usd_per_move": 0.0,
    "interval_s": 900.0, "stall_s": 20.0, "zone_count": 2.0, "notice_saves": 0.5,
    "fallback_usd_per_hour": 60.0, "fallback_start_s": 600.0, "reserve_s": 600.0,
    "cautious_work_s": 26 * HOUR,
}  # fmt: skip
POLICIES = {
    "to the last moment": {"fallback_speed": 1.0},
    "slower machines": {"fallback_speed": 0.8},
    "back and forth": {"fallback_speed": 1.0, "wait_above": 0.2, "back_above": 0.05},
}
DEADLINE_S = 32 * HOUR
POLL_S = 60


def run_of(target: str, inputs: PathInputs) -> RunDescription:
    """A plan of the target's cloud with these figures."""
    own, p = TARGETS[target], plan_of(inputs)
    late = replace(own.machines[0], market="on_demand")
    patient = p.wait_above > 0.0
    fallback = replace(
        answers.GCP.fallback,  # type: ignore[type-var]
        machines=(late,), usd_per_hour=p.fallback_usd_per_hour, speed=p.fallback_speed,
        reserve_s=p.reserve_s + p.fallback_start_s, changeover_s=p.changeover_s,
        wait_above=p.wait_above if patient else None, back_above=p.back_above if patient else None,
        caution=p.cautious_work_s / p.work_s,
    )  # fmt: skip
    estimate = replace(own.estimate, split=replace(own.estimate.split, work_s=p.work_s))
    plan = replace(own, fallback=fallback, estimate=estimate, move_after_s=0.0)
    return described(plan, Limits(deadline_s=DEADLINE_S))


def simulated(inputs: PathInputs, deadline_s: float, paths: int) -> tuple[Paths, list[Market]]:
    """The plan's own simulation of some paths, and the market on each."""
    sample = random_numbers(paths, int(cycles_needed(inputs, deadline_s)[0]))
    market = market_of(simulate_runs(inputs, sample), sample)
    queues = queues_of(inputs, sample)
    found = walk(inputs, deadline_s, sample, market, queues)
    return found, [
        Market(
            market.waits[:, 0, path].tolist(), market.lengths[:, 0, path].tolist(),
            (market.notified[:, 0, path] > 0).tolist(), float(found.work_s[0, path]),
            float(queues.fallback_s[0, path]),
        )
        for path in range(paths)
    ]  # fmt: skip


def compared(
    folder: Path, target: str, run: RunDescription, inputs: PathInputs, paths: int, poll_s: int
) -> tuple[np.ndarray, np.ndarray]:
    """Time, cost, time on demand and lateness of each path: as simulated, as the script runs."""
    assert run.limits.deadline_s is not None
    told, markets = simulated(inputs, run.limits.deadline_s, paths)
    plan = plan_of(inputs)
    plan.name, plan.deadline_s = run.name, run.limits.deadline_s
    script_of(run, target, folder)
    seen = []
    for market in markets:
        cloud = replayed(folder, Cloud(plan, market, planned(run)), poll_s)
        assert cloud.ended_s is not None, (folder / "log").read_text("utf-8")[-2000:]
        seen.append((cloud.ended_s, cloud.cost_usd, cloud.fallback_s))
    ours = np.array(seen).T
    theirs = np.stack([told.time_s[0], told.expected_usd[0], told.fallback_s[0]])
    return theirs, ours


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("target", TARGETS)
def test_a_script_does_what_was_simulated(tmp_path: Path, target: str, policy: str) -> None:
    inputs = path_inputs(CASE | POLICIES[policy])
    run = run_of(target, inputs)
    told, seen = compared(tmp_path, target, run, inputs, 8, POLL_S)
    assert seen[0].mean() == pytest.approx(told[0].mean(), rel=0.02)
    assert seen[1].mean() == pytest.approx(told[1].mean(), rel=0.02)
