"""Runs, outages, lives and hours of small traces, worked out by hand."""

from datetime import UTC, datetime

import numpy as np
import pytest

from recommender.traces.intervals import (
    blocks_of,
    by_block,
    edges_of,
    gang_intervals,
    hourly_sums,
    lives,
    sizes_of,
    weights,
)
from recommender.traces.trace import ADDED, GIVEN_BACK, TAKEN, Trace, counted, named_events
from tests.recommender.traces.made import HOUR, trace

# hours:       0  1  3  4  7  9   until 10
GANG = trace([0, 1, 3, 4, 7, 9], [1, 4, 2, 4, 0, 1], 10.0)


def test_gang_sizes_are_powers_of_two_and_all() -> None:
    assert [sizes_of(n) for n in (1, 2, 3, 16, 24)] == [
        (1,),
        (1, 2),
        (1, 2, 3),
        (1, 2, 4, 8, 16),
        (1, 2, 4, 8, 16, 24),
    ]


def test_one_machine_and_four() -> None:
    one, four = gang_intervals(GANG, 1), gang_intervals(GANG, 4)
    # One machine: up 0-7 (begun before), down 7-9, up 9-10 (not over).
    assert one.runs.hours.tolist() == [1.0]
    assert one.runs.over.tolist() == [False]
    assert one.outages.hours.tolist() == [2.0]
    # Four: down 0-1 (left out), up 1-3, down 3-4, up 4-7, down 7-10 (not over).
    assert (four.runs.hours.tolist(), four.runs.over.tolist()) == ([2.0, 3.0], [True, True])
    assert (four.outages.hours.tolist(), four.outages.over.tolist()) == ([1.0, 3.0], [True, False])


def test_hours_up_and_interruptions_by_the_hour() -> None:
    found = hourly_sums(GANG, (1, 4))
    assert found.hours.tolist() == [1.0] * 10
    assert found.up_h[:, 0].tolist() == [1.0] * 7 + [0.0, 0.0, 1.0]
    assert found.up_h[:, 1].tolist() == [0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    assert found.ends[:, 0].sum() == 1
    assert found.ends[:, 1].sum() == 2
    assert set(found.clock.tolist()) == {-1}


def test_the_clock_strikes_where_the_trace_says() -> None:
    start = datetime(2026, 3, 1, 22, 30, tzinfo=UTC)
    made = trace([0], [1], 3.0, start=start)
    assert edges_of(made).tolist() == [0.0, 1800.0, 5400.0, 9000.0, 10_800.0]
    assert hourly_sums(made, (1,)).clock.tolist() == [22, 23, 0, 1]
    assert hourly_sums(made, (1,)).hours.tolist() == [0.5, 1.0, 1.0, 0.5]


def test_blocks_are_days_or_sixths() -> None:
    week = np.arange(0.0, 7 * 24 + 1) * HOUR
    assert np.bincount(blocks_of(week)).tolist() == [24] * 7
    longer = np.arange(0.0, 7 * 24 + 6) * HOUR  # five hours more join the last day
    assert np.bincount(blocks_of(longer)).tolist() == [24] * 6 + [29]
    half_a_day = np.arange(0.0, 13) * HOUR
    assert np.bincount(blocks_of(half_a_day)).tolist() == [2] * 6
    assert by_block(np.arange(12.0), blocks_of(half_a_day)).tolist() == [1, 5, 9, 13, 17, 21]


def test_every_replicate_draws_as_many_days_as_there_are() -> None:
    drawn = weights([5, 3])
    assert (drawn[:, :5].sum(axis=1) == 5).all()
    assert (drawn[:, 5:].sum(axis=1) == 3).all()
    assert drawn.mean(axis=0) == pytest.approx(1.0, abs=0.2)


def test_lives_of_named_machines() -> None:
    rows = [
        (0.0, ADDED, "before"),
        (HOUR, ADDED, "a"),
        (2 * HOUR, ADDED, "b"),
        (3 * HOUR, TAKEN, "a"),
        (4 * HOUR, TAKEN, "before"),
        (5 * HOUR, GIVEN_BACK, "b"),
        (6 * HOUR, ADDED, "a"),
    ]
    events = named_events(rows)
    t_s, machines = counted(events)
    made = Trace("a", 10 * HOUR, capacity=3, t_s=t_s, machines=machines, events=events)
    found = lives(made)
    assert found.hours.tolist() == [2.0, 3.0, 4.0]  # a taken, b given back, a again to the end
    assert found.over.tolist() == [True, False, False]
    assert machines.tolist() == [1, 2, 3, 2, 1, 0, 1]
