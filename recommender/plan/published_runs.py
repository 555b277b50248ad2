"""Well-known training runs: their published GPU-hours, and those predicted without timings."""

import csv
import math
from importlib.resources import files

from recommender.arrays import Z_90
from recommender.catalogs.frozen import dataclass

TABLE = "published_runs.csv"


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
    text = files("recommender.plan").joinpath(TABLE).read_text("utf-8")
    rows = csv.DictReader(text.splitlines())
    hours = "published_gpu_hours", "predicted_gpu_hours", "sd"
    return tuple(
        PublishedRun(r["run"], r["gpu"], int(r["gpus"]), *(float(r[name]) for name in hours),
                     r["source"])
        for r in rows
    )  # fmt: skip
