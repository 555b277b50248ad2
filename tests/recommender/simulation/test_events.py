"""The vectorised engine against a model that goes event by event, over a grid of plans."""

from dataclasses import fields
from random import Random

import numpy as np
import pytest

from recommender.risk.monte_carlo import simulate_paths
from tests.recommender.optimize.samples import thinned
from tests.recommender.risk.cases import RESCUE, SPOT, path_inputs
from tests.recommender.simulation.agreement import CHANCE, OVERHEAD, differences, random_case
from tests.recommender.simulation.events import JobPath, Outcome, plan_of

PATHS = 1_500
ENGINE = 40_960
MAX_ERRORS = 4.0  # standard errors; 84 comparisons, one in 16,000 each by chance
H = 3600.0

# Runs and outages without the tail that would need a million paths for a mean.
MILD = SPOT | {"run_mean_s": 3 * H, "run_sigma": 1.2, "outage_sigma": 1.0, "zone_sd": 0.6}
BILLS = {"minimum_s": 900.0, "free_s": 3600.0, "spot_price_sigma": 0.2, "speed_sigma": 0.15}
SCARCE = MILD | RESCUE | {"fallback_at_once": 0.6, "fallback_wait_s": 2 * H, "zone_sd": 1.5}
LATE = {"wait_s", "fallback_wait_s", "replaced_wait_s"}
GRID: dict[str, tuple[dict[str, float], float | None]] = {
    "spot, waits": (MILD, None),
    "held machines, notice covers a save": (
        MILD | {"runs_from_start": 1.0, "notice_saves": 0.9},
        None,
    ),
    "billing minimum and free first hour": (MILD | BILLS, None),
    "three zones, an anchor, paid moves": (
        MILD
        | {"zone_count": 3.0, "correlation": 0.3, "base_usd_per_hour": 4.0}
        | {"usd_per_move": 0.5, "fixed_usd": 3.0},
        None,
    ),
    "three zones, patience before a paid move": (
        MILD
        | {"zone_count": 3.0, "correlation": 0.3, "usd_per_move": 20.0, "move_after_s": 1.5 * H}
        | {"availability_logit": 0.3},
        None,
    ),
    "patience with a fallback": (
        MILD | RESCUE | {"zone_count": 2.0, "usd_per_move": 20.0, "move_after_s": H},
        24 * H,
    ),
    "long saves": (MILD | {"stall_s": 300.0, "interval_s": 2000.0}, None),
    "elastic beside on-demand machines": (
        MILD | {"elastic_share": 0.4, "base_usd_per_hour": 12.0, "boot_s": 200.0},
        None,
    ),
    "elastic with long boots and restarts": (
        MILD
        | {"elastic_share": 0.3, "base_usd_per_hour": 6.0, "run_mean_s": 3_000.0}
        | {"changeover_s": 1_500.0, "boot_s": 1_000.0, "resize_s": 900.0, "stall_s": 60.0},
        None,
    ),
    "on-demand with faults and a queue": (
        {
            "run_mean_s": 60 * H,
            "runs_from_start": 1.0,
            "at_once": 0.7,
            "wait_s": H,
            "base_usd_per_hour": 30.0,
        }
        | {"spot_usd_per_hour": 0.0},
        None,
    ),
    "on-demand machines replaced late": (
        {
            "run_mean_s": 6 * H,
            "runs_from_start": 1.0,
            "at_once": 0.6,
            "wait_s": 2 * H,
            "base_usd_per_hour": 3.0,
        }
        | {"spot_usd_per_hour": 0.0, "replaced_at_once": 0.5, "replaced_wait_s": H},
        None,
    ),
    "fallback that is short where spot is": (SCARCE, 15 * H),
    "fallback, tight deadline": (MILD | RESCUE, 13 * H),
    "fallback, loose deadline": (MILD | RESCUE | BILLS, 24 * H),
    "fallback no faster, two zones": (
        MILD | RESCUE | {"fallback_speed": 1.0, "zone_count": 2.0, "correlation": 0.2},
        20 * H,
    ),
    "elastic with a fallback": (
        MILD
        | RESCUE
        | {"elastic_share": 0.3, "base_usd_per_hour": 9.0, "boot_s": 250.0, "resize_s": 400.0},
        15 * H,
    ),
}


