"""How anything is timed: warm-up, synchronised repetitions, a median that is known well enough.

Repetitions go on until the 95 % interval of the median is narrow, or time is up; the interval
needs no assumption on the noise, it lies between two of the sorted repetitions. What other
programs and the hypervisor took meanwhile is noted next to the figure.
"""

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

from .subject import Case, Trial

Clock = Callable[[], float]
CONFIDENCE_Z = 1.96  # standard normal: 95 % two-sided
_MAD = 1.4826  # median absolute deviation to standard deviation, for normal noise
_SLOW_SDS = 5.0  # a repetition so far above the median was disturbed
_DRIFT = 0.05  # first half against second: clocks fell or credits ran out
_OTHERS = 0.05  # share of the processors that others used
_STAT = Path("/proc/stat")
MIN_REPEATS = 3  # tell a median and whether something disturbed it
MAX_OVERTIME = 2.0  # times the rule's seconds, for its least repetitions
TOGETHER_S = 0.01  # a repetition on a GPU
_MAX_TOGETHER = 1000  # kernels that the driver queues without waiting
_MIN_S = 0.2  # the kernel counts in hundredths of a second: a shorter time tells nothing


@dataclass(frozen=True, slots=True)
class Rule:
    """How long a case is measured."""

    warm_up: int
    least: int  # repetitions
    most: int
    most_s: float  # of the repetitions together; the warm-up comes on top
    half_width: float  # of the median's interval, as a share of it


QUICK = Rule(warm_up=2, least=7, most=50, most_s=1.5, half_width=0.02)
FULL = Rule(warm_up=3, least=11, most=200, most_s=6.0, half_width=0.01)


@dataclass(frozen=True, slots=True)
class Interference:
    """What disturbed a measurement; None where the system does not tell."""

    others: float | None  # share of all processors that other programs used
    steal: float | None  # share that the hypervisor gave to other machines
    slow: int  # repetitions far above the median
    drift: float  # median of the second half over that of the first, minus one

    @property
    def seen(self) -> bool:
        """Whether a reader should doubt the figure."""
        taken = max(self.others or 0.0, self.steal or 0.0)
        return taken > _OTHERS or abs(self.drift) > _DRIFT


@dataclass(frozen=True, slots=True)
class Result:
    """One figure of one machine: `work` done in each of `seconds`."""

    benchmark: str
    case: str
    unit: str
    work: float  # of one repetition, in units times seconds
    seconds: tuple[float, ...]  # every repetition, in the order taken
    error: float  # largest deviation from the reference, as a share of its largest value
    ceiling: float | None = None
    interference: Interference | None = None
    facts: tuple[tuple[str, object], ...] = ()

    @property
    def median(self) -> float:
        """The middle rate; a single slow repetition does not move it."""
        return self.work / median(self.seconds)

    @property
    def interval(self) -> tuple[float, float]:
        """The rates between which the median lies with 95 % confidence."""
        low, high = median_interval(self.seconds)
        return self.work / high, self.work / low

    @property
    def spread(self) -> float:
        """Fastest minus slowest repetition, as a share of the median."""
        return (self.work / min(self.seconds) - self.work / max(self.seconds)) / self.median

    @property
    def share(self) -> float | None:
        """Share of the ceiling that is reached."""
        return self.median / self.ceiling if self.ceiling else None


def measure(
    case: Case, rule: Rule, synchronise: Callable[[], object] | None, clock: Clock = perf_counter
) -> Result:
    """Set a case up, time it by the rule, check what it computed."""
    trial = case.setup()
    try:
        timed = trial.timed or _stopwatch(trial.run, synchronise, clock)
        warm: list[float] = []
        while len(warm) < rule.warm_up and sum(warm) <= rule.most_s:
            warm.append(timed())
        together = 1
        if warm and trial.timed is None and synchronise is not None:
            together = together_of(min(warm))
            timed = _stopwatch(trial.run, synchronise, clock, together)
        before, start = cpu_times(), clock()
        seconds: list[float] = []
        while not enough(seconds, rule, clock() - start):
            seconds.append(timed())
        disturbed = interference(seconds, before, cpu_times())
        error = trial.check()
    finally:
        trial.close()
    more = (("runs_per_repetition", together),) if together > 1 else ()
    return _result(case, seconds, error, disturbed, more)


