"""Days and gangs in zones that the law was not fitted on.

The law is the recommender's, fitted as for the shipped classes on the other zones of the
campaign; days are drawn by the very code that follows a job.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from recommender.arrays import Floats
from recommender.plan.accuracy import Target
from recommender.risk.path_inputs import PathInputs
from recommender.risk.random_numbers import STRETCH, random_numbers
from recommender.risk.spot_capacity import drawn_cycles
from tests.research.accuracy.spot_splits import SOURCE, LeftOut, left_out, series, sizes_of
from tests.research.accuracy.study import Held, Study, score, share_score
from tests.research.accuracy.tables import SPOT, reference_folder
from tests.research.fits.spot_fit import (
    HOUR,
    ZoneLaw,
    co_interruption,
    day_shares,
    fit_gangs,
    gang_intervals,
    logistic,
    logit,
    pooled_run_mean,
)

DAY_S = 86_400.0
PATHS, CYCLES = 1024, 256  # nearly every path reaches the end of its day
FIT_DAYS = 10  # drawn per zone for a fit; the catalog's build draws more


def zone_law(reference: Path, case: LeftOut) -> ZoneLaw:
    """The law of the other zones, fitted as the catalog's build fits a class."""
    split = case.split
    return _zone_law(reference, split.campaign, split.gpu, split.gpus, case.trace.name)


@lru_cache(maxsize=64)
def _zone_law(reference: Path, campaign: str, gpu: str, gpus: int, without: str) -> ZoneLaw:
    others = [t for t in series(reference, campaign, gpu, gpus) if t.name != without]
    sizes = sizes_of(others)
    runs = {n: pooled_run_mean([gang_intervals(t, n) for t in others]) for n in sizes}
    days = [n for n in (1, 4, 16) if n in sizes]
    return fit_gangs(others, sizes, days, co_interruption(runs), FIT_DAYS)


def uptime_forecasts(reference: Path | None) -> Held:
    """Sd of 24-hour uptime over days and zones: of what every zone's forecasters drew, together.

    One point per campaign and size of gang; a zone is forecast from the others.
    """
    folder = reference_folder(reference, *SPOT)
    groups: dict[tuple[str, int], list[LeftOut]] = {}
    for case in left_out(folder, "uptime"):
        groups.setdefault((case.split.campaign, case.split.machines), []).append(case)
    labels, predicted, measured = [], [], []
    for (campaign, machines), cases in groups.items():
        days = [forecast_days(zone_law(folder, case), machines) for case in cases]
        labels.append(f"{campaign} x{machines}")
        predicted.append(float(np.concatenate(days).std()))
        measured.append(float(day_shares([case.trace for case in cases], machines).std()))
    return Held(tuple(labels), np.array(predicted), np.array(measured))


def gang_inputs(
    law: ZoneLaw, machines: int, work_h: float = 0.0, changeover_h: float = 0.0
) -> PathInputs:
    """A plan of one gang in one zone that keeps all its work when interrupted; one row."""
    values = dict.fromkeys(PathInputs.__slots__, 0.0) | {
        "work_s": work_h * HOUR,
        "run_mean_s": law.run_mean(machines) * HOUR,
        "run_sigma": law.run_sigma,
        "outage_sigma": law.outage_sigma,
        "availability_logit": law.level(machines),
        "zone_sd": law.zone_sd,
        "zone_count": 1.0,
        "changeover_s": changeover_h * HOUR,
        "interval_s": 1.0,
        "notice_saves": 1.0,
        "at_once": 1.0,
        "fallback_at_once": 1.0,
    }
    columns: dict[str, Any] = {name: np.full(1, value) for name, value in values.items()}
    columns["runs_from_start"] = np.zeros(1, dtype=np.bool_)
    return PathInputs(**columns)


def forecast_days(law: ZoneLaw, machines: int) -> Floats:
    """Share of a day that a gang is there, in paths that the recommender draws; (paths,)."""
    sample = random_numbers(PATHS)
    lengths, waits = drawn_cycles(gang_inputs(law, machines), sample, CYCLES // STRETCH)
    end = np.cumsum(lengths[:, 0] + waits[:, 0], axis=0)
    begin = end - lengths[:, 0]
    up = np.minimum(end, DAY_S) - np.minimum(begin, DAY_S)
    return np.asarray(up.sum(axis=0) / DAY_S, dtype=np.float64)


def gang_forecasts(reference: Path | None) -> Held:
    """Availability of gangs in zones left out, from that of one machine there."""
    folder = reference_folder(reference, *SPOT)
    labels, predicted, measured = [], [], []
    for case in left_out(folder, "gangs"):
        machines, one = case.split.machines, float(case.trace.up(1).mean())
        labels.append(f"{case.split.campaign} {case.zone} x{machines}")
        predicted.append(gang_availability(one, zone_law(folder, case), machines))
        measured.append(float(case.trace.up(machines).mean()))
    return Held(tuple(labels), np.array(predicted), np.array(measured))


def gang_availability(one: float, law: ZoneLaw, machines: int) -> float:
    """Share of time that a gang is there where one machine is there a share `one`.

    logit a(n) = logit a(1) - slope·log2(1 + (n-1)/8), as the estimates have it.
    """
    if not 0.0 < one < 1.0:
        return one
    return float(logistic(np.array(logit(one) + law.level(machines) - law.level(1))))


STUDIES: tuple[Study, ...] = (
    Study(
        key="spot-days",
        subject="sd of 24 h uptime of spot capacity, over days and zones",
        split="leave one zone out; V100 and H100, gangs of 1-16",
        target=Target(mean=10.0),
        published="none",
        source=SOURCE,
        run=lambda reference: score(uptime_forecasts(reference)),
        needs_reference=True,
    ),
    Study(
        key="spot-gangs",
        subject="availability of gangs of 2-16, given that of one VM in the zone",
        split="leave one zone out; three campaigns, twelve zones",
        target=Target(mean=0.04),
        published="none",
        source=SOURCE,
        run=lambda reference: share_score(gang_forecasts(reference)),
        needs_reference=True,
    ),
)
