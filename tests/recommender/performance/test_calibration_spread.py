"""How spans of a calibrated job widen with how far it lies beyond its runs."""

import numpy as np
import pytest

from recommender.arrays import Z_90
from recommender.performance.calibration_model import NOISE
from recommender.performance.calibration_spread import Extrapolation, bases, links_sd


def test_the_late_end_of_a_step_is_that_of_its_time_on_the_links():
    """Drawn: a step of 10 s, 3 of them on links whose time is lognormal with sd 0.7."""
    links_s = 3.0 * np.exp(0.7 * np.random.default_rng(5).standard_normal(400_000))
    late = np.quantile(7.0 + links_s, 0.95)
    sd = links_sd(np.array([0.3]), 0.7)[0]
    assert 10.0 * np.exp(Z_90 * sd) == pytest.approx(late, rel=0.01)


def test_a_step_without_links_is_as_sure_as_before_and_one_that_is_all_links_as_unsure_as_they():
    share = np.linspace(0.0, 1.0, 11)
    sd = links_sd(share, 0.7)
    assert sd[0] == 0.0
    assert sd[-1] == pytest.approx(0.7)
    assert (np.diff(sd) > 0).all()


@pytest.mark.parametrize(
    ("gb_per_s_of_few", "gb_per_s_of_all"),
    [(35.0, 28.0), (5.9, 5.7), (6.04, 5.91)],  # 4 and 8 RTX 5090; P100, M40: see links_sd
)
def test_the_span_of_the_links_holds_what_others_measured_of_machines_without_bridges(
    gb_per_s_of_few, gb_per_s_of_all
):
    assert abs(np.log(gb_per_s_of_few / gb_per_s_of_all)) < Z_90 * bases()["links"]


def test_a_network_that_was_timed_is_surer_than_one_that_was_not():
    assert bases()["timed"] < bases()["network"] < bases()["larger"] < bases()["links"]


def test_more_machines_are_less_sure_the_more_gpus_they_have():
    """Each doubling adds as much variance: 7.2 %² at the next machine, 0.025² an e-fold."""
    sizes = np.array([2.0, 8.0, 100.0])
    away = Extrapolation(("larger",) * 3, np.zeros(3), np.log(sizes))
    expected = np.sqrt(0.072**2 + 0.025**2 * np.log(sizes))
    assert away.base(bases()) == pytest.approx(expected, abs=0.001)
    assert away.base(bases())[0] < away.base(bases())[1] < away.base(bases())[2]


def test_clusters_as_large_as_few_networks_were_timed_on_have_students_span():
    """The 95th percentile of Student's law with four degrees of freedom is 2.132, not 1.645."""
    sizes = np.array([2.0, 32.0, 33.0])
    away = Extrapolation(("larger",) * 3, np.zeros(3), np.log(sizes))
    assert away.widened == pytest.approx([1.0, 1.0, 2.132 / 1.645], rel=0.02)


def test_a_cluster_of_the_size_that_was_timed_is_as_sure_as_a_repeated_run():
    same = Extrapolation(("timed",), np.zeros(1), np.zeros(1))
    assert same.base(bases()) == pytest.approx(NOISE)


def test_every_base_was_also_fitted_without_each_source():
    assert set(bases("Gavel")) == set(bases("DeepVM")) == set(bases())
    assert bases("MLPerf")["network"] != bases()["network"]
    assert bases("MLPerf")["gpus"] < bases()["gpus"]
    assert bases("a laboratory that no fit has seen") == bases()
