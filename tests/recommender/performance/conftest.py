"""What several tests of steps share."""

import pytest

from recommender.performance import data_parallel, model_parallel


@pytest.fixture
def punctual(monkeypatch: pytest.MonkeyPatch) -> None:
    """No GPU is later than another: what is left can be worked out by hand."""
    monkeypatch.setattr(data_parallel, "STRAGGLERS", 0.0)
    monkeypatch.setattr(model_parallel, "STRAGGLERS", 0.0)
