"""Gangs predicted from the series of one, two or four machines of a left-out zone."""

import numpy as np
import pytest

from recommender.errors import UsageError
from recommender.market.user_spot_laws import SLOPE_PER_SHORT_RUNS
from recommender.risk.monte_carlo import simulate_paths
from tests.catalogs.facts_data import reference
from tests.research.accuracy import spot_gangs, spot_zones
from tests.research.accuracy.spot_splits import left_out
from tests.research.accuracy.spot_zones import gang_inputs
from tests.research.fits.spot_fit import HOUR, Trace, gang_doublings
from tests.research.snapshot.facts_spot import H100

# Share of jobs done in 2.5, 3.5, 6 and 12 h: 2 h of work, a changeover of 6 minutes, asked for at
# every hour of thirteen recorded zones that weigh the same. Replayed with `spot_jobs.replayed` on
# andylizf/skynomad-artifact 62b9aaa, data/h100_16_runs, 3-18 October 2025, read 2026-11-29.
TIGHT_H = np.array([2.5, 3.5, 6.0, 12.0])
IN_TIME = {
    1: (0.676, 0.750, 0.800, 0.838),
    8: (0.439, 0.533, 0.640, 0.736),
    16: (0.295, 0.377, 0.454, 0.567),
}


def pool(days: int = 30) -> Trace:
    """Hours of a day with 3, 2, 1 and 0 machines: 6 each; one machine is there 0.75 of the time."""
    nodes = np.tile(np.repeat([3, 2, 1, 0], 6), days)
    return Trace("pool", "campaign", "zone-a", 3, 1.0, nodes)


def test_a_user_sees_as_many_machines_as_were_requested() -> None:
    two = spot_gangs.recorded(pool(1), 2)
    assert two.capacity == 2
    assert two.machines.tolist() == [2, 1, 0]
    assert two.t_s.tolist() == [0.0, 12 * 3600.0, 18 * 3600.0]
    assert two.end_s == 24 * 3600.0


def test_two_machines_determine_level_and_slope_by_hand() -> None:
    """Shares 0.75 and 0.5: logits 1.10 and 0, a straight line in log2(1 + (n-1)/8)."""
    law = spot_gangs.fitted_law(pool(), 2)
    assert law is not None
    assert law.availability_slope is not None
    slope = np.log(3.0) / np.log2(9 / 8)
    assert law.availability_slope.value == pytest.approx(slope, rel=1e-3)
    predicted = spot_gangs.gang_share(law, law.availability_slope.value, 2)
    assert predicted == pytest.approx(0.5, abs=1e-3)
    logit = np.log(3.0) - slope * np.log2(10 / 8)
    predicted = spot_gangs.gang_share(law, law.availability_slope.value, 3)
    assert predicted == pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-3)


def test_the_fall_per_share_of_short_runs_is_found() -> None:
    doublings = np.array([gang_doublings(n) for n in (2, 4, 8, 16)])

    def zone(campaign: str, level: float, one: float, short: float) -> spot_gangs.WatchedZone:
        gangs = 1 / (1 + np.exp(-(np.log(one / (1 - one)) - (level - 1.7 * short) * doublings)))
        return spot_gangs.WatchedZone(campaign, f"{one}", one, short, doublings, gangs)

    zones = [zone("a", 2.0, 0.9, 0.1), zone("a", 2.0, 0.6, 0.7), zone("a", 2.0, 0.3, 0.5)]
    zones += [zone("b", 1.0, 0.8, 0.2), zone("b", 1.0, 0.5, 0.4)]
    assert spot_gangs.fit_per_share(zones) == 1.7


@pytest.mark.parametrize("machines", IN_TIME)
def test_tight_deadlines_are_kept_as_often_as_in_all_recorded_zones(machines: int) -> None:
    """The law of eight of the zones was 7 points too good for eight machines, 10 for sixteen."""
    hours = simulate_paths(gang_inputs(H100, machines, 2.0, 0.1), None, 1024).time_s[0] / HOUR
    told = (hours[:, None] <= TIGHT_H).mean(axis=0)
    np.testing.assert_allclose(told, IN_TIME[machines], atol=0.04)


def test_without_the_tables_it_says_what_is_missing() -> None:
    for study in spot_gangs.STUDIES:
        assert study.needs_reference
        with pytest.raises(UsageError, match="needs the reference tables"):
            study.run(None)


@pytest.mark.slow
@pytest.mark.reference
def test_the_constant_of_own_laws_is_that_of_all_zones() -> None:
    zones = spot_gangs.watched_zones(left_out(reference(), "gangs"))
    assert len(zones) == 11  # the twelfth was always up: no law
    assert spot_gangs.fit_per_share(zones) == SLOPE_PER_SHORT_RUNS
    for campaign in {zone.campaign for zone in zones}:  # no campaign's zones make it
        fitted = spot_gangs.fit_per_share([z for z in zones if z.campaign != campaign])
        assert fitted == pytest.approx(SLOPE_PER_SHORT_RUNS, abs=0.7)


@pytest.mark.slow
@pytest.mark.reference
def test_what_is_left_out_is_not_fitted_on(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[str]] = []
    fit = spot_gangs.fit_per_share

    def noted(zones: list[spot_gangs.WatchedZone]) -> float:
        seen.append({zone.name for zone in zones})
        return fit(zones)

    monkeypatch.setattr(spot_gangs, "fit_per_share", noted)
    spot_gangs.watched_forecasts(1, reference())
    names = set.union(*seen)
    assert sorted(min(names - each) for each in seen) == sorted(names)
    assert all(len(each) == len(names) - 1 for each in seen)


@pytest.mark.slow
@pytest.mark.reference
def test_a_series_predicts_gangs_better_than_an_availability_share() -> None:
    share = spot_zones.STUDIES[1]
    assert share.key == "spot-gangs"
    series, two, four = (study.run(reference()) for study in spot_gangs.STUDIES)
    assert (series.points, two.points, four.points) == (54, 42, 30)
    assert series.mean < 0.6 * share.run(reference()).mean
    assert max(two.mean, four.mean) < series.mean
