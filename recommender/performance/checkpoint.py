"""Checkpoint paths: where checkpoints go and how, what they cost in time, and the best interval.

Functions of clusters take them as columns and return arrays of shape (clusters,), in seconds.

A training writes its checkpoint to the disks of its machines; the tool of the cloud uploads it
behind the training, every machine its own part, and only one that is uploaded whole is resumed
from. The tool fetches all of it to every machine: a process needs more than it wrote, as what all
hold alike lies in the file of one of them (torch.distributed.checkpoint, `dedup_save_plans`,
PyTorch 2.9). From a folder that all machines share a training reads the bytes that it needs. Plans
count with the rates of `checkpoint_transfers.csv`; exported files run the same tool
(`recommender/export/checkpoint_upload.py`).
"""

import csv
import math
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from recommender.arrays import Bools, Floats
from recommender.catalogs.frozen import dataclass
from recommender.job.job import Job
from recommender.performance.clusters import Clusters
from recommender.risk.laws import RUN_FAMILY

# Parallel transfers reached 6.3 GB/s on p3dn (100 Gbit/s) and 8.0 on c5n.18xlarge: the public
# table of dvassallo/s3-benchmark (2019). The rest is assumed (2026-11).
STORE_SHARE = 0.6  # of a sustained NIC that object-store transfers reach
STORE_PART_BYTES_PER_S = 80e6  # one connection to S3 or GCS
STORE_PARTS = 64  # parallel connections of one machine that reads training data
# One bucket and all machines: 200 Gbit/s are the default quota of a region for egress from Cloud
# Storage to Google services, and of a storage account's egress in large Azure regions (60 Gbit/s
# ingress, more on request); S3 promises 3,500 writes/s a prefix, 28 GB/s in the usual parts of 8 MB
# (the providers' quota pages and S3's "Optimizing performance", read 2026-11-26). Gangs on Azure
# are assumed to have a larger quota for writes.
BUCKET_BYTES_PER_S = 25e9
UNKNOWN_NIC_BYTES_PER_S = 1.25e9  # assumed where the catalog does not know: 10 Gbit/s
# A gp3 volume's baseline (EBS user guide, 2026-08); others are assumed to be alike.
VOLUME_BYTES_PER_S = 125e6
POLL_S = 10  # between two looks of an exported file for a checkpoint to upload
QUIET_S = 30  # since its last change, that one is taken for complete on every machine
PICK_UP_S = float(POLL_S + QUIET_S)  # from the last byte on disk to the first of the upload
KEPT = 2  # complete checkpoints on the disks: the one that is safe, and its successor
MB = 1e6
# Where checkpoints go; the plan space holds the index.
CHECKPOINT_PATHS = ("none", "object_store", "anchor", "memory_tier")
NOTICE_SHARE = 0.6  # of the notice that a save may take and still be trusted; assumed
NOTICE_CHANCE = 0.95  # that such a save is complete; assumed (2026-11)
TIER_BUFFERS = 2.0  # checkpoints held in memory at once; DeepVM's ancestor code (2024)
EXACT = 5  # intervals of a run summed one by one
AS_GOOD = 0.001  # of the progress, that another usual interval may lose and be as good
# Saves of a plan that counts on none, as insurance against crashes; assumed (2026-11).
INSURED_S = 3600.0  # most work that a crash costs
INSURED_SHARE = 0.1  # of the job, that a crash costs at most, ...
LARGE_INSURED_SHARE = 0.25  # ... and where saves are slow
INSURANCE_STALL = 0.005  # of the time, that these saves may stop the training
HOST_BYTES_PER_S = 6e9  # of one GPU: the slowest of the catalog have 6.3
# Trainers that one receiver takes before incast, by min(NIC) in Gbit/s: DeepVM
# `solution/run.py`, lass-lab/DeepVM 73feab9 (2024-04)
FAN_IN_GBIT = (0.3, 1.7, 5.0, 10.0, 12.5, 15.0, 25.0, 30.0)
FAN_IN = (2.0, 12.0, 16.0, 20.0, 24.0, 24.0, 28.0, 32.0)
GBIT = 1e9 / 8
# Intervals that people set, in seconds; none below a minute, which no training script is run with.
USUAL_S = 60.0 * np.array(
    [1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 180, 240, 360, 480, 720, 1440], dtype=np.float64
)


