"""The progress file says what is safe, how long it took and what it cost, over all starts."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recommender.errors import UsageError
from recommender.train import Checkpointer, PickledState
from recommender.train.progress_file import (
    FILE,
    TrainingProgress,
    progress_at_start,
    read_progress,
)
from recommender.train.ranks import OneProcess
from recommender.train.save_schedule import SaveAction, SaveSchedule
from tests.recommender.train.test_notices import Counter

BEGAN = datetime(2026, 11, 23, 8, tzinfo=UTC)
PROGRESS = TrainingProgress(
    step=400,
    total_steps=1000,
    began_at=BEGAN,
    at=BEGAN + timedelta(hours=9),
    uptime_s=30_600.0,
    waited_s=1800.0,
    interruptions=1,
    checkpoint="step-400",
    interval_s=600.0,
    spent_usd=61.2,
    step_s=28.8,
    planned_work_s=25_200.0,
)


def test_what_is_written_is_read(tmp_path: Path):
    PROGRESS.write(tmp_path)
    assert read_progress(tmp_path / FILE) == PROGRESS
    assert PROGRESS.done_share == 0.4
    assert PROGRESS.elapsed_s == 9 * 3600
    assert PROGRESS.elapsed_s_until(BEGAN + timedelta(hours=12)) == 12 * 3600


def test_the_documented_example_is_one(tmp_path: Path):
    PROGRESS.write(tmp_path)
    from recommender.train import progress_file

    page = progress_file.__doc__ or ""
    example = json.loads(page[page.index("{") : page.index("}") + 1])
    assert json.loads((tmp_path / FILE).read_bytes()) == example


def test_each_start_of_an_unfinished_training_counts_an_interruption(tmp_path: Path):
    PROGRESS.write(tmp_path)
    again = progress_at_start(tmp_path, 1000, 380, "step-380", 2.0)
    assert (again.step, again.interruptions, again.began_at) == (380, 2, BEGAN)
    assert again.checkpoint == "step-380"
    replace(PROGRESS, step=1000).write(tmp_path)
    assert progress_at_start(tmp_path, 1000, 1000, "step-1000", 2.0).interruptions == 1


def test_hours_are_paid_at_the_price_of_each_start():
    later = PROGRESS.after(3600, 2.0).after(1800, 8.0)
    assert later.spent_usd == pytest.approx(61.2 + 2 + 4)
    assert later.uptime_s == 30_600 + 5400
    assert later.after(60, None).spent_usd is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("schema", "recommend.progress.v2"),
        ("step", 1001),
        ("step", "many"),
        ("step", float("inf")),
        ("total_steps", 0),
        ("uptime_s", -1),
        ("spent_usd", -1),
        ("began_at", "2026-11-23T08:00:00"),
        ("at", None),
    ],
)
def test_what_is_no_progress_file_is_refused_and_does_not_stop_a_training(
    tmp_path: Path, name: str, value: object
):
    PROGRESS.write(tmp_path)
    said = json.loads((tmp_path / FILE).read_bytes())
    (tmp_path / FILE).write_text(json.dumps({**said, name: value}))
    with pytest.raises(UsageError, match=r"progress\.json"):
        read_progress(tmp_path / FILE)
    new = progress_at_start(tmp_path, 50, 0, None, None)
    assert (new.step, new.total_steps, new.interruptions, new.spent_usd) == (0, 50, 0, None)


def test_a_missing_file_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="No such file"):
        read_progress(tmp_path / FILE)


def test_a_training_writes_what_is_safe_at_its_start_and_at_each_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("USD_PER_HOUR", "3600")
    counter = Counter()
    training = Checkpointer(PickledState(counter=counter), 50, folder=tmp_path)
    for step in training.steps():
        if step == 0:
            assert read_progress(tmp_path / FILE).done_share == 0
        counter.done = step + 1
        if step == 20:  # 20 are reported as done
            training.finish()
            safe = read_progress(tmp_path / FILE)
            assert (safe.step, safe.checkpoint) == (20, "step-20")
            assert safe.spent_usd == pytest.approx(safe.uptime_s, abs=1e-3)
            break
    again = Checkpointer(PickledState(counter=counter), 50, folder=tmp_path)
    assert list(again.steps()) == list(range(20, 50))
    ended = read_progress(tmp_path / FILE)
    assert (ended.done_share, ended.interruptions) == (1.0, 1)
    assert ended.began_at == safe.began_at
    assert ended.uptime_s > safe.uptime_s


def test_the_speed_is_that_of_steps_without_saves_and_is_written_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Steps of 3 s, the first of a start of 60; a save stops the training for 20 s."""
    clock = [0.0]
    monkeypatch.setattr("recommender.train.save_schedule.time.monotonic", lambda: clock[0])
    monkeypatch.setenv("PLANNED_WORK_S", "2000")
    schedule = SaveSchedule(tmp_path, "step", interval_s=90.0)
    for start in (0, 40):  # on the second machines the file keeps what the first have measured
        schedule.begin(start, 1000, OneProcess())
        known = read_progress(tmp_path / FILE).step_s
        assert known == (None if start == 0 else 3.0)
        for step in range(start + 1, start + 41):
            clock[0] += 60.0 if step == start + 1 else 3.0
            action = schedule.action(step, False)
            if step == start + 2:
                assert read_progress(tmp_path / FILE).step_s == 3.0
            if action == SaveAction.SAVE:
                clock[0] += 20.0
                schedule.saved()
                schedule.complete(step)
        found = read_progress(tmp_path / FILE)
        assert (found.step_s, found.planned_work_s) == (3.0, 2000.0)
        assert found.step > start
