"""A catalog of two machines, to change one thing at a time in."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from recommender.catalogs.schema import Achieved, Gpu, InstanceType, Offer, Source
from recommender.catalogs.serialize import write_catalog


def gpu(**changed: Any) -> Gpu:
    """A T4, or what is left of it after the changes."""
    facts: dict[str, Any] = {
        "gpu": "T4",
        "vendor": "nvidia",
        "memory_mib": 16384,
        "memory_gb_per_s": 320.0,
        "peak_fp32_tflops": 8.1,
        "peak_tf32_tflops": None,
        "peak_fp16_tflops": 65.0,
        "peak_bf16_tflops": None,
        "peak_fp8_tflops": None,
        "watts": 70,
        "released": 2018,
        "kind": "quote",
        "source": 1,
        "as_of": "2026-08-01",
    }
    return Gpu(**(facts | changed))


def machine(**changed: Any) -> InstanceType:
    """A machine with one T4."""
    facts: dict[str, Any] = {
        "provider": "aws",
        "instance_type": "g4dn.xlarge",
        "family": "g4dn",
        "gpu": "T4",
        "gpus": 1,
        "gpu_memory_mib": 16384,
        "vcpus": 4,
        "memory_gib": 16.0,
        "arch": "x86_64",
        "network_gbit_per_s": 5.0,
        "network_peak_gbit_per_s": 25.0,
        "network_kind": "tcp",
        "network_basis": "listed",
        "intra_kind": "",
        "intra_gb_per_s": None,
        "host_gb_per_s": 6.3,
        "local_disk_gib": 116.0,
        "local_disk_mb_per_s": 116.0,
        "quota_family": "g",
        "status": "open",
        "kind": "quote",
        "source": 1,
        "as_of": "2026-05-20",
    }
    return InstanceType(**(facts | changed))


def offer(**changed: Any) -> Offer:
    """That machine on demand in us-east-1."""
    facts: dict[str, Any] = {
        "provider": "aws",
        "instance_type": "g4dn.xlarge",
        "region": "us-east-1",
        "zone": "",
        "market": "on_demand",
        "usd_per_hour": 0.526,
        "obtainable": "open",
        "kind": "quote",
        "flag": "",
        "uncertainty": 0.0,
        "interruption_range": None,
        "source": 1,
        "as_of": "2026-08-21",
    }
    return Offer(**(facts | changed))


def spot(**changed: Any) -> Offer:
    """The same machine as spot in one zone."""
    facts = {"market": "spot", "zone": "use1-az1", "usd_per_hour": 0.2, "interruption_range": 2}
    return offer(**(facts | changed))


def achieved(**changed: Any) -> Achieved:
    """What a T4 reaches in half precision."""
    facts: dict[str, Any] = {
        "gpu": "T4",
        "precision": "fp16",
        "tflops": 39.1,
        "low_tflops": 39.1,
        "high_tflops": 46.5,
        "kind": "measured",
        "source": 1,
        "as_of": "2019-01-01",
    }
    return Achieved(**(facts | changed))


def tables() -> dict[str, list[Any]]:
    """All tables that a catalog of one's own must have, and its sources."""
    return {
        "offers": [offer(), spot()],
        "instance_types": [machine()],
        "gpus": [gpu()],
        "achieved": [achieved()],
        "sources": [Source(1, "own price list", "own", "row", "we")],
    }


def written(folder: Path, change: Callable[[dict[str, list[Any]]], None] | None = None) -> Path:
    """Write the small catalog, changed before writing, and give its folder."""
    content = tables()
    if change:
        change(content)
    write_catalog(folder, content)
    return folder


class Known:
    """Machines of which every one trains, with the status given by name."""

    def __init__(self, **status: str) -> None:
        self._status = {name.replace("_", "."): state for name, state in status.items()}

    def trains(self, provider: str, instance_type: str) -> bool:
        return instance_type != "g4ad.xlarge"

    def status(self, provider: str, instance_type: str) -> str:
        return self._status.get(instance_type, "open")
