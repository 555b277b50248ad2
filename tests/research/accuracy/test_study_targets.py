"""Targets that ask for least figures, and errors of shares."""

import numpy as np
import pytest

from recommender.errors import UsageError
from recommender.plan.accuracy import Score, Target
from tests.research.accuracy.study import Held, score, share_score
from tests.research.accuracy.tables import RUNS, reference_folder


def gained(mean: float) -> Score:
    return Score(points=1, mean=mean, median=mean, p90=mean, bias=None, unit="nats")


def test_a_gain_must_be_large():
    assert Target(mean_at_least=0.5).met_by(gained(0.5))
    assert not Target(mean_at_least=0.5).met_by(gained(0.49))


def test_share_errors_are_differences():
    found = share_score(Held(("a", "b"), np.array([0.5, 0.2]), np.array([0.4, 0.5])))
    assert (found.mean, found.unit) == (pytest.approx(0.2), "share")
    assert found.bias == pytest.approx(-0.1)


@pytest.mark.parametrize(
    ("inside", "points", "met"), [(5, 6, True), (4, 6, False), (17, 20, True), (20, 20, False)]
)
def test_spans_should_cover_85_to_95_per_cent_in_whole_points(inside, points, met):
    found = Score(points, 1.0, 1.0, 1.0, 0.0, coverage=inside / points)
    assert found.spans_met is met
    assert Score(points, 1.0, 1.0, 1.0, 0.0).spans_met is None


def test_a_folder_that_lacks_a_table_is_refused_by_name(tmp_path):
    (tmp_path / "measured").mkdir()
    (tmp_path / "measured" / "training.csv.gz").touch()
    with pytest.raises(UsageError, match=r"hardware/gpus\.csv is not in"):
        reference_folder(tmp_path, *RUNS)
    with pytest.raises(UsageError, match="needs the reference tables"):
        reference_folder(None)
    assert reference_folder(tmp_path, RUNS[0]) == tmp_path


def test_a_score_by_hand():
    """Five errors of -50, -10, 0, +10 and +100 %; ln 1.1 and ln 0.9 lie in a span of ± 0.106."""
    predicted = np.array([0.5, 0.9, 1.0, 1.1, 2.0])
    found = score(Held(("",) * 5, predicted, np.ones(5), np.full(5, 0.0645)))
    assert (found.mean, found.median, found.bias) == pytest.approx((34.0, 10.0, 0.0))
    assert found.p90 == pytest.approx(80.0)  # 50 and 100 %, six tenths of the way
    assert found.coverage == pytest.approx(0.6)
    assert not Target(mean=33.5).met_by(found)
    assert Target(mean=34.0001, median=10.0001).met_by(found)
    assert found.near == pytest.approx(0.6)  # 0.9, 1 and 1.1
    assert Target(near=0.6, bias=0.0).met_by(found)
    assert not Target(near=0.61).met_by(found)
    narrow = score(Held(("",) * 5, predicted, np.ones(5), np.full(5, 0.0635)))
    assert narrow.coverage == pytest.approx(0.4)  # ln 0.9 = -0.1054 lies beyond 1.645 of it


@pytest.mark.parametrize(("bias", "met"), [(8.0, True), (-8.0, True), (8.2, False), (-8.2, False)])
def test_a_bias_is_limited_either_way(bias, met):
    assert Target(bias=8.0).met_by(Score(4, 9.0, 9.0, 9.0, bias)) is met


def test_a_target_of_a_share_is_missed_by_a_study_without_ratios():
    assert not Target(near=1.0).met_by(Score(4, 1.0, 1.0, 1.0, 0.0))
    assert Target(mean=20.0, bias=8.0, near=1.0).words == (
        "mean 20, bias ± 8, 100 % of ratios in 0.75-1.33"
    )
