"""Only what is complete and unchanged counts; the last few are kept."""

import pickle
import shutil
import sys
from pathlib import Path
from typing import BinaryIO

import pytest

from recommender.errors import UsageError
from recommender.train import Checkpointer, PickledState, TorchState, patience, torch_state
from recommender.train.checkpoint_folder import MANIFEST, CheckpointFolder, Condition, sum_of
from tests.recommender.train.test_notices import Counter


def kept(root: Path, *steps: int, keep: int = 9) -> CheckpointFolder:
    folder = CheckpointFolder(root, keep)
    for step in steps:
        folder.begin(step)
        path = folder.path(step) / "state-0.pickle"
        path.write_bytes(b"state of %d" % step)
        folder.complete(step, [sum_of(path)])
    return folder


def steps(folder: CheckpointFolder) -> list[int]:
    return [each.step for each in folder.newest_first()]


def test_the_last_few_are_kept_newest_first(tmp_path: Path):
    assert steps(kept(tmp_path, 5, 40, 300, keep=2)) == [300, 40]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["step-300", "step-40"]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PAUSES_S", (0.0,))


def test_a_checkpoint_without_manifest_does_not_count_and_the_next_save_removes_it(tmp_path: Path):
    folder = kept(tmp_path, 5)
    folder.begin(9)
    assert steps(folder) == [5]
    folder.begin(12)
    assert not folder.path(9).exists()
    assert folder.path(12).exists()


def test_a_folder_of_another_user_is_not_removed(tmp_path: Path):
    (tmp_path / "step-7").mkdir()
    folder = kept(tmp_path, 5)
    folder.remove_unfinished()
    assert (tmp_path / "step-7").exists()
    assert steps(folder) == [5]


@pytest.mark.parametrize("content", [b"", b"state of 9 ", b"State of 9"])
def test_a_changed_file_is_found_by_its_size_or_checksum(tmp_path: Path, content: bytes):
    folder = kept(tmp_path, 9)
    assert folder.newest_first()[0].condition() == Condition.INTACT
    (folder.path(9) / "state-0.pickle").write_bytes(content)
    assert folder.newest_first()[0].condition() == Condition.TORN


def trained(root: Path, total: int) -> Counter:
    counter = Counter()
    training = Checkpointer(
        PickledState(counter=counter), total, folder=root, shortest_interval_s=1e-6, keep=3
    )
    for step in training.steps():
        assert counter.done == step
        counter.done = step + 1
    return counter


def test_a_finished_training_does_nothing_when_started_again(tmp_path: Path):
    assert trained(tmp_path, 50).done == trained(tmp_path, 50).done == 50
    assert (tmp_path / "progress").read_text() == "1.000000\n"


def test_a_torn_newest_checkpoint_is_skipped_for_the_one_before(tmp_path: Path):
    trained(tmp_path, 50)
    newest, before, *_ = CheckpointFolder(tmp_path, 3).newest_first()
    path = newest.folder / "state-0.pickle"
    path.write_bytes(path.read_bytes()[:-1])
    training = Checkpointer(PickledState(counter=Counter()), 50, folder=tmp_path)
    assert training.restore() == before.step
    assert trained(tmp_path, 50).done == 50


def test_progress_is_the_share_that_is_safe(tmp_path: Path):
    trained(tmp_path, 30)
    trained(tmp_path, 60)
    assert float((tmp_path / "progress").read_text()) == 1.0
    newest = CheckpointFolder(tmp_path, 3).newest_first()[0]
    assert newest.step == 60


def test_a_disk_that_refuses_three_times_ends_the_training(tmp_path: Path):
    class Refused(PickledState):
        def write(self, copied: bytes, folder: Path, ranks: object) -> list[Path]:
            raise OSError(28, "No space left on device")

    training = Checkpointer(Refused(), 10**9, folder=tmp_path, shortest_interval_s=1e-6)
    with pytest.raises(OSError, match="No space left"):
        for _ in training.steps():
            pass
    assert not list(tmp_path.glob(f"step-*/{MANIFEST}"))
    assert not list(tmp_path.glob("step-*"))  # they would keep the disk full


def test_torchs_own_error_on_a_full_disk_is_a_save_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """torch.save raises RuntimeError there; a stand-in does the same at its first save."""

    class Torch:
        Tensor, full = bytes, [True]
        distributed = type("Alone", (), {"is_available": staticmethod(lambda: False)})

        def save(self, copied: object, file: BinaryIO) -> None:
            if self.full and self.full.pop():
                file.write(b"half")
                raise RuntimeError("unexpected pos 64 vs 0")
            pickle.dump(copied, file)

        def load(self, file: BinaryIO, **options: object) -> object:
            return pickle.load(file)

    monkeypatch.setattr(torch_state, "_found_torch", Torch)
    counter = Counter()
    state = TorchState(counter, Counter())
    training = Checkpointer(state, 50, folder=tmp_path, shortest_interval_s=1e-6)
    for step in training.steps():
        counter.done = step + 1
    assert not Torch.full
    assert steps(CheckpointFolder(tmp_path, 2))[0] == 50
    counter.done = 0
    assert Checkpointer(state, 50, folder=tmp_path).restore() == counter.done == 50


def test_exported_files_say_where_and_how_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CHECKPOINT_DIR", str(tmp_path / "a"))
    monkeypatch.setenv("CHECKPOINT_INTERVAL_S", "600")
    training = Checkpointer(PickledState(), 3)
    assert training.schedule.interval_s == 600
    assert list(training.steps()) == [0, 1, 2]
    assert (tmp_path / "a" / "progress").exists()
    shutil.rmtree(tmp_path / "a")


@pytest.mark.parametrize("interval", ["0", "-1", "nan", "soon"])
def test_a_wrong_interval_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interval: str
):
    monkeypatch.setenv("CHECKPOINT_INTERVAL_S", interval)
    with pytest.raises(UsageError, match="number above 0"):
        Checkpointer(PickledState(), 3, folder=tmp_path)


def test_a_folder_must_be_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CHECKPOINT_DIR", raising=False)
    with pytest.raises(UsageError, match="CHECKPOINT_DIR"):
        Checkpointer(PickledState(), 3)


def test_torch_is_requested_only_where_it_is_needed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UsageError, match="pip install torch"):
        TorchState(None, None)
