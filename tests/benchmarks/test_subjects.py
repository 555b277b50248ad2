"""Each subject counts its work rightly, checks its result, and names its ceiling."""

import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from recommender.benchmarks import (
    blocks,
    ceilings,
    checkpoint,
    input_pipeline,
    matmul,
    memory,
    nvidia,
)
from recommender.benchmarks.errors import BenchError, Skipped, WrongResult
from recommender.benchmarks.method import Rule, measure
from recommender.benchmarks.subject import Bench, Case, GpuFacts
from tests.benchmarks.machines import bench

ONCE = Rule(warm_up=0, least=3, most=3, most_s=0.0, half_width=1.0)
# multiprocessors, highest SM clock (MHz), memory clock (MHz), bus (bit): NVIDIA's data sheets
A100 = GpuFacts("A100", 40.0, (8, 0), 108, 1410.0, 1215.0, 5120)
H100 = GpuFacts("H100", 80.0, (9, 0), 132, 1830.0, 2619.0, 5120)
T4 = GpuFacts("T4", 15.0, (7, 5), 40, 1590.0, 5001.0, 256)
V100 = GpuFacts("V100", 16.0, (7, 0), 80, 1530.0, 877.0, 4096)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matmul, "_SQUARES", {("cpu", "quick"): (32, 64)})
    monkeypatch.setattr(matmul, "_WIDTH", {"cpu": (32, 32)})
    monkeypatch.setattr(memory, "_SIZES_MIB", {"quick": (1,)})
    monkeypatch.setattr(checkpoint, "_SIZES_MIB", {"quick": (1,)})
    monkeypatch.setattr(input_pipeline, "_FILE_MIB", {"quick": 1})


def cases(found: object) -> dict[str, Case]:
    return {each.name: each for each in found if isinstance(each, Case)}


@pytest.mark.usefixtures("small")
def test_a_product_counts_two_operations_per_term_and_agrees_with_float64(tmp_path: Path):
    found = cases(matmul.matmul(bench(tmp_path)))
    assert found["fp32 64x64x64"].work == pytest.approx(2 * 64**3 / 1e12)
    assert found["fp32 32x32x96"].work == pytest.approx(2 * 32 * 32 * 96 / 1e12)
    assert 0 < measure(found["fp32 64x64x64"], ONCE, None).error < 1e-5
    assert measure(found["fp64 64x64x64"], ONCE, None).error < 1e-13


def test_a_wrong_product_is_refused():
    a = np.eye(32, dtype=np.float32)
    with pytest.raises(WrongResult, match="fp32"):
        matmul.error_of("fp32", a, a, np.float32(1.001) * a)
    with pytest.raises(WrongResult):
        matmul.error_of("fp32", a, a, np.full_like(a, np.nan))
    assert matmul.error_of("bf16", a, a, np.float32(1.001) * a) == pytest.approx(1e-3, rel=1e-3)


def test_a_gpu_is_measured_in_the_precisions_it_has(tmp_path: Path):
    def of(gpu: GpuFacts) -> tuple[str, ...]:
        return matmul.precisions(Bench("quick", "cuda", object(), tmp_path, gpu=gpu))

    assert of(H100) == ("fp32", "tf32", "bf16", "fp16", "fp8", "int8")
    assert of(A100) == ("fp32", "tf32", "bf16", "fp16", "int8")
    assert of(T4) == ("fp32", "fp16", "int8")
    assert of(V100) == ("fp32", "fp16")


@pytest.mark.parametrize(
    ("gpu", "precision", "peak"),
    [
        (A100, "bf16", 312), (A100, "tf32", 156), (A100, "fp32", 19.5), (A100, "int8", 624),
        (H100, "bf16", 989), (H100, "fp8", 1979), (H100, "fp32", 61.9),
        (T4, "fp16", 65), (T4, "fp32", 8.1), (V100, "fp16", 125), (V100, "fp32", 15.7),
    ],
)  # fmt: skip
def test_ceilings_are_the_vendors_peaks(gpu: GpuFacts, precision: str, peak: float):
    assert ceilings.gpu_flops(gpu, precision) == pytest.approx(peak, rel=0.01)


