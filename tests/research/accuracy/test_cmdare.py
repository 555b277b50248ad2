"""The studies on CM-DARE: what is left out is not seen, figures are those of the source."""

import csv
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recommender.performance.checkpoint import CHIEF_STREAM
from recommender.performance.measured import SIGMA_CURVE
from tests.research.accuracy import cmdare
from tests.research.accuracy.cmdare import (
    STUDIES,
    checkpoints_held,
    clusters_held,
    fit_chief,
    steps_held,
)
from tests.research.accuracy.cmdare_data import checkpoints, networks, speeds
from tests.research.fits.fit_parameter_server import one_worker_s, read_reference

BY_KEY = {study.key: study for study in STUDIES}
reference = pytest.mark.skipif(
    not os.environ.get("RECOMMEND_REFERENCE_DATA"), reason="needs RECOMMEND_REFERENCE_DATA"
)


def test_every_network_is_predicted_once():
    for gpu in ("K80", "P100"):
        assert sorted(steps_held(gpu).labels) == sorted(networks())
    assert sorted(checkpoints_held().labels) == sorted(networks())
    assert len(set(clusters_held("P100", 2).labels)) == 4 * 7


def test_knowing_where_tensors_lie_explains_two_servers():
    placed = BY_KEY["cmdare-cluster-p100-2ps-placed"].run(None)
    assert placed.mean < 0.5 * BY_KEY["cmdare-cluster-p100-2ps"].run(None).mean


def test_the_sum_of_the_workers_errs_as_published():
    """2.4 % on K80 and 44.6 % on P100: the reference's own calculation from the same means."""
    for gpu, published in (("K80", 2.4), ("P100", 44.6)):
        rows = [r for r in speeds() if (r.gpu, r.servers) == (gpu, 1) and r.workers > 1]
        sums = [r.workers / one_worker_s(speeds(), r, same_campaign=True) for r in rows]
        missed = [abs(s / r.updates_per_s - 1) for s, r in zip(sums, rows, strict=True)]
        assert 100 * np.mean(missed) == pytest.approx(published, abs=0.3)


def test_a_networks_own_step_times_do_not_change_its_prediction(monkeypatch):
    before = steps_held("K80")
    slow = [
        replace(r, updates_per_s=r.updates_per_s / 3) if r.network == "resnet32" else r
        for r in speeds()
    ]
    monkeypatch.setattr(cmdare, "speeds", lambda: tuple(slow))
    after, at = steps_held("K80"), before.labels.index("resnet32")
    assert after.predicted[at] == before.predicted[at]
    assert after.measured[at] == pytest.approx(3 * before.measured[at])
    assert not np.allclose(after.predicted, before.predicted)


def test_a_networks_own_clusters_do_not_change_its_prediction(monkeypatch):
    before = clusters_held("P100", 1)
    slow = [
        replace(r, updates_per_s=r.updates_per_s / 2)
        if r.network == "resnet32" and r.workers > 1
        else r
        for r in speeds()
    ]
    monkeypatch.setattr(cmdare, "speeds", lambda: tuple(slow))
    after = clusters_held("P100", 1)
    own = np.array(["resnet32" in label for label in before.labels])
    assert after.predicted[own].tolist() == before.predicted[own].tolist()
    assert after.sigma[own].tolist() == before.sigma[own].tolist()
    assert not np.allclose(after.predicted[~own], before.predicted[~own])
    assert not np.allclose(after.sigma[~own], before.sigma[~own])


def test_spans_are_narrow_where_servers_idle_and_wide_where_they_limit():
    k80, p100 = clusters_held("K80", 1), clusters_held("P100", 1)
    idle = k80.labels.index("4 x resnet32")
    full = p100.labels.index("8 x shakeshake_big")
    assert k80.sigma[idle] <= SIGMA_CURVE
    assert p100.sigma[full] > 3 * k80.sigma[idle]


def test_a_networks_own_checkpoint_does_not_change_its_prediction(monkeypatch):
    before = checkpoints_held()
    slow = [replace(r, write_s=9.0) if r.network == "resnet32" else r for r in checkpoints()]
    monkeypatch.setattr(cmdare, "checkpoints", lambda: tuple(slow))
    at = before.labels.index("resnet32")
    assert checkpoints_held().predicted[at] == before.predicted[at]


def test_the_chiefs_constants_are_the_fit_of_the_measured_checkpoints():
    found = fit_chief(checkpoints())
    assert found.fixed_s == pytest.approx(CHIEF_STREAM.fixed_s, rel=1e-3)
    assert found.tensor_s == pytest.approx(CHIEF_STREAM.tensor_s, rel=1e-3)
    assert found.bytes_per_s == pytest.approx(CHIEF_STREAM.bytes_per_s, rel=1e-3)


def test_a_checkpoint_holds_weights_and_momentum():
    for row in checkpoints():
        assert row.variable_bytes == pytest.approx(8 * networks()[row.network].parameters, rel=0.01)


@pytest.mark.reference
@reference
def test_carried_networks_and_speeds_are_those_of_the_reference():
    folder = Path(os.environ["RECOMMEND_REFERENCE_DATA"]) / "cmdare"
    known, rows = read_reference(folder)
    assert networks() == known
    assert [replace(r, updates_per_s=0.0) for r in speeds()] == [
        replace(r, updates_per_s=0.0) for r in rows
    ]
    carried, stated = ([r.updates_per_s for r in table] for table in (speeds(), rows))
    assert carried == pytest.approx(stated, rel=1e-4)


@pytest.mark.reference
@reference
def test_carried_checkpoints_are_the_means_of_the_reference():
    folder = Path(os.environ["RECOMMEND_REFERENCE_DATA"]) / "cmdare"
    samples: dict[str, list[dict[str, str]]] = {}
    for row in csv.DictReader((folder / "checkpoint_time.csv").read_text().splitlines()):
        samples.setdefault(row["model"], []).append(row)
    assert {row.network for row in checkpoints()} == set(samples)
    for row in checkpoints():
        mine = samples[row.network]
        mean = np.mean([float(sample["total_s"]) for sample in mine])
        assert row.write_s == pytest.approx(mean, rel=2e-3)
        assert row.variable_bytes == pytest.approx(float(mine[0]["data_mb"]) * 2**20, rel=1e-6)
        assert row.tensors == int(mine[0]["tensors"])
