"""The way of a GPU, where there is none: shapes by torch's own rules, the rest on the processor.

`FakeTensorMode` knows what the 8-bit products of a GPU want of shapes, layouts and types, and
computes nothing. The stand-in turns every "cuda" into "cpu" and answers for driver and properties:
what it measures is the processor, what it tests is that the suite of a GPU runs to its end.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from recommender.benchmarks import blocks, command, matmul, memory, nvidia, suite, training
from recommender.benchmarks.method import Rule
from recommender.benchmarks.record import read_record
from recommender.benchmarks.subject import Bench, Case, GpuFacts

torch = pytest.importorskip("torch", reason="torch is not installed; '.[test]' does not pull it")
H100 = GpuFacts("H100", 80.0, (9, 0), 132, 1830.0, 2619.0, 5120)
SMI = "580.95.05, 1755, 1980, 2619, 54, 689.31, 700.00, 0, 0x0000000000000004"


@pytest.mark.parametrize("extent", ["quick", "full"])
def test_a_gpu_would_take_the_products_of_every_precision_and_shape(extent: str, tmp_path: Path):
    from torch._subclasses.fake_tensor import FakeTensorMode

    own = Bench(extent, "cuda", torch, tmp_path, gpu=H100)  # type: ignore[arg-type]
    found = [each for each in matmul.matmul(own) if isinstance(each, Case)]
    assert {each.facts["precision"] for each in found} == {
        "fp32", "tf32", "bf16", "fp16", "fp8", "int8",
    }  # fmt: skip
    for each in found:
        with FakeTensorMode():
            out = each.setup().run()
        assert out.shape == (each.facts["m"], each.facts["n"])  # type: ignore[attr-defined]
        assert out.device.type == "cuda"  # type: ignore[attr-defined]


class OnProcessor(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
    """Turns "cuda" into "cpu" in every call of torch."""

    def __torch_function__(
        self, function: object, types: object, words: Sequence[object] = (), named: object = None
    ) -> object:
        given: Mapping[str, object] = named or {}  # type: ignore[assignment]
        if function is torch.Tensor.pin_memory:
            return words[0]
        reported = {key: self.there(value) for key, value in given.items()}
        return function(*map(self.there, words), **reported)  # type: ignore[operator]

    @staticmethod
    def there(value: object) -> object:
        named = isinstance(value, str) and value == "cuda"
        return "cpu" if named or isinstance(value, torch.device) and value.type == "cuda" else value


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A processor in place of an H100, with small sizes."""
    own = SimpleNamespace(
        name="NVIDIA H100 80GB HBM3", total_memory=80 * 2**30, major=9, minor=0, uuid="7",
        multi_processor_count=132, memory_bus_width=5120,
    )  # fmt: skip
    answers = {
        "is_available": lambda: True, "device_count": lambda: 1, "set_device": lambda index: None,
        "get_device_properties": lambda index: own, "synchronize": lambda: None,
        "is_bf16_supported": lambda *_: True,
    }  # fmt: skip
    for name, answer in answers.items():
        monkeypatch.setattr(torch.cuda, name, answer)
    monkeypatch.setattr(nvidia, "state", lambda uuid: nvidia.parse(SMI) if uuid == "GPU-7" else 1)
    monkeypatch.setattr(matmul, "_SQUARES", {("cuda", "quick"): (64,)})
    monkeypatch.setattr(matmul, "_WIDTH", {"cuda": (32, 32)})
    monkeypatch.setattr(memory, "_SIZES_MIB", {"quick": (1,)})
    monkeypatch.setattr(memory, "_GPU_SIZES_MIB", {"quick": (1,)})
    monkeypatch.setattr(memory, "_SIZES_MIB", {"quick": (1,)})
    monkeypatch.setattr(blocks, "_CONVOLUTION", {"cuda": (2, 8, 14)})
    monkeypatch.setattr(blocks, "_ATTENTION", {"cuda": (1, 2, 32, 16)})
    monkeypatch.setattr(suite, "QUICK", Rule(1, 3, 3, 0.1, 1.0))
    monkeypatch.setattr(training, "_WIDTH", {"cuda": 2})
    monkeypatch.setattr(training, "_STEPS", 20)
    monkeypatch.setattr(training, "cpus", lambda: 1)
    monkeypatch.setattr(
        suite,
        "SUBJECTS",
        (matmul.matmul, memory.memory, memory.transfer, blocks.blocks),
    )
    monkeypatch.chdir(tmp_path)
    with OnProcessor(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*CUDA is not available.*")
        yield


@pytest.mark.usefixtures("gpu")
def test_the_suite_of_a_gpu_runs_to_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["--no-metadata", "--device", "cuda", "--profile", "cnn", "-o", "r.json"]
    assert command.main([*words, "--usd-per-hour", "4"]) == 0
    found = read_record(tmp_path / "r.json")
    assert (found.device, found.machine.gpu, found.machine.gpus) == (
        "cuda", "NVIDIA H100 80GB HBM3", 1,
    )  # fmt: skip
    assert found.skipped == ("interconnect stall: one process; start it under torchrun",)
    names = {each.case.partition(" ")[0] for each in found.results if each.benchmark == "matmul"}
    assert names == {"fp32", "tf32", "bf16", "fp16", "fp8", "int8"}
    kinds = [each.benchmark for each in found.results]
    assert (kinds.count("transfer"), kinds.count("blocks"), kinds.count("memory")) == (4, 2, 2)
    copy = next(each for each in found.results if each.case == "device copy 1 MiB")
    assert copy.ceiling == pytest.approx(3352, rel=0.01)
    assert found.software["driver"] == "580.95.05"
    assert found.gpu_states[0].slowed
    assert found.profile is not None
    assert {each.name for each in found.profile.stalls} == {"preparation", "fetch"}
    assert "power or heat held the GPU's clock down" in capsys.readouterr().out
