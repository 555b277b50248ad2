"""Whole jobs replayed on recorded capacity, in zones that the law was not fitted on.

A job asks for a gang at every hour of a series, trains while the gang is there, pays a
changeover at the start of every run, keeps its work and waits. The share of jobs done in time
is compared with the chance that the recommender computes for the same job (`risk/monte_carlo.py`)
with the law of the other zones.
"""

from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from recommender.arrays import Floats
from recommender.plan.accuracy import Target
from recommender.risk.monte_carlo import simulate_paths
from tests.research.accuracy.spot_splits import SOURCE, LeftOut, left_out
from tests.research.accuracy.spot_zones import gang_inputs, zone_law
from tests.research.accuracy.study import Held, Study, share_score
from tests.research.accuracy.tables import SPOT, reference_folder
from tests.research.fits.spot_fit import Trace

WORK_H = (1.0, 4.0, 12.0)
CHANGEOVER_H = (0.1, 0.3)  # a prepared image; the 18 minutes of Can't Be Late (NSDI 2024)
IN_TIME = (1.2, 1.5, 2.0, 3.0)  # times the work, after the first changeover
PATHS = 1024
NEVER_H = 1e7


@dataclass(frozen=True, slots=True)
class Job:
    """What is replayed."""

    machines: int
    work_h: float
    changeover_h: float

    def limits_h(self) -> Floats:
        """Hours from the request within which the job may have to be done."""
        return self.changeover_h + self.work_h * np.array(IN_TIME)


def replayed(trace: Trace, job: Job) -> Floats:
    """Hours from each request to the end of the job; inf where the series ends before.

    Requests every hour, as far as the latest limit lies within the series.
    """
    up = trace.up(job.machines)
    last = round(float(job.limits_h().max()) / trace.gap_h)
    requests = np.arange(0, len(up) - last, max(round(1.0 / trace.gap_h), 1)) * trace.gap_h
    edges = np.flatnonzero(np.diff(np.r_[False, up, False].astype(np.int8))) * trace.gap_h
    # An endless run that begins long after the series ends the jobs that it does not.
    begins, ends = np.append(edges[::2], NEVER_H), np.append(edges[1::2], 2.0 * NEVER_H)
    done = np.cumsum(np.maximum(ends - begins - job.changeover_h, 0.0))  # by who meets every run
    met = np.searchsorted(ends, requests + 1e-9)  # the run under way, or the next one
    begun = np.maximum(begins[met], requests)
    first = np.maximum(ends[met] - begun - job.changeover_h, 0.0)
    later = np.searchsorted(done, done[met] - first + job.work_h - 1e-9)
    at_once = first >= job.work_h - 1e-9
    before = np.where(at_once, 0.0, first + done[later - 1] - done[met])
    start = np.where(at_once, begun, begins[later])
    hours = start + job.changeover_h + job.work_h - before - requests
    return np.where(start < NEVER_H, hours, np.inf)


def job_forecasts(reference: Path | None) -> Held:
    """Share of jobs done in time, zones weighing the same; a point per job and limit."""
    folder = reference_folder(reference, *SPOT)
    groups: dict[tuple[str, int], list[LeftOut]] = {}
    for case in left_out(folder, "uptime"):
        groups.setdefault((case.split.campaign, case.split.machines), []).append(case)
    labels: list[str] = []
    predicted: list[float] = []
    measured: list[float] = []
    for (campaign, machines), cases in groups.items():
        laws = [zone_law(folder, case) for case in cases]
        for work, changeover in product(WORK_H, CHANGEOVER_H):
            job = Job(machines, work, changeover)
            limits = job.limits_h()
            in_time = [_in_time(replayed(case.trace, job), limits) for case in cases]
            plans = [gang_inputs(law, machines, work, changeover) for law in laws]
            ours = [
                _in_time(simulate_paths(p, None, PATHS).time_s[0] / 3600.0, limits) for p in plans
            ]
            labels += [f"{campaign} x{machines} {work:g} h in {limit:.3g} h" for limit in limits]
            predicted += list(np.mean(ours, axis=0))
            measured += list(np.mean(in_time, axis=0))
    return Held(tuple(labels), np.array(predicted), np.array(measured))


def _in_time(hours: Floats, limits: Floats) -> Floats:
    return np.asarray((hours[:, None] <= limits + 1e-9).mean(axis=0), dtype=np.float64)


STUDIES: tuple[Study, ...] = (
    Study(
        key="spot-jobs",
        subject="chance that a job of 1-12 h on spot is done in time, replayed on traces",
        split="leave one zone out; V100 and H100, gangs of 1-16",
        target=Target(),
        published="none",
        source=SOURCE,
        run=lambda reference: share_score(job_forecasts(reference)),
        needs_reference=True,
    ),
)
