"""The committed table of published runs."""

import math

import pytest

from recommender.plan.accuracy import committed_findings, published_runs
from tests.research.accuracy.run_table import predicted_runs


def test_the_committed_runs_are_those_that_the_study_predicts():
    kept, made = published_runs(), predicted_runs()
    named = [(r.run, r.gpu, r.gpus, r.published_gpu_hours, r.source) for r in kept]
    assert named == [(r.run, r.gpu, r.gpus, r.published_gpu_hours, r.source) for r in made]
    for mine, theirs in zip(kept, made, strict=True):
        assert mine.predicted_gpu_hours == pytest.approx(theirs.predicted_gpu_hours, rel=1e-5)
        assert mine.sd == pytest.approx(theirs.sd, rel=1e-5)


def test_the_runs_have_the_error_and_the_spans_that_their_study_prints():
    runs = published_runs()
    (study,) = (each.score for each in committed_findings() if each.key == "runs-whole")
    assert study is not None
    assert len(runs) == study.points
    mean = 100 * math.fsum(abs(run.ratio - 1.0) for run in runs) / len(runs)
    assert mean == pytest.approx(study.mean, rel=1e-4)
    assert sum(run.in_span for run in runs) == round((study.coverage or 0.0) * study.points)