@pytest.mark.parametrize("name", [name for name, (row, _) in GRID.items() if LATE & {*row}])
def test_engine_and_events_agree_on_waiting_times(name: str) -> None:
    """Means of heavy tails say little: shares of the paths beyond some hours."""
    given, deadline_s = GRID[name]
    plans, rng = path_inputs(given), Random(f"waits: {name}")
    outcome = [JobPath(plan_of(plans), deadline_s, rng).simulate() for _ in range(PATHS)]
    found = simulate_paths(plans, deadline_s, ENGINE, seed=11)
    for hours in (9.0, 11.0, 13.0, 15.0, 17.0, 24.0, 48.0):
        theirs = np.array([one.time_s > hours * H for one in outcome])
        ours = found.time_s[0] > hours * H
        error = np.sqrt(ours.mean() * (1.0 - ours.mean()) / PATHS)
        assert abs(theirs.mean() - ours.mean()) <= MAX_ERRORS * error + 1e-9, hours


def test_a_fallback_that_is_short_where_spot_is_comes_late_in_every_engine() -> None:
    """Of all moments 40 % are short; of those at which spot has failed, more, in both models."""
    plans, rng = path_inputs(SCARCE), Random("short together")
    outcome = [JobPath(plan_of(plans), 15 * H, rng).simulate() for _ in range(PATHS)]
    theirs = np.array([one.time_s > 15 * H for one in outcome if one.fallback_s > 0.0])
    found = simulate_paths(plans, 15 * H, ENGINE, seed=11)
    ours = (found.time_s[0] > 15 * H)[found.fallback_s[0] > 0.0]
    assert min(theirs.mean(), ours.mean()) > 0.45
    assert theirs.mean() == pytest.approx(ours.mean(), abs=4.0 * np.sqrt(0.25 / len(theirs)))


@pytest.mark.parametrize("name", GRID)
def test_engine_and_events_agree_within_their_sampling_error(name: str) -> None:
    given, deadline_s = GRID[name]
    plans = path_inputs(given)
    rng = Random(f"events: {name}")
    outcome = [JobPath(plan_of(plans), deadline_s, rng).simulate() for _ in range(PATHS)]
    found = simulate_paths(plans, deadline_s, ENGINE, seed=11)
    for each in fields(Outcome):
        theirs = np.array([getattr(one, each.name) for one in outcome])
        ours = getattr(found, each.name)[0]
        error = np.sqrt(theirs.var() / PATHS + ours.var() / ENGINE)
        gap = abs(theirs.mean() - ours.mean())
        assert gap <= MAX_ERRORS * error + 1e-6 * abs(ours.mean()), each.name


@pytest.mark.parametrize("seed", thinned(range(1_000, 1_100), 3))
def test_random_plans_of_every_kind_cost_and_last_what_events_say(seed: int) -> None:
    given, deadline_s = random_case(seed)
    found = differences(path_inputs(given), deadline_s, 4_000, f"agreement {seed}")
    for name in ("time_s", "cost_usd", "expected_usd", OVERHEAD, CHANCE):
        assert found[name].explained(name), (name, found[name])


def test_a_job_without_interruptions_takes_what_arithmetic_says() -> None:
    outcome = JobPath(plan_of(path_inputs({})), None, Random(1)).simulate()
    # 36,000 s in 36 intervals of 1,000 s, a save of 20 s behind each but the last, 300 s start.
    assert outcome.time_s == pytest.approx(300 + 36_000 + 35 * 20)
    assert outcome.interruptions == 0
