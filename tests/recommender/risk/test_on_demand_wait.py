"""The wait for on-demand machines: its law, what moves it, and what it shares with spot."""

from statistics import NormalDist

import numpy as np
import pytest

from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.normal_law import normal_cdf
from recommender.risk.on_demand_wait import OnDemandLaw, quantile_s, supply_of, wait_s
from recommender.risk.random_numbers import random_numbers
from tests.recommender.risk.cases import RESCUE, SPOT, path_inputs

HOUR = 3600.0
MANY = (np.arange(100_000) + 0.5) / 100_000


def waits(at_once: float, median_h: float) -> np.ndarray:
    return wait_s(np.array(at_once), np.array(median_h * HOUR), MANY) / HOUR


def test_the_wait_has_an_atom_at_zero_its_median_behind_it_and_a_heavy_tail() -> None:
    found = waits(0.7, 2.0)
    assert (found == 0.0).mean() == pytest.approx(0.7, abs=1e-4)
    assert np.median(found[found > 0.0]) == pytest.approx(2.0, rel=1e-3)
    # Lomax: (1 + k·t/m)^-1.1. A tenth of those that wait take 8.1 medians, a hundredth 74.
    assert np.quantile(found[found > 0.0], [0.9, 0.99]) == pytest.approx([16.2, 147.6], rel=0.01)


def test_the_quantile_is_that_of_the_waits() -> None:
    share = 0.93
    found = quantile_s(np.array([0.6]), np.array([HOUR]), share)[0] / HOUR
    assert found == pytest.approx(float(np.quantile(waits(0.6, 1.0), share)), rel=1e-3)
    assert quantile_s(np.array([0.95]), np.array([HOUR]), share)[0] == 0.0


def test_on_every_path_a_likelier_capacity_is_never_waited_for_longer() -> None:
    rising = [waits(p, 1.0) for p in (0.0, 0.05, 0.3, 0.7, 0.99, 1.0)]
    for less, more in zip(rising, rising[1:], strict=False):
        assert (more <= less).all()
    assert not rising[-1].any()


def test_larger_clusters_are_there_less_often_and_waited_for_longer() -> None:
    one = OnDemandLaw(np.array(0.7), np.array(HOUR))
    sizes = np.array([1, 2, 5, 16])
    found = one.of_gang(sizes, 1.4)
    assert found.at_once[0] == pytest.approx(0.7)
    assert (np.diff(found.at_once) < 0.0).all()
    assert (np.diff(found.wait_s) > 0.0).all()
    # Five machines lose 1.4·log2(1.5) logits.
    odds = (1.0 - found.at_once[2]) / found.at_once[2]
    assert np.log(odds / (0.3 / 0.7)) == pytest.approx(1.4 * np.log2(1.5))


def listed(at_once: float, median_h: float, regions: int) -> OnDemandLaw:
    one = OnDemandLaw(np.array([at_once]), np.array([median_h * HOUR]))
    return one.of_list(np.array([float(regions)]))


@pytest.mark.parametrize(("at_once", "median_h"), [(0.9, 1.0), (0.7, 1.0), (0.22, 8.4)])
@pytest.mark.parametrize("regions", [2, 3, 4])
def test_a_list_waits_the_least_of_the_waits_of_its_regions(
    at_once: float, median_h: float, regions: int
) -> None:
    """Against regions drawn one by one, their scores correlated by 0.4 as stated."""
    draw = np.random.default_rng(5)
    common, own = draw.standard_normal((200_000, 1)), draw.standard_normal((200_000, regions))
    supply = normal_cdf(np.sqrt(0.4) * common + np.sqrt(0.6) * own)
    least = wait_s(np.array(at_once), np.array(median_h * HOUR), supply).min(axis=1)
    law = listed(at_once, median_h, regions)
    assert law.at_once[0] == pytest.approx((least == 0.0).mean(), abs=0.003)
    assert law.wait_s[0] == pytest.approx(np.median(least[least > 0.0]), rel=0.06)
    # Of hours it promises no less: the tail is that of one region, and so a little too long.
    for hours in (4.0, 12.0, 48.0):
        reported = (waits(law.at_once[0], law.wait_s[0] / HOUR) > hours).mean()
        assert -0.003 < reported - (least > hours * HOUR).mean() < 0.03


