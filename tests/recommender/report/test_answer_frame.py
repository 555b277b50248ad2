"""Costs in another currency, at a stated rate."""

import re
from dataclasses import replace

import pytest

from recommender.errors import UsageError
from recommender.inputs.units import parse_currency
from recommender.report.answer_frame import currency_line
from tests.recommender.answers import ANSWER, QUESTION


def test_costs_are_shown_in_a_currency_at_the_rate_and_of_the_day_that_were_stated() -> None:
    assert currency_line(ANSWER, QUESTION) == ""
    asked = replace(QUESTION, currency=parse_currency("EUR = 0.5@2026-11-27", "--currency"))
    line = currency_line(ANSWER, asked)
    for number, plan in enumerate(ANSWER.plans, 1):
        found = re.search(rf"plan {number} (\d+)", line)
        assert found
        assert float(found[1]) == pytest.approx(0.5 * plan.estimate.cost.mean, abs=0.51)
    assert "1 USD = 0.5 EUR" in line
    assert "2026-11-27" in line


@pytest.mark.parametrize("text", ["EUR", "EUR=", "0.86", "euro=0.86", "EUR=-1", "EUR=0.9@27.11."])
def test_a_currency_without_a_rate_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--currency"):
        parse_currency(text, "--currency")
