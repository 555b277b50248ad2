"""How long a suite will take on this machine, said before it starts.

Probes of some milliseconds tell how fast the machine computes, copies and writes at the moment,
whoever else uses it. Each case then takes its warm-up, its repetitions by the rule, and what is
drawn and checked next to them. Pictures and links are taken to be usual ones.
"""

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from .input_pipeline import BLOCK_MIB, write_safely
from .method import MAX_OVERTIME, MIN_REPEATS, TOGETHER_S, Rule
from .subject import Case

_SIDE, _COPIED = 512, 32 * 2**20  # of the probes: a product of some ms, more than most caches
_PROBES = 15
_MIB, _WRITTEN_MIB = 2**20, 32
_USED = 0.3  # of a case's time, where nothing disturbs: medians are known before it is up
_UNSTEADY = 1.1  # the slowest probe over the median one: the machine is not idle
_FIXED_S = 0.02
# Where others use the machine, what the probes' moments miss: geometric mean over four quick suites
# (1.05 to 1.9) at loads of 5 to 11 on two cores, 2026-11-21.
_SHARED = 1.3
# Four processes that wait for each other, and threads that load: the slowest counts. On two cores
# at a load of 8 links moved 0.16 GB/s, and a core prepared 50 pictures a second (2026-11-21).
_SHARED_LINKS, _SHARED_LOADERS = 2.0, 3.0
# Operations of a training step on 16 pictures, without torch's own seconds between them.
_STEP_TFLOP = {"cnn": 0.005, "transformer": 0.010, "mlp": 0.0001}
_BLOCKS = 0.5  # of the rate of plain products, what a training reaches
_STEP_S, _GPU_STEP_S, _OWN_PROFILE_S = 0.01, 0.01, 60.0
_NUMBER_S = 15e-9  # to draw a random number, or to check one of a product in float64
_DISK, _CACHED = 0.8, 4.0  # GB/s, of a disk that tells nothing and of the page cache
_DRAWN = 0.6  # GB/s of random bytes, and of comparing them
_SAMPLES = 150.0  # a second and core, decoded and augmented
_GPU_FLOPS, _GPU_GB = 100.0, 20.0  # TFLOP/s and GB/s (PCIe) of any GPU of a cloud: short anyway
_MESSAGE_S, _MESSAGE_GB = 1e-3, 0.4  # of collectives on processors
_GPU_MESSAGE_S, _GPU_MESSAGE_GB = 5e-5, 10.0


@dataclass(frozen=True, slots=True)
class Probe:
    """What the processor does at the moment."""

    tflops: float  # fp32
    gb_per_s: float  # of a copy, read and written
    fresh_gb_per_s: float  # of memory that the system gives page by page
    disk_gb_per_s: float  # written and waited for
    busy: bool  # the probes differ: repetitions will


