"""Machines with names that came and went: Bamboo's events and Google Cloud's operations."""

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from recommender.csvtext import refuse_all
from recommender.errors import UsageError
from recommender.text import shown
from recommender.traces.series import name_of, place_of_zone, tree_of
from recommender.traces.trace import (
    ADDED,
    GIVEN_BACK,
    TAKEN,
    Place,
    Trace,
    counted,
    named_events,
)
from recommender.units import parse_instant

_GCP_ADD = ("insert", "start", "resume")
_GCP_TAKEN = "compute.instances.preempted"
_GCP_GIVEN_BACK = ("stop", "delete", "suspend", "compute.instances.guestTerminate")


def bamboo(text: str, path: Path) -> tuple[Trace, ...]:
    """Named machines that were added and removed, in milliseconds from an unknown start."""
    name, problems = shown(path.name), []
    rows: list[tuple[float, int, str]] = []
    for number, cells in enumerate(csv.reader(io.StringIO(text, newline="")), 1):
        if len(cells) == 3 and cells[0].isdecimal() and cells[1] in ("add", "remove") and cells[2]:
            rows.append((int(cells[0]) / 1000.0, ADDED if cells[1] == "add" else TAKEN, cells[2]))
        elif cells:
            said = shown(",".join(cells))
            problems.append(f"{name}, line {number}: '{said}' is not milliseconds,add|remove,node")
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
            continue  # a delete after a preemption, a start that was asked for twice
        (up.add if change == ADDED else up.discard)(node)
        kept.append(((moment - start).total_seconds(), change, node))
    end_s = (last - start).total_seconds()
    return _nodes(zone, [*before, *kept], end_s, place_of_zone(zone), start, name)
