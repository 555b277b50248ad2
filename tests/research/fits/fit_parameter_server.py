"""Fit the constants of asynchronous parameter servers on CM-DARE's measured speeds.

python -P tests/run.py tests.research.fits.fit_parameter_server --reference DIR [--write]

CM-DARE (Li et al., ICDCS 2020, arXiv 2004.03072; data in github.com/cake-lab/CM-DARE) trained
20 CNNs on CIFAR-10 with TensorFlow 1.10, 128 images per update and worker, one GPU each.
"""

import argparse
import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from recommender.arrays import Floats
from recommender.performance.least_squares import (
    ParameterPrior,
    PosteriorFit,
    solve,
    students_excess,
)
from recommender.performance.parameter_server import (
    SERVER_BYTES_PER_S,
    ServerConstants,
    service_s,
    updates_per_s,
    worker_s,
)
from tests.research import SOURCES
from tests.research.fits.nonnegative import nonnegative

IMAGES = 128.0  # of an update; Tensor2Tensor's default for these networks
GRADIENT_BYTES = 4.0  # fp32
# Machines of CM-DARE's resource_acquisition.py: K80 custom-4-53248, P100 custom-8-62464,
# server custom-4-32768; Google Cloud gave 2 Gbit/s per vCPU (network documentation, 2019).
VCPUS = {"K80": 4.0, "P100": 8.0}
START = np.array([1e-4, 3e-10, 1e-3])  # a, b, c
FARTHEST = 10.0  # a logarithm moves no farther from where it starts
UNSURE = 1e6  # sd of a logarithm of which nothing is believed
AS_OF = "2026-11-22"
SOURCE = "CM-DARE (arXiv 2004.03072), github.com/cake-lab/CM-DARE data/processed_data/speed_data"


@dataclass(frozen=True, slots=True)
class Network:
    """One of the 20 CNNs."""

    name: str
    structure: str  # "resnet" or "shake-shake"
    flop: float  # forward and backward, of one image
    parameters: float
    tensors: int


@dataclass(frozen=True, slots=True)
class Speed:
    """The steady speed of one cluster; an update is 128 images of one worker."""

    campaign: str
    gpu: str
    network: str
    workers: int
    servers: int
    updates_per_s: float


@dataclass(frozen=True, slots=True)
class ServerRates:
    """What is fitted of the servers: a, b and c of `parameter_server.py`."""

    tensor_s: float
    byte_s: float
    update_s: float


@dataclass(frozen=True, slots=True)
class ServerFit:
    """Fitted constants of servers, and how sure the runs behind them make them."""

    rates: ServerRates
    covariance: Floats  # (3, 3), of ln a, ln b, ln c: from the noise of the runs

    def spread(
        self, rows: Sequence[Speed], networks: dict[str, Network], shares: Sequence[float]
    ) -> Floats:
        """Sd of ln service time of some clusters, g'Cg: what no run taught; (rows,)."""
        whole = served_s(rows, networks, self.rates, shares)
        slopes = [
            1.0 - served_s(rows, networks, replace(self.rates, **{name: 0.0}), shares) / whole
            for name in ServerRates.__slots__
        ]
        return np.asarray(np.sqrt(np.einsum("kr,kl,lr->r", slopes, self.covariance, slopes)))


@dataclass(frozen=True, slots=True)
class WorkerRates:
    """What is fitted of single workers."""

    gpus: tuple[str, ...]
    flop_per_s: tuple[float, ...]  # that the networks reach on each GPU
    tensor_s: float  # vCPU seconds
    update_s: float


def one_worker_s(rows: Sequence[Speed], like: Speed, same_campaign: bool = False) -> float:
    """Seconds per update of one worker of a cluster; the geometric mean of all campaigns."""
    return float(np.exp(-np.mean(_ln_alone(rows, like, same_campaign))))


def _ln_alone(rows: Sequence[Speed], like: Speed, same_campaign: bool = False) -> Floats:
    """The ln speed of every run of one worker in a cluster's set-up."""
    found = [
        row.updates_per_s
        for row in rows
        if (row.gpu, row.network, row.servers, row.workers)
        == (like.gpu, like.network, like.servers, 1)
        and (row.campaign == like.campaign or not same_campaign)
    ]
    return np.asarray(np.log(found), dtype=np.float64)


