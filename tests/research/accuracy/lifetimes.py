"""Lifetimes of preemptible VMs: how well a law fits them, and tells a region never seen.

396 servers of CM-DARE (ICDCS 2020), carried in `data/lifetimes.csv`: GPU, region and the hours
between which each died; the provider's limit ended the others at 24 hours.
"""

import csv
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from recommender.arrays import Floats
from recommender.plan.accuracy import Score, Target
from tests.research.accuracy.study import Study
from tests.research.fits.lifetimes import Ends, Lifetimes, fit_early_deaths

TABLE = Path(__file__).parent / "data" / "lifetimes.csv"
HOURS = np.arange(1.0, 25.0)  # where shares are compared; at hour 0 every law is right
GPUS = ("K80", "P100", "V100")
SOURCE = "CM-DARE, arXiv:2004.03072, and its notebooks (cake-lab/CM-DARE)"


@dataclass(frozen=True, slots=True)
class Cell:
    """The servers of one GPU in one region."""

    gpu: str
    region: str
    ends: Ends


@dataclass(frozen=True, slots=True)
class DeadShares:
    """Share of a cell's servers dead by each hour of `HOURS`, predicted and measured."""

    gpu: str
    region: str  # empty: all regions
    predicted: Floats
    measured: Floats

    @property
    def error(self) -> Floats:
        """Differences hour by hour."""
        return np.abs(self.predicted - self.measured)


def cells() -> list[Cell]:
    """Read the recorded lifetimes."""
    found: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    with open(TABLE, newline="") as file:
        for row in csv.DictReader(file):
            before = float(row["died_before_h"] or np.inf)
            end = (float(row["died_after_h"]), before, float(row["servers"]))
            found.setdefault((row["gpu"], row["region"]), []).append(end)
    return [
        Cell(gpu, region, Ends(*(np.array(column) for column in zip(*rows, strict=True))))
        for (gpu, region), rows in found.items()
    ]


def together(some: list[Cell], alike: bool) -> Ends:
    """Put the servers of several cells together; `alike`: every cell weighs the same.

    Regions differ more than luck does, so a new region is told by regions, not by servers.
    """
    weights = [c.ends.weight / (c.ends.weight.sum() if alike else 1.0) for c in some]
    return Ends(
        np.concatenate([c.ends.after_h for c in some]),
        np.concatenate([c.ends.before_h for c in some]),
        np.concatenate(weights),
    )


def fitted_shares(gpu: str, fit: Callable[[Ends], Lifetimes] = fit_early_deaths) -> DeadShares:
    """The law of a GPU next to the servers it was fitted on."""
    ends = together([c for c in cells() if c.gpu == gpu], alike=False)
    return _beside(gpu, "", fit(ends), ends)


def unseen_shares(fit: Callable[[Ends], Lifetimes] = fit_early_deaths) -> list[DeadShares]:
    """Every cell next to the law of all GPUs in all other regions."""
    known, found = cells(), []
    for cell in known:
        others = together([c for c in known if c.region != cell.region], alike=True)
        found.append(_beside(cell.gpu, cell.region, fit(others), cell.ends))
    return found


def _beside(gpu: str, region: str, law: Lifetimes, ends: Ends) -> DeadShares:
    return DeadShares(gpu, region, 1.0 - law.survival(HOURS), ends.share_dead(HOURS))


def fitted_score(gpu: str, reference: Path | None) -> Score:
    """Largest error of the fitted share of dead servers; `mean` holds the largest."""
    shares = fitted_shares(gpu)
    largest = float(shares.error.max())
    return Score(
        points=int(sum(c.ends.weight.sum() for c in cells() if c.gpu == gpu)),
        mean=largest,
        median=None,
        p90=None,
        bias=float(np.median(shares.predicted - shares.measured)),
        unit="share",
    )


def unseen_score(reference: Path | None) -> Score:
    """Mean error over the hours of a region that was left out; one point per GPU and region."""
    shares = unseen_shares()
    each = np.array([s.error.mean() for s in shares])
    signed = [float((s.predicted - s.measured).mean()) for s in shares]
    return Score(
        points=len(each),
        mean=float(each.mean()),
        median=float(np.median(each)),
        p90=float(np.quantile(each, 0.9)),
        bias=float(np.median(signed)),
        unit="share",
    )


PUBLISHED = {
    "K80": "exponential 0.19, Weibull 0.051",
    "P100": "exponential 0.24, Weibull 0.064",
    "V100": "exponential 0.32, Weibull 0.068",
}

STUDIES: tuple[Study, ...] = (
    *(
        Study(
            key=f"lifetimes-{gpu.lower()}",
            subject=f"share of preemptible {gpu} VMs dead by hours 1-24: largest error",
            split="in sample, four regions together",
            target=Target(mean=0.05),
            published=PUBLISHED[gpu],
            source=SOURCE,
            run=partial(fitted_score, gpu),
        )
        for gpu in GPUS
    ),
    Study(
        key="lifetimes-region",
        subject="share of preemptible VMs dead by hours 1-24, in a region never seen",
        split="leave one region out, of every GPU",
        target=Target(mean=0.17),
        published="0.17-0.24 by GPU (exponential, Weibull or empirical of the other regions)",
        source=SOURCE,
        run=unseen_score,
    ),
)
