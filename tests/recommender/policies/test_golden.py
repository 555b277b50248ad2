"""Replay gives the costs that the "Can't Be Late" benchmark gives, to a millionth of a dollar."""

import csv
import os
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from recommender.policies.hindsight import optimum
from recommender.policies.replay import replay
from recommender.policies.rules import Greedy, OnDemand, UniformProgress
from tests.recommender.policies.markets import PRICES, golden, hours, nodes_up, one, reference

RULES = {"on_demand": OnDemand(), "greedy": Greedy(), "uniform_progress": UniformProgress()}
FIRST = np.array([0])


@pytest.mark.parametrize("window", golden(), ids=lambda window: window.name)
@pytest.mark.parametrize("rule", RULES)
def test_a_published_rule_costs_what_it_cost_there(rule, window):
    found = replay(RULES[rule], one(window.available, window.tick_s, PRICES), FIRST, window.task)
    assert found.cost_usd[0] == pytest.approx(window.usd[rule], abs=1e-6)


@pytest.mark.parametrize("window", golden(), ids=lambda window: window.name)
def test_the_optimum_costs_what_it_cost_there(window):
    found = optimum(one(window.available, window.tick_s, PRICES), FIRST, window.task)
    assert found[0] == pytest.approx(window.usd["optimum"], abs=1e-6)


@reference
@pytest.mark.reference
def test_all_three_hundred_golden_windows():
    path = Path(os.environ["RECOMMEND_REFERENCE_DATA"]) / "spot" / "golden_costs.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    keys = ("trace_id", "nodes_needed", "work_h", "deadline_h", "changeover_h")
    checked = 0
    for key, group in groupby(rows, key=lambda row: tuple(row[name] for name in keys)):
        windows = list(group)
        nodes, tick_s = nodes_up(key[0])
        up, task = nodes >= int(key[1]), hours(*(float(value) for value in key[2:]))
        starts = np.array([int(row["start_tick"]) for row in windows])
        found = {
            name: replay(r, one(up, tick_s, PRICES), starts, task) for name, r in RULES.items()
        }
        costs = {name: result.cost_usd for name, result in found.items()}
        costs["optimum"] = optimum(one(up, tick_s, PRICES), starts, task)
        for name, usd in costs.items():
            expected = [float(row[f"{name}_usd"]) for row in windows]
            np.testing.assert_allclose(usd, expected, rtol=0.0, atol=1e-6)
        checked += len(windows)
    assert checked == len(rows) == 300
