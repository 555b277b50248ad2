"""How checkpoints get into a bucket and back: the tool of each cloud, and what it reaches.

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
from functools import cache
from importlib.resources import files

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.frozen import dataclass

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