def served_s(
    rows: Sequence[Speed],
    networks: dict[str, Network],
    rates: ServerRates,
    shares: Sequence[float],
) -> Floats:
    """Seconds of the fullest server per update; (rows,).

    It holds a share of the bytes; tensors are dealt out evenly.
    """
    constants = ServerConstants(rates.tensor_s, rates.byte_s, rates.update_s, 0.0, 0.0, 0.0)
    tensors = np.array([networks[row.network].tensors / row.servers for row in rows])
    sent = np.array([networks[row.network].parameters for row in rows]) * np.array(shares)
    return service_s(tensors, GRADIENT_BYTES * sent, SERVER_BYTES_PER_S, constants)


def repeat_sd(rows: Sequence[Speed], gpu: str) -> float:
    """Sd of ln speed between campaigns that ran one worker in the same set-up on a GPU."""
    alone = [row for row in rows if row.gpu == gpu and (row.workers, row.servers) == (1, 1)]
    each = [_ln_alone(rows, row) for row in {row.network: row for row in alone}.values()]
    squares = sum(float(((some - some.mean()) ** 2).sum()) for some in each)
    return float(np.sqrt(squares / sum(len(some) - 1 for some in each)))


def fit_servers(
    rows: Sequence[Speed], networks: dict[str, Network], same_campaign: bool = False
) -> ServerFit:
    """The a, b, c of clusters with one server, of all runs of some networks.

    Errors in variables: a run of one worker is as noisy as any other, so its speed is no input
    but a parameter, measured once for each campaign (with `same_campaign`: its own only) and by
    the clusters of its workers. Every run weighs by the spread of repeats on its GPU.
    """
    clusters = shared(rows)
    whole = [1.0] * len(clusters)

    def service(found: Floats) -> Floats:
        return served_s(clusters, networks, ServerRates(*np.exp(found).tolist()), whole)

    fit = _with_workers(rows, clusters, service, np.log(START), same_campaign)
    found = ServerRates(*np.exp(fit.value[:3]).tolist())
    return ServerFit(found, fit.covariance(1.0)[:3, :3])


def service_error(
    rows: Sequence[Speed],
    networks: dict[str, Network],
    network: str,
    rates: ServerRates,
    same_campaign: bool = False,
) -> float:
    """ln of the service time that a network's own clusters show, over that of some constants."""
    mine = [row for row in shared(rows) if row.network == network]
    known = served_s(mine, networks, rates, [1.0] * len(mine))

    def service(more: Floats) -> Floats:
        return np.asarray(known * np.exp(more[0]))

    return float(_with_workers(rows, mine, service, np.zeros(1), same_campaign).value[0])


def service_sd(
    rows: Sequence[Speed], networks: dict[str, Network], same_campaign: bool = False
) -> float:
    """Sd of ln(true / predicted) service time of a network that the constants have not seen.

    Root mean square over the networks of `rows`, each left out of the fit in turn; as many errors
    are known, so it is widened by Student's law.
    """
    names = sorted({row.network for row in shared(rows)})
    fits = [fit_servers(without(rows, name), networks, same_campaign) for name in names]
    errors = [
        service_error(rows, networks, name, fit.rates, same_campaign)
        for name, fit in zip(names, fits, strict=True)
    ]
    return students_excess(len(names)) * float(np.sqrt(np.mean(np.square(errors))))


def without(rows: Sequence[Speed], network: str) -> list[Speed]:
    """All runs but those of one network."""
    return [row for row in rows if row.network != network]


def _with_workers(
    rows: Sequence[Speed],
    clusters: Sequence[Speed],
    service: Callable[[Floats], Floats],
    start: Floats,
    same_campaign: bool = False,
) -> PosteriorFit:
    """Parameters of the service time, fitted together with each set-up's one-worker speed."""
    setups = sorted({(row.gpu, row.network) for row in clusters})
    of = np.array([setups.index((row.gpu, row.network)) for row in clusters])
    like = [clusters[int((of == i).argmax())] for i in range(len(setups))]
    alone = [_ln_alone(rows, row, same_campaign) for row in like]
    ln_s = -np.array([some.mean() for some in alone])
    noise = np.array([repeat_sd(rows, row.gpu) for row in like])
    sd = np.concatenate([np.full(len(start), UNSURE), noise / np.sqrt([len(x) for x in alone])])
    measured = np.log(np.array([row.updates_per_s for row in clusters]))
    workers = np.array([float(row.workers) for row in clusters])

    def missed(found: Floats) -> Floats:
        alone_s = np.exp(ln_s + found[len(start) :])[of]
        rate = updates_per_s(workers, alone_s, service(found[: len(start)]))
        return np.asarray((np.log(rate) - measured) / noise[of])

    at = np.concatenate([start, np.zeros(len(setups))])
    belief = ParameterPrior(at, sd, at - FARTHEST, at + FARTHEST)
    return solve(missed, np.zeros(len(clusters)), 1.0, belief, at, np.inf)


