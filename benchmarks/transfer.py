"""How many bytes a second go between the memory of a machine and that of its GPU.

Pinned pages are read by the GPU itself; pageable ones are copied once more by the processor.
"""

from collections.abc import Iterator
from functools import partial

from benchmarks.errors import Skipped, WrongResult
from benchmarks.subject import Bench, Case, Trial

MIB = 2**20
_SIZES_MIB = {"quick": (256,), "full": (16, 256, 1024)}


def transfer(bench: Bench) -> Iterator[Case | Skipped]:
    """Both directions, pinned and not."""
    if bench.device != "cuda":
        yield Skipped("transfer between host and GPU: there is no GPU")
        return
    for mib in _SIZES_MIB[bench.suite]:
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