@dataclass(frozen=True, slots=True)
class Transfer:
    """The tool that moves the checkpoints of machines of one provider."""

    provider: str  # "" for clouds without a tool of their own
    tool: str
    shared: bool  # a folder that the training itself reads and writes on every machine
    upload_bytes_per_s: float  # of one machine
    restore_bytes_per_s: float
    source: str
    as_of: str

    def upload_s(self, size_bytes: float, writers: Floats, network: Floats, disk: Floats) -> Floats:
        """Seconds from a checkpoint on the disks of so many machines to one in the bucket."""
        each = _least(self.upload_bytes_per_s, network, disk)
        return PICK_UP_S + size_bytes / np.minimum(each * writers, BUCKET_BYTES_PER_S)

    def restore_s(
        self, size_bytes: float, machines: Floats, parts: Floats, network: Floats, disk: Floats
    ) -> Floats:
        """Seconds until every machine has what it reads: all, or one of the `parts` of a folder."""
        read = size_bytes / parts if self.shared else size_bytes
        each = _least(self.restore_bytes_per_s, network, disk)
        return np.asarray(read / np.minimum(each, BUCKET_BYTES_PER_S / machines))


@cache
def transfers() -> dict[str, Transfer]:
    """The tools by provider."""
    with files(__package__).joinpath("checkpoint_transfers.csv").open(encoding="utf-8") as file:
        return {row["provider"]: _read(row) for row in csv.DictReader(file)}


def transfer_of(provider: str) -> Transfer:
    """The tool for machines of a provider."""
    return transfers().get(provider, transfers()[""])


def object_store_rate(network_bytes_per_s: Floats) -> Floats:
    """Bytes/s of data between one machine and its region's object store.

    min(0.6 × sustained NIC, 80 MB/s × 64 parallel parts); 10 Gbit/s if the NIC is unknown.
    """
    return np.minimum(network_share(network_bytes_per_s), STORE_PART_BYTES_PER_S * STORE_PARTS)


def network_share(network_bytes_per_s: Floats) -> Floats:
    """Bytes/s of a machine's network that reach an object store."""
    known = np.asarray(network_bytes_per_s) > 0
    return STORE_SHARE * np.where(known, network_bytes_per_s, UNKNOWN_NIC_BYTES_PER_S)


def disk_held_bytes(size_bytes: float, machines: int) -> float:
    """Bytes of checkpoints on one machine's disk at most.

    The restored one is whole on every machine; of those made here each machine has its part: one
    that is kept and one that is being written.
    """
    return size_bytes * (1.0 + KEPT / machines)


def usual_at_least(seconds: float, usual_s: Floats) -> float:
    """The first of the usual intervals that is as long; whole hours beyond them."""
    at = int(np.searchsorted(usual_s, seconds))
    return float(usual_s[at]) if at < len(usual_s) else math.ceil(seconds / 3600.0) * 3600.0


def _least(tool: float, network: Floats, disk: Floats) -> Floats:
    return np.minimum(np.minimum(network_share(network), disk), tool)


def _read(row: dict[str, str]) -> Transfer:
    return Transfer(
        provider=row["provider"],
        tool=row["tool"],
        shared=row["shared"] == "yes",
        upload_bytes_per_s=float(row["upload_mb_per_s"]) * MB,
        restore_bytes_per_s=float(row["restore_mb_per_s"]) * MB,
        source=row["source"],
        as_of=row["as_of"],
    )


@dataclass(frozen=True, slots=True)
class StoreWriter:
    """How a program writes to a bucket: seconds = fixed + tensors + bytes/rate."""

    fixed_s: float
    tensor_s: float  # per gradient tensor: its entry in the index and in the graph
    bytes_per_s: float  # at most, besides what the machine's network and the store allow


# The chief of a parameter-server job: TensorFlow 1.10 writes data, index and graph one after
# the other in one stream to a GCS bucket. Fitted on 20 CNNs of CM-DARE (arXiv 2004.03072, data
# in github.com/cake-lab/CM-DARE) by tests/research/accuracy/cmdare.py, as a test repeats; 2026-11
CHIEF_STREAM = StoreWriter(fixed_s=3.204, tensor_s=3.103e-3, bytes_per_s=58.7e6)


