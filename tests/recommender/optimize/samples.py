"""Random cases in chunks: some always, all of them with the slow tests."""

from collections.abc import Sequence

import pytest
from _pytest.mark.structures import ParameterSet


def one_in(every: int, chunks: int) -> Sequence[ParameterSet]:
    """Numbers of chunks; one in `every` runs by default, the others are slow."""
    slow = pytest.mark.slow
    return [pytest.param(n, marks=slow if n % every else ()) for n in range(chunks)]
