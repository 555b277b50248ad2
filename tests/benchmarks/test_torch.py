"""What needs torch, on the processor; skipped, and said so, where it is not installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import blocks, collectives, matmul, memory, transfer
from benchmarks.errors import WrongResult
from benchmarks.method import Rule, measure
from benchmarks.reading import read_record
from benchmarks.subject import Case
from benchmarks.training import find_training
from tests.benchmarks.machines import bench

torch = pytest.importorskip("torch", reason="torch is not installed; '.[test]' does not pull it")
ROOT = Path(__file__).parents[2]
ONCE = Rule(warm_up=0, least=3, most=3, most_s=0.0, half_width=1.0)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matmul, "_SQUARES", {("cpu", "quick"): (64,)})
    monkeypatch.setattr(matmul, "_WIDTH", {"cpu": (32, 32)})
    monkeypatch.setattr(memory, "_SIZES_MIB", {"quick": (1,)})
    monkeypatch.setattr(blocks, "_CONVOLUTION", {"cpu": (2, 8, 14)})
    monkeypatch.setattr(blocks, "_ATTENTION", {"cpu": (1, 2, 32, 16)})


@pytest.mark.parametrize("subject", [matmul.matmul, memory.memory, blocks.blocks])
def test_every_case_is_measured_and_right(subject: object, tmp_path: Path):
    found = list(subject(bench(tmp_path, torch)))  # type: ignore[operator]
    assert found
    for each in found:
        assert isinstance(each, Case)
        assert measure(each, ONCE, None).median > 0


@pytest.mark.parametrize("precision", ["fp8", "int8"])
def test_products_in_8_bits_are_right(precision: str, tmp_path: Path):
    """The same calls as on a GPU; torch has them for processors too."""
    trial = matmul._torch_trial(bench(tmp_path, torch), precision, (32, 64, 48))
    trial.run()
    assert trial.check() <= 2**-6


@pytest.mark.parametrize("up", [True, False])
def test_a_transfer_moves_what_was_drawn(up: bool, tmp_path: Path):
    trial = transfer._trial(bench(tmp_path, torch), 1, up, False)
    with pytest.raises(WrongResult):
        trial.check()
    trial.run()
    assert trial.check() == 0.0


@pytest.mark.parametrize("name", ["cnn", "transformer", "mlp"])
def test_networks_train_on_every_kind_of_data(name: str, tmp_path: Path):
    training = find_training(bench(tmp_path, torch), name)
    for kind in ("synthetic_one", "cold"):
        training.begin(kind)()
    training.close()


def test_processes_under_torchrun_measure_their_collectives(tmp_path: Path):
    script = tmp_path / "run.py"
    script.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from benchmarks import collectives, command, suite\n"
        "collectives._SIZES = {'full': (4, 16, 64)}\n"
        "collectives.SUSTAINED_S = 0.01\n"
        "suite.SUBJECTS = (collectives.collectives,)\n"
        "words = ['--no-metadata', '--device', 'cpu', '--suite', 'full', '-o', 'r.json']\n"
        "sys.exit(command.main(words))\n"
    )
    call = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone", str(script)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *call], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = read_record(tmp_path / "r.json")
    names = {dict(each.facts)["collective"] for each in found.results}
    assert {"all_reduce", "sustained"} <= names
    assert len(found.results) + 3 * sum("this backend" in s for s in found.skipped) >= 9
    assert found.links == collectives.links(list(found.results))
