"""No system call of a save or a restore that fails costs a complete checkpoint or a step's truth.

Each call fails once, and then all calls from it on, as on a disk that is full or gone.
"""

import errno
import os
import pickle
import random
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO

import pytest

from recommender.errors import UsageError
from recommender.train import Checkpointer, PickledState, patience, torch_state
from recommender.train.checkpoint_folder import UNFINISHED, CheckpointFolder, Condition
from recommender.train.checkpointer import FAILED_SAVES
from recommender.train.torch_state import TorchState
from tests.failing_calls import ERRORS, failing
from tests.recommender.optimize.samples import thinned

FIRST, STEPS, SAVED = 4, 8, (2, 4, 6, 8)
PARTS = 7
FAILURES = thinned([(number, part) for part in range(PARTS) for number in ERRORS], 18)


class Walk:
    """A random walk: a step done twice or left out ends elsewhere."""

    def __init__(self) -> None:
        self.place = 0.0

    def state_dict(self) -> float:
        return self.place

    def load_state_dict(self, state: float) -> None:
        self.place = state


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PAUSES_S", (0.0,))


def trained(folder: Path, end: int = STEPS) -> float:
    """Train to a step, saving every second one; the weights of the end."""
    walk = Walk()
    random.seed(3)
    training = Checkpointer(PickledState(walk=walk), STEPS, folder=folder, interval_s=3600)
    with training:
        for step in range(training.restore(), end):
            walk.place += random.random() * (step + 1)
            training.step_done(step + 1)
            if step + 1 in SAVED:
                training.finish()
    return walk.place


def begun(folder: Path) -> Path:
    """A training with two complete checkpoints, and one that a kill interrupted."""
    folder.mkdir()
    trained(folder, FIRST)
    unfinished = CheckpointFolder(folder, 2)
    unfinished.begin(STEPS)
    (unfinished.path(STEPS) / "state-0.pickle").write_bytes(b"half")
    return folder


def complete(folder: Path) -> list[int]:
    """The steps of intact checkpoints, read without failures."""
    found = CheckpointFolder(folder, 2).newest_first()
    return [each.step for each in found if each.condition() == Condition.INTACT]


def calls_of(folder: Path) -> int:
    with failing(begun(folder), -1) as calls:
        trained(folder)
    kinds = {each.split()[0] for each in calls.calls}
    assert kinds >= {"open", "read", "write", "close", "fsync", "replace", "unlink", "rmdir",
                     "listdir", "mkdir", "stat"}  # fmt: skip
    return len(calls.calls)


@pytest.mark.parametrize("failure", FAILURES, ids=str)
def test_a_call_that_fails_once_costs_no_checkpoint_and_no_step(
    tmp_path: Path, failure: tuple[int, int]
):
    number, part = failure
    whole = trained(tmp_path / "whole")
    for at in range(part, calls_of(tmp_path / "counted"), PARTS):
        folder = begun(tmp_path / str(at))
        with failing(folder, at, number) as calls:
            ended = trained(folder)
        assert ended == whole, calls.calls[at]
        assert len(complete(folder)) >= 2, calls.calls[at]
        assert complete(folder)[0] == STEPS, calls.calls[at]


@pytest.mark.parametrize("failure", FAILURES, ids=str)
def test_a_disk_that_fails_for_good_is_an_error_after_which_the_training_goes_on(
    tmp_path: Path, failure: tuple[int, int]
):
    number, part = failure
    whole = trained(tmp_path / "whole")
    for at in range(part, calls_of(tmp_path / "counted"), PARTS):
        folder = begun(tmp_path / str(at))
        failed = None
        with failing(folder, at, number, lasting=True) as calls:
            try:
                ended = trained(folder)
            except (OSError, UsageError) as error:
                failed = error
        kept = complete(folder)
        assert len(kept) >= 2, (calls.calls[at], failed)
        assert failed or (ended, kept[0]) == (whole, STEPS), calls.calls[at]
        assert trained(folder) == whole, (calls.calls[at], failed)
        assert len(complete(folder)) >= 2, (calls.calls[at], failed)


def test_a_file_that_is_not_there_is_an_error_until_it_is_back(tmp_path: Path):
    folder = begun(tmp_path / "run")
    whole = trained(tmp_path / "whole")
    for hidden in folder.glob("step-*/state-0.pickle"):
        hidden.rename(hidden.with_name("hidden"))
    before = sorted(path for path in folder.rglob("*") if "progress" not in path.name)
    with pytest.raises(OSError, match="nothing was removed"):
        trained(folder)
    assert sorted(path for path in folder.rglob("*") if "progress" not in path.name) == before
    for hidden in folder.glob("step-*/hidden"):
        hidden.rename(hidden.with_name("state-0.pickle"))
    assert trained(folder) == whole


