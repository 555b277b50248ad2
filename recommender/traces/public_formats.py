"""Readers of public trace formats, in which 1 means different things.

SkyNomad's artifact keeps one JSON file per round of probes: `jq -s . h100_16_runs/*.json` makes the
list that is read here.
"""

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.catalogs.bounds import check_json
from recommender.errors import UsageError, first_problems, refuse_all, refuse_many
from recommender.inputs.csv_text import refuse_bomb
from recommender.inputs.units import parse_instant
from recommender.text import shown
from recommender.traces.own_format import MAX_MACHINES
from recommender.traces.trace import (
    ADDED,
    GIVEN_BACK,
    TAKEN,
    Kind,
    Place,
    Trace,
    changes,
    counted,
    named_events,
)

_AWS_ZONE = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d[a-z]")
_GCP_ZONE = re.compile(r"[a-z]+-[a-z]+\d+-[a-z]")
_NAMED = re.compile(r"([a-z0-9-]+)_([a-z0-9-]+)_(\d+)")
_GCP_ADD = ("insert", "start", "resume")
_GCP_TAKEN = "compute.instances.preempted"
_GCP_GIVEN_BACK = ("stop", "delete", "suspend", "compute.instances.guestTerminate")


def place_of_zone(zone: str, **more: Any) -> Place:
    """A location from the form of its zone's name: us-east-1a is AWS, us-central1-a is GCP."""
    if _AWS_ZONE.fullmatch(zone):
        return Place(provider="aws", region=zone[:-1], zone=zone, **more)
    if _GCP_ZONE.fullmatch(zone):
        return Place(provider="gcp", region=zone[:-2], zone=zone, **more)
    return Place(zone=zone, **more)


def tree_of(text: str, name: str) -> Any:
    """Parse a JSON document and refuse invalid numbers."""
    try:
        check_json(text)
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name}: not JSON ({shown(error)})") from None


def _refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is not a number")


def spot_traces(text: str, path: Path) -> tuple[Trace, ...]:
    """A series of machines up, one number per tick."""
    tree, ticks, gap_s, name = _ticks(text, path)
    return (_series(tree, ticks, gap_s, name, path),)


def preempted(text: str, path: Path) -> tuple[Trace, ...]:
    """A series in which 1 means preempted, inverted so that 1 machine is up at 0."""
    tree, ticks, gap_s, name = _ticks(text, path)
    if ticks.max(initial=0.0) > 1:
        message = f"{name}: data holds {ticks.max():g}; a preempted series holds 0 and 1 only"
        raise UsageError(f"{message}; counts of machines up are --format spot-traces")
    return (_series(tree, 1.0 - ticks, gap_s, name, path),)


def _ticks(text: str, path: Path) -> tuple[dict[str, Any], Floats, float, str]:
    name = shown(path.name)
    tree = tree_of(text, name)
    meta = tree.get("metadata") if isinstance(tree, dict) else None
    data = tree.get("data") if isinstance(tree, dict) else None
    problems = []
    gap = meta.get("gap_seconds") if isinstance(meta, dict) else None
    gap_s = float(gap) if gap is not None and is_number(gap) else 0.0
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
    elif any(not is_number(p) or p <= 0 for p in prices):
        problems.append(f"{name}: prices hold something that is not a price above 0")
    refuse_all(problems)
    return tree, np.array(data, dtype=np.float64), gap_s, name


def is_number(value: Any) -> bool:
    """Whether a JSON value is a finite number."""
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return plain and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return is_number(value) and 0 <= value <= MAX_MACHINES and value == int(value)


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
        name=name_of(path),
        end_s=len(ticks) * gap_s,
        place=place,
        capacity=max(int(machines.max()), 1),
        kind=kind_of(path),
        start=parse_instant(start, f"{name}: start_time") if isinstance(start, str) else None,
        step_s=gap_s,
        source=name,
        t_s=t_s[keep],
        machines=machines[keep],
        price_t_s=t_s[: len(usd)][changed] if len(usd) else np.empty(0),
        usd_per_hour=usd[changed] if len(usd) else np.empty(0),
    )


def name_of(path: Path) -> str:
    """The name of a series: the file, or the folder if files have numbers for names."""
    stem = path.name.partition(".")[0]
    return path.resolve().parent.name if stem == "full" or stem.isdigit() else stem


