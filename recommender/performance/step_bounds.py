"""The shortest step that any cluster between two others can have, as lines over 1/compute.

With R the sum of compute and N the GPUs, a strategy has busy >= tau + A/R, where tau is the time
of the gradient tensors and A what N GPUs of the smallest memory surely in use need at R = 1 if
nothing is sent (B + φ·b0·N where model parallelism is allowed, and N·(ceil(B/N) + b0)
under parameter servers); traffic between machines and inside them; and a share of `busy` that
hides traffic. So

    step >= tau + A/R,      step >= c + shown·(tau + A/R)      and      step >= tau + lambda

c, the traffic, grows with the number of machines and falls with the bandwidths, which are at
most those of machines surely in use. Under parameter servers c is the least time of n updates
on infinitely fast GPUs: all compute may hide behind other workers' turns, so shown = 0. With model
parallelism next to nothing may be sent inside machines; between them as much as machines of one
GPU would send: the gradients of the part that a machine holds, and activations where stages part.
Machines that share their links (`link_domain.py`) may send nothing between them.

Where each GPU has its own batch b of `job.global_batch` samples, a step is that of b·N samples and
the lines are those of its N-th part: A counts b + b0 and so on, which no N changes, and what takes
its time once a step, tau, c and lambda, is divided by the most GPUs of the box.

lambda is the least time of a micro-batch of an eager program, of which each step has one (0 where
model parallelism is allowed). A micro-batch takes the longer of it and its arithmetic, so A and c
are found as if lambda were 0: with it they would count what the third line counts, and add it.
"""

from dataclasses import replace

import numpy as np

from recommender.arrays import Floats, Ints, distinct
from recommender.catalogs.frozen import dataclass
from recommender.job.job import Job
from recommender.performance.clusters import Clusters, MachineColumns
from recommender.performance.link_domain import without_network
from recommender.performance.memory import bytes_of
from recommender.performance.priors import Prior, prior_of
from recommender.performance.step import steps
from recommender.performance.strategies import (
    allows_model_parallelism,
    large_messages,
    min_inside_bytes,
    min_penalty,
    most_hidden,
    one_gpu_shardings,
)

UNLIMITED = 1e30  # samples/s, bytes: of a GPU that takes no time and holds everything
MAX_TABULATED_GPUS = 1024  # GPUs up to which A is looked up instead of bounded by B + b0·N
ENTRY_FIELDS = ("gpus", "memory", "network", "start", "inside_s")


@dataclass(frozen=True, slots=True)
class Shortest:
    """What the lines of one job on some machines are made of; (entries,) or tables."""

    most: int  # machines
    most_gpus: int
    gpus: Ints
    memory: Ints  # place of an entry's memory among the distinct ones, smallest first
    network: Ints  # place of an entry's network among the distinct ones, slowest first
    start: Ints  # place of its half-performance message and latency among the pairs, least first
    inside_s: Floats  # traffic inside a cluster whose largest machine is this one
    tau_s: float
    shown: float  # share of the arithmetic that hides no traffic
    arithmetic: Floats  # (memories, N, N): least A of first ... last GPUs
    batch: float
    penalty: float
    traffic_s: Floats  # (networks, starts, machines + 1): between machines
    served: bool  # by parameter servers
    launch_s: float = 0.0  # least of a micro-batch
    per_gpu: bool = False  # each GPU's batch is fixed

    def lines(self, low: Ints, high: Ints, least: Ints) -> tuple[tuple[Floats, Floats], ...]:
        """(seconds, samples) of the lines for boxes low <= x <= high; (boxes, entries).

        `least` is a number of machines that no cluster of interest in the box has fewer of.
        """
        sure = low > 0
        start = np.where(sure, self.start, 0).max(axis=1)
        inside = np.where(sure, self.inside_s, 0.0).max(axis=1)
        size = np.maximum(low.sum(axis=1), least)
        gpus = low @ self.gpus, high @ self.gpus
        memory = _best(self.memory, low, high, int(self.memory.max()))
        return self.of(self.fastest(low, high), start, inside, memory, size, *gpus)

    def of(
        self,
        network: Ints,
        start: Ints,
        inside_s: Floats,
        memory: Ints,
        size: Ints,
        first: Ints,
        last: Ints,
    ) -> tuple[tuple[Floats, Floats], ...]:
        """(seconds, samples) of the lines for clusters of first ... last GPUs; all of one shape.

        `network` and `memory` are the best that the worst of their machines can have, `start`
        and `inside_s` the worst that they surely have, and `size` the fewest machines.
        """
        fewest, most = (np.clip(number, 1, self.most_gpus) for number in (first, last))
        work = self._arithmetic(memory, fewest, most)
        traffic = self.traffic_s[network, start, np.clip(size, 1, self.most)]
        if not self.served:
            traffic = traffic + inside_s
        part = 1.0 / most if self.per_gpu else 1.0
        tau = part * np.full(work.shape, self.tau_s)
        both = (tau, work), (part * traffic + self.shown * tau, self.shown * work)
        if not self.launch_s:
            return both
        return (*both, (tau + part * self.launch_s, np.zeros(work.shape)))

    def take(self, rows: Ints) -> "Shortest":
        """The bounds of some entries only."""
        some = {name: getattr(self, name)[rows] for name in ENTRY_FIELDS}
        return replace(self, **some)

    def fastest(self, low: Ints, high: Ints) -> Ints:
        """The fastest network that the slowest machine of any cluster of a box can have."""
        return _best(self.network, low, high, len(self.traffic_s))

    def worse(self, low: Ints, high: Ints) -> Ints:
        """How much slower traffic between machines gets where an entry is used; 0: no slower."""
        more = np.maximum(self.fastest(low, high)[:, None] - self.network, 0)
        later = self.start - np.where(low > 0, self.start, 0).max(axis=1)[:, None]
        unsure = (low == 0) & (high > 0)
        return np.asarray(np.where(unsure, more + np.maximum(later, 0), 0))

    def _arithmetic(self, memory: Ints, first: Ints, last: Ints) -> Floats:
        if not len(self.arithmetic):
            gpus = np.ones_like(first) if self.per_gpu else first
            return np.asarray(self.batch + self.penalty * gpus, dtype=np.float64)
        place = np.minimum(memory, len(self.arithmetic) - 1)
        return np.asarray(self.arithmetic[place, first - 1, last - 1])