@pytest.mark.parametrize(("gpu", "peak"), [(A100, 1555), (H100, 3352), (T4, 320), (V100, 898)])
def test_memory_ceilings_are_the_vendors(gpu: GpuFacts, peak: float):
    assert ceilings.gpu_memory(gpu) == pytest.approx(peak, rel=0.01)


def test_a_gpus_cases_carry_their_ceilings(tmp_path: Path):
    """Listed without a GPU; measured where one is."""
    own = Bench("quick", "cuda", object(), tmp_path, gpu=H100)
    products = cases(matmul.matmul(own))
    assert products["bf16 8192x8192x8192"].ceiling == pytest.approx(989, rel=0.01)
    assert products["fp8 4096x4096x16384"].facts["kind"] == "typical"
    assert cases(memory.memory(own))["device copy 1024 MiB"].ceiling == pytest.approx(
        3352, rel=0.01
    )
    assert len(cases(memory.transfer(own))) == 4
    assert set(cases(blocks.blocks(own))) == {"convolution bf16", "attention bf16"}


def test_what_a_gpu_lacks_is_skipped_with_a_reason(tmp_path: Path):
    own = Bench("quick", "cuda", object(), tmp_path, gpu=V100)
    said = [str(each) for each in matmul.matmul(own) if isinstance(each, Skipped)]
    assert said == [
        f"matmul {p}: V100 has no units for it" for p in ("tf32", "bf16", "fp8", "int8")
    ]


def test_a_processor_cannot_exceed_its_vector_units():
    avx2 = "model name : X\nflags : fpu avx avx2 fma\n"
    assert ceilings.cpu_flops("fp32", 4, avx2) == pytest.approx(
        4 * ceilings.highest_ghz(ceilings._read(ceilings._FREQUENCY)) * 32 / 1e3
    )
    assert ceilings.cpu_flops("fp64", 4, avx2) == ceilings.cpu_flops("fp32", 2, avx2)
    assert ceilings.cpu_flops("fp32", 4, "flags : fpu\n") is None
    assert ceilings.highest_ghz("3500000\n") == 3.5
    assert ceilings.highest_ghz("") == ceilings.MAX_GHZ


@pytest.mark.usefixtures("small")
def test_a_copy_counts_both_directions(tmp_path: Path):
    (found,) = cases(memory.memory(bench(tmp_path))).values()
    assert found.work == pytest.approx(2 * 2**20 / 1e9)
    assert measure(found, ONCE, None).error == 0


def test_without_a_gpu_transfers_are_skipped_with_a_reason(tmp_path: Path):
    (found,) = memory.transfer(bench(tmp_path))
    assert isinstance(found, Skipped)
    assert "no GPU" in str(found)


@pytest.mark.usefixtures("small")
def test_a_checkpoint_is_written_read_back_and_removed(tmp_path: Path):
    found = cases(checkpoint.checkpoint(bench(tmp_path)))
    assert {name.partition(" ")[0] for name in found} == {"write", "read"}
    for each in found.values():
        assert each.work == pytest.approx(2**20 / 1e9)
        assert len(measure(each, ONCE, None).seconds) == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("small")
def test_a_mounted_path_is_measured_next_to_the_disk(tmp_path: Path):
    (tmp_path / "mounted").mkdir()
    own = replace(bench(tmp_path), mount=tmp_path / "mounted")
    found = cases(checkpoint.checkpoint(own))
    assert {"write disk 1 MiB", "write mount 1 MiB"} <= set(found)
    trial = found["write mount 1 MiB"].setup()
    assert trial.timed is not None
    assert trial.timed() > 0
    assert len(list((tmp_path / "mounted").iterdir())) == 1
    assert trial.check() == 0.0
    trial.close()
    assert list((tmp_path / "mounted").iterdir()) == []


