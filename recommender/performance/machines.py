"""Properties of machines for a job: speed, memory, network, input, disks, and their uncertainty."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from recommender.arrays import Z_90, Floats
from recommender.catalogs.registry import is_confidential
from recommender.catalogs.schema import Achieved, Gpu, InstanceType, OwnMachine
from recommender.job.job import Job
from recommender.performance.checkpoint import VOLUME_BYTES_PER_S, object_store_rate
from recommender.performance.clusters import MachineColumns, link_gpus, widened, widened_at_most
from recommender.performance.gpu_speed import precision_on, scaled_speed, speed_sd
from recommender.performance.measured import timed_elsewhere, with_readings
from recommender.performance.parameter_server import load_constants, placement_sd
from recommender.performance.priors import (
    load_gpu_factors,
    prior_of,
)
from recommender.performance.speed_spread import (
    with_job_spread,
)

MIB = 2.0**20
USABLE = 0.92  # of device memory: what a plan fills at most (`memory.fits`)
GBIT = 1e9 / 8
TCP_SHARE = 0.85  # of the baseline rate, NCCL: allreduce.md, BinhangYuan/tc_cluster_setting (2022)
TCP_LATENCY_S = 5e-4  # per doubling of machines; fitted on the same
RDMA_LATENCY_S = 1e-4  # 70 us (p5) to 160 us (p4de), nccl-tests as below
# Half-performance message by listed rate of the machine, from all-reduce at 16 MiB and at large
# messages on p4de (400 Gb/s) and p5 (3,200): micro-benchmarks/nccl-tests, awslabs/
# awsome-distributed-training (2026-05), and p6-b200 (3,200, twice per GPU): network/README.md,
# stas00/ml-engineering (2026-08).
RDMA_HALF_GBIT = (100.0, 400.0, 3200.0, 6400.0)
RDMA_HALF_MIB = (20.0, 32.0, 58.0, 79.0)
# Sd of ln (told / published) of steps with rollouts, about their mean: verl's three on H20 (its
# docs/advance/fully_async.md), SimpleRL-Zoo and DeepScaleR (docs/models.md, "Post-training").
GENERATION_SD = 0.5
# Share of its training throughput that a GPU keeps in confidential mode: 18 to 32 % were lost on
# Hopper and Blackwell under Intel TDX (NeMo AutoModel; Tinfoil, "How does NVIDIA Confidential
# Computing impact inference and training performance?", 2026-06-23). The ends hold 90 %.
CONFIDENTIAL = (1.0 - 0.32, 1.0 - 0.18)


def machine_columns(
    job: Job,
    types: Sequence[InstanceType],
    gpus: Mapping[str, Gpu],
    achieved: Mapping[tuple[str, str], Achieved],
    known: Iterable[InstanceType] = (),
) -> MachineColumns:
    """The properties of a machine of each type for the job; every array has shape (types,).

    A type that cannot run the job has a reason, and no compute and no memory. Speeds come from the
    family's constants, the job's calibration or its own timings, the last one available. A timing
    on a GPU that no type has counts by one of the `known` types.
    """
    elsewhere = timed_elsewhere(job, types, known)
    found = _columns(job, (*types, *elsewhere), gpus, achieved)
    return found.first(len(types)) if elsewhere else found


def _columns(
    job: Job,
    types: Sequence[InstanceType],
    gpus: Mapping[str, Gpu],
    achieved: Mapping[tuple[str, str], Achieved],
) -> MachineColumns:
    """The columns of types with those of their timings that are on their GPUs."""
    prior, factors = prior_of(job), load_gpu_factors()
    names = {t.gpu for t in types}
    speeds = {name: scaled_speed(job, name, gpus, achieved, factors) for name in names}
    reasons = tuple(_reason(job, t, gpus, achieved, speeds[t.gpu].rate) for t in types)
    able = np.array([not reason for reason in reasons])
    count = _column(t.gpus for t in types)
    network = np.array([network_of(t) for t in types]).reshape(-1, 3)
    served = job.sync == "parameter_server"
    of_gpu = _column(speed_sd(job, prior, t.gpu, gpus, achieved) for t in types)
    kept, kept_sd = _kept(types)
    of_gpu = np.hypot(np.hypot(of_gpu, kept_sd), _column(speeds[t.gpu].apart for t in types))
    columns = MachineColumns(
        names=tuple(f"{t.provider}/{t.instance_type}" for t in types),
        gpus=count,
        compute_per_s=np.where(
            able, count * kept * _column(speeds[t.gpu].rate for t in types), 0.0
        ),
        memory_bytes=np.where(able, _column(t.gpu_memory_mib * MIB * USABLE for t in types), 0.0),
        device_bytes_per_s=_column(_share(t) * _device_bytes_per_s(gpus.get(t.gpu)) for t in types),
        network_bytes_per_s=network[:, 0],
        network_half_bytes=network[:, 1],
        network_latency_s=network[:, 2],
        intra_bytes_per_s=_column(_intra(t) for t in types),
        link_gpus=_column(link_gpus(t.gpu, t.gpus) for t in types),
        prepare_per_s=_column(_prepare(job, t) for t in types),
        fetch_per_s=_column(_fetch(job, t) for t in types),
        host_bytes_per_s=_column(t.host_gb_per_s * 1e9 * t.gpus for t in types),
        disk_bytes_per_s=_column(disk_bytes_per_s(t) for t in types),
        memory_bytes_per_s=_column(
            _share(t) * gpus[t.gpu].memory_gb_per_s * 1e9 if t.gpu in gpus else 0.0 for t in types
        ),
        speed_sigma=np.hypot(prior.sigma_one, of_gpu),
        speed_sigma_several=np.hypot(prior.sigma_several, of_gpu),
        reasons=reasons,
        service_sigma=np.full(len(types), load_constants().service_sd) if served else None,
        placement_sigma=np.full(len(types), placement_sd(job.parameter_servers))
        if served
        else None,
        own_speeds=tuple((name, speed.own) for name, speed in speeds.items() if speed.own),
    )
    gpu_of, free = tuple(t.gpu for t in types), columns
    if job.calibration is not None:
        from recommender.performance.calibration import with_calibration  # most jobs have none

        columns = with_calibration(job, columns, gpu_of)
    scores = kept * _column(speeds[gpu].score for gpu in gpu_of)
    doubts = _column(speeds[gpu].doubt for gpu in gpu_of)
    read = with_readings(job, columns, gpu_of, scores, doubts)
    if job.carried is not None:
        read = widened_at_most(read, job.carried.sd, free)
    if job.completion_tokens and not job.timings and job.calibration is None:
        read = widened(read, GENERATION_SD)
    return with_job_spread(job, read)


def _kept(types: Sequence[InstanceType]) -> tuple[Floats, Floats]:
    """What confidential VMs and slices keep of a GPU's speed, and the sd of its ln; (types,)."""
    low, high = CONFIDENTIAL
    locked = np.array([is_confidential(t.provider, t.instance_type) for t in types], dtype=np.bool_)
    sd = math.log(high / low) / (2.0 * Z_90)
    kept = _column(_share(t) for t in types) * np.where(locked, math.sqrt(low * high), 1.0)
    return kept, np.where(locked, sd, 0.0)


