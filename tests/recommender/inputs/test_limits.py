"""How limits are read and written."""

import pytest

from recommender.inputs.limits import amount, as_typed, exact, parse_limit, rounded_up
from recommender.plan.limits import BUDGET, DEADLINE, HOURLY, LIMITS, MAX_OVERHEAD, Limit, Progress

BEGUN = Progress(elapsed_s=7200.0, spent_usd=1000.0)


@pytest.mark.parametrize(
    ("limit", "text", "value"),
    [
        (DEADLINE, "1d12h", 129_600.0),
        (BUDGET, "1234", 1234.0),
        (HOURLY, "30", 30.0),
        (MAX_OVERHEAD, "20%", 0.2),
    ],
)
def test_a_limit_is_written_as_it_is_read(limit: Limit, text: str, value: float) -> None:
    assert parse_limit(limit)(text, limit.flag) == value
    assert exact(limit, value) == text


@pytest.mark.parametrize(
    ("limit", "left", "typed"),
    [
        (DEADLINE, 3600.0 * 7.666, "--deadline 9h40m"),
        (BUDGET, 234.56, "--budget 1230"),
        (HOURLY, 31.416, "--hourly 31.4"),
        (MAX_OVERHEAD, 0.214, "--max-overhead 21%"),
    ],
)
def test_a_suggested_limit_is_one_of_the_whole_job(limit: Limit, left: float, typed: str) -> None:
    assert as_typed(limit, left, BEGUN) == typed


def test_what_is_left_has_its_unit() -> None:
    assert amount(DEADLINE, 7.666 * 3600.0) == "7h40m"
    assert amount(BUDGET, 1234.5) == "1230 USD"
    assert amount(HOURLY, 30.0) == "30 USD/h"


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_a_limit_rounded_up_is_no_less_and_what_one_types(limit: Limit) -> None:
    left = 0.3333 if limit.quantity == "share" else 33_333.0
    up = rounded_up(limit, left, BEGUN)
    assert left <= up <= 1.03 * left
    _, text = as_typed(limit, up, BEGUN).split()
    assert parse_limit(limit)(text, limit.flag) == pytest.approx(up + limit.spent_of(BEGUN))