def measure_in_turns(
    cases: Sequence[tuple[Case, Trial]], rule: Rule, processes: int = 1
) -> list[Result]:
    """Time cases that are compared with each other, one repetition of each in turn.

    What disturbs the machine for a while then disturbs all alike, not the one that was measured
    just then. Every trial times itself. The number of repetitions is twice the rule's least in
    every process: clocks differ, and a process that stopped early would be waited for. So many
    processes of this machine take part: none of them is another program.
    """
    timed = [trial.timed for _, trial in cases if trial.timed]
    for _ in range(rule.warm_up):
        for each in timed:
            each()
    before = cpu_times()
    rounds = [[each() for each in timed] for _ in range(2 * rule.least)]
    after = cpu_times()
    return [
        _result(case, seconds, trial.check(), interference(seconds, before, after, processes))
        for (case, trial), seconds in zip(cases, zip(*rounds, strict=True), strict=True)
    ]


def _result(
    case: Case,
    seconds: Sequence[float],
    error: float,
    disturbed: Interference,
    more: tuple[tuple[str, object], ...] = (),
) -> Result:
    return Result(
        case.subject, case.name, case.unit, case.work, tuple(seconds), error, case.ceiling,
        disturbed, (*case.facts.items(), *more),
    )  # fmt: skip


def together_of(seconds: float) -> int:
    """How many runs of so many seconds a GPU is given at once.

    Starting a kernel and waiting for it takes some 10 us, a twentieth of a product of 4096 x 4096
    on an H100. A training starts the next one while the last still runs, and so does a repetition.
    """
    return min(max(math.ceil(TOGETHER_S / max(seconds, 1e-9)), 1), _MAX_TOGETHER)


def _stopwatch(
    run: Callable[[], object],
    synchronise: Callable[[], object] | None,
    clock: Clock,
    together: int = 1,
) -> Callable[[], float]:
    """What gives the seconds of one run, the mean of several started at once."""

    def timed() -> float:
        if synchronise is not None:
            synchronise()  # what was queued before must not count
        start = clock()
        for _ in range(together):
            run()
        if synchronise is not None:
            synchronise()
        return (clock() - start) / together

    return timed


def enough(seconds: Sequence[float], rule: Rule, elapsed_s: float) -> bool:
    """Whether the median is known as well as the rule wants, or time is up.

    A run of seconds is repeated three times, not the rule's least: that would take minutes.
    """
    if len(seconds) < rule.least:
        return len(seconds) >= MIN_REPEATS and elapsed_s >= MAX_OVERTIME * rule.most_s
    if len(seconds) >= rule.most or elapsed_s >= rule.most_s:
        return True
    low, high = median_interval(seconds)
    return (high - low) / 2 <= rule.half_width * median(seconds)


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Give the 95 % interval of a median by order statistics; of few values, their range.

    The number of values below the true median is binomial(n, 1/2): ranks n/2 ± z·√n/2.
    """
    ordered, n = sorted(values), len(values)
    reach = CONFIDENCE_Z * math.sqrt(n) / 2
    low = max(math.floor(n / 2 - reach), 0)
    high = min(math.ceil(n / 2 + reach), n - 1)
    return ordered[low], ordered[high]


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """Processor seconds since start-up: of this process with its children, and of all."""

    own: float
    busy: float
    steal: float
    total: float


def cpu_times(stat: Path = _STAT) -> CpuTimes | None:
    """Read the kernel's counters; None where there are none."""
    try:
        cells = stat.read_text("ascii").split("\n", 1)[0].split()[1:]
        ticks = [float(cell) / os.sysconf("SC_CLK_TCK") for cell in cells[:8]]
    except (OSError, ValueError):
        return None
    if len(ticks) < 8:
        return None
    spent = os.times()
    own = spent.user + spent.system + spent.children_user + spent.children_system
    idle = ticks[3] + ticks[4]
    return CpuTimes(own, sum(ticks) - idle - ticks[7], ticks[7], sum(ticks))


def interference(
    seconds: Sequence[float],
    before: CpuTimes | None,
    after: CpuTimes | None,
    processes: int = 1,
) -> Interference:
    """What others did between two readings, and what the repetitions themselves show.

    Of several processes that do the same each takes about as much of the processors as this one.
    """
    others = steal = None
    if before and after and after.total - before.total >= _MIN_S:
        total = after.total - before.total
        taken = after.busy - before.busy - processes * (after.own - before.own)
        others = min(max(taken / total, 0.0), 1.0)
        steal = (after.steal - before.steal) / total
    middle = median(seconds)
    deviation = _MAD * median(abs(s - middle) for s in seconds)
    slow = sum(s > middle + _SLOW_SDS * max(deviation, 0.01 * middle) for s in seconds)
    half = len(seconds) // 2
    drift = median(seconds[-half:]) / median(seconds[:half]) - 1 if half else 0.0
    return Interference(others, steal, slow, drift)