def update_s(gpu: str, network: Network, rates: WorkerRates) -> float:
    """Seconds of one worker's update: arithmetic, then its CPU."""
    constants = ServerConstants(0.0, 0.0, 0.0, 0.0, rates.tensor_s, rates.update_s)
    arithmetic = IMAGES * network.flop / rates.flop_per_s[rates.gpus.index(gpu)]
    return arithmetic + worker_s(network.tensors, VCPUS[gpu], constants)


def fit_workers(rows: Sequence[Speed], networks: dict[str, Network]) -> WorkerRates:
    """One FLOP/s for each GPU and the CPU's cost, by least squared relative error.

    The constants are of all GPUs: the CPU costs of a worker fall with its vCPUs.
    """
    gpus = tuple(sorted({row.gpu for row in rows}))
    step = np.array([1.0 / row.updates_per_s for row in rows])
    columns = [
        [IMAGES * networks[row.network].flop * (row.gpu == gpu) for gpu in gpus]
        + [networks[row.network].tensors / VCPUS[row.gpu], 1.0 / VCPUS[row.gpu]]
        for row in rows
    ]
    found = nonnegative(np.array(columns) / step[:, None], np.ones(len(rows)))
    per_flop, (tensor, update) = found[: len(gpus)], found[len(gpus) :]
    return WorkerRates(gpus, tuple((1.0 / per_flop).tolist()), float(tensor), float(update))


def shared(rows: Sequence[Speed]) -> list[Speed]:
    """The clusters that the servers' constants are fitted on: 2 to 8 workers, one server."""
    return [row for row in rows if row.workers > 1 and row.servers == 1]


def single(rows: Sequence[Speed]) -> list[Speed]:
    """The one-worker runs that the workers' constants are fitted on: 20 CNNs on each GPU."""
    return [row for row in rows if row.campaign == "single_20cnn"]


def read_reference(folder: Path) -> tuple[dict[str, Network], list[Speed]]:
    """CM-DARE's networks and speeds from the reference tables; V100 has too few networks."""
    networks = {
        row["model"]: Network(
            row["model"],
            row["family"],
            float(row["flops"]),
            float(row["params"]),
            int(row["tensors"]),
        )
        for row in _rows(folder / "models.csv")
    }
    speeds = [
        Speed(
            row["campaign"],
            row["gpu"],
            row["model"],
            int(row["workers"]),
            int(row["ps"]),
            float(row["steps_per_s_mean"]),
        )
        for row in _rows(folder / "training_speed.csv")
        if row["gpu"] in VCPUS
    ]
    return networks, speeds


def constant_rows(networks: dict[str, Network], speeds: Sequence[Speed]) -> list[dict[str, str]]:
    """The lines of parameter_server.csv."""
    clusters, workers = shared(speeds), single(speeds)
    servers = fit_servers(speeds, networks).rates
    worker = fit_workers(workers, networks)
    found = (
        ("tensor_s", servers.tensor_s, "s of a server per tensor of an update", clusters),
        ("byte_s", servers.byte_s, "s of a server per gradient byte beside its network", clusters),
        ("update_s", servers.update_s, "s of a server per update", clusters),
        ("service_sd", service_sd(speeds, networks), "sd of ln, a network not seen", clusters),
        ("worker_tensor_s", worker.tensor_s, "vCPU s of a worker per tensor", workers),
        ("worker_update_s", worker.update_s, "vCPU s of a worker per update", workers),
    )
    return [
        {
            "constant": name,
            "value": f"{value:.4g}",
            "meaning": meaning,
            "rows": str(len(rows)),
            "source": SOURCE,
            "as_of": AS_OF,
        }
        for name, value, meaning, rows in found
    ]


def main() -> None:
    """Fit, and print or write parameter_server.csv."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    rows = constant_rows(*read_reference(chosen.reference / "cmdare"))
    if chosen.write:
        path = SOURCES / "performance" / "parameter_server.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            table.writeheader()
            table.writerows(rows)
    else:
        for row in rows:
            print(row["constant"].ljust(16), row["value"].rjust(10), row["meaning"])


def _rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


if __name__ == "__main__":
    main()
