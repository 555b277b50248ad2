"""The law of a gang in the estimates is the one that the catalog's classes were fitted with."""

import numpy as np
import pytest

from catalogs.spot_fit import ZoneLaw
from recommender.optimize.evaluate import gang_of
from tests.recommender.optimize import palette


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
