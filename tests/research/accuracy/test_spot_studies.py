"""The studies of spot capacity: frozen splits, held-out zones, targets, the recommender's law."""

import csv
import hashlib

import numpy as np
import pytest

from recommender.errors import UsageError
from tests.catalogs.facts_data import reference
from tests.research.accuracy import spot_runs, spot_zones
from tests.research.accuracy.likelihood import RunsSeen
from tests.research.accuracy.spot_splits import SPLITS, left_out, splits
from tests.research.fits import spot_fit as fit

LAW = fit.ZoneLaw(
    run_mean_h=3.0,
    run_sigma=1.5,
    outage_sigma=1.2,
    location=0.8,
    slope=0.3,
    zone_sd=1.5,
    co_interruption=0.9,
)


def test_the_splits_are_those_frozen_before_any_error_was_seen():
    digest = hashlib.sha256(SPLITS.read_bytes()).hexdigest()
    assert digest == "5112c59a7c5282983b7830ecbb03e5381c165697410836e2382d2e0710954896"


def test_a_line_of_its_own_needs_three_zones_and_twenty_interruptions():
    with open(SPLITS, newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["question"] == "runs"]
    for row in rows:
        enough = int(row["zones"]) >= 3 and int(row["interruptions"]) >= 20
        assert row["named"] == ("yes" if enough else "no")
    assert all(row["source"] and row["as_of"] for row in rows)


def test_every_named_campaign_has_a_study():
    named = {(s.campaign, s.gpu, s.machines) for s in splits("runs") if s.named}
    told = {(*campaign, n) for _, _, campaign, sizes in spot_runs.NAMED for n in sizes}
    assert named <= told


def test_without_the_tables_it_says_what_is_missing():
    for study in (*spot_runs.STUDIES, *spot_zones.STUDIES):
        assert study.needs_reference
        with pytest.raises(UsageError, match="needs the reference tables"):
            study.run(None)


@pytest.mark.parametrize("machines", [1, 4, 16])
def test_days_drawn_by_the_recommender_keep_the_mean_availability(machines):
    days = spot_zones.forecast_days(LAW, machines)
    expected = fit.mean_availability(LAW.level(machines), LAW.zone_sd)
    assert days.mean() == pytest.approx(expected, abs=0.025)
    assert ((days >= 0) & (days <= 1)).all()


@pytest.mark.parametrize("machines", [1, 8])
def test_days_drawn_by_the_recommender_spread_like_those_of_the_fit(machines):
    ours, theirs = spot_zones.forecast_days(LAW, machines), fit.drawn_days(LAW, machines)
    assert ours.std() == pytest.approx(theirs.std(), rel=0.04)


def test_gang_availability_by_hand():
    # One machine up half of the time; 24 more are two doublings of 1 + 24/8, 0.3 logits each.
    found = spot_zones.gang_availability(0.5, LAW, 25)
    assert found == pytest.approx(1 / (1 + np.exp(0.6)))
    assert spot_zones.gang_availability(0.5, LAW, 1) == pytest.approx(0.5)
    assert spot_zones.gang_availability(1.0, LAW, 16) == 1.0


@pytest.mark.reference
def test_the_law_of_a_zone_never_saw_it():
    for question in ("runs", "uptime", "gangs"):
        for case in left_out(reference(), question):
            assert case.trace.name not in {t.name for t in case.others}
            assert len(case.others) >= 1
            assert {t.campaign for t in case.others} == {case.split.campaign}


@pytest.mark.reference
def test_every_named_campaign_and_size_beats_the_exponential():
    gains: dict[tuple[str, str, int], float] = {}
    for f in spot_runs.run_forecasts(reference()):
        if f.left_out.split.named:
            s = f.left_out.split
            key = (s.campaign, s.gpu, s.machines)
            gains[key] = gains.get(key, 0.0) + f.gain
    assert len(gains) == 9
    assert min(gains.values()) > 0


@pytest.mark.reference
def test_the_sd_of_daily_uptime_is_within_a_tenth_everywhere():
    held = spot_zones.uptime_forecasts(reference())
    assert len(held.labels) == 7
    np.testing.assert_allclose(held.predicted, held.measured, rtol=0.1)


@pytest.mark.reference
def test_targets_are_met_but_for_the_gangs():
    missed = [
        study.key
        for study in (*spot_runs.STUDIES, *spot_zones.STUDIES)
        if not study.target.met_by(study.run(reference()))
    ]
    assert missed == ["spot-gangs"]


def test_a_folder_without_the_series_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"spot/traces\.csv is not in"):
        spot_runs.STUDIES[0].run(tmp_path)


def test_a_run_lies_in_its_span_by_the_part_of_its_tick_that_does():
    """Hourly ticks, a uniform law of 0-10 h: one tick is 0-1.5 h, of which 0.5-1.5 is inside."""

    class Uniform:
        def beyond(self, hours, began_before):
            return 1.0 - np.asarray(hours) / 10.0

    no = np.zeros(3, dtype=bool)
    seen = RunsSeen(np.array([1, 5, 9]), no, no, 1.0)
    found = spot_runs.inside_span(spot_runs.RunsForecast(None, seen, Uniform(), None))
    assert found.tolist() == pytest.approx([2 / 3, 1.0, 1.0])
