"""Chances next to what happened: reliability tables and Brier scores of held-out forecasts.

python -P tests/run.py tests.research.accuracy.reliability --reference DIR
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recommender.arrays import Floats
from tests.research.accuracy.lifetimes import unseen_shares
from tests.research.accuracy.spot_jobs import job_forecasts
from tests.research.accuracy.spot_runs import NAMED, RunsForecast, run_forecasts, run_places
from tests.research.accuracy.spot_zones import gang_forecasts

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


@dataclass(frozen=True, slots=True)
class Brier:
    """The Brier score of chances, and what of it the forecaster could have avoided."""

    score: float  # mean of (chance - outcome)^2; 0 is perfect
    unreliable: float  # mean of (chance - share)^2: the part that is the forecaster's
    of_base_rate: float  # score of one chance for all, the mean share


def brier(found: Reliability) -> Brier:
    """Brier score from the share of outcomes of each forecast, every forecast weighing the same.

    E(p - o)^2 = (p - m)^2 + m(1 - m) for a share m of outcomes (Murphy 1973).
    """
    p, m = found.predicted, found.measured
    left = float(np.mean(m * (1.0 - m)))
    wrong = float(np.mean((p - m) ** 2))
    base = float(m.mean())
    return Brier(wrong + left, wrong, base * (1.0 - base))


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


EDGES = (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0)


def jobs_table(reference: Path) -> str:
    """Whole jobs on held-out zones: predicted chances, and how many were done in time; Markdown."""
    held = job_forecasts(reference)
    found = Reliability("jobs done in time", held.predicted, held.measured)
    lines = [
        "| predicted chance | forecasts | mean prediction | done in time |",
        "| --- | --- | --- | --- |",
    ]
    for low, high in zip(EDGES, EDGES[1:], strict=False):
        inside = (found.predicted >= low) & (found.predicted < high)
        if inside.any():
            told, done = found.predicted[inside].mean(), found.measured[inside].mean()
            row = f"{low:.0%} to {high:.0%} | {inside.sum()} | {told:.1%} | {done:.1%}"
            lines.append(f"| {row} |")
    b = brier(found)
    lines += [
        "",
        f"Brier score {b.score:.4f}, of which {b.unreliable:.4f} is due to the forecasts' "
        f"calibration; one chance for all jobs would score {b.of_base_rate:.4f}.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the table of docs/research/risk.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", type=Path, required=True)
    print(jobs_table(parser.parse_args().reference), end="")


if __name__ == "__main__":
    main()
