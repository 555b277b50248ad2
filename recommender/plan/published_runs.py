"""Well-known training runs: their published GPU-hours, and those predicted without timings."""

import csv
import io
import math
from collections.abc import Iterable
from importlib.resources import files

from recommender.arrays import Z_90
from recommender.catalogs.frozen import dataclass

TABLE = "published_runs.csv"
COLUMNS = ("run", "gpu", "gpus", "published_gpu_hours", "predicted_gpu_hours", "sd", "source")


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
    return tuple(
        PublishedRun(
            row["run"],
            row["gpu"],
            int(row["gpus"]),
            float(row["published_gpu_hours"]),
            float(row["predicted_gpu_hours"]),
            float(row["sd"]),
            row["source"],
        )
        for row in csv.DictReader(text.splitlines())
    )


def table_text(runs: Iterable[PublishedRun]) -> str:
    """Write runs as the committed table, with figures rounded."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for each in runs:
        published = f"{each.published_gpu_hours:.9g}"
        predicted = (f"{figure:.7g}" for figure in (each.predicted_gpu_hours, each.sd))
        writer.writerow([each.run, each.gpu, each.gpus, published, *predicted, each.source])
    return out.getvalue()
