"""Common random numbers: the same bytes everywhere, the right laws, the same for all plans."""

import hashlib
from statistics import NormalDist

import numpy as np
import pytest

from recommender.risk.normal_law import normal_quantile
from recommender.risk.random_numbers import (
    MAX_LISTED_ZONES,
    PATH_COUNT,
    SEED,
    STRETCH,
    random_numbers,
    some_paths,
    stratified,
    uniforms,
)
from recommender.risk.sobol import DIMENSIONS


def digest(values: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:16]


def test_uniforms_are_the_same_bytes_on_every_machine() -> None:
    assert digest(uniforms(7, 1, 1000)) == "77552f2c48b1f2c5"
    assert uniforms(7, 1, 3).tolist() == [
        0.9782637458968617,
        0.7369707559032206,
        0.8141413347465472,
    ]


def test_stratified_uniforms_are_the_same_bytes_on_every_machine() -> None:
    assert digest(stratified(7, 5, 1000, 1)) == "c788d04e3d2a6616"


def test_uniforms_lie_strictly_inside_the_unit_interval() -> None:
    values = uniforms(3, 2, 100_000)
    assert 0.0 < values.min() < 1e-4
    assert 1.0 - 1e-4 < values.max() < 1.0


def test_uniforms_fill_ten_bins_evenly() -> None:
    counts, _ = np.histogram(uniforms(11, 4, 50_000), bins=10, range=(0, 1))
    chi_square = ((counts - 5_000.0) ** 2 / 5_000.0).sum()
    assert chi_square < 27.9  # 0.999 quantile at nine degrees of freedom


@pytest.mark.parametrize(("seed", "stream"), [(8, 1), (7, 2)])
def test_another_seed_or_stream_gives_other_numbers(seed: int, stream: int) -> None:
    ours, other = uniforms(7, 1, 4000), uniforms(seed, stream, 4000)
    assert abs(np.corrcoef(ours, other)[0, 1]) < 0.06


def test_more_uniforms_begin_with_the_same() -> None:
    assert np.array_equal(uniforms(7, 1, 10), uniforms(7, 1, 1000)[:10])


@pytest.mark.parametrize("count", [64, 256, 1000, 1024])
@pytest.mark.parametrize("dimension", [0, 5, DIMENSIONS - 1])
def test_every_stratum_holds_one_point(count: int, dimension: int) -> None:
    places = np.sort((stratified(7, 6, count, dimension) * count).astype(int))
    assert np.array_equal(places, np.arange(count))


def test_each_point_of_the_strata_is_uniform_over_the_seeds() -> None:
    first = np.array([stratified(seed, 6, 64, 3)[:4] for seed in range(2000)])
    counts = np.stack([np.histogram(c, bins=8, range=(0, 1))[0] for c in first.T])
    assert (((counts - 250.0) ** 2 / 250.0).sum(axis=1) < 24.3).all()  # 0.999 quantile, 7 degrees


def test_strata_of_different_streams_are_shuffled_independently() -> None:
    columns = np.stack([stratified(7, 5 + d, 1024, d) for d in range(DIMENSIONS)])
    off_diagonal = np.corrcoef(columns) - np.eye(len(columns))
    assert np.abs(off_diagonal).max() < 0.12


def test_normal_is_the_inverse_of_the_standard_normal_distribution() -> None:
    exact = NormalDist().inv_cdf
    tail = np.logspace(-15, -2, 200)
    at = np.concatenate([tail, np.linspace(0.001, 0.999, 999), 1.0 - tail[tail > 1e-12]])
    expected = np.array([exact(float(u)) for u in at])
    assert normal_quantile(at) == pytest.approx(expected, rel=2e-9, abs=2e-9)


def test_normal_never_falls_where_its_pieces_meet() -> None:
    for knot in (0.02425, 0.97575):
        around = knot + np.linspace(-1e-6, 1e-6, 2001)
        assert (np.diff(normal_quantile(around)) > 0).all()


def test_normal_variates_have_the_right_moments() -> None:
    drawn = [
        random_numbers(1024, SEED).factors("run", 1.0, first) for first in range(0, 32, STRETCH)
    ]
    sample = np.log(np.concatenate(drawn)) + 0.5
    assert abs(sample.mean()) < 4 / np.sqrt(sample.size)
    assert sample.var() == pytest.approx(1.0, abs=4 * np.sqrt(2 / sample.size))


@pytest.mark.parametrize("name", ["speed", "price"])
def test_stratification_makes_quantiles_nearly_exact(name: str) -> None:
    sample = getattr(random_numbers(1024, SEED), name)
    for share in (0.05, 0.5, 0.95):
        near = (NormalDist().inv_cdf(share - 1 / 1024), NormalDist().inv_cdf(share + 1 / 1024))
        assert near[0] <= np.quantile(sample, share) <= near[1]


def test_shapes_are_those_of_paths_cycles_and_sites() -> None:
    sample = random_numbers(PATH_COUNT)
    assert sample.factors("run", 1.0, STRETCH).shape == (STRETCH, PATH_COUNT)
    assert sample.uniforms("moved", 0).shape == (STRETCH, PATH_COUNT)
    assert sample.zone_at(MAX_LISTED_ZONES - 1).shape == (PATH_COUNT,)
    assert sample.start.shape == (PATH_COUNT,)


@pytest.mark.parametrize("sigma", [0.0, 0.5, 1.48])
def test_lognormal_factors_have_mean_one(sigma: float) -> None:
    sample = random_numbers(4096, 7)
    values = np.concatenate([sample.factors("run", sigma, n) for n in range(0, 64, STRETCH)])
    error = np.sqrt((np.exp(sigma**2) - 1.0) / values.size)
    assert float(values.mean(dtype=float)) == pytest.approx(1.0, abs=5 * error + 1e-6)
    assert (values > 0).all()


def test_some_paths_are_those_of_the_whole_sample() -> None:
    rows = np.array([3, 0, 40])
    whole = random_numbers(64, 7)
    found = some_paths(whole, rows)
    assert found.paths == 3
    for name in ("start", "residue", "speed", "price", "supply"):
        assert np.array_equal(getattr(found, name), getattr(whole, name)[rows])
    assert np.array_equal(found.zone_at(2), whole.zone_at(2)[rows])
    for first in (0, STRETCH):
        for which in ("moved", "notice", "replaced"):
            expected = whole.uniforms(which, first)[:, rows]
            assert np.array_equal(found.uniforms(which, first), expected)
        expected = whole.factors("run", 1.3, first)[:, rows]
        assert np.array_equal(found.factors("run", 1.3, first), expected)
