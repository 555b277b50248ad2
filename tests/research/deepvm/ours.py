"""DeepVM's machines as a catalog of ours, its speed-ups as timings, and our planner on them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.load import load
from recommender.catalogs.schema import (
    Achieved,
    BillingRule,
    Gpu,
    InstanceType,
    Obtainability,
    Offer,
    Source,
    SpotClass,
    StartUp,
)
from recommender.catalogs.serialize import write_catalog
from recommender.catalogs.tables import TABLES
from recommender.job.job import Job, Timing
from recommender.optimize.candidate import Candidate
from recommender.optimize.pool import Pool
from recommender.optimize.space import Space, single_clusters
from recommender.plan.limits import Choice, Limits, Progress
from recommender.planner.problem import Problem, planning_problem
from tests.recommender.optimize.palette import job as network
from tests.research.deepvm.figures import AS_OF, REMOTE, SOURCE, VCPUS, CpuVm, GpuVm

NOW = datetime(2024, 4, 1, tzinfo=UTC)
REGION = "us-east-1"
GPU_OF = {"g3s.xlarge": "M60", "g4dn.xlarge": "T4", "g5.xlarge": "A10G"}
CALM = 1.0 - 1e-9  # availability of spot that never goes away


def catalog(folder: Path, gpus: Iterable[GpuVm], *, calm: bool) -> Catalog:
    """The machines at DeepVM's prices.

    `calm`: no interruption, no boot, no billing minimum, no fee, as in DeepVM's model. Otherwise
    spot laws, start-up and billing rules are those of the shipped snapshot.
    """
    gpus = list(gpus)
    tables = _hardware(gpus)
    if calm:
        tables |= {name: [] for name in TABLES if name not in tables}
        tables |= _calm_facts(gpus)
    write_catalog(folder, tables)
    return load(folder)


def _hardware(gpus: list[GpuVm]) -> dict[str, list[Any]]:
    return {
        "offers": [
            *(_offer(vm.name, "spot", vm.spot) for vm in gpus),
            *(_offer(vm.name, "on_demand", vm.on_demand) for vm in [*gpus, *REMOTE]),
        ],
        "instance_types": [
            *(_gpu_machine(vm) for vm in gpus),
            *(_cpu_machine(vm) for vm in REMOTE),
        ],
        "gpus": [_gpu(vm) for vm in gpus],
        "achieved": [
            Achieved(_gpu_name(vm), "fp32", 1.0, 1.0, 1.0, "measured", 1, AS_OF) for vm in gpus
        ],
        "sources": [Source(1, SOURCE, "figures only", "figure", "")],
    }


def _calm_facts(gpus: list[GpuVm]) -> dict[str, list[Any]]:
    names = tuple(_gpu_name(vm) for vm in gpus)
    law = SpotClass(
        "calm", names, 1, 1, 1e12, 1.0, 1.0, CALM, 0.0, 0.0, 1.0, 0.0, True, "measured",
        "fallback", 1, AS_OF,
    )  # fmt: skip
    return {
        "spot_classes": [law],
        "billing": [
            BillingRule("aws", "spot", 0.0, 0.0, 120.0, 1, AS_OF),
            BillingRule("aws", "on_demand", 0.0, 0.0, 0.0, 1, AS_OF),
        ],
        "start_up": [StartUp("aws", 0, 0.0, 0.0, "fallback", 1, AS_OF)],
        "obtainability": [Obtainability(names, 1.0, 0.0, "fallback", 1, AS_OF)],
    }


def _gpu_name(vm: GpuVm) -> str:
    return GPU_OF.get(vm.name, vm.name)


def _gpu(vm: GpuVm) -> Gpu:
    """The GPU of a machine; every speed is timed, so its peak need only allow them all."""
    peaks = (1000.0, None, None, None, None)
    return Gpu(_gpu_name(vm), "nvidia", 81920, 1000.0, *peaks, None, None, "derived", 1, AS_OF)


def _machine(name: str, network_gbps: float, memory_gib: float, **changes: Any) -> InstanceType:
    facts: dict[str, Any] = {
        "provider": "aws",
        "instance_type": name,
        "family": name.split(".")[0],
        "gpu": "",
        "gpus": 0,
        "gpu_memory_mib": 0,
        "vcpus": VCPUS,
        "memory_gib": memory_gib,
        "arch": "x86_64",
        "network_gbit_per_s": network_gbps,
        "network_peak_gbit_per_s": None,
        "network_kind": "tcp",
        "network_basis": "listed",
        "intra_kind": "",
        "intra_gb_per_s": None,
        "host_gb_per_s": 10.0,
        "local_disk_gib": 100.0,
        "local_disk_mb_per_s": 200.0,
        "quota_family": "g",
        "status": "open",
        "kind": "quote",
        "source": 1,
        "as_of": AS_OF,
    }
    return InstanceType(**(facts | changes))


def _gpu_machine(vm: GpuVm) -> InstanceType:
    known = {"gpu": _gpu_name(vm), "gpus": 1, "gpu_memory_mib": 81920}
    return _machine(vm.name, vm.network_gbps, 16.0, **known)


def _cpu_machine(vm: CpuVm) -> InstanceType:
    return _machine(vm.name, vm.network_gbps, vm.memory_gib, quota_family="standard")


def _offer(name: str, market: str, usd: float) -> Offer:
    zone = "use1-az1" if market == "spot" else ""
    rest: Any = ("open", "quote", "", 0.0, None, 1, AS_OF)
    return Offer("aws", name, REGION, zone, market, usd, *rest)  # type: ignore[arg-type]


def timed_job(speeds: Mapping[str, Mapping[int, float]], samples: float, **changes: Any) -> Job:
    """A job measured on every type at every given number of machines, in samples/s."""
    timings = tuple(
        Timing(GPU_OF.get(name, name), n, n, rate, name)
        for name, by_size in speeds.items()
        for n, rate in by_size.items()
    )
    facts: dict[str, Any] = {
        "precision": "fp32",
        "samples": samples,
        "global_batch": 1 << 16,
        "timings": timings,
        "activation_bytes_per_sample": 1e4,
        "recomputed_activation_bytes_per_sample": 1e4,
        "fault_rate_per_hour": 0.0,
    }
    return network(**(facts | changes))


def problem(job: Job, limits: Limits, known: Catalog) -> Problem:
    """One problem for our planner: clusters of one type, as DeepVM's curves describe them."""
    choice = Choice(mix="no", prices_as_quoted=True)
    return planning_problem(job, limits, choice, known, Progress(), NOW, seed=7)


def fastest(space: Space, usd_per_hour: float) -> Candidate:
    """Our own choice for the least expected time under a price per hour."""
    limits = replace(space.limits, hourly_usd=usd_per_hour)
    step_s = single_clusters(space.job, space.columns, limits.max_machines).step_s
    return Pool(replace(space, limits=limits), step_s).select(limits).best
