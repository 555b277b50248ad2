"""Probe rounds of SkyNomad (andylizf/skynomad-artifact, NSDI'27): machines got in every zone.

The artifact keeps one JSON file per round; `jq -s . h100_16_runs/*.json` makes the list.
"""

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from recommender.csvtext import refuse_all
from recommender.errors import UsageError
from recommender.text import shown
from recommender.traces.series import is_number, place_of_zone, tree_of
from recommender.traces.trace import Floats, Ints, Trace, changes
from recommender.units import parse_instant

_Round = tuple[datetime, dict[str, tuple[int, int]]]  # when, zone: (machines got, asked for)


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
        if not all(is_number(n) and n >= 0 for n in numbers):
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
