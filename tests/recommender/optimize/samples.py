"""Random cases: some always, all of them with the slow tests."""

from collections.abc import Container, Iterable, Sequence

import pytest
from _pytest.mark.structures import ParameterSet


def one_in(every: int, chunks: int) -> Sequence[ParameterSet]:
    """Numbers of chunks; one in `every` runs by default, the others are slow."""
    return thinned(range(chunks), every)


def thinned(values: Sequence[object], every: int) -> Sequence[ParameterSet]:
    """All of some values; one in `every` runs by default, the others are slow."""
    return sampled(values, values[::every])


def sampled(values: Iterable[object], always: Container[object]) -> Sequence[ParameterSet]:
    """All of some values; those that do not always run are slow."""
    slow = pytest.mark.slow
    return [pytest.param(each, marks=() if each in always else slow) for each in values]
