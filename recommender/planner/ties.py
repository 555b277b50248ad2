"""How often each plan of a table is the best, given the uncertainty of speeds and prices.

Speeds of GPUs and prices are drawn jointly and shared by all plans that use them, so two plans of
one GPU do not differ by its speed. The variation between runs is in each plan's own figures.
"""

import zlib
from collections.abc import Sequence

import numpy as np

from recommender.arrays import Floats
from recommender.performance.speed_spread import RELATED
from recommender.plan.limits import Limits
from recommender.plan.plan import Machines, Plan

DRAWS = 1024
# Sd of ln of one GPU's error relative to another's: a timing carried from one to another misses by
# `RELATED`, which both share.
ONE_GPU_SD = RELATED / np.sqrt(2.0)


def best_shares(plans: Sequence[Plan], limits: Limits, seed: int) -> tuple[float, ...]:
    """Share of joint draws in which each plan has the least cost or time; they sum to one."""
    if not plans:
        return ()
    goals = np.stack([_goal(plan, limits, seed) for plan in plans])
    best = goals.argmin(axis=0)
    return tuple((np.bincount(best, minlength=len(plans)) / DRAWS).tolist())


def _goal(plan: Plan, limits: Limits, seed: int) -> Floats:
    """Cost, or time where that is the goal, in each draw."""
    slower = np.exp(_of_machines(plan, [_speed(plan, m, seed) for m in plan.machines]))
    if limits.goal == "time":
        return plan.estimate.time.trimmed_mean * slower
    price = _of_machines(plan, [np.exp(_price(plan, m, seed)) for m in plan.machines])
    return plan.estimate.cost.mean * slower * price


def _of_machines(plan: Plan, values: Sequence[Floats]) -> Floats:
    """Mean over a plan's machines, by what they cost."""
    usd = np.array([m.count * m.usd_per_hour for m in plan.machines])
    return np.asarray(np.average(np.stack(values), axis=0, weights=np.maximum(usd, 1e-9)))


def _speed(plan: Plan, machines: Machines, seed: int) -> Floats:
    sd = ONE_GPU_SD if plan.evidence is None else np.hypot(ONE_GPU_SD, plan.evidence.speed_sd)
    return np.asarray(sd * _normals(f"speed of {machines.gpu}", seed))


def _price(plan: Plan, machines: Machines, seed: int) -> Floats:
    """ln of what a price has moved by, of mean one; list prices of old date hardly move."""
    if machines.market != "spot" or plan.evidence is None:
        return np.zeros(DRAWS)
    sd = plan.evidence.price_sd
    named = f"price of {machines.provider} {machines.instance_type} {machines.region}"
    return np.asarray(sd * _normals(named, seed) - 0.5 * sd**2)


def _normals(name: str, seed: int) -> Floats:
    """Draws that depend on the name only, not on the other plans shown."""
    return np.random.default_rng((seed, zlib.crc32(name.encode()))).normal(size=DRAWS)
