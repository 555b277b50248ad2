"""Applies the user's own timings: exact for the machines they were taken on, a guide for others.

This is `measured:` in a job file and `--measured`. No constant is fitted; one number of each type
is set. `calibration.py` instead fits the constants behind the terms.
"""

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.schema import InstanceType
from recommender.job.job import Job, Timing
from recommender.performance.clusters import Clusters, MachineColumns, clusters_of
from recommender.performance.parameter_server import posterior_sds, service_of, shares_of
from recommender.performance.priors import prior_of
from recommender.performance.speed_spread import SIGMA_MEASURED, related_sd
from recommender.performance.step import terms_of

Readings = dict[int, float]  # machines -> samples/s

# Times slower than expected: rather the unit or the batch than the software. Published runs that no
# fit has seen are at most 3.5 times slower (docs/research/accuracy-later.md, 2026-11); minutes
# taken for seconds are 60, and the batch of one of sixteen GPUs is 16 times.
UNIT_ERROR = 10.0
MAX_OF_MATMUL = 1.2  # of what matrix multiplication reaches: FLOP of a sample are an estimate
REACHABLE = 0.99  # of the rate at infinite compute or network: the last per cent costs all
ROUNDS = 6  # of raising for the reading that is missed by most
POINTS = 129  # scales tried at once; four rounds narrow 1e±6 to 1e-9
FAR = 2.0  # sds of a GPU's deviation: what a timing shows beyond is the job's
SIGMA_CURVE = 0.05  # timed at several sizes: between repeated runs; assumed (2026-11)


def with_readings(
    job: Job, columns: MachineColumns, gpu_of: tuple[str, ...], scores: Floats, doubts: Floats
) -> MachineColumns:
    """Columns that reproduce the job's timings; unchanged without any.

    `gpu_of`, `scores` and `doubts` (types,): a type's GPU, its speed relative to other GPUs and the
    sd of its ln that the timed spread does not include (`gpu_speed.py`). A timed GPU gets the
    compute rate at which the model gives the measured rate; others move towards what the timing and
    their scores say, as far as it is the job's (`_kept_share`). For a type timed at several sizes,
    its network is raised until no timing is faster than the model, and `measured` states how much
    slower each one is.
    """
    timed = [t for t in job.timings if t.gpu in gpu_of]
    if not timed:
        return columns
    before = columns.speed_sigma
    columns = _by_gpu(job, columns, gpu_of, scores, doubts, timed)
    for kind, gpu in enumerate(gpu_of):
        readings = _readings(columns, kind, gpu, timed)
        if readings and columns.compute_per_s[kind] > 0:
            columns = _fit_type(job, columns, kind, readings)
            columns = _served(job, columns, kind, readings, float(before[kind]))
    return columns


def timed_elsewhere(
    job: Job, types: Iterable[InstanceType], known: Iterable[InstanceType]
) -> tuple[InstanceType, ...]:
    """Of the known types, one for each timing on a GPU that none of `types` has.

    It is the one that is most like the timed machines: what the formulas miss on it holds for the
    GPUs that may be rented.
    """
    mine = {each.gpu for each in types}
    found = {}
    for timing in (each for each in job.timings if each.gpu not in mine):
        alike = [each for each in known if each.gpu == timing.gpu]
        if alike:
            chosen = min(alike, key=lambda each: _unlike(timing, _name(each), each.gpus))
            found[_name(chosen)] = chosen
    return tuple(found[name] for name in sorted(found))


def _name(machine: InstanceType) -> str:
    return f"{machine.provider}/{machine.instance_type}"


def _unlike(timing: Timing, name: str, gpus: float) -> tuple[bool, float, str]:
    """How much a type differs from a timing's machines, least first."""
    return not _named(timing, name), abs(gpus - timing.gpus / timing.machines), name


