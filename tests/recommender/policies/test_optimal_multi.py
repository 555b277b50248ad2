"""Several zones: few states stand for many, one zone is the old case, moves where they pay."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.errors import UsageError
from recommender.policies.availability import aggregate_states, chain, time_left
from recommender.policies.hindsight import optimum
from recommender.policies.optimal import MAX_ZONES, MultiZone, SemiMarkov, chosen
from recommender.policies.policy_table import ZonePrices, joint_table, policy_table
from recommender.policies.replay import RecordedZones, replay
from recommender.policies.rules import Greedy
from recommender.policies.state import ON_DEMAND, SPOT, ModePrices, Offers
from tests.recommender.policies.laws import ALWAYS, HEAVY, NEVER_UP, STEADY, law
from tests.recommender.policies.markets import PRICES, hours, one, simulated

TICK = 600.0
TASK = hours(12, 16, 0.2)
FLICKERS = law((6.0,) * 6, (3.0, 3.0, 2.0, 2.0, 2.0, 2.0))


def market(laws, spot, ticks=2_000, move=0.5, on_demand=3.06, seed=0):
    up = np.stack([simulated(each, TICK, ticks, seed + i) for i, each in enumerate(laws)])
    moves = move * (1.0 - np.eye(len(laws)))
    return RecordedZones(up, Offers(np.array(spot), np.full(len(laws), on_demand), moves, TICK))


def starts(zones, every_h=6.0, task=TASK):
    return zones.windows(task, every_h * 3600.0)


@pytest.mark.parametrize("ups", [1, 2, 3])
@pytest.mark.parametrize("process", [chain(HEAVY, TICK), chain(STEADY, TICK)])
def test_aggregated_states_keep_the_availability_and_the_rate_of_changes(process, ups):
    small = aggregate_states(process, ups)
    assert small.step.sum(axis=1) == pytest.approx(1.0)
    share = process.usual @ small.member
    assert share @ small.step == pytest.approx(share)  # still what the long run is
    assert share[small.up].sum() == pytest.approx(process.share_up)
    exits = process.usual[process.up] @ process.step[np.ix_(process.up, ~process.up)].sum(axis=1)
    assert share[small.up] @ small.step[small.up][:, 0] == pytest.approx(exits)


def test_old_runs_are_distinguished_from_young_ones():
    process = chain(HEAVY, TICK)
    small = aggregate_states(process, 2)
    young, old = (time_left(process)[small.member[:, lump] > 0] for lump in (1, 2))
    assert young.max() < old.min()
    assert small.step[1, 0] > 2.0 * small.step[2, 0]


def test_the_time_left_of_a_memoryless_run_is_its_mean_whatever_its_age():
    process = chain(STEADY, TICK)
    leave = -np.expm1(-0.25 * TICK / 3600.0)
    assert time_left(process)[process.up] == pytest.approx(1.0 / leave)


def test_the_table_of_one_memoryless_zone_is_the_table_of_a_single_zone():
    process, task = chain(STEADY, TICK), hours(6, 8, 0.1)
    small = aggregate_states(process, 1)
    offers = ZonePrices(np.array([PRICES.spot, PRICES.on_demand]), np.zeros((2, 2)))
    joint = joint_table([small], offers, task, TICK)
    alone = policy_table(process, task, PRICES, TICK)
    slack = np.array([3.0 * TICK, 9.0 * TICK])
    for state, lump in enumerate(small.member.argmax(axis=1)):
        of_many, of_few = (np.tile(np.eye(n)[i], (2, 1)) for n, i in ((12, state), (2, lump)))
        for mode in (SPOT, ON_DEMAND) if small.up[lump] else (ON_DEMAND,):
            expected = alone.at(48, mode, of_many, slack)
            assert joint.at(48, int(mode), of_few, slack) == pytest.approx(expected, rel=1e-4)


def test_with_one_zone_it_costs_what_the_single_zone_policy_costs():
    zones = market([STEADY], [PRICES.spot], move=0.0)
    found = replay(MultiZone((STEADY,)), zones, starts(zones), TASK).cost_usd
    alone = replay(SemiMarkov(STEADY), one(zones.available[0], TICK, PRICES), starts(zones), TASK)
    assert found.mean() == pytest.approx(alone.cost_usd.mean(), rel=0.01)


def test_a_cheap_zone_that_is_always_up_is_taken_at_once_and_kept():
    zones = market([HEAVY, ALWAYS], [1.5, 1.0])
    found = replay(MultiZone((HEAVY, ALWAYS)), zones, starts(zones), TASK)
    assert found.moves.sum() == 0
    assert found.cost_usd == pytest.approx(1.0 * (12 + 2 / 6))


def test_a_flickering_zone_is_left_alone_though_it_is_cheaper():
    laws = (FLICKERS, ALWAYS)
    zones = market(laws, [0.9, 1.0])
    found = replay(MultiZone(laws), zones, starts(zones), TASK)
    assert found.cost_usd == pytest.approx(1.0 * (12 + 2 / 6))
    assert found.cost_usd.mean() < replay(Greedy(), zones, starts(zones), TASK).cost_usd.mean()


def test_an_old_run_elsewhere_that_is_much_cheaper_is_worth_a_move():
    laws = (HEAVY, ALWAYS)
    zones = market(laws, [0.4, 2.0], move=0.1)
    found = replay(MultiZone(laws), zones, starts(zones), TASK)
    best = optimum(zones, starts(zones), TASK)
    assert found.moves.mean() > 1.0
    assert best.mean() <= found.cost_usd.mean() < 0.9 * 2.0 * 12
    offers = replace(zones.offers, move_usd=100.0 * (1.0 - np.eye(2)))
    dear = replace(zones, offers=offers)
    assert replay(MultiZone(laws), dear, starts(zones), TASK).moves.sum() == 0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("setting", [(10, 12, 0.1), (10, 10.6, 0.3), (6, 9, 0.5)])
def test_it_is_never_late_and_more_expensive_than_the_optimum(seed, setting):
    task, laws = hours(*setting), (HEAVY, FLICKERS, STEADY)
    zones = market(laws, [1.0, 0.8, 1.2], ticks=600, seed=seed)
    when = starts(zones, 3.0, task)
    found = replay(MultiZone((STEADY, HEAVY, FLICKERS)), zones, when, task)
    assert (found.finish_s <= task.deadline_s + 1e-3).all()
    assert (found.cost_usd >= optimum(zones, when, task) - 1e-6).all()


def test_of_many_zones_those_enter_whose_hour_costs_least():
    zones = market([STEADY] * 7, [1.0, 1.1, 1.2, 1.3, 1.4, 0.5, 0.6], ticks=50)
    share = [0.9, 0.9, 0.9, 0.9, 0.9, 0.01, 0.9]
    assert chosen(zones.offers, share) == [0, 1, 2, 3, 6]
    assert len(chosen(zones.offers, share)) == MAX_ZONES


def test_a_zone_outside_the_programme_and_one_never_up_change_nothing():
    laws = (ALWAYS, *[NEVER_UP] * 6)
    zones = market(laws, [1.0, *[0.5] * 6])
    found = replay(MultiZone(laws), zones, starts(zones), TASK)
    assert found.cost_usd == pytest.approx(1.0 * (12 + 2 / 6))


def test_ticks_finer_than_the_grid_are_simulated():
    up = np.repeat(simulated(STEADY, TICK, 1_200, seed=3), 3)
    fine = one(up, TICK / 3.0, ModePrices(1.0, 3.06))
    when = fine.windows(TASK, 6 * 3600.0)
    found = replay(MultiZone((STEADY,)), fine, when, TASK)
    alone = replay(SemiMarkov(STEADY), fine, when, TASK)
    assert (found.finish_s <= TASK.deadline_s + 1e-3).all()
    assert found.cost_usd.mean() == pytest.approx(alone.cost_usd.mean(), rel=0.03)


def test_every_zone_needs_a_law():
    with pytest.raises(UsageError, match="1 laws for 2 zones"):
        MultiZone((STEADY,)).begin(TASK, market([STEADY] * 2, [1.0, 1.0], ticks=50).offers, 1)
