"""How many bytes a second a device moves through its memory, and between a machine's and its GPU's.

A copy reads and writes each byte once, and both count. Arrays that fit into a cache would measure
the cache: the sizes here are several times the largest one of today's processors and GPUs.

Pinned pages are read by the GPU itself; pageable ones are copied once more by the processor.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from . import ceilings
from .errors import Skipped, WrongResult
from .subject import Bench, Case, Trial

MIB = 2**20
_GIGA = 1e-9
_SIZES_MIB = {"quick": (512,), "full": (512,)}
_GPU_SIZES_MIB = {"quick": (1024,), "full": (1024, 4096)}


def memory(bench: Bench) -> Iterator[Case | Skipped]:
    """A copy in one thread, and where torch is there with all of them or on the GPU."""
    for mib in _SIZES_MIB[bench.suite]:
        yield _case(f"host copy {mib} MiB, 1 thread", mib, partial(_numpy_trial, mib), None)
    if bench.torch is None:
        yield Skipped("memory, all threads: torch is not installed")
        return
    sizes = _GPU_SIZES_MIB if bench.device == "cuda" else _SIZES_MIB
    where = "device" if bench.device == "cuda" else "host"
    for mib in sizes[bench.suite]:
        trial = partial(_torch_trial, bench, mib)
        ceiling = ceilings.gpu_memory(bench.gpu)
        yield _case(f"{where} copy {mib} MiB", mib, trial, ceiling)


def _case(name: str, mib: int, setup: "partial[Trial]", ceiling: float | None) -> Case:
    facts: dict[str, object] = {"bytes": mib * MIB, "where": name.partition(" ")[0]}
    return Case("memory", name, "GB/s", 2 * _GIGA * mib * MIB, setup, ceiling, facts)


def _numpy_trial(mib: int) -> Trial:
    # A random block of 8 MiB over and over: no processor looks at what it copies, and to draw
    # 512 MiB takes ten times as long as to copy them.
    block = np.random.default_rng(mib).integers(0, 2**62, MIB)
    source = np.empty(mib * MIB // 8, np.int64)
    for start in range(0, len(source), len(block)):
        source[start : start + len(block)] = block[: len(source) - start]
    target = np.zeros_like(source)  # written once, so that its pages exist
    return Trial(
        partial(np.copyto, target, source),
        lambda: _same(bool(np.array_equal(source, target)), mib),
    )


def _torch_trial(bench: Bench, mib: int) -> Trial:
    torch = bench.torch
    count = mib * MIB // 8
    block = torch.randint(0, 2**62, (min(count, MIB),), device=bench.device)
    source = block.repeat(-(-count // len(block)))[:count]
    target = torch.zeros_like(source)
    return Trial(
        lambda: target.copy_(source), lambda: _same(bool(torch.equal(source, target)), mib)
    )


def _same(equal: bool, mib: int) -> float:
    if not equal:
        raise WrongResult(f"a copy of {mib} MiB differs from its source")
    return 0.0


_TRANSFER_SIZES_MIB = {"quick": (256,), "full": (16, 256, 1024)}


def transfer(bench: Bench) -> Iterator[Case | Skipped]:
    """Both directions, pinned and not."""
    if bench.device != "cuda":
        yield Skipped("transfer between host and GPU: there is no GPU")
        return
    for mib in _TRANSFER_SIZES_MIB[bench.suite]:
        for up in (True, False):
            for pinned in (True, False):
                way = f"{'to' if up else 'from'} GPU {'pinned' if pinned else 'pageable'}"
                facts: dict[str, object] = {"bytes": mib * MIB, "up": up, "pinned": pinned}
                setup = partial(_trial, bench, mib, up, pinned)
                work = mib * MIB * 1e-9
                yield Case("transfer", f"{way} {mib} MiB", "GB/s", work, setup, None, facts)


def _trial(bench: Bench, mib: int, up: bool, pinned: bool) -> Trial:
    torch = bench.torch
    host = torch.randint(0, 2**62, (mib * MIB // 8,))
    host = host.pin_memory() if pinned else host
    random = host.clone()
    device = torch.zeros_like(host, device=bench.device)
    if not up:
        device.copy_(host)
    source, target = (host, device) if up else (device, host)
    if not up:
        host.zero_()

    def check() -> float:
        if not torch.equal(random, target.cpu()):
            raise WrongResult(f"a transfer of {mib} MiB differs from its source")
        return 0.0

    return Trial(lambda: target.copy_(source, non_blocking=pinned), check)
