"""Writes the tables of `recommend accuracy`, which tests/regenerate.py commits."""

import csv
import io
from collections.abc import Iterable, Sequence

from recommender.plan.accuracy import Finding, PublishedRun

FINDING = (
    *("key", "subject", "split", "published", "source"),
    *("asked_mean", "asked_median", "asked_mean_at_least", "asked_bias", "asked_near"),
    *("points", "unit", "mean", "median", "p90", "bias", "coverage", "near"),
)
RUN = ("run", "gpu", "gpus", "published_gpu_hours", "predicted_gpu_hours", "sd", "source")


def findings_text(findings: Iterable[Finding]) -> str:
    """Write findings as the committed table, with figures rounded to nine digits."""
    return _text(FINDING, map(_cells, findings))


def runs_text(runs: Iterable[PublishedRun]) -> str:
    """Write runs as the committed table, with figures rounded."""
    return _text(RUN, map(_run_cells, runs))


def _text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return out.getvalue()


def _run_cells(each: PublishedRun) -> list[object]:
    published = f"{each.published_gpu_hours:.9g}"
    predicted = (f"{figure:.7g}" for figure in (each.predicted_gpu_hours, each.sd))
    return [each.run, each.gpu, each.gpus, published, *predicted, each.source]


def _cells(each: Finding) -> list[str]:
    score, target = each.score, each.target
    figures: tuple[float | None, ...] = (None,) * 6
    if score is not None:
        figures = (score.mean, score.median, score.p90, score.bias, score.coverage, score.near)
    goals = (target.mean, target.median, target.mean_at_least, target.bias, target.near)
    return [
        *(each.key, each.subject, each.split, each.published, each.source),
        *("" if goal is None else f"{goal:g}" for goal in goals),
        *(("", "") if score is None else (str(score.points), score.unit)),
        *("" if figure is None else f"{figure:.9g}" for figure in figures),
    ]
