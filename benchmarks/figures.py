"""The few figures that a record comes down to: what plans use and people compare."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from benchmarks.method import Result
from benchmarks.record import Record


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
        Figure(f"link {name}", line.bytes_per_s / 1e9, "GB/s", None, line.r2 < 0.95)
        for name, line in record.links
    ]
    return (*found, *lines)


def disturbed(results: Iterable[Result]) -> int:
    """How many cases something disturbed."""
    return sum(_disturbed(each) for each in results)


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
