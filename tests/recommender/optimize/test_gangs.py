"""The law of a gang in the estimates is the one that the catalog's classes were fitted with."""

import math
from dataclasses import replace

import numpy as np
import pytest

from recommender.optimize.evaluate import gang_of
from tests.recommender.optimize import palette
from tests.research.fits.spot_fit import ZoneLaw


@pytest.mark.parametrize("machines", [1, 2, 5, 16])
def test_gangs_run_and_are_there_as_in_the_fitted_law(machines):
    question = palette.space(3, entries=6, most=16)
    (site,) = question.sites
    e = site.entries
    entry = int(np.flatnonzero(e.spot)[0])
    counts = np.zeros((1, len(e)), dtype=np.int64)
    counts[0, entry] = machines
    law = ZoneLaw(
        run_mean_h=float(e.run_mean_s[entry]) / 3600,
        run_sigma=float(e.run_sigma[entry]),
        outage_sigma=float(e.outage_sigma[entry]),
        location=float(e.availability_logit[entry]),
        slope=float(e.availability_slope[entry]),
        zone_sd=float(e.zone_sd[entry]),
        co_interruption=float(e.co_interruption[entry]),
    )
    gang = gang_of(question, e, counts)
    faults = question.job.fault_rate_per_hour * machines
    assert gang.availability_logit[0] == pytest.approx(law.level(machines))
    assert 3600 / gang.run_mean_s[0] == pytest.approx(1 / law.run_mean(machines) + faults)


def mixed_gang():
    """Two spot pools, 2 and 3 machines, and 4 on demand, whose facts all differ."""
    question = palette.space(3, entries=6, most=16)
    e = question.sites[0].entries.take(np.array([0, 1, 2]))

    def three(*values: float) -> np.ndarray:
        return np.array(values)

    e = replace(
        e,
        spot=np.array([True, True, False]),
        usd_per_hour=three(1.0, 4.0, 100.0),
        run_mean_s=three(7200.0, 3600.0, 60.0),
        run_sigma=three(1.1, 1.9, 9.0),
        outage_sigma=three(1.2, 1.4, 9.0),
        availability_logit=three(1.0, 0.2, -9.0),
        availability_slope=three(0.3, 0.0, 9.0),
        zone_sd=three(1.0, 0.5, 9.0),
        co_interruption=three(0.9, 0.8, 0.0),
        zone_count=three(3.0, 2.0, 1.0),
        correlation=three(0.1, 0.3, 9.0),
        price_sigma=three(0.5, 0.1, 9.0),
        minimum_s=three(60.0, 90.0, 9e9),
        free_s=three(3600.0, 60.0, 0.0),
        notice_s=three(120.0, 30.0, 0.0),
    )
    return question, gang_of(question, e, np.array([[2, 3, 4]]))


def test_pools_add_their_interruptions_and_all_must_be_there():
    question, gang = mixed_gang()
    faults = 9 * question.job.fault_rate_per_hour
    per_hour = (1 + 1 * 0.1) / 2.0 + (1 + 2 * 0.2) / 1.0 + faults
    assert 3600 / gang.run_mean_s[0] == pytest.approx(per_hour)
    up = [1 / (1 + math.exp(-(1.0 - 0.3 * math.log2(1 + 1 / 8)))), 1 / (1 + math.exp(-0.2))]
    assert 1 / (1 + math.exp(-gang.availability_logit[0])) == pytest.approx(up[0] * up[1])


def test_a_mix_has_the_shape_of_its_worst_pool_and_the_terms_of_the_least_kind_one():
    _, gang = mixed_gang()
    assert (gang.run_sigma[0], gang.outage_sigma[0]) == (1.9, 1.4)  # of the most interrupted
    assert (gang.zone_sd[0], gang.correlation[0], gang.zone_count[0]) == (1.0, 0.3, 2.0)
    assert (gang.notice_s[0], gang.free_s[0], gang.minimum_s[0]) == (30.0, 60.0, 90.0)
    # Spreads of prices weigh the bill of each pool: 2 × 1 and 3 × 4 USD/h.
    assert gang.spot_price_sigma[0] == pytest.approx((2 * 0.5 + 12 * 0.1) / 14)
    assert gang.has_spot[0]
