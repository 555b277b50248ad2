"""What several tests of steps share."""

import pytest

from recommender.performance import parallelism, step_terms


@pytest.fixture
def punctual(monkeypatch: pytest.MonkeyPatch) -> None:
    """No GPU is later than another: what is left can be worked out by hand."""
    monkeypatch.setattr(step_terms, "STRAGGLERS", 0.0)
    monkeypatch.setattr(parallelism, "STRAGGLERS", 0.0)
