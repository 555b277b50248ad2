"""Two-threshold rules of the shipped spot classes: a look-up, no dynamic programme.

`thresholds.csv` holds the rules of a grid of jobs for every spot class of the snapshot, written
by `python -m recommender.fallback.build_thresholds --write`.
"""

import csv
import io
from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np

from recommender.fallback.thresholds import TwoThresholds
from recommender.replay.state import Floats, Prices, Task

AXES = ("work_h", "deadline_ratio", "changeover_h", "price_ratio")


def shipped_rule(spot_class: str, task: Task, prices: Prices) -> TwoThresholds | None:
    """The rule of a class for a job, multilinear in the logarithms of the grid's axes.

    Jobs outside the grid get the rule at its edge. None for a class that is not shipped, and
    where there is nothing to wait for: spot no cheaper than on-demand, or no slack.
    """
    grid = _grid(spot_class)
    if grid is None or prices.spot >= prices.on_demand or task.slack_s <= 0.0:
        return None
    axes, values = grid
    at = (
        task.work_s / 3600.0,
        task.deadline_s / task.work_s,
        task.changeover_s / 3600.0,
        prices.spot / prices.on_demand,
    )
    wait, back = _interpolate(axes, values, at)
    return TwoThresholds(wait, back)


def _interpolate(
    axes: Sequence[Floats], values: Floats, at: tuple[float, ...]
) -> tuple[float, float]:
    lows, parts = [], []
    for axis, value in zip(axes, at, strict=True):
        place = np.log(np.clip(value, axis[0], axis[-1]))
        low = int(np.clip(np.searchsorted(axis, value) - 1, 0, len(axis) - 2))
        lows.append(low)
        parts.append((place - np.log(axis[low])) / np.log(axis[low + 1] / axis[low]))
    total = np.zeros(2)
    for corner in product((0, 1), repeat=len(axes)):
        weight = np.prod(
            [part if up else 1.0 - part for up, part in zip(corner, parts, strict=True)]
        )
        total += weight * values[tuple(low + up for low, up in zip(lows, corner, strict=True))]
    return float(total[0]), float(total[1])


@cache
def _grid(spot_class: str) -> tuple[tuple[Floats, ...], Floats] | None:
    """A class's axes, and wait and back at every point of their grid."""
    path = Path(__file__).with_name("thresholds.csv")
    table = csv.DictReader(io.StringIO(path.read_text("utf-8")))
    rows = [row for row in table if row["spot_class"] == spot_class]
    if not rows:
        return None
    axes = [sorted({float(row[name]) for row in rows}) for name in AXES]
    places = [{value: place for place, value in enumerate(axis)} for axis in axes]
    grid = np.full((*map(len, axes), 2), np.nan)
    for row in rows:
        place = tuple(at[float(row[name])] for at, name in zip(places, AXES, strict=True))
        grid[place] = float(row["wait"]), float(row["back"])
    return tuple(np.array(axis) for axis in axes), grid
