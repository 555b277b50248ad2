"""Reads recorded availability: CSV of change points, `trace_id,t_s,nodes`.

A row says how many machines are up from `t_s` on (more is better: 0 means none); `nodes` -1
ends a series. A file may hold several series and may be gzip-compressed.
"""

import csv
import gzip
import io
import math
from dataclasses import dataclass
from pathlib import Path

from recommender.errors import UsageError
from recommender.text import shown, shown_path

COLUMNS = ("trace_id", "t_s", "nodes")
MOST_BYTES = 200_000_000  # read at once; a campaign of 13 zones and two weeks has 1 MB


@dataclass(frozen=True, slots=True)
class Series:
    """One recorded series: `nodes[i]` machines are up from `t_s[i]` to the next, or to `end_s`."""

    trace_id: str
    t_s: tuple[float, ...]
    nodes: tuple[int, ...]
    end_s: float


def read_series(path: Path) -> tuple[Series, ...]:
    """The series of a file, in its order; raises `UsageError` with every wrong row."""
    name = shown_path(path)
    rows = list(csv.reader(io.StringIO(_text(path, name), newline="")))
    if not rows or tuple(c.strip() for c in rows[0]) != COLUMNS:
        raise UsageError(f"{name}: the first line is not {','.join(COLUMNS)}; see docs/cli.md")
    points: dict[str, list[tuple[float, int]]] = {}
    problems = []
    for number, row in enumerate(rows[1:], 2):
        try:
            trace_id, moment, nodes = row
            points.setdefault(trace_id, []).append((_second(moment), int(nodes)))
        except ValueError:
            said = shown(",".join(row))
            problems.append(f"{name}, line {number}: {said} is not a name, seconds and machines")
    problems += [p for key, given in points.items() for p in _wrong(f"{name}, {shown(key)}", given)]
    if problems or not points:
        raise UsageError(*(problems[:20] or [f"{name}: no series"]))
    return tuple(
        Series(key, tuple(t for t, _ in given[:-1]), tuple(n for _, n in given[:-1]), given[-1][0])
        for key, given in points.items()
    )


def _text(path: Path, name: str) -> str:
    try:
        raw = path.read_bytes()
        raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
        if len(raw) > MOST_BYTES:
            raise UsageError(f"{name}: larger than {MOST_BYTES // 10**6} MB; keep fewer series")
        return raw.decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise UsageError(f"{name}: cannot be read: {why}") from None


def _second(word: str) -> float:
    value = float(word)
    if not math.isfinite(value):
        raise ValueError
    return value


def _wrong(place: str, points: list[tuple[float, int]]) -> list[str]:
    """What a series must be: rising moments, closed by -1, and only there."""
    moments = [t for t, _ in points]
    if points[-1][1] != -1 or any(n < 0 for _, n in points[:-1]):
        return [f"{place}: a series ends with one row of nodes -1, and only its last row has it"]
    if len(points) < 2 or any(b <= a for a, b in zip(moments, moments[1:], strict=False)):
        return [f"{place}: t_s must rise from row to row, over two rows at least"]
    return []
