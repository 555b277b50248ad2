"""Path inputs for tests: one plain plan to change one thing at a time in, and random ones."""

import numpy as np

from recommender.risk.path_inputs import PathInputs

ALWAYS = 40.0  # logit of capacity that is always there
NEVER_ENDS = 1e12

PLAIN: dict[str, float] = {
    "work_s": 36_000.0,
    "speed_sigma": 0.0,
    "fits": 1.0,
    "base_usd_per_hour": 0.0,
    "base_minimum_s": 0.0,
    "base_step_s": 1.0,
    "base_end_s": 0.0,
    "spot_usd_per_hour": 10.0,
    "spot_price_sigma": 0.0,
    "fixed_usd": 0.0,
    "usd_per_move": 0.0,
    "move_after_s": 0.0,
    "run_mean_s": NEVER_ENDS,
    "run_sigma": 1.0,
    "outage_sigma": 1.0,
    "availability_logit": ALWAYS,
    "zone_sd": 0.0,
    "zone_count": 1.0,
    "correlation": 0.0,
    "runs_from_start": 1.0,
    "changeover_s": 300.0,
    "interval_s": 1_000.0,
    "stall_s": 20.0,
    "notice_saves": 0.0,
    "elastic_share": 0.0,
    "boot_s": 0.0,
    "resize_s": 0.0,
    "minimum_s": 60.0,
    "free_s": 0.0,
    "fallback_speed": 0.0,
    "fallback_usd_per_hour": 0.0,
    "fallback_start_s": 0.0,
    "fallback_at_once": 1.0,
    "fallback_wait_s": 0.0,
    "reserve_s": 0.0,
    "cautious_work_s": 36_000.0,
    "wait_above": 0.0,
    "back_above": np.inf,
    "at_once": 1.0,
    "wait_s": 0.0,
    "replaced_at_once": 1.0,
    "replaced_wait_s": 0.0,
}
# V100 on AWS as measured: half of all runs are shorter than the free first hour.
SPOT = {
    "run_mean_s": 3.35 * 3600,
    "run_sigma": 1.48,
    "outage_sigma": 1.3,
    "availability_logit": 0.7,
    "zone_sd": 1.0,
    "runs_from_start": 0.0,
}
# On demand, twice as fast, four times the price.
RESCUE = {
    "fallback_speed": 2.0,
    "fallback_usd_per_hour": 80.0,
    "fallback_start_s": 600.0,
    "fallback_at_once": 0.9,
    "fallback_wait_s": 3600.0,
    "reserve_s": 200.0,
}


def path_inputs(*rows: dict[str, float]) -> PathInputs:
    """Columns of plans, each given by what differs from the plain one."""
    plans = [PLAIN | row for row in (rows or ({},))]
    columns = {name: np.array([float(p[name]) for p in plans]) for name in PathInputs.__slots__}
    columns["runs_from_start"] = columns["runs_from_start"] > 0  # type: ignore[assignment]
    return PathInputs(**columns)  # type: ignore[arg-type]


def random_plan(rng: np.random.Generator) -> tuple[dict[str, float], float | None]:
    """A plan of any kind, and its deadline."""
    work = float(10 ** rng.uniform(3.3, 5.3))
    run = float(10 ** rng.uniform(3.0, 5.3))
    plan = {
        "work_s": work,
        "speed_sigma": float(rng.choice([0.0, 0.2])),
        "base_usd_per_hour": float(rng.choice([0.0, 7.0])),
        "base_minimum_s": float(rng.choice([0.0, 86_400.0])),
        "base_step_s": float(rng.choice([1.0, 3_600.0, 86_400.0])),
        "base_end_s": float(rng.choice([0.0, 1_800.0])),
        "spot_usd_per_hour": float(rng.uniform(1.0, 30.0)),
        "spot_price_sigma": float(rng.choice([0.0, 0.3])),
        "fixed_usd": float(rng.choice([0.0, 5.0])),
        "usd_per_move": float(rng.choice([0.0, 0.3])),
        "run_mean_s": run,
        "run_sigma": float(rng.uniform(0.3, 1.6)),
        "outage_sigma": float(rng.uniform(0.3, 1.6)),
        "availability_logit": float(rng.uniform(-1.0, 4.0)),
        "zone_sd": float(rng.uniform(0.0, 1.3)),
        "zone_count": float(rng.integers(1, 5)),
        "correlation": float(rng.choice([0.0, 0.2, 0.8])),
        "runs_from_start": float(rng.random() < 0.3),
        "changeover_s": float(rng.uniform(30.0, 1500.0)),
        "interval_s": float(10 ** rng.uniform(2.3, 4.0)),
        "stall_s": float(rng.choice([0.0, 5.0, 150.0])),
        "notice_saves": float(rng.choice([0.0, 0.95])),
        "elastic_share": float(rng.choice([0.0, 0.0, 0.3, 0.8])),
        "minimum_s": float(rng.choice([0.0, 60.0, 900.0])),
        "free_s": float(rng.choice([0.0, 60.0, 3600.0])),
        "at_once": float(rng.choice([1.0, 0.7])),
        "wait_s": 1800.0,
        "replaced_at_once": 0.8,
        "replaced_wait_s": float(rng.choice([0.0, 0.0, 900.0])),
    }
    plan["boot_s"] = plan["changeover_s"] * float(rng.uniform(0.0, 1.0))
    plan["resize_s"] = float(rng.choice([0.0, 90.0, 1200.0]))
    if rng.random() < 0.6:
        plan |= {
            "fallback_speed": float(rng.choice([0.3, 0.6, 0.9, 1.0, 1.3, 2.0, 4.5])),
            "fallback_usd_per_hour": float(rng.uniform(10.0, 90.0)),
            "fallback_start_s": float(rng.uniform(60.0, 1200.0)),
            "fallback_at_once": float(rng.choice([1.0, 0.9, 0.7])),
            "fallback_wait_s": 3600.0,
            "reserve_s": float(rng.choice([120.0, 3720.0])),
        }
    cautious = 1.0 if plan["elastic_share"] else float(rng.choice([1.0, 1.3]))
    plan["cautious_work_s"] = work * cautious
    if plan["zone_count"] > 1.0 and not plan["elastic_share"]:
        plan["replaced_wait_s"] = 0.0  # nothing replaces spot machines
        plan["move_after_s"] = float(rng.choice([0.0, 1800.0, 14_400.0]))
    deadline = work * float(rng.uniform(0.2, 5.0)) + 600.0 if rng.random() < 0.8 else None
    return plan, deadline