def test_no_list_is_waited_for_longer_than_a_shorter_one() -> None:
    for at_once in (0.05, 0.3, 0.7, 0.97):
        laws = [listed(at_once, 2.0, regions) for regions in (1, 2, 3, 4)]
        found = [waits(law.at_once[0], law.wait_s[0] / HOUR) for law in laws]
        assert (found[0] == waits(at_once, 2.0)).all()
        for shorter, longer in zip(found, found[1:], strict=False):
            assert (longer <= shorter).all()
            assert longer.sum() < shorter.sum()


def test_what_is_always_there_needs_no_list() -> None:
    law = listed(1.0, 2.0, 4)
    assert (law.at_once[0], law.wait_s[0]) == (1.0, 2.0 * HOUR)


def test_supply_is_uniform_and_leans_on_the_zone_as_stated() -> None:
    sample = random_numbers(4096)
    ranks = np.sort(sample.supply)
    assert np.abs(ranks - (np.arange(4096) + 0.5) / 4096).max() < 0.01
    normal = NormalDist()
    scores = np.array([normal.inv_cdf(u) for u in sample.supply.tolist()])
    assert np.corrcoef(scores, sample.zone_at(0))[0, 1] == pytest.approx(0.5, abs=0.02)


def test_supply_is_what_two_normal_scores_make_of_it() -> None:
    normal = NormalDist()
    for zone, uniform in [(-2.0, 0.9), (0.0, 0.5), (1.3, 0.02), (0.4, 0.999)]:
        score = 0.5 * zone - 0.75**0.5 * normal.inv_cdf(uniform)
        found = supply_of(np.array([zone]), np.array([uniform]))[0]
        assert found == pytest.approx(normal.cdf(score), abs=1e-6)


def test_where_spot_is_lost_on_demand_is_short_too() -> None:
    """A fallback is needed where the zone is bad, so more of its requests wait than of all."""
    row = SPOT | RESCUE | {"fallback_at_once": 0.7, "zone_sd": 2.0, "availability_logit": 2.0}
    h = simulate_paths(path_inputs(row), 14 * HOUR, 4096)
    needed = h.fallback_s[0] > 0.0
    assert 0.1 < needed.mean() < 0.6
    late = random_numbers(4096).supply < 0.3
    assert late.mean() == pytest.approx(0.3, abs=0.01)
    assert late[needed].mean() > 0.36


@pytest.mark.parametrize("deadline_h", [11.0, 14.0, 20.0])
def test_a_chance_never_falls_when_on_demand_is_likelier_there(deadline_h: float) -> None:
    """Of a spot plan with a fallback, and of the same machines rented on demand."""
    law = {"zone_sd": 2.0, "availability_logit": 1.0}
    rented = {
        "spot_usd_per_hour": 0.0,
        "base_usd_per_hour": 30.0,
        "run_mean_s": 1e7,
        "runs_from_start": 1.0,
    }
    sure, kept = path_inputs(SPOT | RESCUE | law), []
    for at_once in (0.0, 0.05, 0.3, 0.7, 0.9, 1.0):
        median = 3.0 * HOUR
        net = SPOT | RESCUE | law | {"fallback_at_once": at_once, "fallback_wait_s": median}
        own = rented | {"at_once": at_once, "wait_s": median}
        h = simulate_paths(path_inputs(net, own), deadline_h * HOUR, 2048)
        kept.append((h.time_s <= deadline_h * HOUR + 1.0).mean(axis=1))
    chances = np.array(kept)
    assert (np.diff(chances, axis=0) >= 0.0).all()
    assert (chances[-1] - chances[0] > 0.1).all()
    always = simulate_paths(sure, deadline_h * HOUR, 2048)
    assert chances[-1, 0] >= (always.time_s <= deadline_h * HOUR + 1.0).mean()
