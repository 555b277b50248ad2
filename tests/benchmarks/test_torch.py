"""What needs torch, on the processor; skipped, and said so, where it is not installed."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from recommender.benchmarks import blocks, collectives, matmul, memory
from recommender.benchmarks.errors import WrongResult
from recommender.benchmarks.method import Rule, measure
from recommender.benchmarks.record import read_record
from recommender.benchmarks.subject import Case
from recommender.benchmarks.training import find_training
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
    trial = memory._trial(bench(tmp_path, torch), 1, up, False)
    with pytest.raises(WrongResult):
        trial.check()
    trial.run()
    assert trial.check() == 0.0


@pytest.mark.parametrize("name", ["cnn", "transformer", "mlp"])
def test_networks_train_on_every_kind_of_data(name: str, tmp_path: Path):
    training = find_training(bench(tmp_path, torch), name)()
    for kind in ("synthetic_one", "cold"):
        training.begin(kind)()
    training.close()


def test_processes_under_torchrun_measure_their_collectives(tmp_path: Path):
    """One lacks the memory for a message of 16 KiB: all leave it out, and none waits."""
    script = tmp_path / "run.py"
    script.write_text(
        "import sys\n"
        "import os, torch\n"
        "from recommender.benchmarks import collectives, command, suite\n"
        "ones = torch.ones\n"
        "def small_gpu(*shape, **more):\n"
        "    if os.environ['RANK'] == '1' and shape[0] == 16 * 1024 // 4:\n"
        "        raise RuntimeError('out of memory')\n"
        "    return ones(*shape, **more)\n"
        "torch.ones = small_gpu\n"
        "collectives._SIZES = {'full': (4, 8, 16, 64)}\n"
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
    assert "collectives all_reduce 16 KiB: process 1: RuntimeError: out of memory" in found.skipped
    assert found.links == collectives.links(list(found.results))


def test_a_failed_process_is_named_and_not_waited_for(tmp_path: Path):
    """Two processes without torchrun's agent, which would end the other one by itself."""
    script = tmp_path / "run.py"
    script.write_text(
        "import os, sys\n"
        "from recommender.benchmarks import command, suite\n"
        "suite.SUBJECTS = ()\n"
        "words = ['--no-metadata', '--device', 'cpu', '-o', 'r.json', '--profile']\n"
        "sys.exit(command.main([*words, ('mlp', 'no_such:f')[int(os.environ['RANK'])]]))\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    running = [
        subprocess.Popen(
            [sys.executable, str(script)], cwd=tmp_path, stderr=subprocess.PIPE, text=True,
            stdout=subprocess.DEVNULL, env={**os.environ, **shared, "RANK": rank},
        )
        for rank in "01"
    ]  # fmt: skip
    said = [each.communicate(timeout=100)[1] for each in running]
    assert [each.returncode for each in running] == [2, 2], said
    assert "process 1 of 2 failed: --profile no_such:f" in said[0]
    assert "No module named" in said[1]
