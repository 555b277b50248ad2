"""The runs of `runs-whole` one by one, as `recommend accuracy runs` prints them."""

from recommender.plan.accuracy import PublishedRun
from tests.research.accuracy.tables import table
from tests.research.accuracy.whole_runs import held


def predicted_runs() -> tuple[PublishedRun, ...]:
    """Every run with its published and predicted GPU-hours."""
    found = held()
    assert found.sigma is not None
    return tuple(
        PublishedRun(
            run=row["run"],
            gpu=row["gpu"],
            gpus=int(row["gpus"]),
            published_gpu_hours=float(row["gpu_hours"]),
            predicted_gpu_hours=float(hours),
            sd=float(sd),
            source=row["source"],
        )
        for row, hours, sd in zip(table("whole_runs"), found.predicted, found.sigma, strict=True)
    )
