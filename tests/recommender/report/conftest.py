"""Every view is made on the same day."""

import pytest


@pytest.fixture(autouse=True)
def day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOMMEND_NOW", "2026-11-20T12:00Z")
