"""Clusters as columns: the sums and extremes that determine a cluster's speed.

A cluster's step time depends on its machines only through these, so one vectorised function serves
single plans, the search and the exhaustive oracle.

NVLink domains. A GB200 NVL72 or GB300 NVL72 rack links 72 GPUs through NVLink switches; clouds rent
it as 18 machines of four. Machines of one rack communicate at the rate of a machine's links, so the
formulas treat a link domain as one machine: with all its GPUs, the network cards of its machines
together, and correspondingly larger half-rate messages (a message is divided among the cards).

Clusters larger than a rack are spread evenly over as few racks as possible; if the machines cannot
be divided evenly, the largest group is used. What needs groups alike has another choice, parts
of racks of a power of two of machines: a rack is bandwidth and no cluster is refused for its shape.
Machines of different types are not linked, and parameter servers have a worker for each machine in
any case.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from recommender.arrays import Floats, Ints, Table
from recommender.catalogs.frozen import dataclass
from recommender.job.job import Job

SPREAD_STEP = 0.01  # with parameter servers, spreads of several machines are multiples of this
# GPUs of one NVLink domain ("GB200 NVL72", "GB300 NVL72": NVIDIA's product pages, 2026-08; Azure's
# ND GB200 v6: "18 compute servers (72 GPUs)" in one domain, Microsoft Learn, 2026-08).
DOMAIN_GPUS = {"GB200": 72, "GB300": 72}


@dataclass(frozen=True, slots=True)
class MachineColumns:
    """What one machine of each instance type contributes to a job; shape (types,)."""

    names: tuple[str, ...]  # instance types, "provider/name"
    gpus: Floats
    compute_per_s: Floats  # samples/s of the whole machine at large batches, nothing recomputed
    memory_bytes: Floats  # usable by training, of one GPU
    device_bytes_per_s: Floats  # of the memory of one GPU
    network_bytes_per_s: Floats  # sustained, of the machine; 0 = unknown: one machine only
    network_half_bytes: Floats  # message size at which half of it is reached
    network_latency_s: Floats  # alpha of the all-reduce between machines
    intra_bytes_per_s: Floats  # per GPU; inf for one GPU
    prepare_per_s: Floats  # samples/s that its vCPUs decode; inf where nothing is decoded
    fetch_per_s: Floats  # samples/s that its network or disk delivers
    host_bytes_per_s: Floats  # GPU to host copy, whole machine
    disk_bytes_per_s: Floats  # local disk, or the network volume where it has none
    speed_sigma: Floats  # sd of ln(true speed / predicted speed) of one machine
    speed_sigma_several: Floats  # the same, of clusters of several machines
    reasons: tuple[str, ...]  # why a type cannot run the job, "" where it can
    # Types timed by the user, by name: (machines, measured step / modelled step >= 1) by size.
    measured: tuple[tuple[str, tuple[tuple[int, float], ...]], ...] = ()
    own_speeds: tuple[tuple[str, str], ...] = ()  # GPUs that the user measured, with the figures
    # Links of a part of a machine's GPUs: (type, GPUs, times what `intra_bytes_per_s` says of all).
    part_links: tuple[tuple[str, int, float], ...] = ()
    service_sigma: Floats | None = None  # sd of ln time of parameter servers; None: there are none
    placement_sigma: Floats | None = None  # of ln of the bytes on the fullest of them, at most
    # (n, sd of ln speed (types,)) of clusters of more than n machines, n rising
    speed_sigma_larger: tuple[tuple[int, Floats], ...] = ()
    link_gpus: Floats | None = None  # that its links reach, other machines' too; None: its own
    memory_bytes_per_s: Floats | None = None  # of one GPU; None: for jobs that generate nothing

    def links(self, kind: Ints) -> Floats:
        """Number of GPUs that the links of machines of some types connect."""
        return (self.gpus if self.link_gpus is None else self.link_gpus)[kind]

    def first(self, types: int) -> "MachineColumns":
        """The columns of the first so many types."""
        names = self.names[:types]
        arrays: dict[str, Any] = {
            name: value[:types]
            for name in self.__slots__
            if isinstance(value := getattr(self, name), np.ndarray)
        }
        return replace(
            self,
            **arrays,
            names=names,
            reasons=self.reasons[:types],
            measured=tuple(row for row in self.measured if row[0] in names),
            part_links=tuple(row for row in self.part_links if row[0] in names),
            speed_sigma_larger=tuple((n, sd[:types]) for n, sd in self.speed_sigma_larger),
        )


@dataclass(frozen=True, slots=True)
class Clusters(Table):
    """Many clusters at once; every field has shape (clusters,)."""

    kind: Ints  # row of MachineColumns where all machines are alike, else -1
    machines: Floats  # n
    gpus: Floats  # N
    gpus_per_machine: Floats  # of the largest machine
    compute_per_s: Floats  # sum over machines
    memory_bytes: Floats  # smallest
    device_bytes_per_s: Floats  # slowest
    network_bytes_per_s: Floats  # slowest
    network_half_bytes: Floats  # largest
    network_latency_s: Floats  # largest
    intra_bytes_per_s: Floats  # slowest
    prepare_per_s: Floats  # sum
    fetch_per_s: Floats  # sum
    host_bytes_per_s: Floats  # sum
    disk_bytes_per_s: Floats  # slowest
    link_gpus: Floats  # that the links of a machine reach, other machines' too


@dataclass(frozen=True, slots=True)
class Steps(Table):
    """One optimiser step of each cluster; shape (clusters,); step_s is inf if it cannot run.

    Seconds are for `Job.global_batch` samples: a part of a step if batches grow with GPUs.
    """

    step_s: Floats
    compute_s: Floats  # without recomputation
    recompute_s: Floats
    exposed_network_s: Floats
    exposed_intra_s: Floats
    bubble_s: Floats
    input_s: Floats  # how much longer the step is because of the input pipeline
    row: Ints  # of `step.STRATEGY_OF_ROW`
    micro_batch: Floats
    accumulation: Floats
    tensor: Floats  # GPUs that share a layer
    context: Floats  # groups of them that share a sequence
    stages: Floats  # of a pipeline
    sharded: Floats  # 1 where a layout divides the weights among all GPUs as well
    experts: Floats  # GPUs that divide the experts of a layer
    again: Floats  # share of the layers that are computed again in the backward pass
    fits: Floats  # chance that the memory is enough, in small micro-batches if it has to be


def widened(columns: MachineColumns, sd: float) -> MachineColumns:
    """Columns of which all spreads include an independent error of ln speed; `sd` may be 0."""
    if not sd:
        return columns
    return replace(
        columns,
        speed_sigma=np.hypot(columns.speed_sigma, sd),
        speed_sigma_several=np.hypot(columns.speed_sigma_several, sd),
        speed_sigma_larger=tuple(
            (most, np.hypot(spread, sd)) for most, spread in columns.speed_sigma_larger
        ),
    )


def widened_at_most(columns: MachineColumns, sd: float, free: MachineColumns) -> MachineColumns:
    """Columns widened by `sd`, but no spread beyond that of `free`, which know nothing of the job.

    A spread that was wider before stays as it is.
    """
    wide = widened(columns, sd)
    one, several = free.speed_sigma, free.speed_sigma_several
    larger = zip(wide.speed_sigma_larger, columns.speed_sigma_larger, strict=True)
    return replace(
        wide,
        speed_sigma=_capped(wide.speed_sigma, columns.speed_sigma, one),
        speed_sigma_several=_capped(wide.speed_sigma_several, columns.speed_sigma_several, several),
        speed_sigma_larger=tuple(
            (n, _capped(spread, before, several)) for (n, spread), (_, before) in larger
        ),
    )


def _capped(spread: Floats, before: Floats, free: Floats) -> Floats:
    return np.minimum(spread, np.maximum(before, free))


def spread_at(columns: MachineColumns, kind: Ints, machines: Ints) -> Floats:
    """The spread of clusters of so many machines of one type; both broadcast."""
    found = np.where(machines == 1, columns.speed_sigma[kind], columns.speed_sigma_several[kind])
    for most, spread in columns.speed_sigma_larger:
        found = np.where(machines > most, spread[kind], found)
    return found


def spread_of(columns: MachineColumns, kind: Ints, counts: Ints) -> Floats:
    """The spread of each cluster, that of its least known machine; `counts` (clusters, types)."""
    each = spread_at(columns, kind[None], counts.sum(axis=1, keepdims=True))
    found: Floats = np.where(counts > 0, each, 0.0).max(axis=1)
    return found


def clusters_of(columns: MachineColumns, counts: Ints) -> Clusters:
    """Sum machines into clusters; `counts` has shape (clusters, types), each row sums to >= 1."""
    used = counts > 0
    kinds_used = used.sum(axis=1)

    def total(values: Floats) -> Floats:
        found: Floats = np.where(
            used, counts * np.where(np.isfinite(values), values, 0.0), 0.0
        ).sum(axis=1) + np.where((used & np.isinf(values)).any(axis=1), np.inf, 0.0)
        return found

    def smallest(values: Floats) -> Floats:
        found: Floats = np.where(used, values, np.inf).min(axis=1)
        return found

    def largest(values: Floats) -> Floats:
        found: Floats = np.where(used, values, 0.0).max(axis=1)
        return found

    first = used.argmax(axis=1)
    largest_gpus = largest(columns.gpus)
    return Clusters(
        kind=np.where(kinds_used == 1, first, -1).astype(np.int64),
        machines=counts.sum(axis=1).astype(np.float64),
        gpus=total(columns.gpus),
        gpus_per_machine=largest_gpus,
        compute_per_s=total(columns.compute_per_s),
        memory_bytes=smallest(columns.memory_bytes),
        device_bytes_per_s=smallest(columns.device_bytes_per_s),
        network_bytes_per_s=smallest(columns.network_bytes_per_s),
        network_half_bytes=largest(columns.network_half_bytes),
        network_latency_s=largest(columns.network_latency_s),
        intra_bytes_per_s=smallest(columns.intra_bytes_per_s),
        prepare_per_s=total(columns.prepare_per_s),
        fetch_per_s=total(columns.fetch_per_s),
        host_bytes_per_s=total(columns.host_bytes_per_s),
        disk_bytes_per_s=smallest(columns.disk_bytes_per_s),
        link_gpus=np.where(kinds_used == 1, columns.links(first), largest_gpus),
    )


def link_gpus(gpu: str, gpus: int) -> float:
    """Number of GPUs that the links of a machine with so many GPUs connect, at least its own."""
    return float(max(DOMAIN_GPUS.get(gpu, 0), gpus))


def linked(job: Job, fleet: Clusters) -> Clusters:
    """Treat each link domain as one machine; other clusters are unchanged."""
    each = _together(job, fleet)
    if each is None:
        return fleet
    domains = np.ceil(fleet.machines / each)
    return _grouped(fleet, domains, np.ceil(fleet.machines / domains))


def alike(job: Job, fleet: Clusters) -> tuple[Ints, tuple[Clusters, ...]]:
    """The clusters whose machines share links, and these in parts of 1, 2, 4, ... machines."""
    each = _together(job, fleet)
    rows = np.flatnonzero(each > 1.0) if each is not None else np.zeros(0, dtype=np.int64)
    if each is None or not len(rows):
        return rows, ()
    found = fleet.take(rows)
    most = 2.0 ** np.floor(np.log2(np.minimum(each[rows], found.machines)))
    sizes = (np.minimum(2.0**power, most) for power in range(int(np.log2(most.max())) + 1))
    return rows, tuple(_grouped(found, np.ceil(found.machines / size), size) for size in sizes)


def _together(job: Job, fleet: Clusters) -> Floats | None:
    """The machines that share links, 1 where they have their own; None if all have."""
    each = np.floor(fleet.link_gpus / np.maximum(fleet.gpus_per_machine, 1.0))
    shared = (each > 1) & (fleet.machines > 1) & (fleet.network_bytes_per_s > 0)
    if job.sync != "allreduce" or not shared.any():
        return None
    return np.where(shared, each, 1.0)


def _grouped(fleet: Clusters, domains: Floats, most: Floats) -> Clusters:
    return replace(
        fleet,
        machines=domains,
        gpus_per_machine=fleet.gpus_per_machine * most,
        network_bytes_per_s=fleet.network_bytes_per_s * most,
        network_half_bytes=fleet.network_half_bytes * most,
    )


def slowdown(columns: MachineColumns, fleet: Clusters) -> Floats:
    """Measured over modelled step time of every cluster, >= 1; interpolated in ln n."""
    factor = np.ones(len(fleet))
    for name, points in columns.measured:
        if name in columns.names:
            rows = fleet.kind == columns.names.index(name)
            sizes, factors = np.log(np.array(points)).T
            factor[rows] = np.exp(np.interp(np.log(fleet.machines[rows]), sizes, factors))
    return factor
