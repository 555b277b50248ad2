"""Shares of time by size of gang, on a pool and a class made up for it."""

from dataclasses import replace

import numpy as np
import pytest

from tests.catalogs.facts_data import reference
from tests.research.accuracy import gang_sizes
from tests.research.fits.spot_fit import Trace, gang_doublings
from tests.shipped import snapshot

LAW = next(law for law in snapshot().spot_classes if law.spot_class == "h100")


def trace(name: str, nodes: list[int]) -> Trace:
    return Trace(name, "campaign", name, 16, 1.0, np.array(nodes * 10))


def test_a_list_has_the_gang_while_any_of_its_zones_has_it() -> None:
    zones = [trace("a", [2, 2, 0, 0]), trace("b", [0, 2, 2, 1]), trace("c", [2, 2, 2, 2])]
    assert gang_sizes.recorded_share(zones, 2) == pytest.approx((0.5 + 0.5 + 1.0) / 3)
    assert gang_sizes.recorded_in_any(zones, 2, 2) == pytest.approx((0.75 + 1.0 + 1.0) / 3)
    assert gang_sizes.recorded_in_any(zones, 3, 3) == 0.0


def test_without_spread_a_class_is_its_median_zone() -> None:
    law = replace(LAW, availability=0.8, zone_sd=0.0)
    assert gang_sizes.predicted_in_any(law, 1, 1) == pytest.approx(0.8)
    assert gang_sizes.predicted_in_any(law, 2, 1) == pytest.approx(1.0 - 0.2**2)
    odds = 4.0 * np.exp(-law.availability_slope * gang_doublings(9))
    assert gang_sizes.predicted_in_any(law, 1, 9) == pytest.approx(odds / (1.0 + odds))


def test_large_gangs_that_no_fit_saw_are_predicted_within_three_points_on_average() -> None:
    folder = reference()
    for campaign, name in gang_sizes.CAMPAIGNS.items():
        traces = gang_sizes.read_traces(folder, campaign)
        law = next(law for law in snapshot().spot_classes if law.spot_class == name)
        for machines in (12, 16):
            told = gang_sizes.predicted_unseen(traces, law, machines)
            recorded = gang_sizes.recorded_share(traces, machines)
            assert told == pytest.approx(recorded, abs=0.03)
