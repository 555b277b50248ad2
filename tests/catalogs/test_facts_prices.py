"""The drift of prices: spreads come back from invented histories and grow with age."""

import numpy as np
import pytest

from tests.catalogs.facts_data import book, reference
from tests.research.snapshot import facts_prices as facts


def steps(*points: tuple[float, float]) -> facts.Steps:
    days, usd = zip(*points, strict=True)
    return facts.Steps(np.array(days), np.array(usd))


def test_changes_read_the_price_of_the_day() -> None:
    price = steps((0.0, 1.0), (10.0, 2.0), (20.0, 1.0))
    changes = price.changes(np.array([0.0, 5.0, 12.0, 40.0]), 7.0, 45.0)
    assert changes == pytest.approx([0.0, np.log(2), 0.0])  # 40 + 7 lies beyond the end


def test_days_before_the_first_price_are_left_out() -> None:
    assert steps((5.0, 1.0)).changes(np.array([0.0, 6.0]), 1.0, 9.0).tolist() == [0.0]


def test_spread_of_normal_changes() -> None:
    changes = 0.3 + 0.2 * np.random.default_rng(1).standard_normal(50_000)
    assert facts.spread(changes) == pytest.approx(0.2, rel=0.02)


def test_rare_steps_count() -> None:
    changes = np.zeros(1000)
    changes[:20] = 0.5
    assert facts.spread(changes) == pytest.approx(0.07, abs=0.001)


def test_drift_never_falls_with_age() -> None:
    price = steps((0.0, 1.0), (10.0, 2.0), (20.0, 1.0))
    sigmas = facts.drift([price], np.arange(0.0, 30.0), 30.0, [1.0, 5.0, 10.0, 20.0])
    assert sigmas == sorted(sigmas)


def test_spikes_that_return_are_dropped() -> None:
    spiky = steps((0.0, 1.0), (10.0, 1.6), (11.0, 1.02), (30.0, 1.5))
    assert facts.without_spikes(spiky).usd.tolist() == [1.0, 1.02, 1.5]


def test_interpolation_is_a_power_between_ages_and_a_root_beyond() -> None:
    known = {1.0: 0.1, 100.0: 0.4}
    assert facts.interpolated(known, 10.0) == pytest.approx(0.2)
    assert facts.interpolated(known, 400.0) == pytest.approx(0.8)


@pytest.mark.reference
def test_table_is_complete_and_grows_with_age() -> None:
    rows = facts.tables(reference(), book())["price_drift"]
    for provider in ("aws", "gcp", "azure"):
        for market in ("spot", "on_demand"):
            mine = [r for r in rows if (r.provider, r.market) == (provider, market)]
            assert [r.age_days for r in mine] == list(facts.AGES)
            assert [r.sigma for r in mine] == sorted(r.sigma for r in mine)
            assert all(0 < r.sigma < (1.0 if market == "spot" else 0.03) for r in mine)


@pytest.mark.reference
def test_list_prices_drift_as_all_their_steps_since_2022_did() -> None:
    """Root mean square of half-year changes, counted week by week apart from this code: 0.018."""
    rows = facts.gcp_rows(reference(), book())
    sigma = next(r.sigma for r in rows if (r.market, r.age_days) == ("on_demand", 180.0))
    assert sigma == pytest.approx(0.018, abs=0.001)


@pytest.mark.reference
def test_gcp_spread_covers_what_113_days_did() -> None:
    # Review A7 (2026-08): since 2024, -35 % to +40 % between the 5 % and 95 % quantiles.
    rows = facts.gcp_rows(reference(), book())
    sigma = next(r.sigma for r in rows if (r.market, r.age_days) == ("spot", 113.0))
    assert 0.19 <= sigma <= 0.30
