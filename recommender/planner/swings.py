"""Sensitivity of the leading plan to single figures, and where another plan becomes better.

Each figure is scaled for all plans that share it (the speed of a GPU, the spot price of a machine
type), the plans of the table are simulated again on common random numbers, and the figures of the
leading plan change by the same ratio as on these paths. Machines and checkpoint intervals stay.
Break-evens are found on a grid of factors and interpolated between its points, on a logarithmic
scale.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from recommender.arrays import Z_90, Floats
from recommender.catalogs.frozen import dataclass
from recommender.optimize.evaluate import chance_of
from recommender.plan.plan import Machines, Plan
from recommender.plan.report_data import BreakEven, Swing, SwingEnd
from recommender.planner.plan_builder import Evaluated
from recommender.planner.problem import Problem
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.path_inputs import PathInputs
from recommender.risk.run_statistics import quantiles, trimmed_mean

PATHS = 512
REACH, FACTORS = 3.0, 9  # factors tried from 1/3 to 3; an odd number, so that 1 is one of them
MIN_SWING = 1e-3  # a swing of the cost and the time below this is none

COST, TIME, MEDIAN, CHANCE = range(4)  # mean, trimmed mean, median, of all limits

Rented = Callable[[Plan], Sequence[Machines]]  # the machines of a plan that a figure concerns
Change = Callable[[PathInputs, Floats], PathInputs]  # path inputs under a factor each


@dataclass(frozen=True)
class Figure:
    """An uncertain figure of some machines, its range, and what it changes."""

    what: str
    why: str
    low: float
    high: float
    word: str  # field of `Machines` by which plans share it
    rented: Rented
    change: Change

    def of(self, plan: Plan) -> set[str]:
        """The machines of a plan that have it, by name."""
        return {getattr(machines, self.word) for machines in self.rented(plan)}


def swings(problem: Problem, table: Sequence[Evaluated], lead: int) -> tuple[Swing, ...]:
    """The swings of plan number `lead` against the other plans of the table, the widest first."""
    if not 0 < lead <= len(table):
        return ()
    plan = table[lead - 1].plan
    base = _tried(problem, table, np.ones(1), lambda inputs, _: inputs)
    figures = [figure for figure in _figures(plan) if figure.of(plan)]
    found = [_swing(problem, table, base, lead - 1, figure) for figure in figures]
    kept = [swing for swing in found if width(swing) > MIN_SWING or swing.break_evens]
    return tuple(sorted(kept, key=lambda swing: -width(swing)))


def width(swing: Swing) -> float:
    """The distance between the ends, in factors of e: in cost, or in time if that is larger."""
    low, high = swing.low, swing.high
    return max(abs(math.log(high.cost_usd / low.cost_usd)), abs(math.log(high.time_s / low.time_s)))


# What may be otherwise


def _figures(plan: Plan) -> tuple[Figure, ...]:
    """Speed, prices and the spot law of the plan that leads."""
    sds = plan.estimate.speed_sigma, max(plan.estimate.price_sigma, 0.05)
    slow, drift = (float(np.exp(Z_90 * sd)) for sd in sds)
    known = "its middle 90 %"
    return (
        Figure("speed of", known, 1.0 / slow, slow, "gpu", lambda plan: plan.machines,
               lambda p, factor: replace(p, work_s=p.work_s / factor)),
        Figure("spot price of", known, 1.0 / drift, drift, "instance_type", _on_spot,
               _times("spot_usd_per_hour")),
        Figure("time between interruptions of", "half or twice as long", 0.5, 2.0, "gpu", _on_spot,
               _times("run_mean_s")),
        Figure("odds of spot capacity for", "half or twice the odds", 0.5, 2.0, "gpu", _on_spot,
               lambda p, odds: replace(p, availability_logit=p.availability_logit + np.log(odds))),
        Figure("on-demand price of", "a tenth less or more", 0.9, 1.1, "instance_type", _on_demand,
               _times("base_usd_per_hour", "fallback_usd_per_hour")),
    )  # fmt: skip


def _on_spot(plan: Plan) -> Sequence[Machines]:
    return [m for m in plan.machines if m.market == "spot"]


def _on_demand(plan: Plan) -> Sequence[Machines]:
    """Machines on demand, of the cluster and of the fallback."""
    fallback = () if plan.fallback is None else plan.fallback.machines
    return (*(m for m in plan.machines if m.market != "spot"), *fallback)


def _times(*names: str) -> Change:
    return lambda p, factor: replace(p, **{name: getattr(p, name) * factor for name in names})


# What it does


def _swing(
    problem: Problem, table: Sequence[Evaluated], base: Floats, lead: int, figure: Figure
) -> Swing:
    grid = np.geomspace(1.0 / REACH, REACH, FACTORS)
    grid[FACTORS // 2] = 1.0
    factors = np.concatenate([grid, [figure.low, figure.high]])
    plan, found = table[lead].plan, np.repeat(base, len(factors), axis=1)
    mine = figure.of(plan)
    concerned = [column for column, each in enumerate(table) if mine & figure.of(each.plan)]
    some = [table[column] for column in concerned]
    found[:, :, concerned] = _tried(problem, some, factors, figure.change)
    low, high = (
        _end(plan, found[:, row, lead], found[:, FACTORS // 2, lead], float(factors[row]))
        for row in (FACTORS, FACTORS + 1)
    )
    evens = _break_evens(problem, grid, found[:, :FACTORS], lead)
    return Swing(f"{figure.what} {' and '.join(sorted(mine))}", figure.why, low, high, tuple(evens))


def _tried(problem: Problem, table: Sequence[Evaluated], factors: Floats, change: Change) -> Floats:
    """Every plan under every factor, on common random numbers; shape (4, factors, plans)."""
    one = PathInputs.joined([each.inputs for each in table])
    many = one.take(np.tile(np.arange(len(table)), len(factors)))
    many = change(many, np.repeat(factors, len(table)))
    limits = problem.limits
    paths = simulate_paths(many, limits.deadline_s, PATHS, problem.seed)
    medians = np.array([quantiles(times, 0.5)[0] for times in paths.time_s])
    means, chances = paths.expected_usd.mean(axis=1), chance_of(limits, paths, many)
    found = np.stack([means, trimmed_mean(paths.time_s), medians, chances])
    return found.reshape(4, len(factors), len(table))


def _end(plan: Plan, moved: Floats, usual: Floats, factor: float) -> SwingEnd:
    """The printed figures of a plan, moved as they move on these paths."""
    estimate = plan.estimate
    chance = estimate.chance + float(moved[CHANCE] - usual[CHANCE])
    return SwingEnd(
        factor=factor,
        cost_usd=estimate.cost.mean * float(moved[COST] / usual[COST]),
        time_s=estimate.time.p50 * float(moved[MEDIAN] / usual[MEDIAN]),
        chance=min(max(chance, 0.0), 1.0),
    )


def _break_evens(problem: Problem, grid: Floats, found: Floats, lead: int) -> Iterator[BreakEven]:
    """On either side of 1 the nearest factor from which on the answer is another."""
    limits = problem.limits
    goal = found[TIME if limits.goal == "time" else COST]
    short = limits.confidence - found[CHANCE]  # above 0: the limits are missed
    for step in (-1, 1):
        crossed = [(_crossing(grid, short[:, lead], step), 0)]
        for other in range(goal.shape[1]):
            lost = np.log(goal[:, lead] / goal[:, other])
            lost = np.where(short[:, other] > 0.0, -1.0, lost)
            if other != lead and lost[FACTORS // 2] < 0.0:
                crossed.append((_crossing(grid, lost, step), other + 1))
        within = [(abs(np.log(at)), at, plan) for at, plan in crossed if at is not None]
        if within:
            _, at, plan = min(within)
            yield BreakEven(at, plan)


def _crossing(grid: Floats, values: Floats, step: int) -> float | None:
    """The first factor from 1 on, in steps of one direction, at which values rise above 0."""
    here = FACTORS // 2
    if values[here] > 0.0:
        return None  # it is so already
    while 0 <= here + step < FACTORS:
        before, after = float(values[here]), float(values[here + step])
        if after > 0.0:
            share = before / (before - after)
            logs = np.log(grid)
            return float(np.exp(logs[here] + share * (logs[here + step] - logs[here])))
        here += step
    return None
