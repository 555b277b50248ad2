"""The effect of one changed figure, against multiplied prices and against new answers."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from recommender.arrays import Floats
from recommender.plan.limits import Choice, Limits, Progress
from recommender.plan.report_data import Swing
from recommender.planner.pipeline import Pipeline
from recommender.planner.problem import PRINTED, planning_problem
from recommender.planner.swings import FACTORS, REACH, _crossing, swings, width
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.random_numbers import SEED
from tests.recommender.planning import NOW, job, small

LIMITS = Limits(deadline_s=12 * 3600.0, max_machines=6)
GRID = np.geomspace(1.0 / REACH, REACH, FACTORS)


@cache
def pipeline(market: str = "any") -> Pipeline:
    choice = Choice(market=market)  # type: ignore[arg-type]
    return Pipeline(planning_problem(job(), LIMITS, choice, small(), Progress(), NOW, SEED))


@cache
def found(market: str = "any") -> dict[str, Swing]:
    made = pipeline(market)
    reported = swings(made.problem, made.table, made.lead)
    assert list(reported) == sorted(reported, key=lambda swing: -width(swing))
    return {swing.what.split(" of ")[0]: swing for swing in reported}


def test_on_demand_alone_the_bill_goes_with_the_price():
    swing = found("on_demand")["on-demand price"]
    plan = pipeline("on_demand").table[pipeline("on_demand").lead - 1].plan
    assert swing.low.cost_usd == pytest.approx(0.9 * plan.estimate.cost.mean, rel=0.01)
    assert swing.high.cost_usd == pytest.approx(1.1 * plan.estimate.cost.mean, rel=0.01)
    assert swing.low.time_s == swing.high.time_s == plan.estimate.time.p50
    assert {"spot price", "time between interruptions"}.isdisjoint(found("on_demand"))


def test_an_end_is_what_a_simulation_of_that_figure_finds():
    made, swing = pipeline(), found()["speed"]
    lead = made.table[made.lead - 1]
    slow = replace(lead.inputs, work_s=lead.inputs.work_s / swing.low.factor)
    paths = simulate_paths(slow, LIMITS.deadline_s, PRINTED, SEED)
    assert swing.low.cost_usd == pytest.approx(float(paths.expected_usd.mean()), rel=0.05)
    assert swing.low.time_s == pytest.approx(float(np.median(paths.time_s)), rel=0.05)
    assert swing.low.time_s > swing.high.time_s


def test_a_plan_that_is_better_beyond_a_break_even_is_better_there():
    made = pipeline()
    prices = [s for s in found().values() if s.what.startswith("spot price")]
    evens = [(s, even) for s in prices for even in s.break_evens if even.plan]
    lead = made.table[made.lead - 1]
    for swing, even in evens:
        beyond = even.factor * (1.1 if even.factor > 1.0 else 0.9)
        costs = []
        for each in (lead, made.table[even.plan - 1]):
            same = {m.instance_type for m in each.plan.machines if m.market == "spot"}
            factor = beyond if any(name in swing.what for name in same) else 1.0
            inputs = replace(each.inputs, spot_usd_per_hour=each.inputs.spot_usd_per_hour * factor)
            paths = simulate_paths(inputs, LIMITS.deadline_s, PRINTED, SEED)
            costs.append(float(paths.expected_usd.mean()))
        assert costs[1] < costs[0]


@pytest.mark.parametrize(
    ("values", "step", "expected"),
    [
        (np.log(GRID / 1.5), 1, 1.5),  # rises above 0 at 1.5, linear in the logarithm
        (np.log(0.6 / GRID), -1, 0.6),
        (np.log(GRID / 1.5), -1, None),
        (np.log(GRID / 0.5), 1, None),  # it is so already
        (np.log(GRID / 5.0), 1, None),  # beyond what is tried
    ],
)
def test_a_crossing_is_interpolated(values: Floats, step: int, expected: float | None):
    at = _crossing(GRID, values, step)
    assert at == (None if expected is None else pytest.approx(expected))
