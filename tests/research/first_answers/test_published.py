"""Runs whose time somebody published lie inside the spans that are told of them."""

import pytest

from recommender.catalogs.load import load_snapshot
from tests.research.first_answers.published import PublishedRun, published_runs, told


@pytest.mark.parametrize("run", published_runs(), ids=lambda run: run.job)
def test_a_published_time_lies_inside_the_span_told(run: PublishedRun) -> None:
    assert told(run, load_snapshot()).holds(run)
