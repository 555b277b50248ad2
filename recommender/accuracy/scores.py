"""What a study found, in plain figures for tables and files."""

import math
from dataclasses import dataclass
from typing import Literal

Unit = Literal["%", "share", "nats"]  # of the figures of a score

SPANS = (0.85, 0.95)  # asked of every study with spans: share inside the 5-95 % span (right: 0.9)


@dataclass(frozen=True, slots=True)
class Score:
    """The error of one study in figures."""

    points: int
    mean: float  # of the absolute errors: MAPE where the unit is %
    median: float | None  # None where there is but one figure
    p90: float | None  # the same, and of gains
    bias: float | None  # signed: median of predicted over measured, less one
    unit: Unit = "%"
    coverage: float | None = None  # share of the points inside the printed 5-95 % span

    @property
    def spans_met(self) -> bool | None:
        """Whether as many points lie inside their span as asked; None without spans.

        The band is widened to whole points: of six, five or six are right.
        """
        if self.coverage is None:
            return None
        least, most = (share * self.points for share in SPANS)
        inside = round(self.coverage * self.points)
        return math.floor(least) <= inside <= math.ceil(most)


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
        return all(
            limit is None or (value is not None and value <= limit) for limit, value in asked
        )

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
