"""Positions of the labels in the frontier, so that none overlaps another or a mark."""

import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from recommender.catalogs.frozen import dataclass

WIDTH, HEIGHT = 900.0, 520.0  # pixels inside the axes of a picture on a desk
AWAY = 12.0  # from its mark, where a name begins
LETTER, LINE = 7.2, 15.0  # pixels of a letter of 12 px in bold, and of a line
MARK, DOT = 9.0, 4.0  # radius of a mark with a name, and of one without
NEAR = 36.0  # of a mark: a name that begins there seems to be that mark's
SHIFTS = (-12.0, 14.0, -28.0, 30.0, -44.0, 46.0)  # of a name against its mark, the nearest first
FAR = 1e4

Box: TypeAlias = tuple[float, float, float, float]  # left, top, right, bottom
Span: TypeAlias = tuple[float, float]
Point: TypeAlias = tuple[float, float]

# Beyond the axes, where names are cut off.
_OUTSIDE: tuple[Box, ...] = (
    (-FAR, -FAR, 0.0, FAR), (WIDTH, -FAR, FAR, FAR),
    (-FAR, -FAR, FAR, 0.0), (-FAR, HEIGHT, FAR, FAR),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """Of a name: pixels below its mark, and whether it ends left of the mark."""

    dy: float
    left: bool


def places(
    names: Sequence[str],
    points: Sequence[Point],
    others: Sequence[Point],
    across: Span,
    upright: Span,
) -> list[Place]:
    """The place of each name next to the mark at its point; both axes are logarithmic.

    `others` are marks without a name, which names keep clear of as well.
    """
    marks = [_pixels(point, across, upright) for point in points]
    around = [(x - NEAR, y - MARK, x + NEAR, y + MARK) for x, y in marks]
    dots = [_pixels(point, across, upright) for point in others]
    taken = [*_OUTSIDE, *((x - DOT, y - DOT, x + DOT, y + DOT) for x, y in dots)]
    found = [Place(0.0, left=False)] * len(names)
    for own in sorted(range(len(names)), key=lambda i: marks[i][1]):
        there = [*taken, *around[:own], *around[own + 1 :]]
        tried = _tried(names[own], *marks[own])
        found[own], box = min(tried, key=lambda each: _overlap(each[1], there))  # first of the best
        taken.append(box)
    return found


def _pixels(point: Point, across: Span, upright: Span) -> Point:
    return WIDTH * _share(point[0], across), HEIGHT * (1.0 - _share(point[1], upright))


def _share(value: float, span: Span) -> float:
    low, high = span
    return math.log(value / low) / math.log(high / low)


def _tried(name: str, x: float, y: float) -> Iterator[tuple[Place, Box]]:
    """Places and what a name takes there, the nearest first, right of the mark before left."""
    long = LETTER * len(name)
    for dy in SHIFTS:
        for start, left in ((x + AWAY, False), (x - AWAY - long, True)):
            box = (start, y + dy - LINE / 2.0, start + long, y + dy + LINE / 2.0)
            yield Place(dy, left), box


def _overlap(box: Box, others: Sequence[Box]) -> float:
    """The area that a box shares with others."""
    return sum(_length(box, other, 0) * _length(box, other, 1) for other in others)


def _length(box: Box, other: Box, axis: int) -> float:
    return max(min(box[axis + 2], other[axis + 2]) - max(box[axis], other[axis]), 0.0)
