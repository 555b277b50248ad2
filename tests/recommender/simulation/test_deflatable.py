"""Deflatable machines against spot: the break-even of the published argument."""

import numpy as np
import pytest

from recommender.risk.path_inputs import PathInputs
from recommender.simulation.deflatable import Deflatable, deflated
from recommender.simulation.paths import simulate
from tests.recommender.risk.cases import path_inputs

H = 3600.0
# A spot machine that is taken every 5 h, is back at once and needs 10 minutes to restart;
# checkpoints of 30 s at Young's interval sqrt(2·30 s·5 h).
SPOT = {
    "work_s": 500 * H, "run_mean_s": 5 * H, "run_sigma": 0.99, "changeover_s": 600.0,
    "interval_s": 1039.0, "stall_s": 30.0, "runs_from_start": 1.0, "spot_usd_per_hour": 10.0,
}  # fmt: skip
FREE = SPOT | {"stall_s": 0.0}  # a machine that is never taken needs no checkpoints


def slowdown(inputs: PathInputs) -> float:
    """Time of the job over its work, less one."""
    return float(simulate(inputs, None, 2048, 3).time_s.mean()) / (500 * H) - 1.0


def test_a_machine_halved_an_eighth_of_the_time_is_as_good_as_that_spot_machine() -> None:
    # Deflation costs φδ/(1 - φδ), spot sqrt(2Cλ) + λR = 9.1 % to first order (Young 1974): with
    # machines halved under pressure the two meet near φ = 18 %.
    spot = slowdown(path_inputs(SPOT))
    assert spot == pytest.approx(0.091, abs=0.012)
    at = {
        phi: slowdown(deflated(path_inputs(FREE), Deflatable(phi, 0.5, 1800.0), 1, 0.0))
        for phi in (0.14, 0.18, 0.22)
    }
    assert at[0.14] < spot < at[0.22]
    assert at[0.18] == pytest.approx(0.09 / 0.91, abs=0.005)


@pytest.mark.parametrize(("co_pressure", "whole"), [(0.0, 0.95**16), (1.0, 0.95)])
def test_a_gang_goes_at_the_speed_of_its_slowest_machine(co_pressure: float, whole: float) -> None:
    # φ = 5 %: sixteen machines that come under pressure on their own are whole 44 % of the time.
    plan = deflated(path_inputs(FREE), Deflatable(0.05, 0.5, 1800.0), 16, co_pressure)
    assert 1.0 / (slowdown(plan) + 1.0) == pytest.approx(whole + 0.5 * (1 - whole), rel=0.01)


def test_every_second_is_paid_at_the_price_given_and_nothing_is_lost() -> None:
    plan = deflated(path_inputs(FREE), Deflatable(0.2, 0.5, 600.0, usd_per_hour=3.0), 4, 0.5)
    sample = simulate(plan, None, 512, 3)
    paid = 12.0 * (sample.time_s + 600.0) / H  # the start is paid as well
    assert sample.expected_usd == pytest.approx(paid, rel=1e-6)
    assert np.all(sample.lost_s + sample.restarting_s <= 1e-3 * sample.time_s)
