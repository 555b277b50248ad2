"""Where the names of marks stand in the frontier, so that none lies on another or on a mark."""

import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

WIDTH, HEIGHT = 900.0, 520.0  # pixels inside the axes of a picture on a desk
RIGHT = 12.0  # of its mark, where a name begins
LETTER, LINE = 7.2, 15.0  # pixels of a letter of 12 px in bold, and of a line
MARK = 9.0  # radius of a mark
BESIDE = 36.0  # right of a mark: a name that begins there seems to be that mark's
SHIFTS = (-12.0, 14.0, -28.0, 30.0, -44.0, 46.0)  # of a name against its mark, the nearest first

Box: TypeAlias = tuple[float, float, float, float]  # left, top, right, bottom
Span: TypeAlias = tuple[float, float]


def shifts(
    names: Sequence[str], xs: Sequence[float], ys: Sequence[float], across: Span, upright: Span
) -> list[float]:
    """How far below its mark each name stands, in pixels; both axes are logarithmic."""
    lefts = [WIDTH * _share(x, across) for x in xs]
    tops = [HEIGHT * (1.0 - _share(y, upright)) for y in ys]
    beside = [(x - MARK, y - MARK, x + BESIDE, y + MARK) for x, y in zip(lefts, tops, strict=True)]
    placed: list[Box] = []
    found = [0.0] * len(names)
    for own in sorted(range(len(names)), key=lambda i: tops[i]):
        taken = [*placed, *beside[:own], *beside[own + 1 :]]
        boxes = _boxes(names[own], lefts[own], tops[own])
        found[own], box = min(boxes, key=lambda each: _overlap(each[1], taken))  # first of the best
        placed.append(box)
    return found


def _share(value: float, span: Span) -> float:
    low, high = span
    return math.log(value / low) / math.log(high / low)


def _boxes(name: str, x: float, y: float) -> Iterator[tuple[float, Box]]:
    left, right = x + RIGHT, x + RIGHT + LETTER * len(name)
    for shift in SHIFTS:
        yield shift, (left, y + shift - LINE / 2.0, right, y + shift + LINE / 2.0)


def _overlap(box: Box, others: Sequence[Box]) -> float:
    """The area that a box shares with others."""
    return sum(_length(box, other, 0) * _length(box, other, 1) for other in others)


def _length(box: Box, other: Box, axis: int) -> float:
    return max(min(box[axis + 2], other[axis + 2]) - max(box[axis], other[axis]), 0.0)
