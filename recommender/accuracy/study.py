"""A study: one held-out comparison of a model with published measurements."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Unit = Literal["%", "share", "nats"]  # of the figures of a score


@dataclass(frozen=True, slots=True)
class Held:
    """What was predicted without having been seen, beside what was measured; shape (points,)."""

    labels: tuple[str, ...]
    predicted: Floats
    measured: Floats
    sigma: Floats | None = None  # sd of ln(true / predicted) as the recommender prints it


@dataclass(frozen=True, slots=True)
class Score:
    """The error of one study in figures."""

    points: int
    mean: float  # of the absolute errors: MAPE where the unit is %
    median: float
    p90: float
    bias: float | None  # signed: median of predicted over measured, less one
    unit: Unit = "%"
    coverage: float | None = None  # share of the points inside the printed 5-95 % span


@dataclass(frozen=True, slots=True)
class Target:
    """What a study is asked to reach; None is not asked for."""

    mean: float | None = None
    median: float | None = None
    mean_at_least: float | None = None  # of figures that should be large: gains of likelihood

    def met_by(self, score: Score) -> bool:
        """Whether a score reaches everything asked for."""
        if self.mean_at_least is not None and score.mean < self.mean_at_least:
            return False
        asked = ((self.mean, score.mean), (self.median, score.median))
        return all(limit is None or value <= limit for limit, value in asked)


@dataclass(frozen=True, slots=True)
class Study:
    """One line of the accuracy table."""

    key: str  # "deepvm-g4dn"
    subject: str  # what is predicted, in words a user reads
    split: str  # what the model saw and what it did not
    target: Target
    published: str  # the best published error on the same or a comparable task
    source: str
    run: Callable[[Path | None], Score]  # given the folder of reference tables, if there is one
    needs_reference: bool = False


SPAN = 1.6449  # sd between the median and the 95th percentile of a normal law


def score(held: Held) -> Score:
    """Percentage errors of predictions, and how many lie inside their printed span."""
    ratio = held.predicted / held.measured
    missed = np.abs(ratio - 1.0) * 100.0
    inside = None
    if held.sigma is not None:
        inside = float((np.abs(np.log(ratio)) <= SPAN * held.sigma).mean())
    return Score(
        points=len(ratio),
        mean=float(missed.mean()),
        median=float(np.median(missed)),
        p90=float(np.quantile(missed, 0.9)),
        bias=float(np.median(ratio) - 1.0) * 100.0,
        coverage=inside,
    )


def share_score(held: Held) -> Score:
    """Errors of predicted shares: differences, not ratios."""
    missed = np.abs(held.predicted - held.measured)
    return Score(
        points=len(missed),
        mean=float(missed.mean()),
        median=float(np.median(missed)),
        p90=float(np.quantile(missed, 0.9)),
        bias=float(np.median(held.predicted - held.measured)),
        unit="share",
    )