def _share(t: InstanceType) -> float:
    """The share of a GPU that each "GPU" of a machine is: less than 1 for a slice."""
    return t.gpu_share if isinstance(t, OwnMachine) else 1.0


def _reason(
    job: Job,
    machine: InstanceType,
    gpus: Mapping[str, Gpu],
    achieved: Mapping[tuple[str, str], Achieved],
    speed: float,
) -> str:
    """Why a type cannot run the job at all; "" where it can."""
    if machine.gpu == "" or machine.gpus < 1:
        return f"{machine.instance_type} has no GPU"
    gpu = gpus.get(machine.gpu)
    if gpu is None:
        return f"nothing is known of the GPU {machine.gpu}"
    precision = precision_on(job.precision, gpu)
    if not precision:
        wanted = "16-bit arithmetic" if job.precision == "mixed" else job.precision
        return f"{machine.gpu} has no {wanted}"
    if speed <= 0:
        return f"no {precision} matrix-multiplication rate is known for {machine.gpu}"
    return ""


def network_of(machine: InstanceType) -> tuple[float, float, float]:
    """Sustained bytes/s, half-rate message and latency; 0 bytes/s if unknown.

    RDMA reaches its listed rate only with large messages, TCP 0.85 of the baseline at any size.
    """
    gbit = machine.network_gbit_per_s
    if not gbit:
        return 0.0, 0.0, 0.0
    if machine.network_kind == "rdma":
        half = float(np.interp(gbit, RDMA_HALF_GBIT, RDMA_HALF_MIB)) * MIB
        return gbit * GBIT, half, RDMA_LATENCY_S
    return TCP_SHARE * gbit * GBIT, 0.0, TCP_LATENCY_S