def _best(place: Ints, low: Ints, high: Ints, top: int) -> Ints:
    """The best that the worst machine of any cluster of a box can have, by place; (boxes,)."""
    sure = np.where(low > 0, place, top).min(axis=1)
    may = np.where(high > 0, place, 0).max(axis=1)
    return np.asarray(np.minimum(sure, may))


def shortest(job: Job, columns: MachineColumns, kind: Ints, most: int) -> Shortest:
    """The lines of clusters of up to `most` machines of these kinds (rows of the columns)."""
    prior, gpus = prior_of(job), columns.gpus[kind].astype(np.int64)
    columns = without_network(columns) if job.sync == "allreduce" else columns
    served = job.sync == "parameter_server"
    hidden = most_hidden(job, prior)
    sent, penalty = min_inside_bytes(job, bytes_of(job, prior)), min_penalty(job, prior)
    memory, place = np.unique(columns.memory_bytes[kind], return_inverse=True)
    most_gpus = int(most * gpus.max())
    if served or allows_model_parallelism(job):
        least = _min_arithmetic(job, prior.batch_penalty, penalty, most_gpus)
    else:
        least = _held_arithmetic(job, columns, memory, most_gpus)
    return Shortest(
        most=most,
        most_gpus=most_gpus,
        gpus=gpus,
        memory=place.ravel(),
        network=np.unique(columns.network_bytes_per_s[kind], return_inverse=True)[1].ravel(),
        start=_starts(columns, kind)[1],
        inside_s=sent * (1.0 - 1.0 / np.maximum(gpus, 1)) / columns.intra_bytes_per_s[kind],
        tau_s=float(prior.tensor_s * job.gradient_tensors),
        shown=0.0 if served else max(1.0 - hidden, 0.0),
        arithmetic=least,
        batch=float(job.global_batch),
        penalty=penalty,
        traffic_s=_traffic(job, columns, kind, most),
        served=served,
        launch_s=0.0 if allows_model_parallelism(job) else prior.launch_s,
        per_gpu=job.batch_per_gpu,
    )


def _min_arithmetic(job: Job, penalty: float, min_penalty: float, most: int) -> Floats:
    """Least N·(ceil(B/N) + b0) for N from a row's number of GPUs to a column's.

    B + b0'·N where that is less: with b0' < b0 model parallelism is allowed. The N-th part of it
    where the batch of a GPU is fixed: B is then the N-fold.
    """
    if most > MAX_TABULATED_GPUS:
        return np.zeros((0, 0, 0))
    gpus = np.arange(1.0, most + 1.0)
    batch = job.batch_on(gpus)
    each = gpus * (np.ceil(batch / gpus) + penalty)
    if min_penalty < penalty:
        each = np.minimum(each, batch + min_penalty * gpus)
    return _min_of_ranges((each / job.batch_growth(gpus))[None])


