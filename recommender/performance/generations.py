"""How far a timing on one GPU reaches: the sd of ln speed grows with the generations between GPUs.

    sd² = 0.14² + 0.12² · generations apart

From ten networks of one laboratory on ten GPUs, V100 to B200, each predicted on every GPU from
every other one without having been seen: the two constants of least loss of a 90 % quantile, where
each network weighs the square root of its pairs (`tests/research/accuracy/other_gpu.py`). Every
generation adds the same variance, as every doubling of GPUs does (`calibration_spread.py`). A GPU
that is not listed is as far from others as the farthest of these pairs.
"""

from collections.abc import Collection

import numpy as np

from recommender.performance.siblings import ARCHITECTURES

SAME = 0.14
EACH = 0.12
RELATED = 0.21  # of all pairs together, whatever lies between them
FARTHEST = 3  # generations: V100 and H100
ADA = "L4"  # its architecture has a place of its own in the list, but is of Hopper's year (2022)


def generation(gpu: str) -> int | None:
    """The number of a GPU's generation, Kepler's 0; None if it is not listed."""
    place = next((at for at, parts in enumerate(ARCHITECTURES) if gpu in parts), None)
    if place is None:
        return None
    ada = next(at for at, parts in enumerate(ARCHITECTURES) if ADA in parts)
    return place - (place > ada)


def generations_apart(gpu: str, timed: Collection[str]) -> float:
    """Generations between a GPU and those that were timed, in the mean, as of their levels."""
    apart = [_between(generation(gpu), generation(other)) for other in timed]
    return float(np.mean(apart or [FARTHEST]))


def _between(one: int | None, other: int | None) -> int:
    return FARTHEST if one is None or other is None else abs(one - other)


def related_sd(gpu: str, timed: Collection[str]) -> float:
    """Sd of ln(true / predicted) speed on a GPU, of a job that was timed on others."""
    return float(np.hypot(SAME, added_sd(gpu, timed)))


def added_sd(gpu: str, timed: Collection[str]) -> float:
    """What the generations between a GPU and those that were timed add to `SAME`."""
    return EACH * float(np.sqrt(generations_apart(gpu, timed)))