def test_input_is_prepared_and_read(tmp_path: Path):
    found = cases(input_pipeline.inputs(bench(tmp_path)))
    assert any("1 core" in name for name in found)
    assert any("read cold" in name for name in found)
    for each in found.values():
        assert measure(each, ONCE, None).median > 0
    assert list(tmp_path.iterdir()) == []


def test_a_sample_survives_its_coding_and_comes_out_normalised():
    pixels = input_pipeline.picture(3)
    name, encoded, decode = input_pipeline.coder(pixels)
    back = decode(encoded)
    assert back.shape == pixels.shape
    if name == "deflate":
        assert np.array_equal(back, pixels)
    cut = input_pipeline.augment(back, np.random.default_rng(1))
    assert cut.shape == (224, 224, 3)
    assert cut.dtype == np.float32
    assert abs(float(cut.mean())) < 1


class _Store(BaseHTTPRequestHandler):
    """An object store of one process: put, get, delete."""

    objects: dict[str, bytes] = {}
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            self.objects[self.path] = self._chunks()
        else:
            self.objects[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(200, b"")

    def do_GET(self) -> None:
        self._answer(200, self.objects[self.path])

    def do_DELETE(self) -> None:
        del self.objects[self.path]
        self._answer(204, b"")

    def _chunks(self) -> bytes:
        data = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def _answer(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        pass


@pytest.mark.usefixtures("small")
def test_an_object_store_is_measured_and_left_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), _Store) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        at = f"http://127.0.0.1:{server.server_address[1]}"
        own = Bench("quick", "cpu", None, tmp_path, "s3://bucket/runs", at)
        found = {n: c for n, c in cases(checkpoint.checkpoint(own)).items() if " s3 " in n}
        assert len(found) == 2
        for each in found.values():
            assert measure(each, ONCE, None).median > 0
        server.shutdown()
    assert _Store.objects == {}


def test_a_wrong_name_of_a_store_is_reported(tmp_path: Path):
    own = Bench("quick", "cpu", None, tmp_path, "bucket/runs")
    with pytest.raises(BenchError, match="s3://bucket/prefix"):
        list(checkpoint.checkpoint(own))


def test_the_driver_is_read():
    line = "580.95.05, 1755, 1980, 2619, 54, 689.31, 700.00, 98, 0x0000000000000004\n"
    found = nvidia.parse(line)
    assert found is not None
    assert (found.driver, found.mhz, found.max_mhz) == ("580.95.05", 1755.0, 1980.0)
    assert found.slowed
    assert found.busy == pytest.approx(0.98)
    idle = nvidia.parse("470.1, 300, 1590, 5001, [N/A], 9.1, 70, 0, 0x0000000000000001")
    assert idle is not None
    assert idle.celsius is None
    assert not idle.slowed
    assert nvidia.parse("No devices were found") is None


@pytest.mark.parametrize(
    "reasons", ["clocks_event_reasons.active", "clocks_throttle_reasons.active"]
)
def test_old_and_new_drivers_are_queried_by_their_own_names_while_the_gpu_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reasons: str
):
    """A driver that does not know a field answers nothing at all."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text(
        f'#!/bin/sh\ncase "$*" in *{reasons}*) ;; *) exit 2 ;; esac\n'
        "case \"$*\" in *'-i GPU-7 '*) ;; *) exit 3 ;; esac\n"
        "echo '535.1, 1755, 1980, 2619, 54, 689.31, 700.00, 40, 0x0000000000000004'\n"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    watch = nvidia.Watch("GPU-7", every_s=60.0)
    states = watch.stop()
    assert [(each.mhz, each.slowed, each.busy) for each in states] == [(1755.0, True, 0.4)]


def test_without_a_driver_nothing_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert nvidia.Watch("0").stop() == ()