def listed_gbit(machine: InstanceType, bytes_per_s: float) -> float:
    """The catalog's sustained Gbit/s of a machine that was measured at so many bytes/s."""
    share = 1.0 if machine.network_kind == "rdma" else TCP_SHARE
    return bytes_per_s / (share * GBIT)


def _device_bytes_per_s(gpu: Gpu | None) -> float:
    return gpu.memory_gb_per_s * 1e9 if gpu else float("inf")


def _intra(machine: InstanceType) -> float:
    """Bytes/s of the links between a machine's GPUs, per GPU; inf for one GPU."""
    if machine.gpus <= 1:
        return float("inf")
    # 10 GB/s: L4 and other PCIe GPUs without peer access copy through the host (L4: 10)
    return (machine.intra_gb_per_s or 10.0) * 1e9


def part_links(
    types: Sequence[InstanceType], known: Iterable[InstanceType]
) -> tuple[tuple[str, int, float], ...]:
    """Link rates of some of a machine's GPUs, from machines with that number of the GPU.

    A bridged pair of A100 PCIe reaches 193 GB/s and four of them 25 (Azure's health checks,
    2026-05), a pair of V100 36 and eight 130, so two of four must not be treated as four. Among
    machines with as many GPUs, or the next larger number, the provider's own is preferred.
    """
    found = []
    for machine in types:
        alike = [k for k in known if k.gpu == machine.gpu and 1 < k.gpus < machine.gpus]
        alike.sort(key=lambda k: (k.gpus, k.provider != machine.provider, k.instance_type))
        for gpus in range(2, machine.gpus):
            like = next((k for k in alike if k.gpus >= gpus and k.intra_gb_per_s), None)
            if like is not None:
                name = f"{machine.provider}/{machine.instance_type}"
                found.append((name, gpus, _intra(like) / _intra(machine)))
    return tuple(found)


def _prepare(job: Job, machine: InstanceType) -> float:
    """Samples/s that the vCPUs decode."""
    cost = job.data.cpu_s_per_sample
    return machine.vcpus / cost if cost > 0 else float("inf")


def disk_bytes_per_s(machine: InstanceType) -> float:
    """Bytes/s of a machine's local disk, or of its network volume without one."""
    return machine.local_disk_mb_per_s * 1e6 or VOLUME_BYTES_PER_S


def _fetch(job: Job, machine: InstanceType) -> float:
    """Samples/s that reach the machine: from the object store, or from its disk if staged."""
    size = job.data.bytes_per_sample
    if size <= 0:
        return float("inf")
    if job.data.read == "stage":
        return disk_bytes_per_s(machine) / size
    return float(object_store_rate(np.array([network_of(machine)[0]]))[0]) / size


def _column(values: object) -> Floats:
    return np.array(list(values), dtype=np.float64)  # type: ignore[call-overload]
