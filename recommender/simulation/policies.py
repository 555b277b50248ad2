"""Simulates a plan under its fallback rule, the two thresholds and the full policy, tick by tick.

The paths are those of the simulation, block by block (`simulation/paths.py`): the same zones, runs,
outages, speeds and queues for on-demand machines. What differs is the engine: policies choose
once per tick and pay ticks in full (`policies/replay.py`), and every start loses the work that an
interruption loses on average. Spot is there in a tick if it is there at its beginning.
"""

from collections.abc import Sequence

import numpy as np

from recommender.arrays import Bools, Floats
from recommender.errors import UsageError
from recommender.plan.limits import Limits
from recommender.plan.plan import Plan
from recommender.plan.simulation import PolicyRun
from recommender.policies.optimal import SemiMarkov
from recommender.policies.plan_policy import (
    PolicyProblem,
    problem_of,
    rule_of,
    time_per_training_time,
    why_no_policy,
)
from recommender.policies.replay import SimulatedMarket, SimulatedReplays, replay_simulated
from recommender.policies.state import Policy
from recommender.policies.thresholds import SAFETY_NET
from recommender.risk.lanes import Clock, Lanes
from recommender.risk.path_inputs import PathInputs
from recommender.risk.random_numbers import (
    STRETCH,
    RandomNumbers,
    clear_caches,
    random_numbers,
    time_factors,
)
from recommender.risk.spot_capacity import Capacity, Market
from recommender.risk.walk import CYCLES
from recommender.simulation.paths import blocks_of
from recommender.simulation.summary import quantiles

FULL, RULE = "full", "thresholds"  # next to the fallback rule
_FASTEST = 0.05  # quantile of the work whose slack the table reaches
Parts = dict[str, list[SimulatedReplays]]


def policy_runs(
    plan: Plan,
    inputs: PathInputs,
    limits: Limits,
    capacity: Capacity,
    wanted: str,
    runs: int,
    seed: int,
) -> tuple[PolicyRun, ...]:
    """Simulate the fallback rule and the requested policy; with the full one the thresholds as
    well.

    Raises `UsageError` if the dynamic program cannot express the plan.
    """
    deadline_s = limits.deadline_s
    why = why_no_policy(inputs, deadline_s)
    if why is not None or deadline_s is None:
        raise UsageError(f"--policy {wanted}: {why}; leave it out or choose another --plan")
    problem = problem_of(inputs, deadline_s)
    policies = _policies(plan, problem, wanted)
    parts: Parts = {policy.name: [] for policy in policies}
    factors = []
    for paths, block_seed in blocks_of(runs, seed):
        sample = random_numbers(paths, block_seed)
        work_s = inputs.work_s[0] * time_factors(inputs.speed_sigma[:, None], sample.speed)[0]
        work_s = work_s * time_per_training_time(inputs)
        # Rules see the work left; counted from a small task, that of every path is below it.
        begun = problem.with_work(float(np.quantile(work_s, _FASTEST)))
        market = simulated_market(inputs, capacity, sample, begun, work_s)
        for policy in policies:
            parts[policy.name].append(
                replay_simulated(policy, market, begun.tick_s, begun.task, begun.prices)
            )
        sigma = float(inputs.spot_price_sigma[0])
        factors.append(np.exp(sigma * sample.price - 0.5 * sigma**2))
        clear_caches()
    moved = np.concatenate(factors)
    return tuple(
        _summary(policy.name, parts[policy.name], moved, problem, inputs, limits)
        for policy in policies
    )


def simulated_market(
    inputs: PathInputs,
    capacity: Capacity,
    sample: RandomNumbers,
    problem: PolicyProblem,
    work_s: Floats,
) -> SimulatedMarket:
    """The paths of a sample as the replay needs them, tick by tick until the deadline."""
    ticks = int(problem.task.deadline_s / problem.tick_s) + 1
    moments = np.arange(ticks, dtype=np.float64) * problem.tick_s
    available, run = _availability_at(capacity.market(inputs, sample), sample.paths, moments)
    taken = np.zeros_like(available)
    taken[1:] = available[1:] & available[:-1] & (run[1:] != run[:-1])
    return SimulatedMarket(
        available=available,
        taken=taken,
        done_s=problem.task.work_s - work_s,
        queue_s=sample.queue_s(inputs.fallback_at_once, inputs.fallback_wait_s)[0],
        free_s=float(inputs.free_s[0]),
    )


def _availability_at(market: Market, paths: int, moments: Floats) -> tuple[Bools, Floats]:
    """Whether spot is there at some moments, and which run it is: (moments, paths)."""
    lanes = Lanes.at_request(np.zeros((1, paths)), np.zeros(1))
    run = np.zeros((len(moments), paths))
    available = np.zeros(run.shape, dtype=np.bool_)
    for first in range(0, CYCLES, STRETCH):
        clock = Clock.of(market, first, lanes)
        for path in range(paths):
            some = slice(*np.searchsorted(moments, clock.edges[[0, -1], path]))
            place = np.searchsorted(clock.ends[:, path], moments[some], side="right")
            place = np.minimum(place, STRETCH - 1)
            available[some, path] = moments[some] >= clock.starts[place, path]
            run[some, path] = first + place
        lanes.edge_s = clock.edges[-1]
        if lanes.edge_s.min() > moments[-1]:
            break
    return available, run


def _policies(plan: Plan, problem: PolicyProblem, wanted: str) -> Sequence[Policy]:
    rule = rule_of(plan.fallback)
    if wanted == RULE and rule is None:
        raise UsageError(
            "--policy thresholds: this plan waits for spot to the last moment; try --policy full"
        )
    full = [SemiMarkov(problem.law, name="full policy")] if wanted == FULL else []
    return [SAFETY_NET, *([] if rule is None else [rule]), *full]


def _summary(
    name: str,
    parts: Sequence[SimulatedReplays],
    moved: Floats,
    problem: PolicyProblem,
    inputs: PathInputs,
    limits: Limits,
) -> PolicyRun:
    """Cost at the price of the day, and at the expected price for the mean."""

    def column(figure: str) -> Floats:
        return np.concatenate([getattr(part.replays, figure) for part in parts])

    interruptions = np.concatenate([part.interruptions for part in parts])
    expected = column("cost_usd") + problem.fixed_usd
    expected = expected + interruptions * float(inputs.usd_per_move[0])
    spot_usd = column("spot_s") / 3600.0 * float(inputs.spot_usd_per_hour[0])
    time_s = column("finish_s")
    in_time = time_s <= (limits.deadline_s or np.inf) + 1e-3
    chance = float(in_time.mean())
    return PolicyRun(
        name=name,
        cost=quantiles(expected + spot_usd * (moved - 1.0), expected),
        time=quantiles(time_s),
        in_time=chance,
        in_time_error=float(np.sqrt(chance * (1.0 - chance) / len(time_s))),
        on_demand_h=float(column("on_demand_s").mean()) / 3600.0,
        interruptions=float(interruptions.mean()),
        tick_s=problem.tick_s,
    )
