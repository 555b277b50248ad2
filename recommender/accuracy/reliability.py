"""What a plot of the spot studies shows: predicted beside measured, as data.

Points of a reliable law lie on the diagonal.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recommender.accuracy.lifetimes import unseen_shares
from recommender.accuracy.spot_jobs import job_forecasts
from recommender.accuracy.spot_runs import NAMED, RunsForecast, run_forecasts, run_places
from recommender.accuracy.spot_zones import gang_forecasts

Floats = NDArray[np.float64]

LEVELS = np.linspace(0.05, 0.95, 19)


@dataclass(frozen=True, slots=True)
class Reliability:
    """Chances or shares of one kind; both from 0 to 1, shape (points,)."""

    name: str
    predicted: Floats
    measured: Floats


def spot_reliability(reference: Path) -> list[Reliability]:
    """Held-out runs of every named campaign, gangs' availability and replayed jobs."""
    forecasts = run_forecasts(reference)
    found = []
    for _, words, (campaign, gpu), sizes in NAMED:
        mine = [
            f
            for f in forecasts
            if (f.left_out.split.campaign, f.left_out.split.gpu) == (campaign, gpu)
            and f.left_out.split.machines in sizes
        ]
        found.append(Reliability(f"runs: {words}", LEVELS, share_ended(mine, LEVELS)))
    for name, held in (
        ("availability of gangs", gang_forecasts(reference)),
        ("jobs done in time", job_forecasts(reference)),
    ):
        found.append(Reliability(name, held.predicted, held.measured))
    return found


def lifetime_reliability() -> list[Reliability]:
    """Share of VMs dead by hours 1-24 in regions left out; one curve per GPU and region."""
    return [
        Reliability(f"lifetimes: {s.gpu} {s.region}", s.predicted, s.measured)
        for s in unseen_shares()
    ]


def share_ended(forecasts: list[RunsForecast], levels: Floats) -> Floats:
    """Share of the runs that ended before our law's quantile of each level; (levels,).

    Runs cut off by the end of a series count until then (product limit; Kaplan, Meier, 1958).
    """
    places = [run_places(f) for f in forecasts]
    ended = np.concatenate([place for place, _ in places])
    cut = np.concatenate([place for _, place in places])
    return product_limit(ended, cut, levels)


def product_limit(ended: Floats, cut: Floats, levels: Floats) -> Floats:
    """Share ended by each level where some were last seen, not ended, at `cut`; (levels,)."""
    times = np.unique(ended)
    at_risk = np.array([(ended >= t).sum() + (cut >= t).sum() for t in times])
    left = np.cumprod(1.0 - np.array([(ended == t).sum() for t in times]) / at_risk)
    index = np.searchsorted(times, levels, side="right")
    return np.asarray(1.0 - np.r_[1.0, left][index], dtype=np.float64)
