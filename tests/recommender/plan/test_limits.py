"""The registry of limits: values, what is left of them, which of two questions is tighter."""

from dataclasses import replace

import pytest

from recommender.plan.limits import (
    HOURLY,
    LIMITS,
    Limit,
    Limits,
    Progress,
)

NONE = Limits()
EVERY = Limits(deadline_s=3600.0, budget_usd=100.0, hourly_usd=10.0, max_overhead=0.2)


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_every_limit_has_a_field_that_can_be_set_and_taken_away(limit: Limit) -> None:
    assert NONE.value(limit) is None
    one = NONE.with_value(limit, 0.5)
    assert one == replace(NONE, **{limit.field: 0.5})
    assert list(one.given(LIMITS)) == [(limit, 0.5)]
    assert one.with_value(limit, None) == NONE


def test_given_limits_come_in_the_order_of_the_registry() -> None:
    assert [limit for limit, _ in EVERY.given(LIMITS)] == list(LIMITS)
    assert [limit.flag for limit in LIMITS] == [
        "--deadline", "--budget", "--hourly", "--max-overhead",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("limits", "goal"),
    [
        (NONE, "frontier"),
        (Limits(max_overhead=0.2), "frontier"),
        (Limits(hourly_usd=10.0), "time"),
        (Limits(budget_usd=100.0), "time"),
        (EVERY, "cost"),
        (replace(EVERY, objective="time"), "time"),
    ],
)
def test_the_first_limit_given_decides_what_is_sought(limits: Limits, goal: str) -> None:
    assert limits.goal == goal


def test_only_time_and_money_are_used_up_on_the_way() -> None:
    left = EVERY.left_after(Progress(done_share=0.5, elapsed_s=600.0, spent_usd=30.0))
    assert left == replace(EVERY, deadline_s=3000.0, budget_usd=70.0)
    assert NONE.left_after(Progress(elapsed_s=600.0, spent_usd=30.0)) == NONE


def test_prices_that_add_up_to_a_limit_meet_it() -> None:
    assert 3 * 0.1 > 0.3
    assert HOURLY.allows(3 * 0.1, 0.3)
    assert not HOURLY.allows(0.3001, 0.3)
