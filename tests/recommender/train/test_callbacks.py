"""The callbacks make real Trainers save when it is time, and go on with the same bits."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from recommender.train.progress_file import read_progress

torch = pytest.importorskip("torch", reason="the callbacks need PyTorch")
STEPS = 24


def samples() -> "list[dict[str, Any]]":
    numbers = torch.Generator().manual_seed(3)
    x = torch.randn(64, 8, generator=numbers)
    return [{"x": row, "labels": row.sum()} for row in x]


class Killer:
    """Sends SIGTERM to this very process, once, when a step is reached."""

    def __init__(self, step: int | None) -> None:
        self._step = step

    def reached(self, step: int) -> None:
        if step == self._step:
            self._step = None
            os.kill(os.getpid(), signal.SIGTERM)


class Network(torch.nn.Module):  # type: ignore[name-defined, misc]
    """Two layers with dropout, whose forward pass says when a kill is due."""

    def __init__(self, killer: Killer) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.Dropout(0.1), torch.nn.Linear(16, 1)
        )
        self.killer, self.seen = killer, 0

    def forward(self, x: Any, labels: Any) -> dict[str, Any]:
        self.seen += 1
        self.killer.reached(self.seen)
        return {"loss": ((self.layers(x).squeeze(1) - labels) ** 2).mean()}


def with_transformers(folder: Path, killed_at: int | None) -> Any:
    transformers = pytest.importorskip("transformers")
    from recommender.train.transformers_callback import CheckpointCallback

    transformers.set_seed(5)
    network = Network(Killer(killed_at))
    callback = CheckpointCallback(folder, interval_s=3600)
    arguments = transformers.TrainingArguments(
        str(folder), max_steps=STEPS, save_strategy="no", report_to="none", use_cpu=True,
        per_device_train_batch_size=4, disable_tqdm=True,
    )  # fmt: skip
    trainer = transformers.Trainer(
        network, arguments, train_dataset=samples(), callbacks=[callback]
    )
    trainer.train(resume_from_checkpoint=callback.resume_from())
    return network.state_dict()


class Places:
    """A data loader that knows its place, as torchdata's StatefulDataLoader."""

    def __init__(self) -> None:
        self.samples, self.place = samples(), 0

    def __len__(self) -> int:
        return len(self.samples) // 4

    def __iter__(self) -> "Any":
        while self.place < len(self):
            rows = self.samples[4 * self.place : 4 * self.place + 4]
            self.place += 1
            yield {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
        self.place = 0

    def state_dict(self) -> dict[str, int]:
        return {"place": self.place}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.place = state["place"]


def with_lightning(folder: Path, killed_at: int | None) -> Any:
    lightning = pytest.importorskip("pytorch_lightning")
    from recommender.train.lightning_callback import CheckpointCallback

    class Module(lightning.LightningModule):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = Network(Killer(killed_at))

        def training_step(self, batch: Any, index: int) -> Any:
            return self.network(**batch)["loss"]

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters(), lr=1e-2)

    torch.manual_seed(5)
    module, callback = Module(), CheckpointCallback(folder, interval_s=3600)
    trainer = lightning.Trainer(
        max_steps=STEPS, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, callbacks=[callback],
        barebones=False,
    )  # fmt: skip
    trainer.fit(module, Places(), ckpt_path=callback.resume_from())
    return module.network.state_dict()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("trained", [with_transformers, with_lightning])
def test_a_trainer_that_sigterm_ends_goes_on_with_the_same_bits(tmp_path: Path, trained: Any):
    whole = trained(tmp_path / "whole", None)
    parts, earlier = tmp_path / "parts", signal.getsignal(signal.SIGTERM)
    for killed_at, safe in ((10, 10), (9, 19)):  # the second in its second epoch
        with pytest.raises(SystemExit) as ended:
            trained(parts, killed_at)
        assert ended.value.code == 143
        progress = read_progress(parts / "progress.json")
        assert progress.step == safe
        assert (parts / str(progress.checkpoint)).is_dir()
        assert signal.getsignal(signal.SIGTERM) == earlier
    again = trained(parts, None)
    assert all(torch.equal(whole[name], again[name]) for name in whole)
    assert read_progress(parts / "progress.json").done_share == 1.0
    assert read_progress(parts / "progress.json").interruptions == 2


def with_torchrun(folder: Path, killed_at: int) -> int:
    """Two processes of a Trainer of Transformers, of which the second may get SIGTERM."""
    script = Path(__file__).with_name("trainer_of_two.py")
    call = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    return subprocess.run(
        [*call, str(script), str(folder), str(killed_at)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        timeout=300,
    ).returncode


@pytest.mark.slow
def test_two_processes_under_torchrun_stop_together_and_go_on_with_the_same_bits(tmp_path: Path):
    """Transformers has DDP look for unused parameters, so that its buckets stay as they are."""
    pytest.importorskip("transformers")
    assert with_torchrun(tmp_path / "whole", 0) == 0
    assert with_torchrun(tmp_path / "parts", 9) != 0
    assert read_progress(tmp_path / "parts" / "progress.json").step == 9
    assert with_torchrun(tmp_path / "parts", 0) == 0
    whole, parts = (
        torch.load(tmp_path / name / "weights.pt", weights_only=True) for name in ("whole", "parts")
    )
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("trained", [with_transformers, with_lightning])
def test_a_trainer_skips_a_torn_checkpoint(tmp_path: Path, trained: Any):
    with pytest.raises(SystemExit):
        trained(tmp_path, 7)
    with pytest.raises(SystemExit):
        trained(tmp_path, 6)
    (torn,) = tmp_path.glob("*-13")
    largest = max(torn.iterdir(), key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:-1])
    with pytest.raises(SystemExit):
        trained(tmp_path, 2)
    assert read_progress(tmp_path / "progress.json").step == 9
