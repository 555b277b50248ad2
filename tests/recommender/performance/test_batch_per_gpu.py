"""The batch of each GPU is fixed: the global batch, and with it the work of a step, grows."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.job.job import TimedRun, Timing
from recommender.performance.calibration_model import as_timed
from recommender.performance.calibration_spread import whole
from recommender.performance.clusters import clusters_of
from recommender.performance.measured import with_readings
from recommender.performance.parameter_server import alone_s, service_of, updates_per_s
from recommender.performance.priors import prior_of
from recommender.performance.step import explain, steps, why_infeasible
from tests.recommender.optimize.samples import sampled
from tests.recommender.performance.parts import columns, llama, machine, resnet
from tests.research.accuracy.cmdare import STUDIES
from tests.research.accuracy.cmdare_data import networks, speeds
from tests.research.accuracy.scaling import (
    GAVEL_GPUS,
    PCIE_BYTES_PER_S,
    bare_machine,
    gavel_job,
    gavel_series,
    held_out,
)
from tests.research.fits.fit_parameter_server import Speed, one_worker_s

COLUMNS = columns(resnet(), (machine("g5.xlarge", "A10G", 1), machine("p3.16xlarge", "V100", 8)))
ALONE = np.array([[1, 0], [2, 0], [8, 0]])
EIGHT = np.array([[0, 1], [0, 3]])


@pytest.mark.parametrize("counts", [ALONE, EIGHT])
@pytest.mark.parametrize("sync", ["allreduce", "parameter_server"])
@pytest.mark.parametrize("make", [resnet, llama])
def test_a_cluster_takes_the_step_of_a_job_with_its_global_batch(make, sync, counts):
    """With 8 samples on each of N GPUs, work goes as fast as with a global batch of 8 N."""
    grows = make(global_batch=8, batch_per_gpu=True, sync=sync, method="lora")
    fleet = clusters_of(COLUMNS, counts)
    mine = 8.0 / steps(grows, COLUMNS, fleet).step_s
    for row, gpus in enumerate(fleet.gpus.astype(int).tolist()):
        fixed = replace(grows, global_batch=8 * gpus, batch_per_gpu=False)
        one = fleet.take(np.array([row]))
        assert mine[row] == pytest.approx(8.0 * gpus / steps(fixed, COLUMNS, one).step_s[0])
        if np.isfinite(mine[row]) and mine[row]:
            split, other = explain(grows, COLUMNS, fleet, row), explain(fixed, COLUMNS, one, 0)
            assert split.step_s == pytest.approx(other.step_s)
            assert split.compute_s == pytest.approx(other.compute_s)
            assert split.exposed_network_s == pytest.approx(other.exposed_network_s)
            assert (split.micro_batch, split.accumulation) == (
                other.micro_batch,
                other.accumulation,
            )


def test_workers_of_a_parameter_server_keep_their_own_batch():
    """n workers get through X(n) updates of their own 128 samples, by mean value analysis."""
    job = resnet(global_batch=128, batch_per_gpu=True, sync="parameter_server")
    fleet, prior = clusters_of(COLUMNS, ALONE[1:]), prior_of(job)
    served = service_of(job, prior, fleet).served_s
    local = steps(replace(job, sync="allreduce"), COLUMNS, clusters_of(COLUMNS, ALONE[:1])).step_s
    rate = updates_per_s(np.array([2.0, 8.0]), alone_s(job, prior, local), served)
    assert 128.0 / steps(job, COLUMNS, fleet).step_s == pytest.approx(128.0 * rate, rel=1e-6)
    shared = steps(replace(job, batch_per_gpu=False), COLUMNS, fleet).step_s
    assert (128.0 * rate > 1.2 * 128.0 / shared).all()


def test_no_cluster_has_a_larger_global_batch_than_allowed():
    job = resnet(global_batch=32, batch_per_gpu=True, max_global_batch=64.0)
    fleet = clusters_of(COLUMNS, ALONE)
    assert np.isfinite(steps(job, COLUMNS, fleet).step_s).tolist() == [True, True, False]
    said = why_infeasible(job, COLUMNS, fleet, 2)
    assert said == "8 GPUs make a global batch of 256; it may be 64 at most"


def test_a_timing_in_seconds_per_step_is_of_all_the_samples_of_its_cluster():
    """Four GPUs that took 0.5 s for 4 x 32 samples: 256 samples/s, and so the model says."""
    job = resnet(global_batch=32, batch_per_gpu=True, timings=(Timing("A10G", 4, 4, 256.0),))
    ones = np.ones(2)
    own = with_readings(job, COLUMNS, ("A10G", "V100"), ones, 0.1 * ones)
    four = clusters_of(own, np.array([[4, 0]]))
    assert 32.0 / steps(job, own, four).step_s[0] == pytest.approx(256.0, rel=1e-6)
    assert explain(job, own, four, 0).step_s == pytest.approx(0.5, rel=1e-6)


def test_a_calibration_covers_the_batch_of_every_cluster_size():
    """A calibration looks ahead to clusters of the job: each with its own global batch."""
    run = TimedRun("line 2", COLUMNS.names[1], "V100", 8, 1, 640, 1.0)
    job = resnet(global_batch=32, batch_per_gpu=True)
    assert [each.batch for each in whole((run,), COLUMNS, (1, 4), job)] == [256, 1024]
    assert as_timed(job, 640, 0).batch_on(8) == 640


def weak_scaling(batch_per_gpu, every):
    """ln(predicted / measured rate) of 4 and 8 workers, from one and two of them."""
    found = []
    for gpu in GAVEL_GPUS:
        for model, runs in list(gavel_series(gpu))[::every]:
            batch, network = runs[0].batch, gavel_job(model)
            job = replace(network, global_batch=batch, batch_per_gpu=batch_per_gpu)
            columns = bare_machine(8, 8 * batch / runs[0].step_s, 0.0, 0.0, PCIE_BYTES_PER_S)
            more = [run for run in runs if 2 < run.gpus <= batch]
            asked = tuple(replace(run, batch=round(job.batch_on(run.gpus))) for run in more)
            if asked:
                step_s = held_out(network, columns, runs[:2], asked, "Gavel", model).predicted
                rate = np.array([run.batch for run in asked]) / step_s
                found.append(np.log(rate * [run.step_s / run.batch for run in more]))
    return np.concatenate(found)


@pytest.mark.parametrize("every", sampled((5, 1), (5,)))
def test_measured_weak_scaling_is_met_by_a_batch_per_gpu_and_missed_by_a_global_one(every):
    """Gavel's workers (Narayanan et al. 2020) keep their batch: 8 of them train on 8 times it.

    109 runs: 24 % mean error, and 92 % if all share the batch of one (2026-11).
    """
    fixed, grows = weak_scaling(False, every), weak_scaling(True, every)
    assert np.abs(grows).mean() < 0.4 * np.abs(fixed).mean()


# CM-DARE's servers had four vCPUs at 2 Gbit/s each (Google Cloud, 2019).
WORKER = machine("g5.xlarge", "A10G", 1, network_gbit_per_s=8.0)
WORKERS = columns(resnet(), (WORKER,))


def cmdare_error(row: Speed, batch_per_gpu: bool) -> float:
    """Share by which a cluster of workers is predicted too fast, from the timing of one worker."""
    known = networks()[row.network]
    alone = 128.0 / one_worker_s(speeds(), row, same_campaign=False)
    job = resnet(
        parameters=known.parameters,
        active_parameters=known.parameters,
        trainable_parameters=known.parameters,
        flop_per_sample=3.0 * known.flop,
        gradient_tensors=known.tensors,
        global_batch=128,
        batch_per_gpu=batch_per_gpu,
        sync="parameter_server",
        precision="fp32",
        timings=(Timing("A10G", 1, 1, alone),),
    )
    own = with_readings(job, WORKERS, ("A10G",), np.ones(1), np.full(1, 0.1))
    step_s = steps(job, own, clusters_of(own, np.array([[row.workers]]))).step_s[0]
    return float(1.0 / (step_s * row.updates_per_s)) - 1.0


@pytest.mark.parametrize("gpu", ["K80", "P100"])
def test_measured_workers_of_a_parameter_server_are_met_by_a_batch_per_gpu(gpu):
    """CM-DARE's workers take 128 images each: 28 clusters of two to eight with one server.

    Mean error 1.4 % (K80) and 3.4 % (P100); the studies, which leave the network out of the fit,
    have 1.6 and 10.7 %. If all workers shared the 128 images, 50 and 68 % (2026-11).
    """
    rows = [row for row in speeds() if (row.gpu, row.servers) == (gpu, 1) and row.workers > 1]
    grows, fixed = (np.abs([cmdare_error(row, each) for row in rows]) for each in (True, False))
    study = next(each for each in STUDIES if each.key == f"cmdare-cluster-{gpu.lower()}")
    assert len(rows) == 28
    assert 100.0 * grows.mean() <= study.run(None).mean
    assert fixed.mean() > 10.0 * grows.mean()
