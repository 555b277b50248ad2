"""What a training step waits for, from four runs that differ by one thing each (Stash, 2023).

    synthetic data, one GPU        T0    arithmetic alone
    synthetic data, all GPUs       T1    and exchange of gradients
    real data, cached              T3    and preparation
    real data, cold                T2    and fetching

    interconnect = T1 - T0    preparation = T3 - T1    fetch = T2 - T3
    network      = T1 of several machines - T1 of one

Every T is seconds per step at the same batch per GPU, the mean over all steps: a loader with w
workers delivers in bursts of w, and a median would miss the wait between them. All shares are of
the same step, that on cold data, so that T0 and the stalls add up to it. A stall below zero is
noise and is shown as it is: clipped, the mean of many would be too high.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from time import perf_counter
from typing import Literal, Protocol

from .errors import BenchError

Kind = Literal["synthetic_one", "synthetic_all", "cached", "cold"]
KINDS: tuple[Kind, ...] = ("synthetic_one", "synthetic_all", "cached", "cold")
_BATCHES = 10  # of consecutive steps: their means are nearly independent, single steps are not
_T = 2.262  # Student, 9 degrees of freedom, 95 % two-sided
_MIN_STEPS = 2 * _BATCHES


class Training(Protocol):
    """A training that can be started on each kind of data."""

    def begin(self, kind: Kind) -> Callable[[], object]:
        """Prepare a run and give what does one step of it, the device synchronised."""

    def close(self) -> object:
        """End what the runs hold."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run: the seconds of each step, warm-up left out."""

    kind: Kind
    gpus: int
    batch_per_gpu: int
    seconds: tuple[float, ...]
    machines: int = 1

    @property
    def step_s(self) -> float:
        """Mean seconds per step: what an epoch takes, over its number of steps."""
        return fmean(self.seconds)

    @property
    def error_s(self) -> float:
        """Half the 95 % interval of the mean, by batch means."""
        size = len(self.seconds) // _BATCHES
        means = [fmean(self.seconds[i * size : (i + 1) * size]) for i in range(_BATCHES)]
        return _T * math.sqrt(variance(means) / _BATCHES)

    @property
    def samples_per_s(self) -> float:
        """Samples of all GPUs per second, on the same time base for every kind."""
        return self.gpus * self.batch_per_gpu / self.step_s


@dataclass(frozen=True, slots=True)
class Stall:
    """Seconds of each step that one cause takes, with its 95 % limits."""

    name: str
    seconds: float
    low: float
    high: float
    share: float  # of the step on cold data

    @property
    def seen(self) -> bool:
        """Whether it is more than noise."""
        return self.low > 0


@dataclass(frozen=True, slots=True)
class Profile:
    """The stalls of a training on a machine, and the runs that they come from."""

    runs: tuple[Run, ...]
    compute_s: float
    step_s: float  # on cold data, all GPUs
    stalls: tuple[Stall, ...]
    training: str = ""  # as --profile named it; "" in records until November 2026

    def stall(self, name: str) -> Stall | None:
        """One of them, or None where its runs are missing."""
        return next((each for each in self.stalls if each.name == name), None)


def time_runs(
    training: Training,
    kinds: Sequence[Kind],
    steps: int,
    warm_up: int,
    gpus: int,
    batch_per_gpu: int,
    clock: Callable[[], float] = perf_counter,
    machines: int = 1,
) -> tuple[Run, ...]:
    """Run each kind; the warm-up must drain what the loader had prepared in advance."""
    runs = []
    for kind in kinds:
        step = training.begin(kind)
        for _ in range(warm_up):
            step()
        marks = [clock()]
        for _ in range(steps):
            step()
            marks.append(clock())
        seconds = tuple(b - a for a, b in zip(marks, marks[1:], strict=False))
        one = kind == "synthetic_one"
        runs.append(Run(kind, 1 if one else gpus, batch_per_gpu, seconds, 1 if one else machines))
    return tuple(runs)


