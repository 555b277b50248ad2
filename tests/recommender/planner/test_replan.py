"""Stay or move, against arithmetic on a small catalog."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.catalogs.catalog import Catalog
from recommender.market.offer_facts import Facts
from recommender.plan.effort import HOUR_USD
from recommender.plan.limits import Choice, Limits, Progress
from recommender.plan.plan import Plan
from recommender.plan.replan import Replan
from recommender.planner import replan as comparison
from recommender.planner.replan import RunningJob, moved_prices, replan
from recommender.risk.random_numbers import random_numbers
from recommender.risk.spot_capacity import ClassCapacity, drawn_cycles
from tests.recommender.planning import HOUR, NOW, ask, job, small, with_prices
from tests.recommender.risk.cases import PLAIN, path_inputs

LIMITS = Limits(deadline_s=60 * HOUR, max_machines=6)
HALF = Progress(done_share=0.5, elapsed_s=5 * HOUR)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return small()


def on_demand(catalog: Catalog) -> Plan:
    return ask(catalog, choice=Choice(market="on_demand"), deadline_s=60 * HOUR).plans[0]


def asked(
    plan: Plan, catalog: Catalog, progress: Progress = HALF, choice: Choice | None = None
) -> Replan:
    running = RunningJob(plan, job(), LIMITS, choice or Choice(), progress)
    return replan(running, catalog=catalog, now=NOW)


def test_to_stay_on_demand_is_half_of_the_work_at_the_price_of_its_hours(catalog: Catalog) -> None:
    plan = on_demand(catalog)
    stay = asked(plan, catalog, choice=Choice(market="on_demand")).stay
    work_s = plan.estimate.step.step_s * job().steps / 2.0
    assert stay.time.p50 == pytest.approx(work_s, rel=0.02)
    per_hour = (
        plan.estimate.cost.mean / plan.estimate.time.mean  # fees included
    )
    assert stay.cost.mean == pytest.approx(stay.time.mean * per_hour, rel=0.03)


def test_nothing_done_is_the_plan_without_its_start(catalog: Catalog) -> None:
    plan = on_demand(catalog)
    stay = asked(plan, catalog, Progress(), Choice(market="on_demand")).stay
    start_s = plan.estimate.split.start_up_s
    assert stay.time.p50 == pytest.approx(plan.estimate.time.p50 - start_s, rel=0.005)


def test_a_plan_stays_at_current_prices_and_moves_at_three_times_the_price(
    catalog: Catalog,
) -> None:
    plan = ask(catalog, deadline_s=60 * HOUR).plans[0]
    same = asked(plan, catalog)
    assert same.verdict == "stay"
    assert same.prices == ()
    dear = with_prices(catalog, plan.machines[0].instance_type, 40.0)
    other = asked(plan, dear)
    assert other.verdict == "move"
    assert other.move is not None
    assert other.moving is not None
    assert other.move.plan.machines[0].instance_type != plan.machines[0].instance_type
    assert other.saved_usd == pytest.approx(other.stay.cost.mean - other.move.cost.mean)
    assert other.net_usd == pytest.approx(other.saved_usd - HOUR_USD * other.moving.effort_h)
    assert other.cheaper > 0.9
    assert [price.change for price in other.prices] == pytest.approx([39.0] * len(other.prices))
    assert other.prices


def test_the_second_spot_type_of_a_mix_has_a_price_of_its_own(catalog: Catalog) -> None:
    """The failover list has those of the first: taken for both, the second seemed to move."""
    first = ask(catalog, choice=Choice(market="spot"), deadline_s=60 * HOUR).plans[0]
    o = next(
        o
        for o in catalog.offers
        if o.market == "spot" and o.usd_per_hour != first.machines[0].usd_per_hour
    )
    other = replace(
        first.machines[0],
        provider=o.provider,
        instance_type=o.instance_type,
        region=o.region,
        zone=o.zone,
        usd_per_hour=o.usd_per_hour,
    )
    mix = replace(first, machines=(*first.machines, other))
    assert moved_prices(mix, Facts(catalog, Choice(), job(), NOW), None) == ()
    doubled = with_prices(catalog, o.instance_type, 2.0)
    (moved,) = moved_prices(mix, Facts(doubled, Choice(), job(), NOW), None)
    assert moved.instance_type == o.instance_type


@pytest.fixture(scope="module")
def late(catalog: Catalog) -> Replan:
    """Four hours are left for nine tenths of a plan."""
    plan = ask(catalog, deadline_s=60 * HOUR).plans[0]
    return asked(plan, catalog, Progress(done_share=0.1, elapsed_s=56 * HOUR))


def test_where_nothing_is_likely_in_time_what_is_likeliest_is_advised(
    catalog: Catalog, late: Replan
) -> None:
    plan, found = ask(catalog, deadline_s=60 * HOUR).plans[0], late
    assert (found.verdict, found.meets_limits) == ("move", False)
    assert found.move is not None
    assert found.stay.chance < 0.01 < 0.5 <= found.move.chance < LIMITS.confidence
    assert "--elapsed 2d8h leaves 4h of the deadline" in found.binding
    hopeless = asked(plan, catalog, Progress(done_share=0.1, elapsed_s=58 * HOUR))
    assert (hopeless.verdict, hopeless.meets_limits, hopeless.move) == ("stay", False, None)


def test_a_little_more_chance_is_not_worth_another_cluster(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = ask(catalog, deadline_s=60 * HOUR).plans[0]
    monkeypatch.setattr(comparison, "CLEARLY", 0.9)  # more than the 0.83 that moving gains
    found = asked(plan, catalog, Progress(done_share=0.1, elapsed_s=56 * HOUR))
    assert found.move is not None
    assert (found.verdict, found.meets_limits) == ("stay", False)


def test_what_would_work_is_said_in_flags_that_the_command_takes(late: Replan) -> None:
    assert any("is about the minimum that works" in each for each in late.binding)
    assert not any("--confidence" in each for each in late.binding)


def test_what_is_left_costs_the_hours_that_are_left_at_the_spot_price_of_each_run(
    catalog: Catalog,
) -> None:
    """The start-up was paid at the price of the day too: runs of cheap days cost more than 0."""
    plan = ask(catalog, choice=Choice(market="spot"), deadline_s=60 * HOUR).plans[0]
    stay = asked(plan, catalog, Progress(done_share=0.999, elapsed_s=5 * HOUR)).stay
    assert 0.0 < stay.cost.p05 < stay.cost.mean
    hourly = plan.machines[0].count * plan.machines[0].usd_per_hour
    assert stay.cost.p50 == pytest.approx(hourly * stay.time.p50 / HOUR, rel=0.15)  # fees too


def test_a_move_does_half_an_interval_again(catalog: Catalog) -> None:
    plan = ask(catalog, deadline_s=60 * HOUR).plans[0]
    found = asked(plan, with_prices(catalog, plan.machines[0].instance_type, 40.0))
    assert found.moving is not None
    assert found.moving.lost_work_s == pytest.approx(plan.checkpointing.interval_s / 2.0)


def test_the_first_run_is_what_a_random_moment_leaves_of_one() -> None:
    """E[X²] / 2E[X], for lognormal runs: half the mean times exp(σ²); and the start before it."""
    inputs = path_inputs({**PLAIN, "run_mean_s": 20_000.0, "held": 0.0})
    sample = random_numbers(1 << 14, 7)
    lengths, waits = drawn_cycles(inputs, sample, capacity=ClassCapacity(train=True))
    assert float(waits[0].max()) == 0.0
    left = lengths[0, 0].astype(np.float64) - inputs.changeover_s[0]
    sigma = float(inputs.run_sigma[0])
    expected = 0.5 * float(inputs.run_mean_s[0]) * np.exp(sigma**2)
    assert float(left.mean()) == pytest.approx(expected, rel=0.1)