def _held_arithmetic(job: Job, columns: MachineColumns, memory: Floats, most: int) -> Floats:
    """Least step at one sample/s for each memory, if nothing is sent: micro-batches must fit.

    GPUs of one machine without links that cost time: no strategy holds less or sends nothing
    faster, and a cluster's memory is that of its smallest GPU.
    """
    if most > MAX_TABULATED_GPUS:
        return np.zeros((0, 0, 0))
    place, number = (axis.ravel() for axis in np.indices((len(memory), most)))
    gpus, one = np.asarray(number, dtype=np.float64) + 1.0, np.ones(len(number))
    fleet = Clusters(
        kind=np.full(len(gpus), -1),
        machines=one,
        gpus=gpus,
        gpus_per_machine=gpus,
        compute_per_s=one,
        memory_bytes=memory[place],
        network_bytes_per_s=np.inf * one,
        network_half_bytes=0.0 * one,
        network_latency_s=0.0 * one,
        intra_bytes_per_s=np.inf * one,
        prepare_per_s=np.inf * one,
        fetch_per_s=np.inf * one,
        host_bytes_per_s=one,
        disk_bytes_per_s=one,
        link_gpus=gpus,
    )
    bare = replace(job, gradient_tensors=0, machines=0)
    step = steps(bare, columns, fleet, _never_eager(job)).step_s
    return _min_of_ranges(np.minimum(step, UNLIMITED).reshape(len(memory), most))


def _never_eager(job: Job) -> Prior:
    """The speed constants of a job whose kernels and all-reduces start in no time."""
    return replace(prior_of(job), launch_s=0.0, model_parallel_launch_s=0.0, link_wait_s=0.0)


def _min_of_ranges(each: Floats) -> Floats:
    """Least value from a row's number to a column's; (any, N) to (any, N, N)."""
    most = each.shape[1]
    spread = np.where(np.triu(np.ones((most, most), dtype=bool)), each[:, None, :], np.inf)
    return np.asarray(np.minimum.accumulate(spread, axis=2))


def _starts(columns: MachineColumns, kind: Ints) -> tuple[Floats, Ints]:
    """Pairs (half-performance message, latency) that a cluster has at least, and each kind's.

    A cluster has the larger of each, so a pair has the least latency of all kinds with
    its half-performance message or a larger one.
    """
    half, latency = columns.network_half_bytes[kind], columns.network_latency_s[kind]
    values, place = np.unique(half, return_inverse=True)
    least = np.array([latency[half >= value].min() for value in values])
    return np.stack([values, least], axis=1), place.ravel()


def _traffic(job: Job, columns: MachineColumns, kind: Ints, sizes: int) -> Floats:
    """Least traffic by network, start and machines: nothing else takes time.

    Size 0 repeats size 1; each size has the minimum of all larger ones. Parameter servers
    spend time on each tensor, so there the tensors stay. With the model parallelism of
    vendors' recipes, whose replicas sum more gradients in one call than data parallelism, any
    message reaches the full rate.
    """
    networks, starts = distinct(columns.network_bytes_per_s[kind]), _starts(columns, kind)[0]
    shape = (len(networks), len(starts), sizes)
    network, start, n = (axis.ravel() for axis in np.indices(shape))
    n, whole = n + 1.0, np.ones(len(n))
    fleet = Clusters(
        kind=np.full(len(n), -1),
        machines=n,
        gpus=n,
        gpus_per_machine=whole,
        compute_per_s=UNLIMITED * whole,
        memory_bytes=UNLIMITED * whole,
        network_bytes_per_s=networks[network],
        network_half_bytes=starts[start, 0] * (1.0 - large_messages(job)),
        network_latency_s=starts[start, 1],
        intra_bytes_per_s=np.inf * whole,
        prepare_per_s=np.inf * whole,
        fetch_per_s=np.inf * whole,
        host_bytes_per_s=whole,
        disk_bytes_per_s=whole,
        link_gpus=whole,
    )
    tensors = job.gradient_tensors if job.sync == "parameter_server" else 0
    any_size = replace(job, gradient_tensors=tensors, machines=0)
    bare = [replace(any_size, sharding=way) for way in one_gpu_shardings(job)]
    prior = _never_eager(job)
    table = np.min([steps(each, columns, fleet, prior).step_s for each in bare], axis=0)
    table = np.minimum(table * job.batch_growth(n), UNLIMITED).reshape(shape)
    table = np.minimum.accumulate(table[..., ::-1], axis=2)[..., ::-1]
    return np.concatenate([table[..., :1], table], axis=2)
