"""Runs whose time was published lie inside their estimated spans."""

import pytest

from tests.recommender.optimize.samples import thinned
from tests.research.first_answers.published import PublishedRun, estimate_of, published_runs
from tests.shipped import snapshot


@pytest.mark.parametrize("run", thinned(published_runs(), 3), ids=lambda run: run.job)
def test_a_published_time_lies_inside_the_span_reported(run: PublishedRun) -> None:
    assert estimate_of(run, snapshot()).holds(run)