def _by_gpu(
    job: Job,
    columns: MachineColumns,
    gpu_of: tuple[str, ...],
    scores: Floats,
    doubts: Floats,
    timed: list[Timing],
) -> MachineColumns:
    """Rescale compute: timed GPUs to their timings, the others by score."""
    names = np.array(gpu_of)
    fewest = {t.gpu: min(u.machines for u in timed if u.gpu == t.gpu) for t in timed}
    scale = {
        gpu: _mean(
            [
                _scale_of(job, columns, gpu_of, t)
                for t in timed
                if t.gpu == gpu and t.machines == machines
            ]
        )
        for gpu, machines in fewest.items()
    }
    known = np.array([gpu in scale for gpu in gpu_of])
    usable = (columns.compute_per_s > 0) & (scores > 0)
    each = columns.compute_per_s / np.maximum(columns.gpus, 1.0)  # of one GPU, by the prior
    levels = [
        np.log(factor)
        + np.mean(np.log(each[usable & (names == gpu)] / scores[usable & (names == gpu)]))
        for gpu, factor in scale.items()
        if (usable & (names == gpu)).any()
    ]
    level = float(np.exp(np.mean(levels))) if levels else 1.0
    # Networks left out: 8.5 % in the median; docs/research/accuracy-training.md
    base = [float(doubts[names == gpu][0]) for gpu in scale]
    doubt = np.hypot(doubts, np.linalg.norm(base) / len(base))
    apart = np.array([related_sd(gpu, scale) for gpu in gpu_of])
    related = np.hypot(np.hypot(SIGMA_MEASURED, apart), doubt)
    kept = _kept_share(columns, related)
    carried = np.log(np.where(usable, level * scores / np.where(usable, each, 1.0), 1.0))
    of_gpu = FAR * related / math.sqrt(2.0)
    carried = carried - np.clip((1.0 - kept) * carried, -of_gpu, of_gpu)
    others = np.where(usable, each * np.exp(carried) * columns.gpus, 0.0)
    own = columns.compute_per_s * np.array([scale.get(gpu, 1.0) for gpu in gpu_of])
    compute = np.where(known, own, others if levels else columns.compute_per_s)
    left = np.maximum(columns.speed_sigma, columns.speed_sigma_several) * np.sqrt(1.0 - kept**2)
    most = np.where(known, SIGMA_MEASURED, left)
    return replace(
        columns,
        compute_per_s=compute,
        speed_sigma=np.minimum(columns.speed_sigma, most),
        speed_sigma_several=np.minimum(columns.speed_sigma_several, most),
        speed_sigma_larger=tuple(
            (n, np.minimum(spread, most)) for n, spread in columns.speed_sigma_larger
        ),
    )


def _kept_share(columns: MachineColumns, related: Floats) -> Floats:
    """How much of what a timing shows on one GPU holds for the types; (types,).

    ln speed misses the prediction by what is the job's and what is the GPU's. The prediction's
    variance σ² has both, the difference between two GPUs twice the latter, so 1 - related²/(2·σ²)
    of the timing's deviation is the job's in the mean, and σ²·(1 - that²) is left.
    """
    free = np.maximum(columns.speed_sigma, columns.speed_sigma_several)
    return np.maximum(1.0 - related**2 / (2.0 * np.maximum(free, 1e-9) ** 2), 0.0)


def _scale_of(job: Job, columns: MachineColumns, gpu_of: tuple[str, ...], timing: Timing) -> float:
    """By how much a GPU's compute must be scaled to give one timing."""
    fleet = _timed_cluster(columns, gpu_of, timing)
    return 1.0 if fleet is None else _search(job, fleet, timing.samples_per_s, "compute")


def times_slower(
    job: Job, columns: MachineColumns, gpu_of: tuple[str, ...], timing: Timing
) -> float:
    """How many times slower a timing is than columns say that do not use it; nan if unknown."""
    fleet = _timed_cluster(columns, gpu_of, timing)
    rate = 0.0 if fleet is None else float(_rates(job, fleet)[0])
    return rate / timing.samples_per_s if rate > 0.0 else math.nan


