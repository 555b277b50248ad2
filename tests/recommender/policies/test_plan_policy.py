"""A plan becomes the problem that arithmetic says, or the reason why it cannot."""

import csv
import io

import numpy as np
import pytest

from recommender.errors import UsageError
from recommender.policies.plan_policy import (
    CSV_COLUMNS,
    TICKS,
    policy_csv,
    policy_facts,
    problem_of,
    why_no_policy,
    words_of,
)
from recommender.policies.thresholds import TwoThresholds
from tests.recommender.risk.cases import RESCUE, SPOT, path_inputs

H = 3600.0
EVEN = SPOT | RESCUE | {"fallback_speed": 1.0, "fallback_usd_per_hour": 40.0}
DEADLINE = 24 * H


def test_work_prices_and_times_are_those_of_the_plan():
    found = problem_of(path_inputs(EVEN | {"base_usd_per_hour": 0.5, "fixed_usd": 3.0}), DEADLINE)
    # 10 h of work, a save of 20 s every 1000 s; an interruption loses half an interval.
    assert found.task.work_s == pytest.approx(36_000 * 1.02)
    assert found.task.changeover_s == pytest.approx(600 + 500)
    assert found.task.deadline_s == pytest.approx(DEADLINE - 200)
    assert (found.prices.spot, found.prices.on_demand, found.prices.idle) == (10.5, 40.5, 0.5)
    assert found.fixed_usd == 3.0
    assert found.tick_s == pytest.approx(found.task.deadline_s / TICKS)


def test_a_faster_fallback_is_paid_by_work_and_a_slower_one_needs_its_time():
    fast = problem_of(path_inputs(EVEN | {"fallback_speed": 2.0}), DEADLINE)
    slow = problem_of(path_inputs(EVEN | {"fallback_speed": 0.96}), DEADLINE)
    assert fast.prices.on_demand == pytest.approx(20.0)
    assert slow.task.deadline_s < fast.task.deadline_s
    assert DEADLINE - 200 - slow.task.deadline_s == pytest.approx(36_720 * (1 / 0.96 - 1))


def test_spot_is_there_as_often_as_the_law_of_a_zone_says():
    zone = problem_of(path_inputs(EVEN | {"zone_sd": 0.0}), DEADLINE)
    # Ages pass from bucket to bucket by chance, so the share is that of the logit to 1 %.
    assert zone.chain.share_up == pytest.approx(1 / (1 + np.exp(-0.7)), abs=0.01)


def test_a_failover_list_shortens_outages_and_skips_some():
    one, three = (
        problem_of(
            path_inputs(EVEN | {"zone_sd": 0.0, "zone_count": s, "correlation": 0.1}), DEADLINE
        )
        for s in (1, 3)
    )
    up = 1 / (1 + np.exp(-0.7))
    assert one.law.elsewhere == 0.0
    assert three.law.elsewhere == pytest.approx(1 - (1 - up * 0.9) ** 2)
    assert three.chain.share_up > 0.9 > one.chain.share_up
    assert three.chain.moved is not None
    assert (three.chain.moved <= three.chain.step + 1e-12).all()


@pytest.mark.parametrize(
    ("change", "deadline_s", "why"),
    [
        ({}, None, "no deadline"),
        ({"spot_usd_per_hour": 0.0}, DEADLINE, "no spot"),
        ({"elastic_share": 0.5}, DEADLINE, "trains on"),
        ({"fallback_speed": 0.0}, DEADLINE, "no on-demand fallback"),
        ({"fallback_speed": 0.5}, DEADLINE, "50 % as fast"),
        ({}, 10.5 * H, "no time to wait"),
    ],
)
def test_a_plan_that_the_programme_cannot_express_says_why(change, deadline_s, why):
    plan = path_inputs(EVEN | change)
    assert why in (why_no_policy(plan, deadline_s) or "")
    assert why in policy_facts(plan, deadline_s, None).why_not
    with pytest.raises(UsageError, match=why):
        problem_of(plan, deadline_s)


def test_the_policy_costs_less_than_simpler_rules_and_the_grid_knows_what_is_late():
    facts = policy_facts(path_inputs(EVEN), DEADLINE, TwoThresholds(0.2, 0.1))
    assert facts.rule_usd is not None
    assert facts.full_usd < min(facts.fallback_usd, facts.rule_usd)
    for time_s, up, away in zip(facts.time_left_s, facts.spot_up, facts.spot_away, strict=True):
        for work_s, here, gone in zip(facts.work_left_s, up, away, strict=True):
            if time_s < work_s:
                assert here is gone is None
            if time_s > work_s + 3 * H:
                assert here in ("spot", "wait")
                assert gone in ("wait", "on-demand")


def rows_of(text):
    comment, _, table = text.partition("\n")
    return comment, list(csv.DictReader(io.StringIO(table)))


def test_the_exported_table_is_never_more_expensive_with_more_time_or_less_work():
    problem = problem_of(path_inputs(EVEN), DEADLINE)
    comment, rows = rows_of(policy_csv(problem, f"plan; {words_of(problem)}"))
    assert comment.startswith("# plan; work 10.2 h; deadline 23.9")
    assert tuple(rows[0]) == CSV_COLUMNS
    usd = {}
    for row in rows:
        state = tuple(row[name] for name in CSV_COLUMNS[2:7])
        usd[float(row["time_left_h"]), float(row["work_left_h"]), state] = float(row["usd_to_go"])
        assert row["decision"] in ("wait", "spot", "on-demand")
        assert not (row["spot"] == "away" and row["decision"] == "spot")
    times, works = (sorted({key[i] for key in usd}) for i in (0, 1))
    assert (len(times), len(works)) == (24, 24)
    for (time_h, work_h, state), cost in usd.items():
        later = usd.get((times[min(times.index(time_h) + 1, 23)], work_h, state), cost)
        less = usd.get((time_h, works[max(works.index(work_h) - 1, 0)], state), cost)
        assert later <= cost * (1 + 1e-4) + 1e-4
        assert less <= cost * (1 + 1e-4) + 1e-4


def test_the_same_plan_gives_the_same_table():
    problem = problem_of(path_inputs(EVEN), DEADLINE)
    assert policy_csv(problem, "x") == policy_csv(problem, "x")


def test_a_time_that_is_no_whole_number_of_ticks_is_reported_by_the_last_whole_one():
    # Below 12 h a tick is two minutes; 6 h 100 s left are 180.8 of them.
    plan = path_inputs(EVEN | {"work_s": 7_200.0, "reserve_s": 500.0})
    found = policy_facts(plan, 22_200.0, None)
    assert found.time_left_s[0] == pytest.approx(21_700.0)
    assert found.spot_up[0][0] == "spot"
