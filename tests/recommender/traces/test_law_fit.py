"""Laws by maximum likelihood: textbook data, hand calculation, planted parameters."""

import math

import numpy as np
import pytest

from recommender.traces.law_fit import ObservedIntervals, fit_laws, most_likely, pool_intervals

# Weeks of remission under 6-MP (Freireich et al., Blood 21, 1963; Gehan, Biometrika 52, 1965).
ENDED = [6, 6, 6, 7, 10, 13, 16, 22, 23]
GOING_ON = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
REMISSION = ObservedIntervals(
    np.array([*ENDED, *GOING_ON], dtype=float), np.array([True] * 9 + [False] * 12)
)


def by_family(intervals: ObservedIntervals) -> dict[str, object]:
    return {law.family: law for law in fit_laws("runs", intervals)}


def density_and_survival(family: str, x: float, mu: float, sigma: float) -> tuple[float, float]:
    """Written out from the laws' usual formulas, apart from the code under test."""
    if family == "lognormal":
        z = (math.log(x) - mu) / sigma
        f = math.exp(-z * z / 2) / (x * sigma * math.sqrt(2 * math.pi))
        return f, 0.5 * math.erfc(z / math.sqrt(2))
    k, scale = 1 / sigma, math.exp(mu)
    survival = math.exp(-((x / scale) ** k))
    return k / scale * (x / scale) ** (k - 1) * survival, survival


def log_likelihood(family: str, intervals: ObservedIntervals, mu: float, sigma: float) -> float:
    total = 0.0
    for x, over in zip(intervals.hours, intervals.over, strict=True):
        f, s = density_and_survival(family, float(x), mu, sigma)
        total += math.log(f if over else s)
    return total


def test_exponential_is_time_per_end() -> None:
    law = by_family(REMISSION)["exponential"]
    assert law.mean_h.value == pytest.approx(359 / 9)  # as in every textbook
    assert law.mean_h.high / law.mean_h.value == pytest.approx(math.exp(1.959964 / 3))
    assert law.median_h.value == pytest.approx(359 / 9 * math.log(2))
    assert (law.seen, law.unfinished) == (9, 12)


def test_weibull_of_the_remission_times() -> None:
    """Shape 1.354 and scale 33.765, as R's survreg and SAS's lifereg print them."""
    best = most_likely("weibull", REMISSION)
    assert math.exp(-best.log_sigma) == pytest.approx(1.354, abs=5e-4)
    assert math.exp(best.mu) == pytest.approx(33.765, abs=5e-3)


@pytest.mark.parametrize("family", ["lognormal", "weibull"])
def test_no_other_parameters_are_more_likely(family: str) -> None:
    best = most_likely(family, REMISSION)
    top = log_likelihood(family, REMISSION, best.mu, math.exp(best.log_sigma))
    assert best.log_likelihood == pytest.approx(top, abs=1e-9)
    for d_mu in (-1e-3, 0.0, 1e-3):
        for d_log in (-1e-3, 0.0, 1e-3):
            sigma = math.exp(best.log_sigma + d_log)
            assert log_likelihood(family, REMISSION, best.mu + d_mu, sigma) <= top + 1e-12


@pytest.mark.parametrize("family", ["lognormal", "weibull"])
def test_limits_come_from_the_bend_of_the_likelihood(family: str) -> None:
    best, h = most_likely(family, REMISSION), 1e-3

    def at(i: float, j: float) -> float:
        sigma = math.exp(best.log_sigma + j * h)
        return log_likelihood(family, REMISSION, best.mu + i * h, sigma)

    bend = np.array(
        [
            [at(1, 0) - 2 * at(0, 0) + at(-1, 0), 0.0],
            [0.0, at(0, 1) - 2 * at(0, 0) + at(0, -1)],
        ]
    )
    bend[0, 1] = bend[1, 0] = (at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / 4
    np.testing.assert_allclose(best.covariance, np.linalg.inv(-bend / h**2), rtol=1e-4)


def test_complete_lognormal_intervals_have_closed_forms() -> None:
    hours = np.array([0.5, 1.0, 2.0, 4.0, 8.0, 3.0])
    law = by_family(ObservedIntervals(hours, np.ones(6, dtype=bool)))["lognormal"]
    logs = np.log(hours)
    assert law.median_h.value == pytest.approx(math.exp(logs.mean()))
    assert law.shape.value == pytest.approx(logs.std())
    width = 1.959964 / math.sqrt(2 * 6)
    assert law.shape.low == pytest.approx(logs.std() * math.exp(-width), rel=1e-6)
    assert law.mean_h.value == pytest.approx(math.exp(logs.mean() + logs.var() / 2))


@pytest.mark.parametrize(
    ("family", "mu", "sigma"), [("lognormal", 0.3, 1.4), ("weibull", 0.5, 1.6)]
)
def test_planted_parameters_are_found_behind_censoring(
    family: str, mu: float, sigma: float
) -> None:
    rng = np.random.default_rng(5)
    z = rng.normal(size=4000) if family == "lognormal" else np.log(rng.exponential(size=4000))
    hours = np.exp(mu + sigma * z)
    limit = rng.uniform(0.2, 8.0, 4000)
    intervals = ObservedIntervals(np.minimum(hours, limit), hours <= limit)
    assert 0.15 < 1 - intervals.over.mean() < 0.5
    best = most_likely(family, intervals)
    assert best.mu == pytest.approx(mu, abs=0.1)
    assert math.exp(best.log_sigma) == pytest.approx(sigma, rel=0.05)
    assert fit_laws("runs", intervals)[0].family == family


def test_limits_hold_the_truth_nineteen_times_in_twenty() -> None:
    rng, held = np.random.default_rng(11), 0
    for _ in range(200):
        hours = rng.lognormal(0.0, 1.2, 60)
        cut = np.minimum(hours, 6.0)
        shape = by_family(ObservedIntervals(cut, hours <= 6.0))["lognormal"].shape
        held += shape.low <= 1.2 <= shape.high
    assert 180 <= held <= 199


def test_aic_chooses_the_law_that_generated_the_intervals() -> None:
    rng = np.random.default_rng(3)
    hours = rng.exponential(2.0, 800)
    found = fit_laws("runs", ObservedIntervals(hours, np.ones(800, dtype=bool)))
    assert {law.family for law in found[:2]} == {"exponential", "weibull"}
    assert [law.best for law in found] == [True, False, False]
    assert [law.aic for law in found] == sorted(law.aic for law in found)


def test_too_little_gives_no_shape() -> None:
    two = ObservedIntervals(np.array([1.0, 2.0]), np.array([True, True]))
    assert [law.family for law in fit_laws("runs", two)] == ["exponential"]
    same = ObservedIntervals(np.full(9, 0.5), np.ones(9, dtype=bool))
    assert [law.family for law in fit_laws("runs", same)] == ["exponential"]
    assert fit_laws("runs", ObservedIntervals(np.array([3.0]), np.array([False]))) == ()


def test_units_change_nothing_but_the_scale() -> None:
    hours = by_family(REMISSION)["weibull"]
    minutes = by_family(ObservedIntervals(REMISSION.hours * 60, REMISSION.over))["weibull"]
    assert minutes.shape.value == pytest.approx(hours.shape.value)
    assert minutes.median_h.value == pytest.approx(60 * hours.median_h.value)


def test_series_are_pooled_interval_by_interval() -> None:
    both = pool_intervals([REMISSION, REMISSION])
    assert len(both) == 42
    assert by_family(both)["weibull"].shape.value == pytest.approx(1.354, abs=5e-4)
