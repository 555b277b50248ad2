"""Published throughput against the model, within the errors that docs/research/fits.md states."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recommender.performance.memory import bytes_of, per_sample
from recommender.performance.priors import prior_of
from recommender.performance.step import steps
from tests.recommender.performance.parts import clusters, columns, llama, machine, resnet

TABLE = Path(__file__).with_name("published.csv")
RUNS = list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()))
INTRA = {"V100": 120.0, "A100-80GB": 235.0, "H100": 450.0}


def predicted(run):
    """Samples/s of the model, with the run's micro-batch."""
    gpus, machines = int(run["gpus"]), int(run["machines"])
    batch = int(run["per_gpu_batch"]) * gpus * machines
    make = {"resnet": resnet, "llama": llama}[run["job"]]
    sharding = "fsdp" if run["job"] == "llama" else "ddp"
    job = make(
        stack=run["stack"], global_batch=batch, precision=run["precision"], sharding=sharding
    )
    kind = machine(
        "x",
        run["gpu"],
        gpus,
        network_gbit_per_s=float(run["network_gbit_per_s"]),
        network_kind=run["network_kind"],
        intra_gb_per_s=INTRA[run["gpu"]],
    )
    needs = bytes_of(job, prior_of(job))
    room = needs.states + needs.context + int(run["per_gpu_batch"]) * per_sample(needs, False)
    found = replace(columns(job, (kind,)), memory_bytes=np.array([room * 1.001]))
    out = steps(job, found, clusters(found, {0: machines}))
    return batch / float(out.step_s[0])


def test_published_runs_lie_within_two_sigma_but_for_one_in_twenty():
    outside = []
    for run in RUNS:
        prior = prior_of((llama if run["job"] == "llama" else resnet)(stack=run["stack"]))
        sigma = prior.sigma_several if int(run["machines"]) > 1 else prior.sigma_one
        if abs(np.log(predicted(run) / float(run["samples_per_s"]))) > 2 * sigma:
            outside.append(run["source"])
    assert len(outside) <= np.ceil(0.05 * len(RUNS)), outside


def test_the_mean_error_of_these_runs_is_below_a_quarter():
    missed = [abs(predicted(run) / float(run["samples_per_s"]) - 1) for run in RUNS]
    assert np.mean(missed) < 0.25


def test_scaling_of_mlperf_resnet_over_eight_machines_is_predicted():
    one, eight = RUNS[3], RUNS[4]
    measured = float(eight["samples_per_s"]) / float(one["samples_per_s"])
    assert predicted(eight) / predicted(one) == pytest.approx(measured, rel=0.12)
