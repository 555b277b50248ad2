"""Policies simulated on a simulation's own paths."""

from types import SimpleNamespace

import numpy as np
import pytest

from recommender.errors import UsageError
from recommender.plan.limits import Limits
from recommender.policies.plan_policy import policy_facts, problem_of
from recommender.policies.thresholds import TwoThresholds
from recommender.risk.random_numbers import random_numbers
from recommender.risk.spot_capacity import CLASS_CAPACITY, drawn_cycles
from recommender.simulation.paths import simulate
from recommender.simulation.policies import policy_runs, simulated_market
from tests.recommender.optimize.samples import sampled
from tests.recommender.risk.cases import RESCUE, SPOT, path_inputs

H = 3600.0
# Three days of work in nine: steps of 36 minutes matter little.
LONG = {"work_s": 72 * H, "fallback_speed": 1.0, "fallback_usd_per_hour": 40.0}
PLAN = SPOT | RESCUE | LONG | {"fallback_at_once": 1.0, "stall_s": 0.0, "notice_saves": 1.0}
LIMITS = Limits(deadline_s=216 * H)
RULED = SimpleNamespace(fallback=SimpleNamespace(wait_above=0.2, back_above=0.1))
UNRULED = SimpleNamespace(fallback=None)


def followed(change=None, wanted="full", runs=2048, plan=RULED, limits=LIMITS, seed=7):
    given = (limits, CLASS_CAPACITY, wanted, runs, seed)
    return policy_runs(plan, path_inputs(PLAN | (change or {})), *given)


CHANGES = ({"zone_count": 3.0, "correlation": 0.1}, {}, {"speed_sigma": 0.2})


@pytest.mark.parametrize("change", sampled(CHANGES, CHANGES[:1]))
def test_the_fallback_rule_costs_and_takes_what_the_simulation_of_the_plan_says(change):
    plan = path_inputs(PLAN | change)
    sample = simulate(plan, LIMITS.deadline_s, 2048, 7)
    net = followed(change)[0]
    assert net.name == "fallback rule"
    # Ticks are paid whole and runs shorter than one are often not seen.
    assert net.cost.mean == pytest.approx(sample.expected_usd.mean(), rel=0.05)
    assert net.time.mean == pytest.approx(sample.time_s.mean(), rel=0.05)


@pytest.mark.parametrize(
    "change",
    [{"zone_count": 2.0, "correlation": 0.2}, pytest.param({}, marks=pytest.mark.slow)],
)
def test_its_simulated_cost_is_what_the_dynamic_program_expects_if_the_laws_agree(change):
    # Zones alike, and runs and outages that are long against a step of 36 minutes.
    scarce = {"work_s": 144 * H, "run_mean_s": 6 * H, "availability_logit": 0.0}
    steady = scarce | {"zone_sd": 0.0, "run_sigma": 0.5, "outage_sigma": 0.5} | change
    facts = policy_facts(path_inputs(PLAN | steady), LIMITS.deadline_s, TwoThresholds(0.2, 0.1))
    net, rule, full = followed(steady, runs=4096)
    for run, expected in ((net, facts.fallback_usd), (rule, facts.rule_usd)):
        assert abs(run.cost.mean - expected) < 4.0 * run.cost.error
    # The programme knows the true age of runs and outages; the policy infers it.
    assert facts.full_usd - 4.0 * full.cost.error < full.cost.mean < 1.03 * facts.full_usd


def test_the_paths_are_those_of_the_simulation():
    plan = path_inputs(PLAN)
    problem = problem_of(plan, LIMITS.deadline_s)
    sample = random_numbers(512, 7)
    market = simulated_market(
        plan, CLASS_CAPACITY, sample, problem, np.full(512, problem.task.work_s)
    )
    lengths, waits = drawn_cycles(plan, sample, 40)
    begin = np.cumsum(waits[:, 0] + lengths[:, 0], axis=0) - lengths[:, 0]
    for path in range(0, 512, 37):
        for tick in range(0, len(market.available), 11):
            now = tick * problem.tick_s
            inside = (begin[:, path] <= now) & (now < begin[:, path] + lengths[:, 0, path])
            assert market.available[tick, path] == inside.any()
            since = (now - problem.tick_s < begin[:, path]) & (begin[:, path] <= now)
            if market.taken[tick, path]:  # an outage too short to be seen
                assert inside.any()
                assert since.any()


TIGHT = ({}, {"zone_sd": 2.5}, {"availability_logit": -2.0}, {"work_s": 190 * H})


@pytest.mark.parametrize("change", sampled(TIGHT, TIGHT[2:3]))
def test_with_sure_speed_and_no_queue_no_policy_is_ever_late(change):
    for run in followed(change, runs=512):
        assert run.in_time == 1.0, run.name


def test_a_queue_for_on_demand_at_the_last_moment_makes_a_plan_late():
    change = {"fallback_at_once": 0.0, "fallback_wait_s": 20 * H, "availability_logit": -2.0}
    net = followed(change, runs=512)[0]
    assert net.in_time < 0.9


def test_the_full_policy_saves_money_where_spot_comes_and_goes():
    change = {"work_s": 144 * H, "run_mean_s": 4 * H, "zone_sd": 0.0, "availability_logit": 0.0}
    net, rule, full = followed(change)
    assert [run.name for run in (net, rule, full)] == [
        "fallback rule",
        "two thresholds",
        "full policy",
    ]
    assert full.cost.mean < rule.cost.mean < net.cost.mean


def test_same_seed_same_figures():
    assert followed(runs=300) == followed(runs=300)
    assert followed(runs=300) != followed(runs=300, seed=8)


def test_a_run_that_outlasts_one_block_goes_on_in_the_next():
    assert len(followed(runs=2500, wanted="thresholds")) == 2


def test_a_policy_that_cannot_be_simulated_is_refused():
    with pytest.raises(UsageError, match="--policy thresholds: this plan waits"):
        followed(wanted="thresholds", plan=UNRULED)
    with pytest.raises(UsageError, match="--policy full: .*no on-demand fallback"):
        followed({"fallback_speed": 0.0})
    with pytest.raises(UsageError, match="no deadline"):
        followed(limits=Limits())
