"""The shipped persistence of cheap quotes against the price histories."""

import os
from pathlib import Path

import pytest

from recommender.market.quotes import persistence
from tests.research.quotes import AGES, bias_of_jobs, histories, matrix_speeds, observed

REFERENCE = os.environ.get("RECOMMEND_REFERENCE_DATA", "")


@pytest.mark.reference
@pytest.mark.skipif(not REFERENCE, reason="RECOMMEND_REFERENCE_DATA is not set")
@pytest.mark.parametrize("provider", sorted(AGES))
def test_plans_cost_what_was_promised_after_days_and_months(provider):
    series, days = histories(Path(REFERENCE), provider)
    speed = matrix_speeds(provider)
    for age in AGES[provider]:
        found = list(observed(series, days, age))
        left = persistence(provider, age)
        after = bias_of_jobs(found, lambda _, left=left: left, speed)
        before = bias_of_jobs(found, lambda _: 1.0, speed)
        assert abs(after) <= 0.03 or abs(after) < abs(before) / 2, (age, before, after)
