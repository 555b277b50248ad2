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

Change = Callable[[PathInputs, Floats], PathInputs]  # path inputs under a factor each


@dataclass(frozen=True)
class Figure:
    """An uncertain figure: the plans it concerns, its range, and what it changes."""

    what: str
    why: str
    low: float
    high: float
    concerns: Callable[[Plan], bool]
    change: Change


def swings(problem: Problem, table: Sequence[Evaluated], lead: int) -> tuple[Swing, ...]:
    """The swings of plan number `lead` against the other plans of the table, the widest first."""
    if not 0 < lead <= len(table):
        return ()
    base = _tried(problem, table, np.ones(1), lambda inputs, _: inputs)
    found = [_swing(problem, table, base, lead, figure) for figure in _figures(table[lead - 1])]
    kept = [swing for swing in found if width(swing) > MIN_SWING or swing.break_evens]
    return tuple(sorted(kept, key=lambda swing: -width(swing)))


def width(swing: Swing) -> float:
    """The distance between the ends, in factors of e: in cost, or in time if that is larger."""
    low, high = swing.low, swing.high
    return max(abs(math.log(high.cost_usd / low.cost_usd)), abs(math.log(high.time_s / low.time_s)))


# What may be otherwise


def _figures(lead: Evaluated) -> Iterator[Figure]:
    """Speed, prices and the spot law of the plan that leads."""
    plan, estimate = lead.plan, lead.plan.estimate
    gpus = {m.gpu for m in plan.machines}
    spread = float(np.exp(Z_90 * estimate.speed_sigma))
    yield Figure(
        f"speed of {_names(gpus)}", "its middle 90 %", 1.0 / spread, spread,
        lambda other: bool(gpus & {m.gpu for m in other.machines}), _speed,
    )  # fmt: skip
    spot = {m.instance_type for m in plan.machines if m.market == "spot"}
    if spot:
        yield from _of_spot(lead, spot)
    rented = {m.instance_type for m in _on_demand(plan)}
    if rented:
        yield Figure(
            f"on-demand price of {_names(rented)}", "a tenth less or more", 0.9, 1.1,
            lambda other: bool(rented & {m.instance_type for m in _on_demand(other)}),
            _on_demand_price,
        )  # fmt: skip


def _of_spot(lead: Evaluated, spot: set[str]) -> Iterator[Figure]:
    sigma = max(lead.plan.estimate.price_sigma, 0.05)
    drift = float(np.exp(Z_90 * sigma))
    gpus = {m.gpu for m in lead.plan.machines if m.market == "spot"}

    def same_type(other: Plan) -> bool:
        return bool(spot & {m.instance_type for m in other.machines if m.market == "spot"})

    def same_gpu(other: Plan) -> bool:
        return bool(gpus & {m.gpu for m in other.machines if m.market == "spot"})

    yield Figure(f"spot price of {_names(spot)}", "its middle 90 %", 1.0 / drift, drift,
                 same_type, _spot_price)  # fmt: skip
    yield Figure(f"time between interruptions of {_names(gpus)}", "half or twice as long", 0.5, 2.0,
                 same_gpu, _run_length)  # fmt: skip
    yield Figure(f"odds of spot capacity for {_names(gpus)}", "half or twice the odds", 0.5, 2.0,
                 same_gpu, _availability)  # fmt: skip


def _names(words: set[str]) -> str:
    return " and ".join(sorted(words))


def _on_demand(plan: Plan) -> tuple[Machines, ...]:
    """Machines on demand, of the cluster and of the fallback."""
    fallback = () if plan.fallback is None else plan.fallback.machines
    return (*(m for m in plan.machines if m.market != "spot"), *fallback)


def _speed(p: PathInputs, factor: Floats) -> PathInputs:
    return replace(p, work_s=p.work_s / factor)


def _spot_price(p: PathInputs, factor: Floats) -> PathInputs:
    return replace(p, spot_usd_per_hour=p.spot_usd_per_hour * factor)