def test_torn_checkpoints_are_put_aside_and_never_removed(tmp_path: Path):
    folder = begun(tmp_path / "run")
    newest = folder / f"step-{FIRST}" / "state-0.pickle"
    newest.write_bytes(torn := newest.read_bytes()[:-1])
    assert trained(folder) == trained(tmp_path / "whole")
    (aside,) = folder.glob("aside-*")
    assert (aside / "state-0.pickle").read_bytes() == torn
    assert complete(folder) == [8, 6]


def test_the_one_checkpoint_that_is_kept_is_not_removed_for_a_torn_newer_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = CheckpointFolder(begun(tmp_path / "run"), keep=1)
    (folder.path(FIRST) / "state-0.pickle").write_bytes(b"torn")
    monkeypatch.setattr(os, "rename", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSYS, "")))
    folder.begin(3)
    folder.complete(3, [])
    assert complete(tmp_path / "run") == [3]


@pytest.mark.parametrize("kind", ["files", "names", "steps"])
def test_the_folder_of_another_training_is_a_message(tmp_path: Path, kind: str):
    folder = begun(tmp_path / "run")

    class Other(PickledState):
        def read(self, folder: Path, ranks: object) -> None:
            (folder / "state-0.pt").read_bytes()

    state = Other() if kind == "files" else PickledState(model=Walk())
    with pytest.raises(UsageError, match="folder of its own"):
        Checkpointer(state, STEPS if kind != "steps" else 3, folder=folder).restore()


class FullDisk:
    """PyTorch, as far as one process needs it: a write that fails is a RuntimeError there."""

    Tensor, distributed = Path, SimpleNamespace(is_available=lambda: False)
    cuda = SimpleNamespace(is_available=lambda: False)

    def __init__(self) -> None:
        self.fails = 0

    def save(self, state: object, file: BinaryIO) -> None:
        if self.fails:
            self.fails -= 1
            file.write(b"half of it")
            raise RuntimeError("PytorchStreamWriter failed writing file data/0: file write failed")
        pickle.dump(state, file)

    def load(self, file: BinaryIO, **_: object) -> object:
        return pickle.load(file)

    def get_rng_state(self) -> int:
        return 0

    def set_rng_state(self, state: object) -> None:
        raise AssertionError("no tensor is restored here")


@pytest.mark.parametrize("fails", [1, 2, 3])
def test_a_disk_that_is_full_for_torch_stops_a_training_after_three_saves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: int
):
    torch, folder = FullDisk(), tmp_path / "run"
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(torch_state, "set_random_numbers", lambda numbers: None)

    def train(end: int) -> float:
        walk = Walk()
        state = TorchState(walk, Walk())
        with Checkpointer(state, STEPS, folder=folder, interval_s=3600) as training:
            for step in range(training.restore(), end):
                walk.place += step + 1
                training.step_done(step + 1)
                if step + 1 in SAVED:
                    training.finish()
        return walk.place

    train(FIRST)
    torch.fails = fails
    if fails < FAILED_SAVES:
        assert train(STEPS) == sum(range(STEPS + 1))
    else:
        with pytest.raises(OSError, match="file write failed"):
            train(STEPS)
        assert complete(folder) == [4, 2]
        assert not list(folder.glob(f"step-*/{UNFINISHED}"))  # nothing keeps the disk full
        assert train(STEPS) == sum(range(STEPS + 1))
    assert complete(folder) == [8, 6]


def test_clocks_that_jump_change_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from datetime import UTC, datetime, timedelta

    from recommender.train import progress_file

    folder = begun(tmp_path / "run")
    for days in (400, -400):
        moment = datetime.now(UTC) + timedelta(days=days)
        monkeypatch.setattr(progress_file, "_now", lambda moment=moment: moment)
        trained(folder)
        found = progress_file.read_progress(folder / progress_file.FILE)
        assert found.elapsed_s < 3600


def test_hours_between_two_starts_are_counted_by_the_clock_of_the_disk(tmp_path: Path):
    from recommender.train import progress_file

    folder = begun(tmp_path / "run")
    file = folder / progress_file.FILE
    written = file.stat().st_mtime
    os.utime(file, (written - 7200, written - 7200))
    trained(folder)
    found = progress_file.read_progress(file)
    assert 7200 <= found.waited_s <= found.elapsed_s < 7200 + 3600
