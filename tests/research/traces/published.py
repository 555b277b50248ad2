"""Readers of the traces that papers published, in which 1 means different things.

    python -P tests/run.py tests.research.traces.published FORMAT OUT FILE...

writes them in the project's own format, which every command reads. FORMAT:

    spot-traces      {"metadata": {"gap_seconds"}, "data": [...]}: machines UP at each tick
                     (skypilot-org/spot-traces, "Can't Be Late", NSDI'24)
    preempted        the same shape, but 1 = PREEMPTED and 0 = up: converted SkyNomad files (with
                     prices), skypilot-spot-strategy, Frontier-CS
    skynomad-probes  a JSON list of probe rounds, each with the machines got in every zone
                     (`jq -s . h100_16_runs/*.json` makes it of SkyNomad's files)
    bamboo           milliseconds,add|remove,node without a header (uclasystem/bamboo, NSDI'23)
"""

import csv
import io
import math
import re
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.errors import UsageError, first_problems, refuse_all, refuse_many
from recommender.inputs.csv_text import refuse_bomb
from recommender.inputs.units import parse_instant
from recommender.text import shown
from recommender.traces.cloud_records import named_machines, place_of_zone, tree_of
from recommender.traces.own_format import MAX_MACHINES, write_file
from recommender.traces.read import text_of
from recommender.traces.trace import ADDED, TAKEN, Kind, Place, Trace, changes

_NAMED = re.compile(r"([a-z0-9-]+)_([a-z0-9-]+)_(\d+)")


def spot_traces(text: str, path: Path) -> tuple[Trace, ...]:
    """A series of machines up, one number per tick."""
    tree, ticks, gap_s, name = _ticks(text, path)
    return (_series(tree, ticks, gap_s, name, path),)


def preempted(text: str, path: Path) -> tuple[Trace, ...]:
    """A series in which 1 means preempted, inverted so that 1 machine is up at 0."""
    tree, ticks, gap_s, name = _ticks(text, path)
    if ticks.max(initial=0.0) > 1:
        message = f"{name}: data holds {ticks.max():g}; a preempted series holds 0 and 1 only"
        raise UsageError(f"{message}; counts of machines up are spot-traces")
    return (_series(tree, 1.0 - ticks, gap_s, name, path),)


def _ticks(text: str, path: Path) -> tuple[dict[str, Any], Floats, float, str]:
    name = shown(path.name)
    tree = tree_of(text, name)
    meta = tree.get("metadata") if isinstance(tree, dict) else None
    data = tree.get("data") if isinstance(tree, dict) else None
    problems = []
    gap = meta.get("gap_seconds") if isinstance(meta, dict) else None
    gap_s = float(gap) if gap is not None and _is_number(gap) else 0.0
    if not 0 < gap_s <= 86_400:
        problems.append(f"{name}: metadata.gap_seconds {shown(gap)} is not a number of seconds")
    if not isinstance(data, list) or not data:
        problems.append(f"{name}: data is not a list of numbers, one per tick")
        data = []
    bad = ((i, v) for i, v in enumerate(data) if not _is_count(v))
    problems += first_problems(
        f"{name}: data[{i}] is {shown(v)}, not a number of machines" for i, v in bad
    )
    prices = tree.get("prices", []) if isinstance(tree, dict) else []
    if prices and (not isinstance(prices, list) or len(prices) != len(data)):
        problems.append(f"{name}: prices do not hold one number per tick of data")
    elif any(not _is_number(p) or p <= 0 for p in prices):
        problems.append(f"{name}: prices hold something that is not a price above 0")
    refuse_all(problems)
    return tree, np.array(data, dtype=np.float64), gap_s, name


def _is_number(value: Any) -> bool:
    """Whether a JSON value is a finite number."""
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return plain and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= MAX_MACHINES and value == int(value)


def _series(tree: dict[str, Any], ticks: Floats, gap_s: float, name: str, path: Path) -> Trace:
    t_s: Floats = np.arange(len(ticks), dtype=np.float64) * gap_s
    machines = ticks.astype(np.int64)
    keep = changes(t_s, machines)
    usd = np.array(tree.get("prices", []), dtype=np.float64)
    changed = changes(t_s[: len(usd)], usd)
    meta = tree["metadata"]
    start = meta.get("start_time")
    place = _named_place(path, str(meta.get("zone", "")))
    return Trace(
        name=_name_of(path),
        end_s=len(ticks) * gap_s,
        place=place,
        capacity=max(int(machines.max()), 1),
        kind=_kind_of(path),
        start=parse_instant(start, f"{name}: start_time") if isinstance(start, str) else None,
        step_s=gap_s,
        source=name,
        t_s=t_s[keep],
        machines=machines[keep],
        price_t_s=t_s[: len(usd)][changed] if len(usd) else np.empty(0),
        usd_per_hour=usd[changed] if len(usd) else np.empty(0),
    )