def _on_demand_price(p: PathInputs, factor: Floats) -> PathInputs:
    return replace(
        p,
        base_usd_per_hour=p.base_usd_per_hour * factor,
        fallback_usd_per_hour=p.fallback_usd_per_hour * factor,
    )


def _run_length(p: PathInputs, factor: Floats) -> PathInputs:
    return replace(p, run_mean_s=p.run_mean_s * factor)


def _availability(p: PathInputs, factor: Floats) -> PathInputs:
    return replace(p, availability_logit=p.availability_logit + np.log(factor))


# What it does


@dataclass(frozen=True, slots=True)
class Tried:
    """Plans under factors; every field has shape (factors, plans)."""

    cost_usd: Floats  # mean
    time_s: Floats  # trimmed mean
    median_s: Floats
    chance: Floats

    def with_columns(self, columns: Sequence[int], others: "Tried") -> "Tried":
        """One row of plans under every factor of the others, which are in their columns."""
        return Tried(*(self._put(name, columns, others) for name in self.__slots__))

    def _put(self, name: str, columns: Sequence[int], others: "Tried") -> Floats:
        values: Floats = np.repeat(getattr(self, name), len(others.cost_usd), axis=0)
        values[:, columns] = getattr(others, name)
        return values


def _swing(
    problem: Problem, table: Sequence[Evaluated], base: Tried, lead: int, figure: Figure
) -> Swing:
    grid = np.geomspace(1.0 / REACH, REACH, FACTORS)
    grid[FACTORS // 2] = 1.0
    factors = np.concatenate([grid, [figure.low, figure.high]])
    concerned = [column for column, each in enumerate(table) if figure.concerns(each.plan)]
    moved = _tried(problem, [table[column] for column in concerned], factors, figure.change)
    found = base.with_columns(concerned, moved)
    ends = [
        _end(table[lead - 1].plan, found, lead - 1, row, float(factors[row]))
        for row in (FACTORS, FACTORS + 1)
    ]
    evens = _break_evens(problem, grid, _first(found, FACTORS), lead - 1)
    return Swing(figure.what, figure.why, ends[0], ends[1], tuple(evens))


def _tried(problem: Problem, table: Sequence[Evaluated], factors: Floats, change: Change) -> Tried:
    """Every plan under every factor, on common random numbers."""
    one = PathInputs.joined([each.inputs for each in table])
    many = one.take(np.tile(np.arange(len(table)), len(factors)))
    many = change(many, np.repeat(factors, len(table)))
    limits = problem.limits
    paths = simulate_paths(many, limits.deadline_s, PATHS, problem.seed)
    shape = (len(factors), len(table))
    medians = np.array([quantiles(times, 0.5)[0] for times in paths.time_s])
    return Tried(
        paths.expected_usd.mean(axis=1).reshape(shape),
        trimmed_mean(paths.time_s).reshape(shape),
        medians.reshape(shape),
        chance_of(limits, paths, many).reshape(shape),
    )


def _first(found: Tried, rows: int) -> Tried:
    return Tried(*(getattr(found, name)[:rows] for name in Tried.__slots__))


def _end(plan: Plan, found: Tried, column: int, row: int, factor: float) -> SwingEnd:
    """The printed figures of a plan, moved as they move on these paths."""
    middle, estimate = FACTORS // 2, plan.estimate

    def moved(values: Floats) -> float:
        return float(values[row, column] / values[middle, column])

    chance = estimate.chance + float(found.chance[row, column] - found.chance[middle, column])
    return SwingEnd(
        factor=factor,
        cost_usd=estimate.cost.mean * moved(found.cost_usd),
        time_s=estimate.time.p50 * moved(found.median_s),
        chance=min(max(chance, 0.0), 1.0),
    )


def _break_evens(problem: Problem, grid: Floats, found: Tried, lead: int) -> Iterator[BreakEven]:
    """On either side of 1 the nearest factor from which on the answer is another."""
    limits = problem.limits
    goal = found.time_s if limits.goal == "time" else found.cost_usd
    short = limits.confidence - found.chance  # above 0: the limits are missed
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
