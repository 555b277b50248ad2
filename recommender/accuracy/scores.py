"""What a study found, in plain figures for tables and files."""

from dataclasses import dataclass
from typing import Literal

Unit = Literal["%", "share", "nats"]  # of the figures of a score


@dataclass(frozen=True, slots=True)
class Score:
    """The error of one study in figures."""

    points: int
    mean: float  # of the absolute errors: MAPE where the unit is %
    median: float
    p90: float
    bias: float  # signed: median of predicted over measured, less one
    unit: Unit = "%"
    coverage: float | None = None  # share of the points inside the printed 5-95 % span


@dataclass(frozen=True, slots=True)
class Target:
    """What a study is asked to reach; None is not asked for."""

    mean: float | None = None
    median: float | None = None

    def met_by(self, score: Score) -> bool:
        """Whether a score reaches everything asked for."""
        asked = ((self.mean, score.mean), (self.median, score.median))
        return all(limit is None or value <= limit for limit, value in asked)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the accuracy table: a study and its score, or why there is none."""

    key: str
    subject: str
    split: str
    target: Target
    published: str
    source: str
    score: Score | None
    skipped: str = ""