def _name_of(path: Path) -> str:
    """The name of a series: the file, or the folder if files have numbers for names."""
    stem = path.name.partition(".")[0]
    return path.resolve().parent.name if stem == "full" or stem.isdigit() else stem


def _named_place(path: Path, zone: str) -> Place:
    found = _NAMED.fullmatch(_name_of(path))
    if not found:
        return place_of_zone(zone)
    number = int(found[3])
    gpus = number if number <= 8 else 0
    return place_of_zone(zone or found[1], gpu=found[2].upper(), gpus=gpus)


def _kind_of(path: Path) -> Kind:
    """spot-traces keeps probed and held machines in folders of these names."""
    folders = path.resolve().parent.parts
    return "hold" if "preemption" in folders else "probe" if "availability" in folders else ""


def bamboo(text: str, path: Path) -> tuple[Trace, ...]:
    """Named machines that were added and removed, in milliseconds from an unknown start."""
    name, problems = shown(path.name), []
    rows: list[tuple[float, int, str]] = []
    refuse_bomb(text, name)
    for number, cells in enumerate(csv.reader(io.StringIO(text, newline="")), 1):
        if len(cells) == 3 and cells[0].isdecimal() and cells[1] in ("add", "remove") and cells[2]:
            rows.append((int(cells[0]) / 1000.0, ADDED if cells[1] == "add" else TAKEN, cells[2]))
        elif cells:
            message = shown(",".join(cells))
            problems.append(
                f"{name}, line {number}: '{message}' is not milliseconds,add|remove,node"
            )
            refuse_many(problems)
    refuse_all(problems)
    if not rows:
        raise UsageError(f"{name}: holds no events")
    return (named_machines(_name_of(path), rows, max(t for t, *_ in rows), Place(), None, name),)


_Round = tuple[datetime, dict[str, tuple[int, int]]]  # when, zone: (machines got, requested)


def skynomad_probes(text: str, path: Path) -> tuple[Trace, ...]:
    """A series per zone; a round that is missing leaves what the one before it found."""
    name = shown(path.name)
    tree = tree_of(text, name)
    if not isinstance(tree, list) or not tree or not all(isinstance(r, dict) for r in tree):
        raise UsageError(f"{name}: not a list of probe rounds")
    rounds: list[_Round] = []
    problems: list[str] = []
    for number, item in enumerate(tree, 1):
        try:
            rounds.append(_round(item, f"{name}, round {number}"))
        except UsageError as error:
            problems += error.problems
            refuse_many(problems)
    refuse_all(problems)
    rounds.sort(key=lambda each: each[0])
    step_s = float(tree[0].get("interval_sec") or 600)
    zones = dict.fromkeys(zone for _, found in rounds for zone in found)
    return tuple(_zone(zone, rounds, step_s, name) for zone in zones)


def _round(item: dict[str, Any], where: str) -> _Round:
    moment = parse_instant(str(item.get("scheduled_at", "")), f"{where}: scheduled_at")
    zones = item.get("zone_results")
    if not isinstance(zones, dict):
        raise UsageError(f"{where}: zone_results is not a table of zones")
    found = {}
    for zone, got in zones.items():
        numbers = [got.get(f"instances_{what}") for what in ("created", "requested")]
        if not all(_is_number(n) and 0 <= n <= MAX_MACHINES for n in numbers):
            raise UsageError(f"{where}: zone {shown(zone)} has no numbers of machines")
        found[str(zone)] = (int(numbers[0]), int(numbers[1]))
    return moment, found


def _zone(zone: str, rounds: list[_Round], step_s: float, name: str) -> Trace:
    seen = [(moment, found[zone]) for moment, found in rounds if zone in found]
    start = seen[0][0]
    t_s: Floats = np.array([(moment - start).total_seconds() for moment, _ in seen])
    t_s = np.round(t_s / step_s) * step_s  # rounds begin some milliseconds late
    machines: Ints = np.array([got for _, (got, _) in seen], dtype=np.int64)
    keep = changes(t_s, machines)
    return Trace(
        name=zone,
        end_s=float(t_s[-1]) + step_s,
        place=place_of_zone(zone),
        capacity=max(asked for _, (_, asked) in seen),
        kind="probe",
        start=start,
        step_s=step_s,
        source=name,
        t_s=t_s[keep],
        machines=machines[keep],
    )


FORMATS = {
    "spot-traces": spot_traces,
    "preempted": preempted,
    "skynomad-probes": skynomad_probes,
    "bamboo": bamboo,
}


def read(form: str, path: Path) -> tuple[Trace, ...]:
    """The series of a published file."""
    return FORMATS[form](text_of(path), path)


def main(form: str, out: str, *files: str) -> None:
    """Write files in the project's own format."""
    write_file(tuple(trace for each in files for trace in read(form, Path(each))), Path(out))


if __name__ == "__main__":
    main(*sys.argv[1:])
