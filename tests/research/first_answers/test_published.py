"""Runs whose time somebody published lie inside the spans that are told of them."""

import pytest

from tests.research.first_answers.published import PublishedRun, published_runs, told
from tests.shipped import snapshot


@pytest.mark.parametrize("run", published_runs(), ids=lambda run: run.job)
def test_a_published_time_lies_inside_the_span_reported(run: PublishedRun) -> None:
    assert told(run, snapshot()).holds(run)
