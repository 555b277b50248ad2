"""A fleet: its jobs planned, put into the program, and what comes out in terms of its file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import ceil, floor
from pathlib import Path

import numpy as np

from recommender.api.batch import SUFFIXES, Question, Row, plan_batch, read_entry
from recommender.inputs.fleet_file import FleetEntry, FleetFile
from recommender.inputs.workers import Workers
from recommender.optimize.fleet import Chosen, Fleet, FleetJob, FleetPlan, Way, plan_fleet
from recommender.optimize.fleet_risk import Run, apart, together
from recommender.report.fleet import FleetAnswer, Placed
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.path_inputs import PathInputs

KINDS = 4  # plans of a job for each of its deadlines, of different GPUs, markets and sizes
SHARES = (1.0, 0.5, 0.25)  # of a job's time: a faster plan leaves more to others
SLOTS = 60  # at least about so many until the last deadline, of whole hours
PATHS = 2048  # as of printed plans
HOUR_S = 3600.0
JOBS = "jobs at once"
WORTH = 2.0  # assumed where it is not stated: what a job is worth over its dearest plan


def answer_fleet(
    file: FleetFile,
    folder: Path,
    question: Question,
    workers: Workers,
    columns: Path | None = None,
    tick: Callable[[int, int], None] | None = None,
) -> FleetAnswer:
    """Plan a fleet; `columns` keeps the plans of its jobs for another call.

    The limits of the question are those of every job but for its deadline.
    """
    start = file.start or question.moment
    slot_s = file.slot_s or HOUR_S * ceil(max(j.deadline_s for j in file.jobs) / SLOTS / HOUR_S)
    rows = _rows(file, folder, question, workers, columns, tick)
    ways = [[row for row in rows[job.name] if row["status"] == "ok"] for job in file.jobs]
    quotas = {k: yours for some in ways for row in some for k, (_, yours) in _quotas(row).items()}
    quotas |= {} if file.max_jobs is None else {JOBS: float(file.max_jobs)}
    last = max(job.deadline_s for job in file.jobs)
    slots = [start + timedelta(seconds=slot_s * n) for n in range(floor(last / slot_s))]
    months = tuple(f"{each:%Y-%m}" for each in slots)
    budgets = {(t, m): usd for t, usd in file.budgets.items() for m in dict.fromkeys(months)}
    jobs = [_job(job, some, slot_s) for job, some in zip(file.jobs, ways, strict=True)]
    fleet = Fleet(tuple(jobs), months, quotas, budgets)
    plan = plan_fleet(fleet)
    placed = [_placed(file, ways, each, start, slot_s) for each in plan.chosen]
    runs = [_run(each, start, question.seed) for each in placed]
    return FleetAnswer(
        tuple(sorted(placed, key=lambda each: (each.start, each.entry.name))),
        tuple(_left_out(file, rows, plan)), plan, fleet, start, slot_s, _spent(fleet, plan),
        together(runs, quotas), apart(runs, quotas), question.catalog.version,
    )  # fmt: skip


def _rows(
    file: FleetFile,
    folder: Path,
    question: Question,
    workers: Workers,
    columns: Path | None,
    tick: Callable[[int, int], None] | None,
) -> dict[str, list[Row]]:
    """The plans of each job, some of them for a part of its time."""
    entries = []
    for job in file.jobs:
        path = folder / job.job
        named = str(path) if path.suffix in SUFFIXES else job.job
        times = (share * (job.deadline_s - job.first_s) for share in SHARES)
        limits = tuple(replace(question.limits[0], deadline_s=each) for each in times)
        entries.append(replace(read_entry(named), name=job.name, limits=limits))
    asked = replace(question, top=KINDS, inputs=True)
    found: dict[str, list[Row]] = {}
    for row in plan_batch(entries, asked, workers, columns, tick):
        found.setdefault(row["job"], []).append(row)
    return found


def _quotas(row: Row, fallback: bool | None = None) -> dict[str, tuple[float, float]]:
    """What a plan uses of each quota that the user has reported, and how much of it there is."""
    return {
        f"{row['provider']} {need['name']}, {need['region']}": (need["amount"], need["yours"])
        for need in row["needs"]
        if need["yours"] is not None and (fallback is None or need["fallback"] == fallback)
    }


def _uses(row: Row, fallback: bool) -> dict[str, float]:
    return {name: amount for name, (amount, _) in _quotas(row, fallback).items()}


def _job(entry: FleetEntry, rows: Sequence[Row], slot_s: float) -> FleetJob:
    """A job of the program: each of its plans is a way."""
    ways = tuple(
        Way(row["cost_usd"], ceil(row["time_s_p95"] / slot_s), {JOBS: 1.0, **_uses(row, False)})
        for row in rows
    )
    worth = entry.worth_usd
    if worth is None:
        worth = WORTH * entry.priority * max((way.usd for way in ways), default=0.0)
    first, end = ceil(entry.first_s / slot_s), floor(entry.deadline_s / slot_s)
    return FleetJob(entry.name, ways, worth, end, first, entry.team, entry.after)


def _placed(
    file: FleetFile,
    ways: Sequence[Sequence[Row]],
    chosen: Chosen,
    start: datetime,
    slot_s: float,
) -> Placed:
    row = ways[chosen.job][chosen.way]
    begin = start + timedelta(seconds=chosen.start * slot_s)
    return Placed(file.jobs[chosen.job], row, begin, begin + timedelta(seconds=row["time_s_p95"]))


def _run(placed: Placed, start: datetime, seed: int) -> Run:
    """A job on the common paths, with the fallback of its plan."""
    entry, row = placed.entry, placed.row
    inputs = PathInputs(**{name: np.array([value]) for name, value in row["inputs"].items()})
    paths = simulate_paths(inputs, row["deadline_s"], PATHS, seed)
    begin_s = (placed.start - start).total_seconds()
    return Run(
        entry.name, begin_s, entry.deadline_s - begin_s, _uses(row, False), _uses(row, True),
        paths.time_s[0], paths.fallback_s[0], paths.cost_usd[0],
    )  # fmt: skip


def _left_out(
    file: FleetFile, rows: Mapping[str, Sequence[Row]], plan: FleetPlan
) -> list[tuple[FleetEntry, str]]:
    """The jobs that do not run, and why."""
    run = {each.job for each in plan.chosen}
    found = []
    for number, entry in enumerate(file.jobs):
        if number not in run:
            said = next((row["message"] for row in rows[entry.name] if row["message"]), "")
            able = any(row["status"] == "ok" for row in rows[entry.name])
            found.append((entry, "" if able else said or "no plan meets its deadline"))
    return found


def _spent(fleet: Fleet, plan: FleetPlan) -> dict[tuple[str, str], float]:
    """What each team spends in each month, evenly over the time of a job."""
    found: dict[tuple[str, str], float] = {}
    for each in plan.chosen:
        job = fleet.jobs[each.job]
        way = job.ways[each.way]
        for month in fleet.months[each.start : each.start + way.slots]:
            key = job.team, month
            found[key] = found.get(key, 0.0) + way.usd / way.slots
    return found
