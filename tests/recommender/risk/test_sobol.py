"""Sobol' points fill boxes as evenly as the theory of nets says, scrambled or not."""

import itertools

import numpy as np
import pytest

from recommender.risk.random_numbers import stratified, uniforms
from recommender.risk.sobol import BITS, DIMENSIONS, PLAIN, sobol_points

SCRAMBLED = tuple((uniforms(3, 77, BITS) * 2.0**BITS).astype(np.uint32).tolist())


def unit(dimension: int, count: int, rows: tuple[int, ...] = PLAIN) -> np.ndarray:
    return sobol_points(dimension, count, rows) / 2.0**BITS


def test_the_first_dimension_is_the_radical_inverse_and_the_second_begins_as_published() -> None:
    # Bratley and Fox (1988), in the order of Antonov and Saleev's Gray code.
    assert unit(0, 8).tolist() == [0.0, 0.5, 0.75, 0.25, 0.375, 0.875, 0.625, 0.125]
    assert unit(1, 8).tolist() == [0.0, 0.5, 0.25, 0.75, 0.375, 0.875, 0.125, 0.625]


@pytest.mark.parametrize("rows", [PLAIN, SCRAMBLED])
def test_two_dimensions_fill_every_box_of_equal_area_once(rows: tuple[int, ...]) -> None:
    """Any two of the first three dimensions are a (0, m, 2)-net or nearly: at most two a box."""
    count = 256
    for pair, most in (((0, 1), 1), ((0, 2), 2), ((1, 2), 2)):
        x, y = (unit(d, count, rows) for d in pair)
        for across in range(9):
            box = np.floor(x * 2**across) * 2 ** (8 - across) + np.floor(y * 2 ** (8 - across))
            assert np.bincount(box.astype(int), minlength=count).max() <= most


@pytest.mark.parametrize("rows", [PLAIN, SCRAMBLED])
@pytest.mark.parametrize("dimension", range(DIMENSIONS))
def test_every_dimension_puts_one_point_into_each_stratum(
    dimension: int, rows: tuple[int, ...]
) -> None:
    for power in (3, 8, 11):
        places = np.floor(unit(dimension, 2**power, rows) * 2**power)
        assert np.array_equal(np.sort(places), np.arange(2**power))


def test_the_mean_of_a_product_of_any_two_is_closer_than_chance() -> None:
    """E[U·V] = 1/4; independent draws err by 0.22/sqrt(n), one tenth of it is requested."""
    columns = [stratified(11, 500 + d, 2048, d) for d in range(DIMENSIONS)]
    errors = [abs((u * v).mean() - 0.25) for u, v in itertools.combinations(columns, 2)]
    assert np.median(errors) < 0.1 * 0.22 / np.sqrt(2048)
    assert max(errors) < 0.22 / np.sqrt(2048)


def test_scrambling_is_the_product_with_a_lower_triangular_matrix_of_bits() -> None:
    rows = tuple(int(row) for row in np.random.default_rng(5).integers(0, 2**BITS, BITS))
    for dimension, count in itertools.product((0, 1, 9, 17), (1, 2, 100, 256)):
        bits = max(count - 1, 0).bit_length()
        wanted = []
        for plain in sobol_points(dimension, count).tolist():
            word = 0
            for i in range(bits):  # row i, one bit after another
                met = plain >> (BITS - 1 - i) & 1
                for j in range(i):
                    met ^= (rows[i] >> (BITS - 1 - j) & 1) & (plain >> (BITS - 1 - j) & 1)
                word |= met << (BITS - 1 - i)
            wanted.append(word)
        assert sobol_points(dimension, count, rows).tolist() == wanted


@pytest.mark.parametrize("count", [1, 2, 100, 256])
def test_each_stratum_holds_one_uniform_whatever_the_count(count: int) -> None:
    found = stratified(11, 3, count, 4)
    assert sorted((found * count).astype(int).tolist()) == list(range(count))
