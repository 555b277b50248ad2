"""Measurements as one JSON record: every raw repetition, and the machine they were taken on."""

import json
import os
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

SCHEMA = "recommend.bench/v1"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Result:
    """One figure of one machine: `work` done in each of `seconds`."""

    benchmark: str  # "matmul"
    case: str  # "fp32 2048"
    unit: str  # "GFLOP/s"
    work: float  # of one repetition, in units times seconds
    seconds: tuple[float, ...]  # every repetition, in the order taken
    error: float  # largest deviation from the reference, as a share of its largest value

    @property
    def median(self) -> float:
        """The middle rate; a single slow repetition does not move it."""
        return self.work / median(self.seconds)

    @property
    def spread(self) -> float:
        """Fastest minus slowest repetition, as a share of the median."""
        return (self.work / min(self.seconds) - self.work / max(self.seconds)) / self.median


def timed(run: Callable[[], object], warm_up: int, repeats: int) -> tuple[float, ...]:
    """Seconds of each repetition; the first runs fill caches and start threads, untimed."""
    for _ in range(warm_up):
        run()
    seconds = []
    for _ in range(repeats):
        start = perf_counter()
        run()
        seconds.append(perf_counter() - start)
    return tuple(seconds)


def hardware() -> dict[str, object]:
    """What was measured. Only the processor so far, and it is called that."""
    return {
        "device": "CPU",
        "processor": _processor(),
        "cpus": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "memory_gib": _memory_gib(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "threads": {name: os.environ[name] for name in THREADS if name in os.environ},
    }


def hardware_line() -> str:
    """The machine in one line."""
    on = hardware()
    memory = f", {on['memory_gib']} GiB" if on["memory_gib"] else ""
    return f"CPU: {on['processor']}, {on['cpus']} CPUs{memory}, numpy {on['numpy']}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()


def _memory_gib() -> float | None:
    try:
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None
    return round(pages / 2**30, 1)


def document(results: list[Result], quick: bool) -> dict[str, object]:
    """The record: schema, moment, machine, and each result with all its repetitions."""
    try:
        tool = version("recommend-gpus")
    except PackageNotFoundError:  # copied to the machine without being installed
        tool = "unknown"
    rows = [{**asdict(each), "median": each.median, "spread": each.spread} for each in results]
    return {
        "schema": SCHEMA,
        "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "tool": tool,
        "quick": quick,
        "hardware": hardware(),
        "results": rows,
    }


def dumps(record: dict[str, object]) -> str:
    """One line of JSON; a figure that is no number is refused."""
    return json.dumps(record, allow_nan=False, separators=(",", ":"))
