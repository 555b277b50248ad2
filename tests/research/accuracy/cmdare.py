"""Step time, cluster speed and checkpoint time of networks that no fit has seen (CM-DARE).

Every study leaves one network out: all of its runs, on every GPU, with any number of workers
and servers. What is fitted are the constants of `performance/parameter_server.py` and of the
chief's writer in `checkpoint.py`, by the functions that fitted the shipped ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from recommender.arrays import Floats
from recommender.performance.checkpoint import StoreWriter, write_s
from recommender.performance.measured import SIGMA_CURVE
from recommender.performance.parameter_server import (
    max_server_share,
    placement_sd,
    service_share,
    spread,
    updates_per_s,
)
from recommender.plan.accuracy import Score, Target
from tests.research.accuracy.cmdare_data import Written, checkpoints, networks, speeds
from tests.research.accuracy.study import Held, Study, score
from tests.research.accuracy.tables import table
from tests.research.fits.fit_parameter_server import (
    Speed,
    fit_servers,
    fit_workers,
    one_worker_s,
    served_s,
    service_sd,
    single,
    update_s,
    without,
)
from tests.research.fits.nonnegative import nonnegative
from tests.shipped import snapshot

SOURCE = "Li et al. 2020 (arXiv 2004.03072), github.com/cake-lab/CM-DARE"
UNSEEN = "leave one network out"
FULLEST_OF_TWO = {"resnet": 0.5, "shake-shake": 1.0}  # share of the bytes; two_servers_held


def steps_held(gpu: str) -> Held:
    """Seconds per update of one worker, for each of the 20 CNNs."""
    rows, known = single(speeds()), networks()
    tried = [row for row in rows if row.gpu == gpu]
    predicted = [
        update_s(gpu, known[row.network], fit_workers(without(rows, row.network), known))
        for row in tried
    ]
    return Held(
        labels=tuple(row.network for row in tried),
        predicted=np.array(predicted),
        measured=np.array([1.0 / row.updates_per_s for row in tried]),
    )


def fast_gpu_held() -> Held:
    """Seconds per update of one V100 worker with one server: a GPU that no fit holds.

    Its arithmetic runs at the share of the catalog's matrix rate that K80 and P100 reach in the
    fit of all their networks, its CPU work as theirs, on eight vCPUs.
    """
    known, achieved = networks(), snapshot().achieved
    rates = fit_workers(single(speeds()), known)
    shares = [
        flop / (1e12 * achieved[gpu, "fp32"].tflops)
        for gpu, flop in zip(rates.gpus, rates.flop_per_s, strict=True)
    ]
    rate = float(np.mean(shares)) * 1e12 * achieved["V100", "fp32"].tflops
    like = replace(rates, gpus=("P100",), flop_per_s=(rate,))
    rows = table("cmdare_v100")
    return Held(
        labels=tuple(row["network"] for row in rows),
        predicted=np.array([update_s("P100", known[row["network"]], like) for row in rows]),
        measured=np.array([1.0 / float(row["updates_per_s"]) for row in rows]),
    )


def clusters_held(gpu: str, servers: int, same_campaign: bool = False) -> Held:
    """Updates per second of 2 to 8 workers, from one worker's measured speed.

    The servers' constants and their spread are fitted on the other networks' runs with one
    server. One worker's speed is the mean of all campaigns that measured it, or the cluster's own.
    """
    tried = [row for row in speeds() if (row.gpu, row.servers) == (gpu, servers)]
    tried = [row for row in tried if row.workers > 1]
    predicted, sigma = np.zeros((2, len(tried)))
    for name in {row.network for row in tried}:
        mine = [i for i, row in enumerate(tried) if row.network == name]
        rows = [tried[i] for i in mine]
        share = [float(max_server_share(servers))] * len(rows)
        others = without(speeds(), name)
        predicted[mine], sigma[mine] = _predicted(
            rows, others, share, float(placement_sd(servers)), same_campaign
        )
    return Held(
        labels=tuple(f"{row.workers} x {row.network}" for row in tried),
        predicted=predicted,
        measured=np.array([row.updates_per_s for row in tried]),
        sigma=sigma,
    )


def two_servers_held() -> Held:
    """Updates per second with two servers, by the constants of clusters with one.

    TensorFlow deals variables out in turn (`replica_device_setter`, used by Tensor2Tensor's
    devices.py). Shake-Shake creates an even number of them per convolution (kernel, bias, four
    of the batch norm; shake_shake.py), so all kernels lie on one server; ResNet has no bias,
    five per convolution, and its kernels alternate.
    """
    rows = [row for row in speeds() if row.servers == 2 and row.workers > 1]
    shares = [FULLEST_OF_TWO[networks()[row.network].structure] for row in rows]
    predicted, sigma = _predicted(rows, speeds(), shares, 0.0, False)
    return Held(
        labels=tuple(f"{row.workers} x {row.network}" for row in rows),
        predicted=predicted,
        measured=np.array([row.updates_per_s for row in rows]),
        sigma=sigma,
    )


def checkpoints_held() -> Held:
    """Seconds until a checkpoint of each of the 20 CNNs is in the bucket."""
    rows = checkpoints()
    predicted = [
        float(
            write_s(
                fit_chief([other for other in rows if other.network != row.network]),
                row.variable_bytes,
                row.tensors,
                np.inf,
            )
        )
        for row in rows
    ]
    return Held(
        labels=tuple(row.network for row in rows),
        predicted=np.array(predicted),
        measured=np.array([row.write_s for row in rows]),
    )


def fit_chief(rows: Sequence[Written]) -> StoreWriter:
    """The chief's fixed time, time per tensor and stream, by least squared relative error."""
    measured = np.array([row.write_s for row in rows])
    columns = np.array([[1.0, row.tensors, row.variable_bytes / 1e6] for row in rows])
    fixed, tensor, megabyte = nonnegative(columns / measured[:, None], np.ones(len(rows)))
    return StoreWriter(float(fixed), float(tensor), 1e6 / float(megabyte))