@dataclass(frozen=True, slots=True)
class SavePaths:
    """The cost of one checkpoint path on every cluster; shape (clusters,), seconds."""

    path: str  # one of CHECKPOINT_PATHS
    stall_s: Floats  # training stops
    transfer_s: Floats  # until the checkpoint is written
    lag_s: Floats  # from the end of the stall until it is safe
    interval_min_s: Floats  # the next save cannot start earlier
    restore_s: Floats
    notice_saves: Floats  # chance that the provider's notice suffices for a save
    possible: Bools


@dataclass(frozen=True, slots=True)
class Receiver:
    """One CPU machine of a memory tier; a scalar, or one per cluster."""

    network_bytes_per_s: float | Floats
    memory_bytes: float | Floats


def write_s(
    writer: StoreWriter, size_bytes: Floats | float, tensors: Floats | float, rate: Floats | float
) -> Floats:
    """Seconds to write a checkpoint to a bucket at up to `rate` bytes/s; arguments broadcast."""
    stream = np.minimum(rate, writer.bytes_per_s)
    return np.asarray(writer.fixed_s + writer.tensor_s * tensors + size_bytes / stream)


def object_store(
    job: Job, fleet: Clusters, notice_s: Floats | float, transfer: Transfer
) -> SavePaths:
    """Checkpoints in a bucket, written to the machines' disks and uploaded behind the training.

    Every machine writes its part, or one chief writer all, and every machine fetches all of it. The
    chief of a parameter-server job writes to the bucket itself, in one stream.
    """
    size, network, disk = job.checkpoint_bytes, fleet.network_bytes_per_s, fleet.disk_bytes_per_s
    chief = job.writer == "chief"
    writers = np.ones_like(fleet.machines) if chief else fleet.machines
    upload = transfer.upload_s(size, writers, network, disk)
    written = size / (disk * writers)
    if chief and job.sync == "parameter_server":
        written = write_s(CHIEF_STREAM, size, job.gradient_tensors, network_share(network))
        upload = np.zeros_like(written)
    restore = transfer.restore_s(size, fleet.machines, writers, network, disk)
    return _saved(job, fleet, "object_store", Times(written, upload, restore), notice_s)


def anchor(job: Job, fleet: Clusters, notice_s: Floats | float) -> SavePaths:
    """Checkpoints on the local disk of one on-demand machine of the cluster.

    All shards except its own arrive through one network card and go to one disk; all of them
    leave it for each other machine.
    """
    disk = fleet.disk_bytes_per_s
    others = (fleet.machines - 1) / fleet.machines
    nic = np.where(fleet.network_bytes_per_s > 0, fleet.network_bytes_per_s, np.inf)
    rate = np.minimum(disk, np.where(others > 0, nic / np.maximum(others, 1e-9), np.inf))
    possible = disk > 0
    transfer = job.checkpoint_bytes / np.where(possible, rate, 1.0)
    back = job.checkpoint_bytes * np.maximum(
        1.0 / np.where(possible, disk, 1.0), (fleet.machines - 1.0) / nic
    )
    times = Times(transfer, np.zeros_like(transfer), back)
    found = _saved(job, fleet, "anchor", times, notice_s)
    return _only(found, possible)


