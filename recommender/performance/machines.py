"""Properties of machines for a job: speed, memory, network, input, disks, and their uncertainty."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from recommender.arrays import Z_90, Floats
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import is_confidential
from recommender.catalogs.schema import Achieved, Gpu, InstanceType, OwnMachine, OwnSpeed
from recommender.job.job import LOW_PRECISIONS, Job, Precision
from recommender.performance.attention import (
    attention_flop,
    extra_attention_s,
    long_attention_flop,
)
from recommender.performance.checkpoint_transfer import VOLUME_BYTES_PER_S, object_store_rate
from recommender.performance.clusters import MachineColumns, widened, widened_at_most
from recommender.performance.generations import faster_siblings, siblings
from recommender.performance.job_spread import with_job_spread
from recommender.performance.link_domain import link_gpus
from recommender.performance.low_precision import FP8, runs_in, trained_rate, wide_row
from recommender.performance.measured import timed_elsewhere, with_readings
from recommender.performance.parameter_server import load_constants, placement_sd
from recommender.performance.priors import (
    Prior,
    gpus_with_runs,
    kind_of,
    load_gpu_factors,
    number_format,
    prior_of,
    recipe_share,
)
from recommender.performance.speed_evidence import has_runs, speed_evidence

# Sd of ln speed between machines and library versions of one GPU. Stated, not fitted: boards of
# one H100 fleet differ by 3 % at 95 % (2025), cuBLAS releases by a few per cent.
BETWEEN_MACHINES = 0.05
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


def adapted(factor: float, ratio: float, shipped: Achieved) -> tuple[float, float]:
    """The GPU factor to use with a user's own rate, and the sd of its ln.

    The factor was fitted on trainings together with the shipped speed, so it contains the error of
    that speed, which the user's own speed already corrects. Of ln ratio (the rate with the user's
    figures over the rate with the shipped ones), the share w is the error of the shipped figure and
    is taken out of the factor; 1 - w is specific to the user's machine and stays in the rate:

        factor' = factor · ratio^-w,    w = e² / (e² + u²)

    e is the sd of the shipped ln speed by its range, u the sd between machines with the same GPU.
    Which one it was is not known: sd = |ln ratio| · sqrt(w · (1 - w)), that of a coin that gives
    the shipped figure with probability w.
    """
    error = math.log(shipped.high_tflops / shipped.low_tflops) / (2.0 * Z_90)
    share = error**2 / (error**2 + BETWEEN_MACHINES**2)
    apart = math.log(ratio)
    return factor * math.exp(-share * apart), abs(apart) * math.sqrt(share * (1.0 - share))


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
    of_gpu = _column(_gpu_sd(job, prior, t.gpu, gpus, achieved) for t in types)
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


def precision_on(wanted: Precision, gpu: Gpu) -> str:
    """The number format in which a job trains on a GPU; "" if the GPU lacks it.

    `mixed` is bf16 if the GPU has it, otherwise fp16; `tf32` allows tf32 and is fp32 on GPUs
    without it; `bf16`, `fp16` and 8 and 4 bits are never emulated, and `fp32` is never rounded to
    tf32. Formats of 8 and 4 bits are returned as "fp8", from whose rate theirs are derived.
    """
    if wanted in LOW_PRECISIONS:
        return FP8 if gpu.peak_fp8_tflops and runs_in(wanted, gpu.gpu) else ""
    peaks = {
        "bf16": gpu.peak_bf16_tflops,
        "fp16": gpu.peak_fp16_tflops,
        "tf32": gpu.peak_tf32_tflops,
        "fp32": gpu.peak_fp32_tflops,
    }
    choices = {"mixed": ("bf16", "fp16"), "tf32": ("tf32", "fp32")}.get(wanted, (wanted,))
    return next((name for name in choices if peaks[name]), "")


@dataclass(frozen=True, slots=True)
class GpuSpeed:
    """Samples/s of one GPU at large batches, and its factor relative to other GPUs."""

    rate: float
    score: float  # the rate times what other networks showed the formula to miss on this GPU
    doubt: float = 0.0  # sd of ln score, from a speed of the user's besides the shipped one
    own: str = ""  # the user's figures in it
    apart: float = 0.0  # sd of ln rate, where the software is not stated


def gpu_speed(
    job: Job,
    prior: Prior,
    name: str,
    gpus: Mapping[str, Gpu],
    achieved: Mapping[tuple[str, str], Achieved],
    factors: Mapping[tuple[str, str, str], float],
) -> GpuSpeed:
    """The speed of a GPU by the formulas; zero if it cannot run the job.

    1/rate = F·(1/(ε·A) + s/(I·BW)): A achieved FLOP/s, BW memory bytes/s, s = 2 in 32 bit. The
    factor of the GPU is 1 if unknown (docs/research/fits.md, "A timing on one GPU"); with the
    user's own speed it is adapted (`adapted`).
    """
    gpu = gpus.get(name)
    precision = precision_on(job.precision, gpu) if gpu else ""
    row = achieved.get((name, precision))
    if gpu is None or row is None or row.tflops <= 0:
        return GpuSpeed(0.0, 0.0)
    scores = None
    if precision == FP8:
        wide = wide_row(achieved, name)
        row = trained_rate(prior, job.precision, row, wide)
        scores = wide.tflops * 1e12 if wide else None
    key = name, number_format(precision), kind_of(prior.family)
    shipped, factor = gpu.memory_gb_per_s * 1e9, factors.get(key, 1.0)
    if not isinstance(row, OwnSpeed):
        rate = sample_rate(job, prior, precision, row.tflops * 1e12, shipped, scores)
        return GpuSpeed(rate * _expected(prior, key, factors), rate * factor)
    memory = row.memory_gb_per_s * 1e9 if row.memory_gb_per_s else shipped
    rate = sample_rate(job, prior, precision, row.tflops * 1e12, memory, scores)
    named = f"{row.tflops:.4g} TFLOP/s {memory / 1e9:.4g} GB/s"
    if row.shipped is None or key not in gpus_with_runs():
        return GpuSpeed(rate, rate * factor, own=named)
    fitted = sample_rate(job, prior, precision, row.shipped.tflops * 1e12, shipped, scores)
    own, doubt = adapted(factor, rate / fitted, row.shipped)
    return GpuSpeed(rate * (own if prior.by_gpu else 1.0), rate * own, doubt, named)


def _expected(
    prior: Prior, key: tuple[str, str, str], factors: Mapping[tuple[str, str, str], float]
) -> float:
    """What to expect of the formulas on a GPU: what they missed on it with other networks.

    Or, without runs on it, by the trend over GPUs. Only typical scripts: the newest GPUs, which
    look best on paper, are the ones they flatter (B200 0.60 to 0.68, H100 0.88 to 0.91). Constants
    that were fitted with these factors are used with them. Others include what the formulas miss on
    the GPUs of their runs; elsewhere, only the difference from those of the same architecture
    remains. Without runs of the family downwards only: nobody rents a GPU for being better than its
    datasheet.
    """
    name, precision, kind = key
    if prior.stack != "typical":
        return 1.0
    factor = factors.get(key, 1.0)
    if name in prior.gpus:
        return factor if prior.by_gpu else 1.0
    seen = frozenset() if prior.by_gpu else siblings(name) & set(prior.gpus)
    alike = [factors.get((other, precision, kind), 1.0) for other in sorted(seen)]
    included = math.exp(sum(map(math.log, alike)) / len(alike)) if alike else 1.0
    return min(factor / included, 1.0)


def bounded_speed(
    job: Job,
    prior: Prior,
    name: str,
    gpus: Mapping[str, Gpu],
    achieved: Mapping[tuple[str, str], Achieved],
    factors: Mapping[tuple[str, str, str], float],
) -> GpuSpeed:
    """The speed of a GPU; without trainings on it, at most that of a faster, timed sibling."""
    found = gpu_speed(job, prior, name, gpus, achieved, factors)
    gpu = gpus.get(name)
    precision = precision_on(job.precision, gpu) if gpu else ""
    if found.own or not precision or has_runs(name, precision, prior):
        return found
    measured = [other for other in gpus if has_runs(other, precision, prior)]
    for other in faster_siblings(name, precision, gpus, measured):
        most = gpu_speed(job, prior, other, gpus, achieved, factors)
        if most.rate > 0.0 and not most.own:
            found = replace(
                found, rate=min(found.rate, most.rate), score=min(found.score, most.score)
            )
    return found


def scaled_speed(
    job: Job,
    name: str,
    gpus: Mapping[str, Gpu],
    achieved: Mapping[tuple[str, str], Achieved],
    factors: Mapping[tuple[str, str, str], float],
) -> GpuSpeed:
    """The speed of a GPU; of software that is not stated, on the scale from scripts to recipes.

    In ln, recipes are D faster, of this network at this precision on this GPU. A share x of what
    people run is taken to be one and the rest the other: x·D in the mean, with the sd
    D·sqrt(x·(1 - x)).
    """
    share = recipe_share(job)
    if not share:
        return bounded_speed(job, prior_of(job), name, gpus, achieved, factors)
    script, recipe = (
        bounded_speed(each, prior_of(each), name, gpus, achieved, factors)
        for each in (job.as_script, job.as_recipe)
    )
    if not (script.rate > 0.0 and recipe.rate > 0.0):
        return script
    return replace(
        script,
        rate=script.rate ** (1.0 - share) * recipe.rate**share,
        score=script.score ** (1.0 - share) * recipe.score**share,
        apart=abs(math.log(recipe.rate / script.rate)) * math.sqrt(share * (1.0 - share)),
    )


def _gpu_sd(
    job: Job,
    prior: Prior,
    name: str,
    gpus: Mapping[str, Gpu],
    achieved: Mapping[tuple[str, str], Achieved],
) -> float:
    """What a GPU adds to the spread of its family: its matrix rate, and whether it was seen.

    Also how many bytes the network moves on it.
    """
    gpu = gpus.get(name)
    precision = precision_on(job.precision, gpu) if gpu else ""
    row = achieved.get((name, precision))
    known = speed_evidence(prior, name, precision, row).sd
    if gpu is None or row is None or row.tflops <= 0 or job.family != "cnn":
        return known
    memory = gpu.memory_gb_per_s * 1e9
    computed, moved = _seconds_per_flop(job, prior, precision, row.tflops * 1e12, memory)
    return math.hypot(known, bytes_sd(job.intensity_ratio, moved / (moved + computed)))


def bytes_sd(ratio: float, share: float) -> float:
    """Sd of ln speed because a network's bytes are not those of the networks of the fits.

    A convolutional network's FLOP per byte count with the exponent 1/2 (`derive.intensity_ratio`),
    but those that were tried do best with 0 (3D U-Net, ResNet-152) to 1 (RetinaNet):
    docs/research/fits.md, "Later runs". Half more or less of the exponent changes the moved bytes,
    a share of the time, by the ratio itself.
    """
    return share * abs(math.log(ratio))


def sample_rate(
    job: Job,
    prior: Prior,
    precision: str,
    matmul: float,
    memory: float,
    scores: float | None = None,
) -> float:
    """Samples/s at large batches of a GPU with `matmul` FLOP/s and `memory` bytes/s.

    `scores` are the FLOP/s of attention if it uses more bits than the layers.
    """
    computed, moved = _seconds_per_flop(job, prior, precision, matmul, memory)
    per_flop = computed + moved
    per_score = computed * matmul / (scores or matmul) + moved
    attention = min(attention_flop(job), job.flop_per_sample)
    arithmetic = (job.flop_per_sample - attention) * per_flop
    arithmetic += (attention + long_attention_flop(job)) * per_score
    return 1.0 / (arithmetic + extra_attention_s(job, _wide(precision), per_flop, memory))


def _seconds_per_flop(
    job: Job, prior: Prior, precision: str, matmul: float, memory: float
) -> tuple[float, float]:
    """Seconds that a FLOP takes in arithmetic, and in moving its bytes."""
    efficiency = prior.efficiency_fp32 if precision == "fp32" else prior.efficiency
    moved = _wide(precision) / (prior.intensity(job.hidden) * job.intensity_ratio * memory)
    return 1.0 / (efficiency * matmul), moved


def _wide(precision: str) -> float:
    """Bytes of a number in units of two."""
    return 2.0 if precision in ("fp32", "tf32") else 1.0


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