def _timed_cluster(
    columns: MachineColumns, gpu_of: tuple[str, ...], timing: Timing
) -> Clusters | None:
    """The cluster of a timing, with its input ready, on the type that is most like its machines."""
    same = [i for i, gpu in enumerate(gpu_of) if gpu == timing.gpu and columns.compute_per_s[i] > 0]
    if not same:
        return None
    kind = min(same, key=lambda i: _unlike(timing, columns.names[i], float(columns.gpus[i])))
    fleet = _clusters(columns, kind, timing.machines)
    gpus = np.array([float(timing.gpus)])
    return replace(
        fleet,
        gpus=gpus,
        gpus_per_machine=gpus / timing.machines,
        compute_per_s=columns.compute_per_s[kind] / columns.gpus[kind] * gpus,
        prepare_per_s=np.array([np.inf]),
        fetch_per_s=np.array([np.inf]),
    )


def _fit_type(job: Job, columns: MachineColumns, kind: int, readings: Readings) -> MachineColumns:
    """Make one type reproduce its own readings exactly, the smallest cluster by compute.

    It stays as it is where the model says that none of these clusters can run.
    """
    sizes = sorted(readings)
    per_machine = max(readings[n] / n for n in sizes)
    columns = _with(
        columns,
        kind,
        prepare_per_s=max(columns.prepare_per_s[kind], per_machine),
        fetch_per_s=max(columns.fetch_per_s[kind], per_machine),
    )
    first = sizes[0]
    scale = _search(job, _clusters(columns, kind, first), readings[first], "compute")
    columns = _with(columns, kind, compute_per_s=columns.compute_per_s[kind] * scale)
    columns = _raised(job, columns, kind, readings, "network")
    columns = _raised(job, columns, kind, readings, "compute")
    model = _rates(job, _clusters(columns, kind, *sizes))
    ratios = [max(float(rate) / readings[n], 1.0) for n, rate in zip(sizes, model, strict=True)]
    points = tuple((n, x) for n, x, rate in zip(sizes, ratios, model, strict=True) if rate > 0)
    if not points:
        return columns
    if len(points) > 1:
        columns = _with(columns, kind, speed_sigma=SIGMA_CURVE, speed_sigma_several=SIGMA_CURVE)
        here = np.arange(len(columns.names)) == kind
        larger = ((n, np.where(here, SIGMA_CURVE, sd)) for n, sd in columns.speed_sigma_larger)
        columns = replace(columns, speed_sigma_larger=tuple(larger))
    return replace(columns, measured=(*columns.measured, (columns.names[kind], points)))


def _served(
    job: Job, columns: MachineColumns, kind: int, readings: Readings, before: float
) -> MachineColumns:
    """What a type's readings teach of its workers and of the parameter servers, if there are any.

    `before` is the spread of one machine that was not timed. Clusters that the model says cannot
    run were not fitted: their readings teach nothing.
    """
    if columns.service_sigma is None or columns.placement_sigma is None:
        return columns
    known, placed = float(columns.service_sigma[kind]), float(columns.placement_sigma[kind])
    fleet, prior = _clusters(columns, kind, *sorted(readings)), prior_of(job)
    fleet = fleet.take(np.flatnonzero(_rates(job, fleet)))
    if not len(fleet):
        return columns
    terms, service = terms_of(job, prior, fleet), service_of(job, prior, fleet)
    best = terms.step_s.argmin(axis=0), np.arange(len(fleet))
    local = terms.step_s[best] - (terms.exposed_s * terms.network_share)[best]
    sd = service.spread(known, placed)
    most = float(sd.max())
    worker, server = posterior_sds(
        before, most, shares_of(job, service, fleet, local, sd), SIGMA_CURVE
    )
    left = max(server, SIGMA_CURVE) / most  # no run is known better than it repeats
    changed = {"service_sigma": left * known, "placement_sigma": left * placed}
    return _with(columns, kind, speed_sigma=max(worker, SIGMA_CURVE), **changed)


