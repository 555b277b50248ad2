"""Sums and look-ups along cycles of runs, in arrays of shape (cycles, plans, paths)."""

import numpy as np

from recommender.arrays import Bools, Floats, Ints, Singles


def row(column: Floats) -> Singles:
    """Reshape a column of plans to broadcast with arrays of runs."""
    return column.astype(np.float32)[None, :, None]


def at(values: Singles, place: Ints) -> Floats:
    """The values at the `places` of each path; (plans, paths)."""
    return values.ravel().take(place).astype(np.float64)


def places(index: Ints, of: Ints, columns: int) -> Ints:
    """Flat indices of each path's own cycle in arrays with so many columns; (plans, paths).

    `index` is the cycle of each path, `of` the column of each plan. This look-up is three times as
    fast as np.take_along_axis.
    """
    paths = index.shape[1]
    place: Ints = index * (columns * paths)
    place += (of * paths)[:, None] + np.arange(paths)
    return place


def first(hit: Bools) -> tuple[Ints, Bools]:
    """Index of the first hit along the cycles (the last cycle if none), and whether there is any.

    Each hit is weighted by the number of remaining cycles, so the largest is the first: argmax
    along the first axis is several times as slow.
    """
    cycles = len(hit)
    left = np.arange(cycles, 0, -1, dtype=np.uint8 if cycles < 256 else np.uint16)
    most = (hit * left[:, None, None]).max(axis=0)
    found = most > 0
    return np.where(found, cycles - most.astype(np.int64), cycles - 1), found


def choose(hit: Bools, yes: Singles, no: Singles) -> Singles:
    """`yes` where hit, else `no`: np.where, of arrays of one shape.

    Where hits come at random, no processor predicts the branches of np.where, and it takes several
    times as long as these operations on bits.
    """
    bits = yes.view(np.int32) ^ no.view(np.int32)
    bits *= hit
    bits ^= no.view(np.int32)
    return bits.view(np.float32)


def until(values: Singles) -> Singles:
    """Cumulative sum up to each cycle; plane by plane, ten times as fast as np.cumsum."""
    total = values.copy()
    for so_far, here in zip(total, total[1:], strict=False):
        here += so_far
    return total


def before(values: Singles) -> Singles:
    """Sum of the values of all earlier cycles."""
    total = np.empty_like(values)
    total[:1] = 0.0
    for so_far, value, here in zip(total, values, total[1:], strict=False):
        np.add(so_far, value, out=here)
    return total
