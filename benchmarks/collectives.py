"""How fast GPUs exchange gradients, fitted to a latency and a bandwidth: t = a + bytes / B.

Software may treat large messages otherwise: Gloo takes fresh memory for every all-gather and
reduce-scatter, which glibc gives back to the system from 32 MiB on (M_MMAP_THRESHOLD's largest),
so that each call pays for its pages and a byte costs twice as much. Such times are two lines.

Under torchrun: torch.distributed, NCCL between GPUs and Gloo between processors. Started alone
on a processor: a ring of four local processes over plain sockets. Rates are those of the busiest
link, as nccl-tests counts them: bytes · 2(n-1)/n for an all-reduce, bytes · (n-1)/n else, so that
they can be compared with the link and do not depend on n.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import BenchError, Skipped, WrongResult, error_text
from .estimate import message_seconds
from .method import Result
from .ring import COLLECTIVES, measure_ring
from .subject import Bench, Case, Trial

GOOD = 0.95  # share of the variance that a line must explain to be used
_MIN = 3  # sizes of a line
KIB = 2**10
LOCAL_PROCESSES = 4
# Gloo's times break at 32 MiB (`fit.py`): three sizes and more on either side.
_LARGE = (16384, 24576, 32768, 49152, 65536)
_START_S = 0.7  # four processes that import numpy
SUSTAINED_S = 10.0  # of one repetition; credits of small machines last 5 to 60 minutes (AWS)


@dataclass(frozen=True, slots=True)
class Line:
    """What was fitted, and how well."""

    latency_s: float
    bytes_per_s: float
    r2: float  # share of the variance of the seconds that the line explains
    residuals: tuple[float, ...]  # measured over fitted, minus one
    least_bytes: float = 0.0  # of the messages that it is for: above zero for a second line


def fit_line(sizes: Sequence[float], seconds: Sequence[float]) -> Line:
    """Fit by least squares, each error weighed by one over its seconds.

    A message is many blocks, each with a noise of its own: the variance of their sum grows like
    the seconds. Plain squares would leave the latency to the noise of the largest message,
    relative ones would let messages that fit into a cache decide the bandwidth.

    Neither part can be negative: a negative latency is set to zero and the other fitted alone.
    Raises ValueError for fewer than three sizes, or seconds that do not grow with the size.
    """
    x, t = np.asarray(sizes, float), np.asarray(seconds, float)
    few = len(x) < _MIN or len(np.unique(x)) < _MIN
    if few or len(x) != len(t) or not (t > 0).all():
        raise ValueError("a line needs three message sizes with positive seconds")
    latency, slope = _solved(x, t)
    fitted = latency + slope * x
    return Line(latency, 1 / slope, _explained(t, fitted), tuple((t / fitted - 1).tolist()))


def fit_lines(sizes: Sequence[float], seconds: Sequence[float]) -> tuple[Line, ...]:
    """Fit one line, or two where one explains less than 95 % and two do better.

    The break is where two lines, each of three sizes or more, leave least; both tell the share
    of the variance that they explain together. Raises as `fit_line`.
    """
    order = np.argsort(sizes)
    x, t = np.asarray(sizes, float)[order], np.asarray(seconds, float)[order]
    whole = fit_line(x.tolist(), t.tolist())
    best: tuple[Line, ...] = (whole,)
    if whole.r2 >= GOOD:
        return best
    for cut in range(_MIN, len(x) - _MIN + 1):
        try:
            parts = [fit_line(x[s].tolist(), t[s].tolist()) for s in (slice(cut), slice(cut, None))]
        except ValueError:  # a part that does not grow is noise, no line
            continue
        fitted = np.concatenate(
            [
                p.latency_s + x[s] / p.bytes_per_s
                for p, s in zip(parts, (slice(cut), slice(cut, None)), strict=True)
            ]
        )
        r2 = _explained(t, fitted)
        if r2 > best[0].r2:
            best = (replace(parts[0], r2=r2), replace(parts[1], r2=r2, least_bytes=float(x[cut])))
    return best


def _solved(x: NDArray[np.float64], t: NDArray[np.float64]) -> tuple[float, float]:
    weight = 1 / np.sqrt(t)
    columns = np.column_stack([weight, x * weight])
    (latency, slope), *_ = np.linalg.lstsq(columns, t * weight, rcond=None)
    if latency < 0:
        latency, slope = 0.0, float(x.sum() / (x**2 / t).sum())
    if slope <= 0:
        raise ValueError("seconds do not grow with the size of the message")
    return float(latency), float(slope)


def _explained(t: NDArray[np.float64], fitted: NDArray[np.float64]) -> float:
    unexplained, all_of_it = ((t - fitted) ** 2).sum(), ((t - t.mean()) ** 2).sum()
    return float(1 - unexplained / all_of_it) if all_of_it > 0 else 0.0


_SIZES = {"quick": (4, 64, 512, 2048, 8192), "full": (4, 16, 64, 256, 1024, 4096, *_LARGE)}
_GPU_SIZES = {"quick": (4, 256, 16384, 262144), "full": (4, 64, 1024, 16384, 262144, 1048576)}
_REPEATS = {"quick": 7, "full": 15}
_LIMIT = timedelta(minutes=5)  # of one collective: all processes are there when it begins


def collectives(bench: Bench) -> Iterator[Case | Skipped]:
    """Every collective at every size among the processes that torchrun started."""
    if bench.world == 1:
        yield Skipped("collectives between GPUs and machines: start it under torchrun")
        return
    how = f"{bench.world} {'nccl' if bench.device == 'cuda' else 'gloo'}"
    if bench.machines > 1:
        how += f" on {bench.machines} machines"
    sizes = _GPU_SIZES if bench.device == "cuda" else _SIZES
    for name in COLLECTIVES:
        for kib in sizes[bench.suite]:
            trial = partial(_trial, bench, name, kib * KIB)
            yield _case(name, how, (bench.world, bench.machines), kib * KIB, trial)
    if not bench.quick:
        size = sizes[bench.suite][-1] * KIB
        shape = bench.world, bench.machines
        case = _case("sustained", how, shape, size, partial(_sustained, bench, size))
        yield replace(case, facts={**case.facts, "seconds": SUSTAINED_S})


def ring_seconds(bench: Bench, busy: bool) -> float:
    """About how long `ring` takes."""
    sizes, repeats = _SIZES[bench.suite], _REPEATS[bench.suite]
    messages = sum(message_seconds(kib * KIB, gpu=False, busy=busy) for kib in sizes)
    return len(COLLECTIVES) * (_START_S + (repeats + 1) * messages)


def ring(bench: Bench) -> Iterator[Result]:
    """Collectives among local processes without torch; each process times itself."""
    sizes = tuple(kib * KIB for kib in _SIZES[bench.suite])
    for name in COLLECTIVES:
        found = measure_ring(LOCAL_PROCESSES, name, sizes, _REPEATS[bench.suite])
        for size, seconds in found.items():
            case = _case(name, f"{LOCAL_PROCESSES} sockets", (LOCAL_PROCESSES, 1), size, None)
            facts = tuple(case.facts.items())
            yield Result(case.subject, case.name, case.unit, case.work, seconds, 0.0, facts=facts)


def links(results: list[Result]) -> tuple[tuple[str, Line], ...]:
    """The line or lines of every collective that was measured at three sizes and more."""
    groups: dict[str, list[Result]] = {}
    for each in results:
        if each.benchmark == "collectives":
            facts = dict(each.facts)
            groups.setdefault(f"{facts['collective']} {facts['how']}", []).append(each)
    found: list[tuple[str, Line]] = []
    for name, own in groups.items():
        busy = [each.work * 1e9 for each in own]
        try:
            lines = fit_lines(busy, [median(each.seconds) for each in own])
        except ValueError:  # too few sizes, or noise larger than the trend: no line, no claim
            continue
        found += [(name, line) for line in lines]
    return tuple(found)


def start(bench: Bench) -> None:
    """Connect the processes for collectives, once all have come."""
    if bench.world == 1:
        return
    bench.rendezvous.agree("the start of collectives")
    backend = "nccl" if bench.device == "cuda" else "gloo"
    try:
        bench.torch.distributed.init_process_group(
            backend, store=bench.rendezvous.store, rank=bench.rank, world_size=bench.world,
            timeout=_LIMIT,
        )  # fmt: skip
    except (RuntimeError, ValueError) as error:
        raise BenchError(f"{backend} cannot connect the processes: {error}") from None


def stop(bench: Bench) -> None:
    """Leave the other processes, once all are done."""
    if bench.world > 1:
        bench.rendezvous.agree("the end")
        bench.torch.distributed.destroy_process_group()


def _case(name: str, how: str, shape: tuple[int, int], size: int, setup: Any) -> Case:
    world, machines = shape
    busy = (2 if name in ("all_reduce", "sustained") else 1) * (world - 1) / world
    facts: dict[str, object] = {
        "collective": name, "how": how, "processes": world, "machines": machines,
        "bytes": size,
    }  # fmt: skip
    label = f"{name} {how} {size // KIB} KiB"
    return Case("collectives", label, "GB/s", busy * size * 1e-9, setup, None, facts)


def _trial(bench: Bench, name: str, size: int) -> Trial:
    torch: Any = bench.torch
    group = torch.distributed
    whole, part = _messages(bench, name, size)
    operation = _operation(group, name)
    # Named, or torch guesses the GPU of a barrier from the rank (and warns); Gloo wants none.
    here = [torch.cuda.current_device()] if bench.device == "cuda" else None

    def run() -> None:
        operation(whole, part)

    try:
        run()
    except (RuntimeError, NotImplementedError, ValueError) as error:
        raise Skipped(f"{name}: this backend has none ({str(error)[:60]})") from None

    def timed() -> float:
        whole.fill_(1.0)
        group.barrier(device_ids=here)
        if bench.device == "cuda":
            torch.cuda.synchronize()
        begin = perf_counter()
        run()
        if bench.device == "cuda":
            torch.cuda.synchronize()
        slowest = torch.tensor([perf_counter() - begin], device=bench.device)
        group.all_reduce(slowest, group.ReduceOp.MAX)  # it ends when the last one has it
        return float(slowest)

    return Trial(timed, lambda: _right(bench, name, operation), timed=timed)


def _messages(bench: Bench, name: str, size: int) -> tuple[Any, Any]:
    """The message and one process's part of it, on all processes or on none.

    Where the memory of one GPU does not suffice, the others would wait for it in the collective.
    """
    torch, n, problem = bench.torch, bench.world, ""
    whole = part = None
    try:
        whole = torch.ones(max(size // 4 // n, 1) * n, device=bench.device)
        part = torch.ones(len(whole) // n, device=bench.device)
    except (RuntimeError, MemoryError) as error:
        problem = f"process {bench.rank}: {error_text(error)}"
    for reported in bench.rendezvous.agree(f"{name} of {size} bytes", problem):
        if reported:
            raise Skipped(f"collectives {name} {size // KIB} KiB: {reported}")
    return whole, part


def _operation(group: Any, name: str) -> Callable[[Any, Any], object]:
    """The collective on the whole message and the part of one process."""
    # Renamed in torch 2.13 (2026); the old names are there still and warn.
    gather = getattr(group, "all_gather_single", None) or group.all_gather_into_tensor
    scatter = getattr(group, "reduce_scatter_single", None) or group.reduce_scatter_tensor
    operations: dict[str, Callable[[Any, Any], object]] = {
        "all_reduce": lambda whole, part: group.all_reduce(whole),
        "all_gather": lambda whole, part: gather(whole, part),
        "reduce_scatter": lambda whole, part: scatter(part, whole),
    }
    return operations[name]


def _sustained(bench: Bench, size: int) -> Trial:
    """All-reduces for minutes: where burst credits run out, the later repetitions are slower.

    A repetition lasts SUSTAINED_S and gives the mean of its all-reduces; the record's drift tells
    the second half from the first. Their number follows from the slowest process's time of one,
    which is the same everywhere, so that all processes do as many.
    """
    one = _trial(bench, "all_reduce", size)
    assert one.timed is not None
    timed = one.timed
    count = max(math.ceil(SUSTAINED_S / max(timed(), timed(), 1e-6)), 1)
    return Trial(one.run, one.check, timed=lambda: sum(timed() for _ in range(count)) / count)


def _right(bench: Bench, name: str, operation: Callable[[Any, Any], object]) -> float:
    """Check random whole numbers, whose sums are exact, against a sum in float64."""
    torch, n, rank = bench.torch, bench.world, bench.rank
    same = torch.Generator().manual_seed(1)  # every process knows what all of them send
    sent = torch.randint(-99, 100, (n, 3 * n), generator=same).double()
    total = sent.sum(0)
    whole = sent[rank].float().to(bench.device)
    part = whole[:3].clone()
    operation(whole, part)
    found, wanted = {
        "all_reduce": (whole, total),
        "reduce_scatter": (part, total[3 * rank : 3 * rank + 3]),
        "all_gather": (whole, sent[:, :3].reshape(-1)),
    }[name]
    if not torch.equal(found.cpu().double(), wanted):
        raise WrongResult(f"{name} among {n} processes gives a wrong sum")
    return 0.0