def _raised(
    job: Job, columns: MachineColumns, kind: int, readings: Readings, what: str
) -> MachineColumns:
    """Raise the network or the compute of a type until no reading is faster than the model."""
    sizes = [n for n in sorted(readings) if n > 1 or what == "compute"]
    measured = np.array([readings[n] for n in sizes])
    for _ in range(ROUNDS):
        rates = _rates(job, _clusters(columns, kind, *sizes))
        short = np.where(rates > 0, measured / np.where(rates > 0, rates, 1.0), 0.0)
        if short.max(initial=0.0) <= 1 + 1e-9:
            break
        worst = int(short.argmax())
        scale = _search(job, _clusters(columns, kind, sizes[worst]), float(measured[worst]), what)
        raised = {"compute_per_s": scale}
        if what == "network":
            raised = {"network_bytes_per_s": scale, "network_latency_s": 1.0 / scale}
        now = {name: float(getattr(columns, name)[kind]) * by for name, by in raised.items()}
        columns = _with(columns, kind, **now)
    return columns


def _search(job: Job, fleet: Clusters, target: float, what: str) -> float:
    """The scale of compute or network at which a cluster's rate is `target`.

    The smallest one in 1e-6 ... 1e6; 1 for the network where it need not grow, and the
    fastest the model gives where the target is out of reach.
    """
    low, high = (0.0, 13.8) if what == "network" else (-13.8, 13.8)
    if not _rates(job, fleet)[0] > 0 or (what == "network" and _rates(job, fleet)[0] >= target):
        return 1.0
    most = float(_rates(job, _scaled(fleet, np.exp(np.array([high])), what))[0])
    goal = min(target, REACHABLE * most)
    many = Clusters(**{name: np.repeat(getattr(fleet, name), POINTS) for name in fleet.__slots__})
    for _ in range(5):
        tried = np.linspace(low, high, POINTS)
        rates = _rates(job, _scaled(many, np.exp(tried), what))
        at = int(np.searchsorted(rates, goal))
        low, high = float(tried[max(at - 1, 0)]), float(tried[min(at, POINTS - 1)])
    return float(np.exp(high))


def _scaled(fleet: Clusters, scale: Floats, what: str) -> Clusters:
    if what == "compute":
        return replace(fleet, compute_per_s=fleet.compute_per_s * scale)
    return replace(
        fleet,
        network_bytes_per_s=fleet.network_bytes_per_s * scale,
        network_latency_s=fleet.network_latency_s / scale,
    )


def _rates(job: Job, fleet: Clusters) -> Floats:
    """Samples/s of the model; 0 where it cannot run."""
    step = terms_of(job, prior_of(job), fleet).step_s.min(axis=0)
    return np.where(np.isfinite(step), job.batch_on(fleet.gpus) / step, 0.0)


def _readings(columns: MachineColumns, kind: int, gpu: str, timed: list[Timing]) -> Readings:
    """The timings taken on one type, in the shape it is rented."""
    return {
        t.machines: t.samples_per_s
        for t in timed
        if t.gpu == gpu
        and t.gpus == t.machines * columns.gpus[kind]
        and (not t.instance_type or _named(t, columns.names[kind]))
    }


def _named(timing: Timing, name: str) -> bool:
    return bool(timing.instance_type) and timing.instance_type in (name, name.split("/")[-1])


def _clusters(columns: MachineColumns, kind: int, *machines: int) -> Clusters:
    counts = np.zeros((len(machines), len(columns.names)), dtype=np.int64)
    counts[:, kind] = machines
    return clusters_of(columns, counts)


def _with(columns: MachineColumns, kind: int, **values: float) -> MachineColumns:
    """Columns with some numbers of one type changed."""
    changed = {}
    for name, value in values.items():
        changed[name] = getattr(columns, name).copy()
        changed[name][kind] = value
    return replace(columns, **changed)


def _mean(values: list[float]) -> float:
    """The geometric mean."""
    return float(np.exp(np.mean(np.log(values)))) if values else 1.0
