"""Availability series for tests: golden windows, recorded traces, and simulated ones."""

import csv
import gzip
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from recommender.arrays import Bools
from recommender.policies.availability import Availability
from recommender.policies.replay import RecordedZones
from recommender.policies.state import ModePrices, Task

GOLDEN = Path(__file__).with_name("golden.csv")
PRICES = ModePrices(spot=0.9731, on_demand=3.06)  # p3.2xlarge us-west-2, those of the golden costs

one = RecordedZones.of_one

reference = pytest.mark.skipif(
    not os.environ.get("RECOMMEND_REFERENCE_DATA"), reason="needs RECOMMEND_REFERENCE_DATA"
)


def hours(work: float, deadline: float, changeover: float) -> Task:
    """A task given in hours."""
    return Task(work * 3600.0, deadline * 3600.0, changeover * 3600.0)


@dataclass(frozen=True)
class Golden:
    """One window with the costs that others found for it."""

    name: str
    tick_s: float
    available: Bools
    task: Task
    usd: dict[str, float]


def golden() -> list[Golden]:
    """The windows carried into the tests: `runs_ticks` alternates up and down, up first."""
    with GOLDEN.open(encoding="utf-8", newline="") as file:
        return [_golden(row) for row in csv.DictReader(file)]


def _golden(row: dict[str, str]) -> Golden:
    runs = [int(each) for each in row["runs_ticks"].split()]
    up = np.arange(len(runs)) % 2 == 0
    return Golden(
        name=f"{row['trace_id']}-{row['work_h']}-{row['deadline_h']}",
        tick_s=float(row["tick_s"]),
        available=np.repeat(up, runs),
        task=hours(*(float(row[f"{key}_h"]) for key in ("work", "deadline", "changeover"))),
        usd={key: float(row[f"{key}_usd"]) for key in COSTS},
    )


COSTS = ("on_demand", "greedy", "uniform_progress", "optimum")


def nodes_up(trace_id: str) -> tuple[np.ndarray, float]:
    """Nodes up per tick of a recorded trace, and its tick, from the reference tables."""
    folder = Path(os.environ["RECOMMEND_REFERENCE_DATA"]) / "spot"
    with (folder / "traces.csv").open(encoding="utf-8", newline="") as file:
        tick_s = next(float(r["gap_s"]) for r in csv.DictReader(file) if r["trace_id"] == trace_id)
    with gzip.open(folder / "availability.csv.gz", "rt", encoding="utf-8", newline="") as file:
        points = [r for r in csv.DictReader(file) if r["trace_id"] == trace_id]
    at = np.array([float(r["t_s"]) for r in points])
    nodes = np.array([int(float(r["nodes"])) for r in points])
    grid = np.arange(0.0, at[-1], tick_s)
    return nodes[np.searchsorted(at, grid, side="right") - 1], tick_s


def simulated(law: Availability, tick_s: float, ticks: int, seed: int) -> Bools:
    """A series whose runs and outages end with the hazard of their true age (one regime)."""
    rng = np.random.default_rng(seed)
    leave = -np.expm1(-law.exits_per_hour[0] * tick_s / 3600.0)
    ages_h = np.arange(1, ticks + BURN_IN + 1) * tick_s / 3600.0
    bucket = np.searchsorted(np.asarray(law.edges_h), ages_h)
    up, side, age = np.empty(ticks + BURN_IN, dtype=np.bool_), 0, 0
    for tick, luck in enumerate(rng.random(ticks + BURN_IN)):
        up[tick] = side
        side, age = (1 - side, 0) if luck < leave[side, bucket[age]] else (side, age + 1)
    return up[BURN_IN:]


BURN_IN = 2_000  # ticks until the start is forgotten
