"""The study of VM lifetimes: the servers it carries, its splits and its targets."""

import numpy as np
import pytest

from tests.research.accuracy import lifetimes
from tests.research.fits.lifetimes import Weibull


def test_the_published_counts_of_servers_and_deaths_are_carried():
    # CM-DARE, section on revocations: 396 servers, of which 206 were revoked within 24 hours.
    launched = {gpu: 0.0 for gpu in lifetimes.GPUS}
    revoked = dict(launched)
    for cell in lifetimes.cells():
        launched[cell.gpu] += cell.ends.weight.sum()
        revoked[cell.gpu] += cell.ends.weight[np.isfinite(cell.ends.before_h)].sum()
    assert launched == {"K80": 156, "P100": 120, "V100": 120}
    assert revoked == {"K80": 72, "P100": 65, "V100": 69}


def test_a_region_is_left_out_of_every_gpu():
    fitted = []

    def fit(ends):
        fitted.append(float(ends.weight.sum()))
        return Weibull(24.0, 1.0)

    shares = lifetimes.unseen_shares(fit)
    # Cells weigh one each; twelve less those of the region.
    for share, weight in zip(shares, fitted, strict=True):
        same = sum(s.region == share.region for s in shares)
        assert weight == pytest.approx(12 - same)


def test_the_error_is_that_of_the_shares_dead():
    (k80,) = [
        s
        for s in lifetimes.unseen_shares(lambda ends: Weibull(1e9, 1.0))
        if (s.gpu, s.region) == ("K80", "us-east1")
    ]
    # All 14 of 30 died in the first hour, and the law lets nobody die.
    np.testing.assert_allclose(k80.error, 14 / 30, atol=1e-6)


@pytest.mark.parametrize("study", lifetimes.STUDIES, ids=lambda s: s.key)
def test_targets_are_met(study):
    assert study.target.met_by(study.run(None))
