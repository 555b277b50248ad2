"""Simulates one plan: paths, figures, and the closed form to compare with."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from recommender.plan.limits import Limits
from recommender.plan.plan import Plan
from recommender.plan.simulation import (
    ClosedForm,
    Histogram,
    Kept,
    PolicyRun,
    Quantiles,
    Simulation,
    State,
)
from recommender.risk.outcomes import typical, typical_error
from recommender.risk.path_inputs import Journeys
from recommender.simulate.closed_form import closed_form
from recommender.simulate.paths import Sample, Tick, simulate
from recommender.simulate.scenario import Source, WhatIf, source_of

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
STATES = (
    ("waiting", "waiting_s"),
    ("starting", "starting_s"),
    ("training", "training_s"),
    ("saving", "saving_s"),
    ("restarting", "restarting_s"),
    ("lost work", "lost_s"),
    ("fallback", "fallback_s"),
)
BINS = 12
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


def quantiles(values: Floats, expected: Floats | None = None) -> Quantiles:
    """Mean and quantiles; `expected` holds values whose mean is less noisy, where there are."""
    mean_of = values if expected is None else expected
    error = float(mean_of.std()) / math.sqrt(len(mean_of))
    at = (float(q) for q in np.quantile(values, LEVELS))
    return Quantiles(float(mean_of.mean()), error, *at)


def states(sample: Sample) -> tuple[State, ...]:
    """Shares of the whole simulated time; they sum to one."""
    total = float(sample.time_s.sum())
    return tuple(State(name, float(getattr(sample, field).sum()) / total) for name, field in STATES)


def kept(sample: Sample, limits: Limits, usd_per_hour: float) -> tuple[tuple[Kept, ...], Floats]:
    """The chance to keep each limit, and in which histories all of them are kept."""
    found, together = [], np.ones(len(sample.time_s), dtype=bool)
    asked: tuple[tuple[str, float | None, Bools], ...] = (
        ("deadline", limits.deadline_s, sample.time_s <= (limits.deadline_s or 0.0)),
        ("budget", limits.budget_usd, sample.cost_usd <= (limits.budget_usd or 0.0)),
        (
            "hourly",
            limits.hourly_usd,
            np.full(len(together), usd_per_hour <= (limits.hourly_usd or 0.0) + 1e-9),
        ),
    )
    for name, value, good in asked:
        if value is not None:
            found.append(Kept(name, value, float(good.mean())))
            together &= good
    return tuple(found), together.astype(np.float64)


def histogram(values: Floats, unit: float = 1.0) -> Histogram:
    """About a dozen bins with round edges in `unit`; the outer ones take the tails.

    Edges run from the first to the 95th percentile: a tail of a few very long histories would
    leave nothing to see of the rest.
    """
    low, high = (float(q) / unit for q in np.quantile(values, (0.01, 0.95)))
    step = _round_step(max(high - low, 1e-3 * max(abs(high), 1e-6)) / BINS)
    first, last = math.floor(low / step), math.floor(high / step) + 1
    edges = np.arange(first, last + 1) * step * unit
    inside = np.clip(values, edges[0], edges[-1])
    counts, _ = np.histogram(inside, bins=edges)
    return Histogram(tuple(edges.tolist()), tuple((counts / len(values)).tolist()))


def _round_step(least: float) -> float:
    scale = 10.0 ** math.floor(math.log10(least))
    return next(step * scale for step in _STEPS if step * scale >= least * (1.0 - 1e-9))


MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86_400.0


@dataclass(frozen=True, slots=True)
class Order:
    """How many histories of which seed, and what is changed about the plan."""

    runs: int = 10_000
    seed: int = 7
    what_if: WhatIf = WhatIf()
    policy: str = "net"  # beside the safety net: "thresholds" or "full"
    policy_table: bool = False  # is the full policy asked for as a table?


def simulation_of(
    plan: Plan, number: int, journey: Journeys, limits: Limits, order: Order, tick: Tick | None
) -> Simulation:
    """Follow a plan through its histories and sum them up."""
    source = source_of(journey, plan, order.what_if)
    policies = _policies(plan, source, limits, order)
    sample = simulate(
        source.journey, limits.deadline_s, order.runs, order.seed, source.capacity, tick
    )
    sample = _begun(sample, source.start_s)
    each, together = kept(sample, limits, plan.usd_per_hour)
    chance = float(together.mean())
    time = quantiles(sample.time_s)
    return Simulation(
        plan=plan,
        number=number,
        runs=order.runs,
        seed=order.seed,
        capacity=source.words,
        cost=quantiles(sample.cost_usd, sample.expected_usd),
        time=time,
        typical_time_s=float(typical(sample.time_s)),
        typical_time_error_s=typical_error(sample.time_s),
        interruptions=quantiles(sample.interruptions),
        lost=quantiles(sample.lost_s),
        states=states(sample),
        kept=each,
        chance=chance,
        chance_error=math.sqrt(chance * (1.0 - chance) / order.runs),
        fallback_share=float((sample.fallback_s > 0.0).mean()),
        closed_form=_closed(source, limits.deadline_s, order.seed),
        cost_histogram=histogram(sample.cost_usd),
        time_histogram=histogram(sample.time_s, unit_s(time.mean)),
        notes=source.notes,
        policies=policies,
    )


def _policies(plan: Plan, source: Source, limits: Limits, order: Order) -> tuple[PolicyRun, ...]:
    if order.policy == "net":
        return ()
    from recommender.simulate.policies import policy_runs

    return policy_runs(
        plan, source.journey, limits, source.capacity, order.policy, order.runs, order.seed
    )


def unit_s(typical: float) -> float:
    """Seconds of the unit that suits a time."""
    if typical < 5400.0:
        return MINUTE_S
    return HOUR_S if typical < 360_000.0 else DAY_S


def _begun(sample: Sample, start_s: float) -> Sample:
    """The sample with a start before it."""
    if not start_s:
        return sample
    return replace(sample, time_s=sample.time_s + start_s, starting_s=sample.starting_s + start_s)


def _closed(source: Source, deadline_s: float | None, seed: int) -> ClosedForm:
    due = None if deadline_s is None else deadline_s - source.start_s
    found = closed_form(source.journey, due, source.law, seed)
    p95 = found.time_p95_s
    return replace(
        found,
        time_s=found.time_s + source.start_s,
        time_p95_s=None if p95 is None else p95 + source.start_s,
    )