def memory_tier(
    job: Job,
    fleet: Clusters,
    notice_s: Floats | float,
    receiver: Receiver,
    count: Floats | int,
    transfer: Transfer,
) -> SavePaths:
    """Checkpoints in the memory of `count` on-demand CPU machines, flushed to a bucket.

    Every receiver holds two buffers of its shard. More trainers per receiver than DeepVM's fan-in
    limit are not allowed (incast: one receiver took 5 times as long as two).
    """
    receivers = np.broadcast_to(np.asarray(count, dtype=np.float64), fleet.machines.shape)
    nic = np.where(fleet.network_bytes_per_s > 0, fleet.network_bytes_per_s, 0.0)
    narrow = np.minimum(nic, receiver.network_bytes_per_s)
    most = np.interp(narrow / GBIT, FAN_IN_GBIT, FAN_IN)
    held = TIER_BUFFERS * job.checkpoint_bytes / receivers
    possible = (nic > 0) & (fleet.machines <= receivers * most) & (held <= receiver.memory_bytes)
    rate = np.minimum(fleet.machines * nic, receivers * receiver.network_bytes_per_s)
    sent = job.checkpoint_bytes / np.where(possible, rate, 1.0)
    each = np.minimum(
        network_share(np.asarray(receiver.network_bytes_per_s)), transfer.upload_bytes_per_s
    )
    flush = job.checkpoint_bytes / np.minimum(each * receivers, BUCKET_BYTES_PER_S)
    times = Times(sent, np.zeros_like(sent), fleet.machines * sent)  # all of it, to each machine
    found = _saved(job, fleet, "memory_tier", times, notice_s)
    # A checkpoint is safe in the tier; the next one waits until this one is in the bucket.
    least = np.maximum(found.interval_min_s, flush - (0.0 if job.asynchronous_save else sent))
    return _only(replace(found, interval_min_s=least), possible)


def none(fleet: Clusters) -> SavePaths:
    """No checkpoints: an interruption loses all work."""
    zero = np.zeros_like(fleet.machines)
    never, possible = np.full_like(zero, np.inf), np.ones_like(zero, dtype=bool)
    return SavePaths("none", zero, zero, zero, never, zero, zero, possible)


def best_interval(
    run_mean_s: Floats,
    run_sigma: Floats,
    changeover_s: Floats,
    stall_s: Floats,
    transfer_s: Floats,
    notice_saves: Floats,
) -> Floats:
    """The common checkpoint interval with the most progress per run.

    All (clusters,), seconds; runs X are of the shipped family with mean `run_mean_s`. Maximises
    a(τ) = p·E[(X-d)+]·τ/(τ+C) + (1-p)·τ·Σ_{j≥1} P(X > d + j(τ+C)), where p is the chance that the
    notice saves the work, over the intervals of `USUAL_S` that leave time for the transfer. The
    optimum is flat and close to Daly's (J. T. Daly, Future Generation Computer Systems 22, 2006).
    If a transfer is longer than all of them, whole hours are used.
    """
    gained = _gained(run_mean_s, run_sigma, changeover_s, stall_s, transfer_s, notice_saves)
    best: Floats = USUAL_S[gained.argmax(axis=-1)]
    hours = np.ceil(np.maximum(transfer_s, USUAL_S[-1]) / 3600.0) * 3600.0
    beyond = ~np.isfinite(gained).any(axis=-1)
    return np.where(beyond, hours, best)


def as_good_intervals(
    run_mean_s: Floats,
    run_sigma: Floats,
    changeover_s: Floats,
    stall_s: Floats,
    transfer_s: Floats,
    notice_saves: Floats,
) -> tuple[float, float]:
    """The shortest and the longest common interval of a cluster with equal progress."""
    law = (run_mean_s, run_sigma, changeover_s, stall_s, transfer_s, notice_saves)
    gained = _gained(*law)[0]
    if not np.isfinite(gained).any():
        only = float(best_interval(*law)[0])
        return only, only
    as_good = USUAL_S[gained >= (1.0 - AS_GOOD) * gained.max()]
    return float(as_good[0]), float(as_good[-1])


def crash_save_interval_s(
    job: Job, machines: int, gpus: int, work_s: float, transfer: Transfer
) -> float:
    """The interval of a plan that counts on no checkpoints: for crashes, at next to no cost.

    The longest of the usual ones up to an hour and a tenth of the job. Where its saves would stop
    the training for more than 0.5 % of the time, a longer one, from a quarter of the job on the
    next; never one shorter than an upload.
    """
    copy_s = job.checkpoint_bytes / (gpus * HOST_BYTES_PER_S)
    written_s = job.checkpoint_bytes / (machines * VOLUME_BYTES_PER_S)
    stall_s = copy_s if job.asynchronous_save else copy_s + written_s
    most_s = max(min(INSURED_S, INSURED_SHARE * work_s), USUAL_S[0])
    longest_s = USUAL_S[np.searchsorted(USUAL_S, most_s, side="right") - 1]
    cheap_s = min(stall_s / INSURANCE_STALL, LARGE_INSURED_SHARE * work_s)
    kept_s = least_interval_s(job, machines, transfer)
    return usual_at_least(max(longest_s, cheap_s, kept_s), USUAL_S)


