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

    @property
    def words(self) -> str:
        """What is asked for, in words; empty where nothing is."""
        parts = (("mean", self.mean), ("median", self.median), ("mean ≥", self.mean_at_least))
        return ", ".join(f"{name} {limit:g}" for name, limit in parts if limit is not None)


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
