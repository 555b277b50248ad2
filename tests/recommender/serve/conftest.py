"""The day on which the questions of these tests are asked."""

from collections.abc import Iterator

import pytest

DAY = "2026-09-01T00:00Z"


@pytest.fixture(scope="package", autouse=True)
def day() -> Iterator[None]:
    """One day for all: planning processes are copies of one that the first test started."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RECOMMEND_NOW", DAY)
        yield
