"""Records and results made by hand, for tests."""

from dataclasses import replace
from pathlib import Path

from recommender.benchmarks.collectives import Line
from recommender.benchmarks.machine import Machine
from recommender.benchmarks.metadata import Place
from recommender.benchmarks.method import Interference, Result
from recommender.benchmarks.nvidia import GpuState
from recommender.benchmarks.record import Record
from recommender.benchmarks.stalls import Kind, Run, profile
from recommender.benchmarks.subject import Bench

SHAPES = (("square", 8192), ("typical", 4096), ("typical", 2048))


def bench(folder: Path, torch: object = None) -> Bench:
    """A quick suite on the processor."""
    return Bench("quick", "cpu", torch, folder)


def gemm(precision: str, kind: str, n: int, tflops: float) -> Result:
    """Matrix products at a rate, with a per cent of noise."""
    work = 2e-12 * n**3
    seconds = tuple(work / tflops * x for x in (1.01, 1.0, 0.99, 1.0, 1.0))
    facts = (("precision", precision), ("kind", kind), ("m", n), ("k", n), ("n", n))
    name = f"{precision} {n}x{n}x{n}"
    disturbed = Interference(0.01, 0.0, 0, 0.001)
    return Result("matmul", name, "TFLOP/s", work, seconds, 1e-3, 1000.0, disturbed, facts)


def record(
    tflops: float = 760.0,
    gpu: str = "NVIDIA H100 80GB HBM3",
    machine: str = "aaaa",
    taken_at: str = "2026-11-20T10:00:00+00:00",
    place: Place = Place(),  # noqa: B008 (frozen)
) -> Record:
    """A record of one GPU machine; typical shapes reach 95 and 105 % of `tflops`."""
    rates = (1.1 * tflops, 1.05 * tflops, 0.95 * tflops)
    results = [gemm("bf16", *shape, x) for shape, x in zip(SHAPES, rates, strict=True)]
    seconds = (0.01, 0.011, 0.0105)
    results.append(Result("memory", "device copy 1024 MiB", "GB/s", 30.0, seconds, 0.0))
    state = GpuState("580.1", 1755.0, 1980.0, 2619.0, 54.0, 690.0, 700.0, True)
    hardware = Machine("Xeon", 208, 1800.0, "Linux x86_64", gpu, 8, 79.6, machine)
    links = (("all_reduce 8 nccl", Line(3e-5, 3.6e11, 0.999, (0.01, -0.02, 0.01))),)
    software = {"python": "3.11.9", "numpy": "2.4.0", "torch": "2.9.0", "driver": "580.1"}
    return Record(
        taken_at, "quick", "cuda", hardware, place, software, tuple(results), ("fp8: no",), links,
        (state, replace(state, mhz=None)), profile(runs()),
    )  # fmt: skip


def runs(
    one: float = 0.10, every: float = 0.12, cached: float = 0.15, cold: float = 0.25
) -> tuple[Run, ...]:
    """Four runs whose steps take so many seconds, with a little noise of mean zero."""
    kinds: tuple[tuple[Kind, float, int], ...] = (
        ("synthetic_one", one, 1), ("synthetic_all", every, 8),
        ("cached", cached, 8), ("cold", cold, 8),
    )  # fmt: skip
    noise = (1.002, 0.998)
    return tuple(
        Run(kind, gpus, 16, tuple(step * noise[i // 2 % 2] for i in range(40)))
        for kind, step, gpus in kinds
    )
