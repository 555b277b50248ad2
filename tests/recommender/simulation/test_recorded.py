"""Recorded availability: what a gang meets of a step function of machines."""

from collections.abc import Sequence

import numpy as np
import pytest

from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.random_numbers import random_numbers
from recommender.risk.spot_capacity import drawn_cycles
from recommender.simulation.recorded import FOREVER_S, recorded_capacity
from recommender.traces.trace import Trace
from tests.recommender.risk.cases import path_inputs


def series(t_s: Sequence[float], machines: Sequence[int], end_s: float) -> Trace:
    return Trace("zone", end_s, t_s=np.array(t_s), machines=np.array(machines))


# Up 0-100 (two machines), one 100-200, none 200-500, two 500-1000.
STEPS = series((0.0, 100.0, 200.0, 500.0), (2, 1, 0, 2), 1000.0)


def state(trace: Trace, machines: int, moment: float) -> bool:
    """Whether enough machines are up, going round at the end; the slow way."""
    inside = moment % trace.end_s
    last = max(i for i, t in enumerate(trace.t_s) if t <= inside)
    return bool(trace.machines[last] >= machines)


@pytest.mark.parametrize("machines", [1, 2])
def test_runs_and_waits_follow_the_recording_second_by_second(machines: int) -> None:
    sample = random_numbers(200, 5)
    lengths, waits = drawn_cycles(
        path_inputs({}), sample, capacity=recorded_capacity((STEPS,), machines)
    )
    for path in range(200):
        clock = sample.start[path] * 1000.0
        for wait, run in zip(waits[:, 0, path], lengths[:, 0, path], strict=True):
            if wait > 0.01:
                assert not state(STEPS, machines, clock + wait / 2)
            clock += wait
            assert state(STEPS, machines, clock + run / 2)
            assert not state(STEPS, machines, clock + run + 0.01)
            clock += run


def test_an_interval_across_both_ends_of_a_recording_is_one_interval() -> None:
    (intervals,) = recorded_capacity((STEPS,), 2).intervals
    assert (intervals.begin_s.tolist(), intervals.end_s.tolist()) == ([500.0], [1100.0])
    assert recorded_capacity((STEPS,), 2).availability == pytest.approx(0.6)
    assert recorded_capacity((STEPS,), 1).run_mean_s == pytest.approx(700.0)


def test_capacity_that_is_always_or_never_there() -> None:
    always = drawn_cycles(
        path_inputs({}),
        random_numbers(8, 1),
        capacity=recorded_capacity((series((0.0,), (3,), 50.0),), 3),
    )
    assert (always[0] == FOREVER_S).all()
    assert (always[1] == 0).all()
    never = drawn_cycles(
        path_inputs({}),
        random_numbers(8, 1),
        capacity=recorded_capacity((series((0.0,), (3,), 50.0),), 4),
    )
    assert (never[1] == FOREVER_S).all()


def test_series_count_by_their_length() -> None:
    long, short = series((0.0,), (1,), 900.0), series((0.0,), (0,), 100.0)
    lengths, _ = drawn_cycles(
        path_inputs({}), random_numbers(1000, 1), capacity=recorded_capacity((long, short), 1)
    )
    assert (lengths[0, 0] == FOREVER_S).mean() == pytest.approx(0.9, abs=0.002)


def test_a_replayed_job_ends_when_the_recording_lets_it() -> None:
    # 300 s of work, start of 50 s, no saves: only the intervals of 600 s are long enough.
    plan = path_inputs(
        {
            "work_s": 300.0,
            "changeover_s": 50.0,
            "interval_s": 1e6,
            "stall_s": 0.0,
            "run_mean_s": 600.0,
        }
    )
    found = simulate_paths(plan, None, 512, capacity=recorded_capacity((STEPS,), 2))
    begin = random_numbers(512, 7).start * 1000.0
    left = np.where(begin >= 500.0, 1100.0 - begin, np.where(begin < 100.0, 100.0 - begin, 0.0))
    expected = np.where(
        left >= 350.0, 350.0, np.where(begin < 500.0, 850.0 - begin, 1850.0 - begin)
    )
    assert found.time_s[0] == pytest.approx(expected, abs=0.1)
