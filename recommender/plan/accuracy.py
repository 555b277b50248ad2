"""Errors of the models on published measurements, and well-known runs, as they are committed."""

import csv
import math
from importlib.resources import files
from typing import Literal

from recommender.arrays import Z_90
from recommender.catalogs.frozen import dataclass

TABLE, RUNS_TABLE = "accuracy.csv", "published_runs.csv"
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


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """A run that its authors describe, and what is predicted for it."""

    run: str
    gpu: str
    gpus: int
    published_gpu_hours: float
    predicted_gpu_hours: float
    sd: float  # of ln(true / predicted)
    source: str

    @property
    def ratio(self) -> float:
        """Predicted over published."""
        return self.predicted_gpu_hours / self.published_gpu_hours

    @property
    def span(self) -> tuple[float, float]:
        """The GPU-hours of nine runs in ten, as predicted."""
        factor = math.exp(Z_90 * self.sd)
        return self.predicted_gpu_hours / factor, self.predicted_gpu_hours * factor

    @property
    def in_span(self) -> bool:
        """Whether the published hours are in it."""
        low, high = self.span
        return low <= self.published_gpu_hours <= high


def published_runs() -> tuple[PublishedRun, ...]:
    """The runs as last predicted by `tests/research/accuracy`; a test keeps them equal to it."""
    text = files("recommender.plan").joinpath(RUNS_TABLE).read_text("utf-8")
    return tuple(
        PublishedRun(
            row["run"], row["gpu"], int(row["gpus"]), float(row["published_gpu_hours"]),
            float(row["predicted_gpu_hours"]), float(row["sd"]), row["source"],
        )
        for row in csv.DictReader(text.splitlines())
    )  # fmt: skip
