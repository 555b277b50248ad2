"""Small jobs, GPUs, machines and fleets that the tests of this folder share."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from recommender.catalogs.schema import Achieved, Gpu, InstanceType
from recommender.job.job import Job
from recommender.performance.clusters import Clusters, MachineColumns, clusters_of
from recommender.performance.machines import machine_columns

_GPUS = (  # name, MiB, GB/s, peaks fp32 tf32 fp16 bf16, achieved fp32 tf32 fp16 bf16
    ("H100", 81559, 3350.0, (67.0, 494.5, 989.0, 989.0), (60.3, 373.0, 762.2, 762.2)),
    ("A100-80GB", 81920, 2039.0, (19.5, 156.0, 312.0, 312.0), (17.6, 123.0, 230.0, 270.6)),
    ("A10G", 23028, 600.0, (35.0, 35.0, 70.0, 70.0), (31.5, 28.0, 56.0, 56.0)),
    ("L4", 23034, 300.0, (30.3, 60.0, 121.0, 121.0), (16.7, 36.0, 72.6, 72.6)),
    ("V100", 16160, 900.0, (15.7, None, 125.0, None), (14.0, None, 97.8, None)),
    ("T4", 15360, 320.0, (8.1, None, 65.0, None), (3.9, None, 39.1, None)),
    ("K80", 11441, 240.6, (4.1, None, None, None), (3.7, None, None, None)),
)
_FORMATS = ("fp32", "tf32", "fp16", "bf16")
GPUS = {
    name: Gpu(name, "nvidia", mib, bandwidth, *peaks, None, 300, 2020, "quote", 1, "2026-08")
    for name, mib, bandwidth, peaks, _ in _GPUS
}
ACHIEVED = {
    (name, precision): Achieved(name, precision, rate, rate, rate, "measured", 1, "2026-08")
    for name, *_, rates in _GPUS
    for precision, rate in zip(_FORMATS, rates, strict=True)
    if rate is not None
}


def machine(name: str, gpu: str, gpus: int, **changes: Any) -> InstanceType:
    """An instance type; 100 Gbit/s over TCP and eight vCPUs per GPU unless changed."""
    facts: dict[str, Any] = {
        "provider": "aws",
        "instance_type": name,
        "family": name.split(".")[0],
        "gpu": gpu,
        "gpus": gpus,
        "gpu_memory_mib": GPUS[gpu].memory_mib if gpu else 0,
        "vcpus": 8 * max(gpus, 1),
        "memory_gib": 64.0,
        "arch": "x86_64",
        "network_gbit_per_s": 100.0,
        "network_peak_gbit_per_s": 100.0,
        "network_kind": "tcp",
        "network_basis": "listed",
        "intra_kind": "nvswitch" if gpus > 1 else "",
        "intra_gb_per_s": 235.0 if gpus > 1 else None,
        "host_gb_per_s": 25.0,
        "local_disk_gib": 1000.0,
        "local_disk_mb_per_s": 2000.0,
        "quota_family": "p",
        "status": "open",
        "kind": "quote",
        "source": 1,
        "as_of": "2026-08",
    }
    return InstanceType(**(facts | changes))


P5 = machine(
    "p5.48xlarge", "H100", 8, network_gbit_per_s=3200.0, network_kind="rdma", intra_gb_per_s=440.0
)
P4DE = machine("p4de.24xlarge", "A100-80GB", 8, network_gbit_per_s=400.0, network_kind="rdma")
G6 = machine("g6.xlarge", "L4", 1, network_gbit_per_s=2.5)
G6X8 = machine("g6.48xlarge", "L4", 8, intra_gb_per_s=10.0)
G5X8 = machine("g5.48xlarge", "A10G", 8, intra_gb_per_s=10.0)
G4DN = machine("g4dn.xlarge", "T4", 1, network_gbit_per_s=5.0)
P3 = machine("p3.2xlarge", "V100", 1, network_gbit_per_s=2.5)
K80 = machine("n1-standard-8+1xK80", "K80", 1, network_gbit_per_s=16.0)
TYPES = (P5, P4DE, G6, G6X8, G5X8, G4DN, P3)


def llama(**changes: Any) -> Job:
    """Llama 3.1 8B at sequences of 8,192, full training in bf16."""
    width, layers, tokens = 4096, 32, 8192
    facts: dict[str, Any] = {
        "name": "llama",
        "title": "Llama 3.1 8B",
        "family": "decoder",
        "parameters": 8.03e9,
        "active_parameters": 8.03e9,
        "trainable_parameters": 8.03e9,
        "sample_unit": "sequence",
        "tokens_per_sample": tokens,
        "flop_per_sample": 6 * 7.505e9 * tokens + 6 * width * layers * tokens**2,
        "samples": 122_000.0,
        "global_batch": 512,
        "gradient_tensors": 291,
        "hidden": width,
        "heads": 32.0,
        "layers": layers,
        "vocabulary": 128_256,
        "activation_bytes_per_sample": 34.0 * tokens * width * layers,
        "recomputed_activation_bytes_per_sample": 2.0 * tokens * width * layers
        + 34.0 * tokens * width,
        "layer_bytes_per_sample": 34.0 * tokens * width,
        "checkpoint_bytes": 112e9,
    }
    return Job(**(facts | changes))


def resnet(**changes: Any) -> Job:
    """ResNet-50 on ImageNet."""
    facts: dict[str, Any] = {
        "name": "resnet",
        "title": "ResNet-50",
        "family": "cnn",
        "parameters": 25.56e6,
        "active_parameters": 25.56e6,
        "trainable_parameters": 25.56e6,
        "sample_unit": "image",
        "tokens_per_sample": 1,
        "flop_per_sample": 24.535e9,
        "samples": 1e8,
        "global_batch": 2048,
        "gradient_tensors": 161,
        "hidden": 0,
        "layers": 0,
        "vocabulary": 0,
        "activation_bytes_per_sample": 5e7,
        "recomputed_activation_bytes_per_sample": 1e7,
        "checkpoint_bytes": 2e8,
        "optimizer": "sgd",
    }
    return Job(**(facts | changes))


def columns(job: Job, types: Sequence[InstanceType] = TYPES) -> MachineColumns:
    """What the machines bring to the job."""
    return machine_columns(job, types, GPUS, ACHIEVED)


def clusters(found: MachineColumns, *counts: dict[int, int]) -> Clusters:
    """Clusters from {row of the type: machines}."""
    table = np.zeros((len(counts), len(found.names)), dtype=np.int64)
    for row, chosen in enumerate(counts):
        for kind, count in chosen.items():
            table[row, kind] = count
    return clusters_of(found, table)
