"""Sobol' points: evenly spread random numbers, bit for bit the same on every machine.

Independent random numbers leave gaps; Sobol' points (1967) do not: the first 2^m of them have one
point in every 2^-m of each axis, and nearly the right number in every box. Each seed scrambles
them, which preserves this and makes every single point uniform: bits are multiplied by a random
lower triangular matrix and shifted (Matousek, J. Complexity 14, 1998). The shift alone would leave
the planes of late dimensions as badly filled as they are with few points.

Direction numbers: S. Joe and F. Y. Kuo, SIAM J. Sci. Comput. 30 (2008), file new-joe-kuo-6.21201,
https://web.maths.unsw.edu.au/~fkuo/sobol/ (read 2026-11-21).
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from recommender.arrays import Ints

Words = NDArray[np.uint32]

BITS = 32
PLAIN = (0,) * BITS
_OWN = np.uint32(1) << np.arange(BITS - 1, -1, -1, dtype=np.uint32)  # a matrix's diagonal, by row
_ABOVE = ~(_OWN | (_OWN - np.uint32(1)))  # the bits left of it
_FOLDS = np.array([16, 8, 4, 2, 1], dtype=np.uint32)
# Degree and coefficients of each dimension's primitive polynomial, and its first numbers m.
_DIRECTIONS = (
    (0, 0, ()),
    (1, 0, (1,)),
    (2, 1, (1, 3)),
    (3, 1, (1, 3, 1)),
    (3, 2, (1, 1, 1)),
    (4, 1, (1, 1, 3, 3)),
    (4, 4, (1, 3, 5, 13)),
    (5, 2, (1, 1, 5, 5, 17)),
    (5, 4, (1, 1, 5, 5, 5)),
    (5, 7, (1, 1, 7, 11, 19)),
    (5, 11, (1, 1, 5, 1, 1)),
    (5, 13, (1, 1, 1, 3, 11)),
    (5, 14, (1, 3, 5, 5, 31)),
    (6, 1, (1, 3, 3, 9, 7, 49)),
    (6, 13, (1, 1, 1, 15, 21, 21)),
    (6, 16, (1, 3, 1, 13, 27, 49)),
    (6, 19, (1, 1, 1, 15, 7, 5)),
    (6, 22, (1, 3, 1, 15, 13, 25)),
)
DIMENSIONS = len(_DIRECTIONS)


def sobol_points(dimension: int, count: int, rows: tuple[int, ...] = PLAIN) -> Words:
    """The first points of one dimension, as binary fractions of 32 bits; shape (count,).

    `rows` are the random bits of the matrix, first row first; `PLAIN` does not scramble. When
    scrambling, bits that distinguish no two of these points are omitted.
    """
    bits = max(count - 1, 0).bit_length()
    rows = rows if rows == PLAIN else rows[:bits]
    directions = _times(rows, np.array(_directions(dimension)[:bits], dtype=np.uint32))
    found = np.zeros(1 << bits, dtype=np.uint32)  # in the order of the plain index
    for bit in range(bits):
        half = 1 << bit
        np.bitwise_xor(found[:half], directions[bit], out=found[half : 2 * half])
    return found[_gray(count)]


@lru_cache(maxsize=8)
def _gray(count: int) -> Ints:
    """The order in which the points come: neighbours differ in one bit."""
    index = np.arange(count)
    return index ^ (index >> 1)


def _times(rows: tuple[int, ...], words: Words) -> Words:
    """A lower triangular matrix of bits, ones on its diagonal, times words of bits."""
    own = _OWN[: len(rows)]
    met = (np.array(rows, dtype=np.uint32) & _ABOVE[: len(rows)] | own)[:, None] & words
    for shift in _FOLDS:
        met ^= met >> shift  # the last bit is the parity
    made: Words = np.bitwise_or.reduce((met & np.uint32(1)) * own[:, None], axis=0)
    return made


@lru_cache(maxsize=DIMENSIONS)
def _directions(dimension: int) -> tuple[int, ...]:
    """v_k = v_(k-s) / 2^s xor v_(k-s) xor the v_(k-i) whose coefficient is set."""
    degree, coefficients, first = _DIRECTIONS[dimension]
    if degree == 0:  # the radical inverse of van der Corput
        return tuple(1 << (BITS - k) for k in range(1, BITS + 1))
    found = [m << (BITS - k) for k, m in enumerate(first, start=1)]
    for k in range(degree, BITS):
        value = found[k - degree] ^ (found[k - degree] >> degree)
        for i in range(1, degree):
            if coefficients >> (degree - 1 - i) & 1:
                value ^= found[k - i]
        found.append(value)
    return tuple(found)