def least_interval_s(job: Job, machines: int, transfer: Transfer) -> float:
    """The shortest interval that machines of which nothing is known can keep, by a bucket."""
    writers = np.array(1.0 if job.writer == "chief" else machines)
    network, disk = np.array(UNKNOWN_NIC_BYTES_PER_S), np.array(VOLUME_BYTES_PER_S)
    upload = transfer.upload_s(job.checkpoint_bytes, writers, network, disk)
    written = job.checkpoint_bytes / (writers * VOLUME_BYTES_PER_S)
    return float(upload + (written if job.asynchronous_save else 0.0))


def _gained(
    run_mean_s: Floats,
    run_sigma: Floats,
    changeover_s: Floats,
    stall_s: Floats,
    transfer_s: Floats,
    notice_saves: Floats,
) -> Floats:
    """Progress per run at each usual interval, minus infinity at those that are too short."""
    law = np.broadcast_arrays(run_mean_s, run_sigma, changeover_s, stall_s, notice_saves)
    mean, sigma, away, stall, saves = (column[..., None] for column in law)
    long_enough = (transfer_s[..., None] <= USUAL_S) & np.isfinite(stall)
    stall = np.where(np.isfinite(stall), stall, 1.0)
    gained = progress(USUAL_S, mean, sigma, away, stall, saves)
    return np.where(long_enough, gained, -np.inf)


def progress(
    interval_s: Floats,
    run_mean_s: Floats,
    run_sigma: Floats,
    changeover_s: Floats,
    stall_s: Floats,
    notice_saves: Floats,
) -> Floats:
    """Mean useful seconds of one run of spot capacity; arguments broadcast.

    The first `EXACT` intervals are summed one by one, the others by the midpoint rule, whose
    integral is the family's `excess`.
    """
    step, away, mean, sigma = np.broadcast_arrays(
        interval_s + stall_s, changeover_s, run_mean_s, run_sigma
    )
    ends = away + np.multiply.outer(np.arange(1, EXACT + 1), step)
    kept = RUN_FAMILY.survival(ends, mean, sigma).sum(axis=0)
    beyond = np.stack([away + (EXACT + 0.5) * step, away])
    rest, covered = RUN_FAMILY.excess(beyond, mean, sigma) / step
    found: Floats = interval_s * ((1.0 - notice_saves) * (kept + rest) + notice_saves * covered)
    return found


@dataclass(frozen=True, slots=True)
class Times:
    """What one save takes after the copy to the host; (clusters,), seconds."""

    written: Floats  # by the training itself
    upload: Floats  # behind it
    restore: Floats


def _saved(
    job: Job, fleet: Clusters, path: str, times: Times, notice_s: Floats | float
) -> SavePaths:
    """Stall, lag and notice of a path: asynchronous saves stop for the copy only."""
    host = fleet.host_bytes_per_s
    if job.writer == "chief":
        host = host / fleet.gpus
    copy = job.checkpoint_bytes / np.where(host > 0, host, np.inf)
    behind = times.written if job.asynchronous_save else np.zeros_like(times.written)
    whole = copy + times.written + times.upload
    fits = whole <= NOTICE_SHARE * np.asarray(notice_s, dtype=np.float64)
    return SavePaths(
        path=path,
        stall_s=copy + times.written - behind,
        transfer_s=times.written,
        lag_s=behind + times.upload,
        interval_min_s=behind + times.upload,
        restore_s=times.restore + copy,
        notice_saves=np.where(fits, NOTICE_CHANCE, 0.0),
        possible=np.ones_like(fleet.machines, dtype=bool),
    )


def _only(found: SavePaths, possible: Bools) -> SavePaths:
    """Infinite times where a path is not possible."""
    times = ("stall_s", "transfer_s", "lag_s", "interval_min_s", "restore_s")
    never: dict[str, Any] = {n: np.where(possible, getattr(found, n), np.inf) for n in times}
    saves = np.where(possible, found.notice_saves, 0.0)
    return replace(found, notice_saves=saves, possible=possible, **never)
