"""A study: one held-out comparison of a model with published measurements."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recommender.arrays import Z_90, Floats
from recommender.plan.accuracy import NEAR, Finding, Score, Target, Unit
from tests.research.accuracy.tables import MissingTable


@dataclass(frozen=True, slots=True)
class Held:
    """What was predicted without having been seen, next to what was measured; shape (points,)."""

    labels: tuple[str, ...]
    predicted: Floats
    measured: Floats
    sigma: Floats | None = None  # sd of ln(true / predicted) as the recommender prints it


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

    def finding(self, reference: Path | None) -> Finding:
        """Run the study, or say which table it lacks."""
        found, lacks = None, ""
        try:
            found = self.run(reference)
        except MissingTable as missing:
            lacks = str(missing)
        return Finding(
            key=self.key,
            subject=self.subject,
            split=self.split,
            target=self.target,
            published=self.published,
            source=self.source,
            score=found,
            skipped=lacks,
        )


def score(held: Held) -> Score:
    """Percentage errors of predictions, and how many lie inside their printed span."""
    ratio = held.predicted / held.measured
    missed = np.abs(ratio - 1.0) * 100.0
    inside = None
    if held.sigma is not None:
        inside = float((np.abs(np.log(ratio)) <= Z_90 * held.sigma).mean())
    return Score(
        points=len(ratio),
        mean=float(missed.mean()),
        median=float(np.median(missed)),
        p90=float(np.quantile(missed, 0.9)),
        bias=float(np.median(ratio) - 1.0) * 100.0,
        coverage=inside,
        near=float(((ratio >= NEAR[0]) & (ratio <= NEAR[1])).mean()),
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


__all__ = [
    "Finding",
    "Floats",
    "Held",
    "Score",
    "Study",
    "Target",
    "Unit",
    "score",
    "share_score",
]