def _named_place(path: Path, zone: str) -> Place:
    found = _NAMED.fullmatch(name_of(path))
    if not found:
        return place_of_zone(zone)
    number = int(found[3])
    gpus = number if number <= 8 else 0
    return place_of_zone(zone or found[1], gpu=found[2].upper(), gpus=gpus)


def kind_of(path: Path) -> Kind:
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
    return (_nodes(name_of(path), rows, max(t for t, *_ in rows), Place(), None, name),)


def _nodes(
    series: str,
    rows: Sequence[tuple[float, int, str]],
    end_s: float,
    place: Place,
    start: datetime | None,
    name: str,
) -> Trace:
    """A held series of named machines; what does not fit (a second add) is refused."""
    up: set[str] = set()
    problems = []
    for t, change, node in sorted(rows, key=lambda row: row[0]):
        if (change == ADDED) == (node in up):
            state = "is up already" if change == ADDED else "is not up"
            problems.append(f"{name}: '{shown(node)}' {state} at {t:g} s")
            refuse_many(problems)
        (up.add if change == ADDED else up.discard)(node)
    refuse_all(problems)
    events = named_events(rows)
    t_s, machines = counted(events)
    return Trace(
        name=series,
        end_s=max(end_s, 1.0),
        place=place,
        capacity=max(int(machines.max()), 1),
        kind="hold",
        start=start,
        source=name,
        t_s=t_s,
        machines=machines,
        events=events,
    )


def gcp_operations(text: str, path: Path) -> tuple[Trace, ...]:
    """Machines started, preempted and given back, by zone.

    A machine whose start is not listed was up from the beginning of its zone's series.
    """
    name = shown(path.name)
    tree = tree_of(text, name)
    if not isinstance(tree, list) or not all(isinstance(item, dict) for item in tree):
        raise UsageError(f"{name}: not a list of operations")
    problems: list[str] = []
    zones: dict[str, list[tuple[datetime, int, str]]] = {}
    for item in tree:
        try:
            found = _operation(item, name)
        except UsageError as error:
            problems += error.problems
            refuse_many(problems)
            continue
        if found is not None:
            zones.setdefault(found[0], []).append(found[1:])
    refuse_all(problems)
    if not any(change == TAKEN for rows in zones.values() for _, change, _ in rows):
        raise UsageError(f"{name}: holds no operation {_GCP_TAKEN}; was it filtered?")
    last = max(row[0] for rows in zones.values() for row in rows)
    return tuple(_gcp_zone(zone, rows, last, name) for zone, rows in sorted(zones.items()))


def _operation(item: dict[str, Any], name: str) -> tuple[str, datetime, int, str] | None:
    """Zone, moment, change and machine of an operation that starts or ends a machine."""
    kind, target = str(item.get("operationType", "")), str(item.get("targetLink", ""))
    if "/instances/" not in target or item.get("error"):
        return None
    change = ADDED if kind in _GCP_ADD else TAKEN if kind == _GCP_TAKEN else GIVEN_BACK
    if change == GIVEN_BACK and kind not in _GCP_GIVEN_BACK:
        return None
    node = target.rpartition("/")[2]
    zone = target.partition("/zones/")[2].partition("/")[0]
    when = item.get("endTime" if change == ADDED else "insertTime") or item.get("insertTime")
    moment = parse_instant(str(when or ""), f"{name}, operation on {shown(node)}: time")
    return zone, moment, change, node


def _gcp_zone(
    zone: str, rows: Iterable[tuple[datetime, int, str]], last: datetime, name: str
) -> Trace:
    ordered = sorted(rows, key=lambda row: row[0])
    start = ordered[0][0]
    up: set[str] = set()
    before: list[tuple[float, int, str]] = []
    kept: list[tuple[float, int, str]] = []
    met: set[str] = set()
    for moment, change, node in ordered:
        if change != ADDED and node not in met:
            before.append((0.0, ADDED, node))
            up.add(node)
        met.add(node)
        if (change == ADDED) == (node in up):
            continue  # a delete after a preemption, a start that was requested twice
        (up.add if change == ADDED else up.discard)(node)
        kept.append(((moment - start).total_seconds(), change, node))
    end_s = (last - start).total_seconds()
    return _nodes(zone, [*before, *kept], end_s, place_of_zone(zone), start, name)


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
        if not all(is_number(n) and 0 <= n <= MAX_MACHINES for n in numbers):
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
