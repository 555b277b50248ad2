"""Expected costs against brute force over every path, and against replay on the same law."""

from functools import cache

import numpy as np
import pytest

from recommender.policies.availability import Availability, chain
from recommender.policies.optimal import SemiMarkov, expected_usd
from recommender.policies.policy_table import policy_table
from recommender.policies.replay import SimulatedMarket, replay_simulated
from recommender.policies.state import NONE, ON_DEMAND, SPOT, ModePrices, Task
from recommender.policies.thresholds import SAFETY_NET, TwoThresholds, rule_usd

TICK = 600.0
PRICES = ModePrices(spot=1.0, on_demand=3.0)
BILL = ModePrices(spot=1.0, on_demand=3.0, idle=0.05)  # something stays rented
RULES = (SAFETY_NET, TwoThresholds(0.3, 0.2), TwoThresholds(0.1, 1.0))


def memoryless(elsewhere):
    """Spot of one regime and one age bucket: what is seen is all there is to know."""
    return Availability((), np.array([[[1.5], [1.0]]]), np.zeros((1, 1)), elsewhere)


def ticks(work, deadline, changeover=1):
    return Task(work * TICK, deadline * TICK, changeover * TICK)


def brute_force(law, task, choose=None):
    """Expected cost by trying every choice (or the one chosen) in every path of whole ticks."""
    leave_up = 1.0 - np.exp(-law.exits_per_hour[0, 1, 0] * TICK / 3600.0)
    leave_down = 1.0 - np.exp(-law.exits_per_hour[0, 0, 0] * TICK / 3600.0)
    usd = BILL.by_mode * TICK / 3600.0
    changeover = round(task.changeover_s / TICK)

    def after(up):
        """Chance, side, and whether the machine was taken, of the next tick."""
        if not up:
            return ((leave_down, True, True), (1.0 - leave_down, False, True))
        moved = leave_up * law.elsewhere
        return (
            (1.0 - leave_up, True, False), (moved, True, True), (leave_up - moved, False, True),
        )  # fmt: skip

    @cache
    def cost(left, work, mode, up):
        if work <= 0:
            return 0.0
        if left <= 0:
            return np.inf
        if choose is not None:
            return go(choose(left, work, mode, up), left, work, mode, up)
        options = (NONE, SPOT, ON_DEMAND) if up else (NONE, ON_DEMAND)
        return min(go(int(new), left, work, mode, up) for new in options)

    def go(new, left, work, mode, up):
        # A start takes its changeover from the work that its ticks would do.
        pay = changeover if new not in (NONE, mode) else 0
        rest = work + pay - (new != NONE)
        later = sum(
            chance * cost(left - 1, rest, NONE if new == SPOT and taken else new, side)
            for chance, side, taken in after(up)
            if chance > 0.0
        )
        return usd[new] + later

    share = leave_down / (leave_down + leave_up * (1.0 - law.elsewhere))
    work, left = round(task.work_s / TICK), round(task.deadline_s / TICK)
    begun = (cost(left, work, int(NONE), True), cost(left, work, int(NONE), False))
    return share * begun[0] + (1.0 - share) * begun[1]


def chosen_by(rule):
    """A two-threshold rule written independently, for one path in whole ticks."""

    def choose(left, work, mode, up):
        over = left - work - 1
        want = int(ON_DEMAND) if mode == ON_DEMAND or over <= rule.wait * work else int(NONE)
        if up and (mode != ON_DEMAND or over > rule.back * work):
            want = int(SPOT)
        spare = over + 1 - (1 if want == NONE or (want == SPOT and mode != SPOT) else 0)
        return want if spare >= 1 else int(ON_DEMAND)

    return choose


@pytest.mark.parametrize("elsewhere", [0.0, 0.6])
@pytest.mark.parametrize(("work", "deadline"), [(3, 6), (5, 9), (6, 14)])
def test_the_optimum_is_that_of_brute_force(elsewhere, work, deadline):
    law, task = memoryless(elsewhere), ticks(work, deadline)
    process = chain(law, TICK)
    found = expected_usd(policy_table(process, task, BILL, TICK), process, task)
    assert found == pytest.approx(brute_force(law, task), rel=1e-5)


@pytest.mark.parametrize("elsewhere", [0.0, 0.6])
@pytest.mark.parametrize("rule", RULES)
def test_a_rule_costs_what_its_simulated_paths_cost(elsewhere, rule):
    law, task = memoryless(elsewhere), ticks(5, 10)
    found = rule_usd(rule, chain(law, TICK), task, BILL, TICK)
    assert found == pytest.approx(brute_force(law, task, chosen_by(rule)), rel=1e-5)


def drawn(law, paths, count, seed):
    """Paths of a chain begun at a random moment, with the moves to another zone."""
    process, rng = chain(law, TICK), np.random.default_rng(seed)
    states = len(process.up)
    at = rng.choice(states, paths, p=process.usual / process.usual.sum())
    available = np.zeros((count, paths), dtype=bool)
    taken = np.zeros_like(available)
    for tick in range(count):
        available[tick] = process.up[at]
        u = rng.random(paths)[:, None]
        new = np.minimum((process.step.cumsum(axis=1)[at] < u).sum(axis=1), states - 1)
        if process.moved is not None and tick + 1 < count:
            share = process.moved[at, new] / process.step[at, new]
            taken[tick + 1] = rng.random(paths) < share
        at = new
    return SimulatedMarket(available, taken, np.zeros(paths), np.zeros(paths))


@pytest.mark.parametrize("elsewhere", [0.0, 0.6])
def test_simulated_on_its_own_law_every_policy_costs_what_is_expected(elsewhere):
    law, task = memoryless(elsewhere), ticks(60, 110)
    process = chain(law, TICK)
    market = drawn(law, 8_000, 112, seed=3)
    table = policy_table(process, task, PRICES, TICK)
    expected = [(rule, rule_usd(rule, process, task, PRICES, TICK)) for rule in RULES]
    for policy, usd in [*expected, (SemiMarkov(law), expected_usd(table, process, task))]:
        found = replay_simulated(policy, market, TICK, task, PRICES).replays
        error = found.cost_usd.std() / np.sqrt(len(found.cost_usd))
        assert abs(found.cost_usd.mean() - usd) < 4.0 * error
        assert not found.late(task.deadline_s).any()


def test_the_optimum_is_below_every_rule_and_more_time_is_never_more_expensive():
    law = memoryless(0.3)
    process, before = chain(law, TICK), np.inf
    for deadline in range(24, 60, 4):
        task = ticks(20, deadline)
        best = expected_usd(policy_table(process, task, PRICES, TICK), process, task)
        assert best <= min(rule_usd(r, process, task, PRICES, TICK) for r in RULES) + 1e-6
        assert best <= before + 1e-6
        before = best
