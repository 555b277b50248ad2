"""The few figures that a record comes down to: what plans use and people compare."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from .collectives import GOOD, Line
from .method import Result
from .record import Record


@dataclass(frozen=True, slots=True)
class Speed:
    """Matrix multiplication at a precision."""

    precision: str
    best: float  # TFLOP/s, of all shapes
    typical: float  # median over the products of a transformer layer
    low: float  # lowest and highest rate of the typical shapes
    high: float
    share: float | None  # of the ceiling, the best shape


@dataclass(frozen=True, slots=True)
class Figure:
    """Any other figure: the median rate of its largest case."""

    name: str
    value: float
    unit: str
    share: float | None
    doubtful: bool  # something disturbed the measurement


def speeds(record: Record) -> tuple[Speed, ...]:
    """Matrix-multiplication rates, one row per precision."""
    groups: dict[str, list[Result]] = {}
    for each in record.results:
        if each.benchmark == "matmul":
            groups.setdefault(str(dict(each.facts).get("precision", "")), []).append(each)
    return tuple(_speed(name, own) for name, own in groups.items() if name)


def _speed(precision: str, own: list[Result]) -> Speed:
    best = max(own, key=lambda each: each.median)
    layer = [each for each in own if dict(each.facts).get("kind") == "typical"] or [best]
    rates = [each.median for each in layer]
    return Speed(precision, best.median, median(rates), min(rates), max(rates), best.share)


def others(record: Record) -> tuple[Figure, ...]:
    """Everything but matrix multiplication; of several sizes of one thing, the largest."""
    last: dict[str, Result] = {}
    for each in record.results:
        if each.benchmark != "matmul":
            last[f"{each.benchmark} {_without_size(each.case)}"] = each
    found = [
        Figure(name, each.median, each.unit, each.share, _disturbed(each))
        for name, each in last.items()
    ]
    lines = [
        Figure(f"link {name}{_from(line)}", line.bytes_per_s / 1e9, "GB/s", None, line.r2 < GOOD)
        for name, line in record.links
    ]
    return (*found, *lines)


@dataclass(frozen=True, slots=True)
class Exchange:
    """The line through the all-reduces of so many processes, fitted well enough to be used."""

    processes: int
    machines: int
    bytes_per_s: float  # of the busiest link, as nccl-tests count: bytes · 2(n-1)/n per second


def exchanges(record: Record) -> tuple[Exchange, ...]:
    """The all-reduces between GPUs; lines that fit worse than R² 0.95 tell no bandwidth."""
    fitted = dict(record.links)  # of two lines, that of large messages
    found: dict[str, Exchange] = {}
    for each in record.results:
        facts = dict(each.facts)
        line = fitted.get(f"{facts.get('collective')} {facts.get('how')}")
        if facts.get("collective") != "all_reduce" or line is None or line.r2 < GOOD:
            continue
        processes, machines = (facts.get(name, 1) for name in ("processes", "machines"))
        if isinstance(processes, int) and isinstance(machines, int) and "nccl" in str(facts["how"]):
            found[str(facts["how"])] = Exchange(processes, machines, line.bytes_per_s)
    return tuple(found.values())


def rate_of(record: Record, benchmark: str, start: str) -> float | None:
    """The median rate of the largest case whose name starts so; None where there is none."""
    own = [r for r in record.results if r.benchmark == benchmark and r.case.startswith(start)]
    return max(own, key=lambda r: r.work).median if own else None


def disturbed(results: Iterable[Result]) -> int:
    """How many cases something disturbed."""
    return sum(_disturbed(each) for each in results)


def _from(line: Line) -> str:
    return f" from {line.least_bytes / 2**20:.0f} MiB" if line.least_bytes else ""


def _disturbed(each: Result) -> bool:
    return each.interference is not None and each.interference.seen


def _without_size(case: str) -> str:
    """ "write disk 64 MiB" without "64 MiB"."""
    words = case.split(" ")
    for i, word in enumerate(words):
        if word.rstrip(",") in ("KiB", "MiB") and i > 0:
            kept = [*words[: i - 1], *words[i + 1 :]]
            return " ".join(kept).strip()
    return case
