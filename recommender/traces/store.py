"""Spot laws that the user keeps for offers: one JSON file in the user's data folder."""

import json
import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from recommender.errors import UsageError
from recommender.limits import OfferLaw
from recommender.text import shown, shown_path
from recommender.wholefile import read_text, write_whole

SCHEMA = "recommend.spot-laws/v2"
_OLDER = "recommend.spot-laws/v1"  # slopes per log2(n)
_INSTEAD = "correct it, or remove it and fit again with recommend trace fit --store"
# What a number of a law may be, ends included.
_RANGES = {
    "run_mean_s": (1.0, 1e9),
    "run_sigma": (0.01, 10.0),
    "outage_sigma": (0.01, 10.0),
    "availability": (1e-6, 1.0 - 1e-6),
    "zone_sd": (0.0, 10.0),
    "availability_slope": (-5.0, 200.0),  # two sizes, one seen always, the other never: 108
    "co_interruption": (0.0, 1.0),
    "short_runs": (0.0, 1.0),
    "hours": (0.0, 1e9),
}
_OPTIONAL = ("zone_sd", "availability_slope", "co_interruption", "short_runs")


def store_path() -> Path:
    """Tell where the user's spot laws are kept."""
    from platformdirs import user_data_path

    return user_data_path("recommend", appauthor=False) / "spot-laws.json"


def stored(path: Path | None = None) -> tuple[OfferLaw, ...]:
    """The laws that are kept, in the order of their offers; none where there is no file.

    Raises `UsageError` for a file that was damaged.
    """
    path = path or store_path()
    if not os.path.exists(path):
        return ()
    name = shown_path(path)
    try:
        tree = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name}: not JSON ({shown(error)}); {_INSTEAD}") from None
    if isinstance(tree, dict) and tree.get("schema") == _OLDER:
        raise UsageError(
            f"{name}: written by an older version, whose laws told gangs too good a chance; remove "
            "it and fit the traces again with recommend trace fit --store"
        )
    if not isinstance(tree, dict) or tree.get("schema") != SCHEMA:
        raise UsageError(f"{name}: schema is not {SCHEMA}; {_INSTEAD}")
    rows = tree.get("laws")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"{name}: laws is not a list of laws; {_INSTEAD}")
    problems = [
        f"{name}, law {i}: {p}; {_INSTEAD}" for i, r in enumerate(rows, 1) for p in _wrong(r)
    ]
    if problems:
        raise UsageError(*problems)
    return tuple(OfferLaw(**row) for row in rows)


def _wrong(row: dict[str, Any]) -> list[str]:
    """What is wrong with one law."""
    names = [each.name for each in fields(OfferLaw)]
    problems = [f"{name} is missing" for name in names if name not in row]
    problems += [f"unknown key '{shown(name)}'" for name in row if name not in names]
    for each in fields(OfferLaw):
        value = row.get(each.name)
        if each.name not in row or (value is None and each.name in _OPTIONAL):
            continue
        if each.name in _RANGES:
            low, high = _RANGES[each.name]
            if not _between(value, low, high):
                problems.append(
                    f"{each.name} {shown(value)} is not a number of {low:g} to {high:g}"
                )
        elif not isinstance(value, each.type if isinstance(each.type, type) else str):
            problems.append(f"{each.name} {shown(value)} is no {each.type}")
    return problems


def _between(value: Any, low: float, high: float) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return math.isfinite(value) and low <= value <= high


def keep(laws: Sequence[OfferLaw], path: Path | None = None) -> Path:
    """Add laws; those kept for the same offers before are replaced."""
    new = {law.offer.lower() for law in laws}

    def added(known: tuple[OfferLaw, ...]) -> Iterable[OfferLaw]:
        return [*(law for law in known if law.offer.lower() not in new), *laws]

    return _changed(added, path or store_path())


def forget(offers: Sequence[str], path: Path | None = None) -> Path:
    """Remove the laws of some offers; raises `UsageError` for one that has none."""
    gone = {offer.lower() for offer in offers}

    def left(known: tuple[OfferLaw, ...]) -> Iterable[OfferLaw]:
        kept = {law.offer.lower() for law in known}
        missing = [offer for offer in offers if offer.lower() not in kept]
        if missing:
            listed = ", ".join(law.offer for law in known) or "none"
            said = [f"no law is kept for '{shown(offer)}'; kept: {listed}" for offer in missing]
            raise UsageError(*said)
        return [law for law in known if law.offer.lower() not in gone]

    return _changed(left, path or store_path())


def _changed(change: Callable[[tuple[OfferLaw, ...]], Iterable[OfferLaw]], path: Path) -> Path:
    """Write what a function makes of the laws kept, in one step: no reader sees half a file."""
    from filelock import FileLock

    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        laws = sorted(change(stored(path)), key=lambda law: law.offer)
        text = json.dumps({"schema": SCHEMA, "laws": [asdict(law) for law in laws]}, indent=2)
        write_whole(path, f"{text}\n".encode())
    return path
