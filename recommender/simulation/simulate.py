"""Simulates one plan: paths, figures, and the closed form for comparison."""

import math
from dataclasses import replace

from recommender.catalogs.frozen import dataclass
from recommender.plan.limits import Limits
from recommender.plan.plan import Plan
from recommender.plan.simulation import (
    ClosedForm,
    PolicyRun,
    Simulation,
)
from recommender.risk.path_inputs import PathInputs
from recommender.simulation.closed_form import closed_form
from recommender.simulation.executors import executor_runs
from recommender.simulation.paths import ProgressCallback, SimulatedRuns, simulate
from recommender.simulation.policies import policy_runs
from recommender.simulation.scenario import Scenario, WhatIf, scenario_of
from recommender.simulation.summary import histogram, limit_chances, quantiles, states

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86_400.0


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """The number of paths, their seed, and changes to the plan."""

    runs: int = 10_000
    seed: int = 7
    what_if: WhatIf = WhatIf()
    policy: str = "net"  # next to the fallback rule: "thresholds" or "full"
    executor: str = ""  # next to the plan's own rule: what else runs it
    policy_table: bool = False  # whether to return the full policy as a table


def simulation_of(
    plan: Plan,
    number: int,
    inputs: PathInputs,
    limits: Limits,
    options: SimulationOptions,
    tick: ProgressCallback | None,
) -> Simulation:
    """Simulate a plan many times and summarise the paths."""
    scenario = scenario_of(inputs, plan, options.what_if)
    asked = scenario.inputs, limits, scenario.capacity
    policies: tuple[PolicyRun, ...] = ()
    if options.policy != "net":
        policies = policy_runs(plan, *asked, options.policy, options.runs, options.seed)
    sample = simulate(
        scenario.inputs, limits.deadline_s, options.runs, options.seed, scenario.capacity, tick
    )
    sample = _with_start(sample, scenario.start_s)
    each, together = limit_chances(sample, limits, plan.max_usd_per_hour)
    chance = float(together.mean())
    time = quantiles(sample.time_s)
    return Simulation(
        plan=plan,
        number=number,
        runs=options.runs,
        seed=options.seed,
        capacity=scenario.words,
        cost=quantiles(sample.cost_usd, sample.expected_usd),
        time=time,
        interruptions=quantiles(sample.interruptions),
        lost=quantiles(sample.lost_s),
        states=states(sample),
        limit_chances=each,
        chance=chance,
        chance_error=math.sqrt(chance * (1.0 - chance) / options.runs),
        fallback_share=float((sample.fallback_s > 0.0).mean()),
        closed_form=_closed(scenario, limits.deadline_s, options.seed),
        cost_histogram=histogram(sample.cost_usd),
        time_histogram=histogram(sample.time_s, unit_s(time.mean)),
        notes=scenario.notes,
        policies=policies,
        executors=executor_runs(options.executor, plan, *asked, options.runs, options.seed),
    )


def unit_s(typical: float) -> float:
    """Seconds of the unit that suits a time."""
    if typical < 5400.0:
        return MINUTE_S
    return HOUR_S if typical < 360_000.0 else DAY_S


def _with_start(sample: SimulatedRuns, start_s: float) -> SimulatedRuns:
    """The sample with a start before it."""
    if not start_s:
        return sample
    return replace(sample, time_s=sample.time_s + start_s, starting_s=sample.starting_s + start_s)


def _closed(scenario: Scenario, deadline_s: float | None, seed: int) -> ClosedForm:
    due = None if deadline_s is None else deadline_s - scenario.start_s
    found = closed_form(scenario.inputs, due, scenario.law, seed)
    p95 = found.time_p95_s
    return replace(
        found,
        time_s=found.time_s + scenario.start_s,
        time_p95_s=None if p95 is None else p95 + scenario.start_s,
    )
