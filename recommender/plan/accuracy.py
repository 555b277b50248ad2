"""Errors of the models on published measurements: their data types, and the committed table."""

import csv
import math
from importlib.resources import files
from typing import Literal

from recommender.catalogs.frozen import dataclass

TABLE = "accuracy.csv"
Unit = Literal["%", "share", "nats"]  # of the figures of a score

NEAR = (0.75, 1.33)  # predicted over measured
SPANS = (0.85, 0.95)  # target of every study with spans: share inside the 5-95 % span (right: 0.9)


@dataclass(frozen=True, slots=True)
class Score:
    """The errors found by one study."""

    points: int
    mean: float  # of the absolute errors: MAPE where the unit is %
    median: float | None  # None where there is but one figure
    p90: float | None  # the same, and of gains
    bias: float | None  # signed: median of predicted over measured, less one
    unit: Unit = "%"
    coverage: float | None = None  # share of the points inside the printed 5-95 % span
    near: float | None = None  # share of the points whose ratio is inside `NEAR`

    @property
    def spans_met(self) -> bool | None:
        """Whether the required share of points lies inside their spans; None without spans.

        The required range is widened to whole points: of six points, five or six are right.
        """
        if self.coverage is None:
            return None
        least, most = (share * self.points for share in SPANS)
        inside = round(self.coverage * self.points)
        return math.floor(least) <= inside <= math.ceil(most)


@dataclass(frozen=True, slots=True)
class Target:
    """What a study should reach; None means no requirement."""

    mean: float | None = None
    median: float | None = None
    mean_at_least: float | None = None  # of figures that should be large: gains of likelihood
    bias: float | None = None  # either way
    near: float | None = None  # share of the points, at least

    def met_by(self, score: Score) -> bool:
        """Whether a score meets every requirement."""
        bias = None if score.bias is None else abs(score.bias)
        limits = ((self.mean, score.mean), (self.median, score.median), (self.bias, bias))
        least = ((self.mean_at_least, score.mean), (self.near, score.near))
        return all(
            limit is None or (value is not None and value <= limit) for limit, value in limits
        ) and all(limit is None or (value is not None and value >= limit) for limit, value in least)

    @property
    def words(self) -> str:
        """The requirements in words; empty without any."""
        parts = (
            ("mean", self.mean),
            ("median", self.median),
            ("mean ≥", self.mean_at_least),
            ("bias ±", self.bias),
        )
        words = [f"{name} {limit:g}" for name, limit in parts if limit is not None]
        if self.near is not None:
            words.append(f"{100 * self.near:g} % of ratios in {NEAR[0]:g}-{NEAR[1]:g}")
        return ", ".join(words)


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of the accuracy table: a study and its score, or why it has none."""

    key: str
    subject: str
    split: str
    target: Target
    published: str
    source: str
    score: Score | None
    skipped: str = ""


def committed_findings() -> tuple[Finding, ...]:
    """The results of all studies from their last run, read from the table in this folder.

    The studies are in the repository but not installed; a test keeps the table equal to their
    results.
    """
    text = files("recommender.plan").joinpath(TABLE).read_text("utf-8")
    return tuple(_finding(row) for row in csv.DictReader(text.splitlines()))


def _finding(row: dict[str, str]) -> Finding:
    def number(name: str) -> float | None:
        return float(row[name]) if row[name] else None

    mean = number("mean")
    score = None
    if mean is not None:
        unit: Unit = row["unit"]  # type: ignore[assignment]
        score = Score(
            points=int(row["points"]),
            mean=mean,
            median=number("median"),
            p90=number("p90"),
            bias=number("bias"),
            unit=unit,
            coverage=number("coverage"),
            near=number("near"),
        )
    names = ("mean", "median", "mean_at_least", "bias", "near")
    target = Target(*(number(f"asked_{name}") for name in names))
    return Finding(
        key=row["key"],
        subject=row["subject"],
        split=row["split"],
        target=target,
        published=row["published"],
        source=row["source"],
        score=score,
    )
