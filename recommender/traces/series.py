"""Series of machines up, one number per tick: two public formats of opposite meaning."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from recommender.csvtext import refuse_all
from recommender.errors import UsageError
from recommender.text import shown
from recommender.traces.trace import Floats, Kind, Place, Trace, changes
from recommender.units import parse_instant

_AWS_ZONE = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d[a-z]")
_GCP_ZONE = re.compile(r"[a-z]+-[a-z]+\d+-[a-z]")
_NAMED = re.compile(r"([a-z0-9-]+)_([a-z0-9-]+)_(\d+)")


def place_of_zone(zone: str, **more: Any) -> Place:
    """A place by the form of its zone's name: us-east-1a is AWS, us-central1-a Google Cloud."""
    if _AWS_ZONE.fullmatch(zone):
        return Place(provider="aws", region=zone[:-1], zone=zone, **more)
    if _GCP_ZONE.fullmatch(zone):
        return Place(provider="gcp", region=zone[:-2], zone=zone, **more)
    return Place(zone=zone, **more)


def tree_of(text: str, name: str) -> Any:
    """A JSON document; numbers that are none are refused."""
    try:
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
    """A series in which 1 means preempted: it is turned round, so that 1 machine is up at 0."""
    tree, ticks, gap_s, name = _ticks(text, path)
    if ticks.max(initial=0.0) > 1:
        said = f"{name}: data holds {ticks.max():g}; a preempted series holds 0 and 1 only"
        raise UsageError(f"{said}; counts of machines up are --format spot-traces")
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
    bad = [i for i, v in enumerate(data) if not _is_count(v)]
    problems += [f"{name}: data[{i}] is {shown(data[i])}, not a number of machines" for i in bad]
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
    return is_number(value) and value >= 0 and value == int(value)


def _series(tree: dict[str, Any], ticks: Floats, gap_s: float, name: str, path: Path) -> Trace:
    t_s: Floats = np.arange(len(ticks), dtype=np.float64) * gap_s
    machines = ticks.astype(np.int64)
    keep = changes(t_s, machines)
    usd = np.array(tree.get("prices", []), dtype=np.float64)
    dearer = changes(t_s[: len(usd)], usd)
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
        price_t_s=t_s[: len(usd)][dearer] if len(usd) else np.empty(0),
        usd_per_hour=usd[dearer] if len(usd) else np.empty(0),
    )


def name_of(path: Path) -> str:
    """What a series is called: the file, or the folder where files have numbers for names."""
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
