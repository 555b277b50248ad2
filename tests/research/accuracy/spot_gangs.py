"""Gangs in zones left out of which the series of one, two or four machines was watched.

The law of the watched machines is that of `recommend trace fit`. Where two sizes were watched
they tell level and slope; of one machine's series the slope is the class's (here: of the other
zones of the campaign), moved by the share of short runs as for a law that a user keeps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from recommender.arrays import Floats
from recommender.market.user_spot_laws import expected_short_runs, slope_by_short_runs
from recommender.plan.accuracy import Target
from recommender.traces.fit_result import MarketLaw
from recommender.traces.market_law import law_of
from recommender.traces.statistics import market_of
from recommender.traces.trace import Trace as Recorded
from recommender.traces.trace import changes
from tests.research.accuracy.spot_splits import SOURCE, LeftOut, left_out
from tests.research.accuracy.spot_zones import gang_availability, zone_law
from tests.research.accuracy.study import Held, Study, share_score
from tests.research.accuracy.tables import SPOT, reference_folder
from tests.research.fits.spot_fit import (
    HOUR,
    Trace,
    ZoneLaw,
    gang_doublings,
    logistic,
    logit,
    mean_availability,
)

_PER_SHARE = np.arange(0.0, 6.01, 0.1)
_LEVELS = np.arange(0.0, 8.01, 0.02)
_GRID = (len(_PER_SHARE), len(_LEVELS))


@dataclass(frozen=True, slots=True)
class WatchedZone:
    """What one machine's runs and all gangs of a zone were like; arrays of shape (gangs,)."""

    campaign: str
    name: str
    one: float  # availability of one machine
    short_runs: float  # share of its runs
    doublings: Floats  # of 1 + (n-1)/8
    gangs: Floats  # availability


def recorded(trace: Trace, machines: int) -> Recorded:
    """What a user sees who asks for so many machines in the zone of a series."""
    t_s: Floats = np.arange(len(trace.nodes), dtype=np.float64) * trace.gap_h * HOUR
    seen = np.minimum(trace.nodes, machines)
    new = changes(t_s, seen)
    return Recorded(
        name=trace.name,
        end_s=len(seen) * trace.gap_h * HOUR,
        capacity=machines,
        step_s=trace.gap_h * HOUR,
        t_s=t_s[new],
        machines=seen[new],
    )


def fitted_law(trace: Trace, machines: int) -> MarketLaw | None:
    """The law of a series of so many machines; None where it tells too little for one."""
    return law_of(market_of([recorded(trace, machines)]))[0]


def zones_of(cases: Sequence[LeftOut]) -> list[list[LeftOut]]:
    """The gangs of every zone together."""
    names = dict.fromkeys(case.trace.name for case in cases)
    return [[case for case in cases if case.trace.name == name] for name in names]


def watched_zones(cases: Sequence[LeftOut]) -> list[WatchedZone]:
    """The zones of the splits of which one machine's series gives a law."""
    found = []
    for gangs in zones_of(cases):
        trace, law = gangs[0].trace, fitted_law(gangs[0].trace, 1)
        if law is None or law.short_runs is None:
            continue
        sizes = [case.split.machines for case in gangs]
        found.append(
            WatchedZone(
                campaign=trace.campaign,
                name=trace.name,
                one=float(trace.up(1).mean()),
                short_runs=law.short_runs.value,
                doublings=np.array([gang_doublings(n) for n in sizes]),
                gangs=np.array([trace.up(n).mean() for n in sizes]),
            )
        )
    return found


def fit_per_share(zones: Sequence[WatchedZone]) -> float:
    """Fit `SLOPE_PER_SHORT_RUNS`: least squares in availability, on a grid.

    Every campaign has a level of its own, since markets differ: with one for all the share of
    short runs tells nothing.
    """
    errors = np.zeros(len(_PER_SHARE))
    for campaign in dict.fromkeys(zone.campaign for zone in zones):
        mine = [zone for zone in zones if zone.campaign == campaign]
        errors += sum((_errors(zone) for zone in mine), np.zeros(_GRID)).min(axis=1)
    return round(float(_PER_SHARE[int(errors.argmin())]), 1)


def _errors(zone: WatchedZone) -> Floats:
    """Sum of squares of a zone's gangs by `per_share` and level (slope where no run is short)."""
    slopes = np.maximum(_LEVELS - _PER_SHARE[:, None] * zone.short_runs, 0.0)
    predicted = logistic(logit(zone.one) - slopes[..., None] * zone.doublings)
    return np.asarray(((predicted - zone.gangs) ** 2).sum(axis=-1))


def gang_share(law: MarketLaw, slope: float, machines: int) -> float:
    """Mean share of time that a gang is there, over the levels of a law's days."""
    spread = 0.0 if law.zone_sd is None else law.zone_sd.value
    level = logit(law.availability.value) - slope * gang_doublings(machines)
    return mean_availability(level, spread)


def watched_forecasts(watched: int, reference: Path | None) -> Held:
    """Availability of larger gangs in zones left out of which so many machines were watched."""
    folder = reference_folder(reference, *SPOT)
    cases = left_out(folder, "gangs")
    zones = watched_zones(cases) if watched == 1 else []
    labels, predicted, measured = [], [], []
    for gangs in zones_of([case for case in cases if case.split.machines > watched]):
        trace = gangs[0].trace
        others = [zone for zone in zones if zone.name != trace.name]
        availability = _availability_by_size(trace, watched, zone_law(folder, gangs[0]), others)
        for case in gangs:
            machines = case.split.machines
            labels.append(f"{case.split.campaign} {case.zone} x{machines}")
            predicted.append(availability(machines))
            measured.append(float(trace.up(machines).mean()))
    return Held(tuple(labels), np.array(predicted), np.array(measured))


def _availability_by_size(
    trace: Trace, watched: int, other_zones: ZoneLaw, zones: Sequence[WatchedZone]
) -> Callable[[int], float]:
    """Availability by size of gang; where a series gives no law, by the other zones' slope."""
    law = fitted_law(trace, watched)
    if law is None:
        return partial(gang_availability, float(trace.up(1).mean()), other_zones)
    if law.availability_slope is not None:
        return partial(gang_share, law, law.availability_slope.value)
    assert law.short_runs is not None  # every campaign was looked at often enough
    expected = expected_short_runs(other_zones.run_mean_h * HOUR, other_zones.run_sigma)
    beyond = law.short_runs.value - expected
    slope = slope_by_short_runs(other_zones.slope, beyond, fit_per_share(zones))
    return partial(gang_share, law, slope)


def _study(key: str, gangs: str, watched: int, split: str) -> Study:
    return Study(
        key=key,
        subject=f"availability of gangs of {gangs} in the zone",
        split=split,
        target=Target(),
        published="none",
        source=SOURCE,
        run=lambda reference: share_score(watched_forecasts(watched, reference)),
        needs_reference=True,
    )


STUDIES: tuple[Study, ...] = (
    _study(
        "spot-gangs-series",
        "2-16, given the series of one VM",
        1,
        "leave one zone out; three campaigns, twelve zones",
    ),
    _study(
        "spot-gangs-two",
        "4-16, given the series of two VMs",
        2,
        "larger gangs unseen; three campaigns, twelve zones",
    ),
    _study(
        "spot-gangs-four",
        "8-16, given the series of four VMs",
        4,
        "larger gangs unseen; two campaigns, ten zones",
    ),
)