def _predicted(
    rows: Sequence[Speed],
    seen: Sequence[Speed],
    shares: Sequence[float],
    placed_sd: float,
    same_campaign: bool,
) -> tuple[Floats, Floats]:
    """Updates per second of clusters and sd of their ln, with servers as the seen runs have them.

    The servers' part of the spread: networks that were left out of the fit to those seen, what
    none of them taught, and the placement of the bytes where it is not known.
    """
    fit, known = fit_servers(seen, networks(), same_campaign), networks()
    alone_s = np.array([one_worker_s(speeds(), row, same_campaign) for row in rows])
    workers = np.array([float(row.workers) for row in rows])
    service = served_s(rows, known, fit.rates, shares)
    of_bytes = 1.0 - served_s(rows, known, fit.rates, [0.0] * len(rows)) / service
    unseen = service_sd(seen, known, same_campaign)
    sd = np.hypot(np.hypot(unseen, fit.spread(rows, known, shares)), of_bytes * placed_sd)
    share = service_share(workers, alone_s, service, sd)
    return updates_per_s(workers, alone_s, service), spread(SIGMA_CURVE, sd, share)


def _steps(gpu: str, reference: Path | None) -> Score:
    return score(steps_held(gpu))


def _clusters(gpu: str, servers: int, same_campaign: bool, reference: Path | None) -> Score:
    return score(clusters_held(gpu, servers, same_campaign))


def _two_servers(reference: Path | None) -> Score:
    return score(two_servers_held())


def _checkpoints(reference: Path | None) -> Score:
    return score(checkpoints_held())


def _cluster_study(
    key: str, subject: str, target: Target, published: str, run: Callable[[Path | None], Score]
) -> Study:
    split = f"{UNSEEN}; its speed with one worker is known"
    return Study(key, subject, split, target, published, SOURCE, run)


STUDIES: tuple[Study, ...] = (
    Study(
        "cmdare-step-k80",
        "step time of an unseen CNN, one K80",
        UNSEEN,
        Target(mean=3.8),
        "11.1 %",
        SOURCE,
        partial(_steps, "K80"),
    ),
    Study(
        "cmdare-step-p100",
        "step time of an unseen CNN, one P100",
        UNSEEN,
        Target(mean=7.9),
        "15.0 %",
        SOURCE,
        partial(_steps, "P100"),
    ),
    Study(
        "cmdare-step-v100",
        "step time of a CNN on one V100 with one server, a GPU that no fit holds",
        "fitted on K80 and P100 alone",
        Target(),
        "none known",
        SOURCE,
        lambda _: score(fast_gpu_held()),
    ),
    _cluster_study(
        "cmdare-cluster-k80",
        "speed of 2-8 K80 workers, one parameter server",
        Target(mean=2.3),
        "sum of the workers 2.4 %",
        partial(_clusters, "K80", 1, False),
    ),
    _cluster_study(
        "cmdare-cluster-k80-own",
        "speed of 2-8 K80 workers, from the one worker of the same campaign alone",
        Target(mean=2.3),
        "sum of the workers 2.4 %",
        partial(_clusters, "K80", 1, True),
    ),
    _cluster_study(
        "cmdare-cluster-p100",
        "speed of 2-8 P100 workers, one parameter server",
        Target(),
        "sum of the workers 44.6 %",
        partial(_clusters, "P100", 1, False),
    ),
    _cluster_study(
        "cmdare-cluster-p100-2ps",
        "speed of 2-8 P100 workers, two parameter servers",
        Target(),
        "sum of the workers 29.8 %",
        partial(_clusters, "P100", 2, False),
    ),
    Study(
        "cmdare-cluster-p100-2ps-placed",
        "speed of 2-8 P100 workers, two servers, known which tensors lie on which",
        "servers fitted on clusters with one; speed with one worker is known",
        Target(),
        "sum of the workers 29.8 %",
        SOURCE,
        _two_servers,
    ),
    Study(
        "cmdare-checkpoint",
        "time to write a checkpoint of an unseen CNN to a bucket",
        UNSEEN,
        Target(mean=6.5),
        "6.9 %",
        SOURCE,
        _checkpoints,
    ),
)