def probe(folder: Path) -> Probe:
    """Time a product, a copy and a write to the disk of a folder."""
    a = np.ones((_SIDE, _SIDE), np.float32)
    out = np.empty_like(a)
    start = perf_counter()
    source = np.ones(_COPIED // 8)
    target = np.zeros_like(source)
    target[:] = 1.0
    fresh = perf_counter() - start
    products = _seconds(lambda: np.matmul(a, a, out))
    copies = _seconds(lambda: np.copyto(target, source))
    return Probe(
        tflops=2e-12 * _SIDE**3 / median(products),
        gb_per_s=2e-9 * _COPIED / median(copies),
        fresh_gb_per_s=2e-9 * _COPIED / fresh,
        disk_gb_per_s=_disk(folder),
        busy=any(max(times) > _UNSTEADY * median(times) for times in (products, copies)),
    )


def _disk(folder: Path) -> float:
    path, block = (
        folder / f"recommend-{uuid.uuid4().hex}.bench",
        np.random.default_rng().bytes(_MIB),
    )
    try:
        marks = [perf_counter()]
        for _ in range(2):  # the first one waits for memory too
            write_safely(path, block, _WRITTEN_MIB)
            marks.append(perf_counter())
        return _WRITTEN_MIB * _MIB * 1e-9 / min(b - a for a, b in pairwise(marks))
    except OSError:  # full or read-only: its cases will say so, and take no time
        return _DISK
    finally:
        path.unlink(missing_ok=True)


def _seconds(run: Callable[[], object]) -> list[float]:
    times = []
    for _ in range(_PROBES + 1):
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    return times[1:]


def suite_seconds(cases: Iterable[Case], rule: Rule, gpu: bool, found: Probe) -> float:
    """The seconds of all cases."""
    shared = _SHARED if found.busy else 1.0
    return shared * sum(_case(case, rule, gpu, found) for case in cases)


def profile_seconds(name: str, steps: int, batch: int, cores: int, gpu: bool, now: Probe) -> float:
    """The seconds of so many steps on each of four kinds of data; of the user's own, a guess."""
    if name not in _STEP_TFLOP:
        return _OWN_PROFILE_S
    train = _GPU_STEP_S if gpu else _STEP_TFLOP[name] / (_BLOCKS * now.tflops) + _STEP_S
    load = batch / (_SAMPLES * cores) * (_SHARED_LOADERS if now.busy else 1.0)
    return steps * 2 * (train + max(train, load))


def message_seconds(size: int, gpu: bool, busy: bool) -> float:
    """The seconds of one collective of so many bytes."""
    if gpu:
        return _GPU_MESSAGE_S + size * 1e-9 / _GPU_MESSAGE_GB
    return (_SHARED_LINKS if busy else 1.0) * (_MESSAGE_S + size * 1e-9 / _MESSAGE_GB)


def _case(case: Case, rule: Rule, gpu: bool, found: Probe) -> float:
    size = case.facts.get("bytes", 0)
    size = size if isinstance(size, int) else 0
    if case.subject == "collectives":
        rounds = rule.warm_up + 2 * rule.least
        long = case.facts.get("seconds")  # of one repetition of the sustained one
        return rounds * (float(str(long)) if long else message_seconds(size, gpu, found.busy))
    run = case.work / _rate(case, gpu, found)
    own = gpu and case.subject in ("matmul", "memory", "blocks", "transfer")
    predictable = case.subject in ("matmul", "memory", "blocks", "transfer") and (
        own or not found.busy
    )
    used = _USED if predictable else 1.0
    most = rule.most * (max(run, TOGETHER_S) if own else run)
    wanted = max(rule.least * run, min(used * rule.most_s, most))
    measured = min(wanted, max(MAX_OVERTIME * rule.most_s, MIN_REPEATS * run))
    warm = min(rule.warm_up * run, rule.most_s + run)
    return _FIXED_S + warm + measured + _checks_s(case, size, gpu, found)


def _rate(case: Case, gpu: bool, found: Probe) -> float:
    """In the case's unit per second."""
    if case.subject in ("matmul", "blocks"):
        times = {"fp64": 0.5, "bf16": 2.0}.get(str(case.facts.get("precision")), 1.0)
        return _GPU_FLOPS if gpu else times * found.tflops
    if case.subject == "memory":
        return found.gb_per_s
    if case.subject == "transfer":
        return _GPU_GB
    if case.unit == "samples/s":
        return _SAMPLES * float(str(case.facts["threads"]))
    return _CACHED if case.facts.get("cold") is False else found.disk_gb_per_s


def _checks_s(case: Case, size: int, gpu: bool, found: Probe) -> float:
    """What is drawn before and checked after."""
    if case.subject == "matmul":
        m, k, n = (float(str(case.facts[name])) for name in "mkn")
        drawn = 0.0 if gpu else m * k + k * n
        return _NUMBER_S * (drawn + k * n)
    if case.subject in ("memory", "transfer"):
        return 2e-9 * size / found.fresh_gb_per_s + 4e-9 * size / found.gb_per_s
    drawn = 2e-9 * min(size, BLOCK_MIB * _MIB) * (1 / _DRAWN + 1 / found.fresh_gb_per_s)
    return drawn + 1e-9 * size * (
        1 / found.disk_gb_per_s + 1 / _CACHED
    )  # written once more, and compared