def profile(runs: Sequence[Run], training: str = "") -> Profile:
    """The stalls that these runs show.

    Raises BenchError for runs that cannot be compared: other batches per GPU (a fixed global
    batch is another experiment), too few steps, or neither cached nor synthetic runs.
    """
    _refuse(runs)
    most = max(run.machines for run in runs)
    by_kind = {run.kind: run for run in runs if run.machines == most or run.kind == KINDS[0]}
    one, every = by_kind.get("synthetic_one"), by_kind.get("synthetic_all")
    alone = next((r for r in runs if r.kind == "synthetic_all" and r.machines == 1), None)
    cached, cold = _run_on_real_data(runs, "cached", every), _run_on_real_data(runs, "cold", every)
    if cold and cached and cold.machines < most:
        cold = max(cached, cold, key=lambda run: run.step_s)
    whole = cold or cached or every
    if whole is None:
        raise BenchError("a stall profile needs a run on all GPUs; run synthetic_all")
    inside, apart = (alone, every) if most > 1 else (every, None)
    pairs = (
        ("interconnect", one, inside),
        ("network", inside, apart),
        ("preparation", every, cached),
        ("fetch", cached, cold),
    )
    found = tuple(_stall(name, a, b, whole) for name, a, b in pairs if a and b)
    return Profile(tuple(runs), (one or every or whole).step_s, whole.step_s, found, training)


def _run_on_real_data(runs: Sequence[Run], kind: Kind, every: Run | None) -> Run | None:
    """The run of a kind on real data, on the most machines that had one.

    Each machine prepares and fetches for itself while all of them train: where fewer had a run,
    all would step like these, or like synthetic data where that is slower (`predicted`).
    """
    found = max((run for run in runs if run.kind == kind), key=lambda r: r.machines, default=None)
    if found is None or every is None or found.machines == every.machines:
        return found
    return max(every, found, key=lambda run: run.step_s)


def _stall(name: str, without: Run, with_it: Run, whole: Run) -> Stall:
    seconds = with_it.step_s - without.step_s
    error = math.hypot(without.error_s, with_it.error_s)
    return Stall(name, seconds, seconds - error, seconds + error, seconds / whole.step_s)


def _refuse(runs: Sequence[Run]) -> None:
    for run in runs:
        if len(run.seconds) < _MIN_STEPS:
            raise BenchError(
                f"{run.kind} has {len(run.seconds)} steps; {_MIN_STEPS} are the least that "
                "tell how sure a mean is"
            )
        if run.batch_per_gpu != runs[0].batch_per_gpu:
            raise BenchError(
                f"{run.kind} has {run.batch_per_gpu} samples per GPU and {runs[0].kind} "
                f"{runs[0].batch_per_gpu}: stalls compare runs at the same batch per GPU"
            )


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What a change would do to the step on cold data."""

    change: str
    step_s: float


def predicted(found: Profile, vcpus: float = 1.0, cached: float = 0.0, disk: float = 1.0) -> float:
    """Seconds per step with so many times the vCPUs and disk speed, a share of the data cached.

    A worker fetches a batch and then prepares it, as in PyTorch's DataLoader, while training goes
    on: step = max(T1, preparation / vcpus + fetch · (1 - cached) / disk), where preparation is T3
    and fetch T2 - T3. DS-Analyzer's what-ifs (VLDB 2021) take the larger of both instead, as if
    fetching and preparing overlapped. A preparation that was never waited for takes T1 at most:
    then the prediction is an upper bound. More vCPUs do not make a disk faster.
    """
    base, prepare, fetch = _parts(found)
    return max(base, prepare / vcpus + fetch * (1 - cached) / disk)


def _parts(found: Profile) -> tuple[float, float, float]:
    """T1, and the seconds of preparation and fetch; only waits that were seen."""
    by_machines = sorted(found.runs, key=lambda run: run.machines)
    by_kind = {run.kind: run.step_s for run in by_machines}  # of the most machines that ran it
    base = by_kind.get("synthetic_all", found.compute_s)
    prepare, fetch = found.stall("preparation"), found.stall("fetch")
    return (
        base,
        by_kind["cached"] if prepare and prepare.seen else base,
        fetch.seconds if fetch and fetch.seen else 0.0,
    )


def what_ifs(found: Profile) -> tuple[WhatIf, ...]:
    """The changes worth trying: just enough vCPUs to prepare in time, more cache, faster disks."""
    base, prepare, fetch = _parts(found)
    sentences = []
    if prepare > base:
        times = prepare / base
        sentences.append(WhatIf(f"{times:.2f} x the vCPUs", predicted(found, vcpus=times)))
    if fetch > 0:
        sentences.append(WhatIf("2 x the disk's speed", predicted(found, disk=2.0)))
        sentences.append(WhatIf("half of the data cached", predicted(found, cached=0.5)))
        sentences.append(WhatIf("all data cached", predicted(found, cached=1.0)))
    return tuple(sentences)
