"""What was measured: processor, memory, GPUs, and the software between them and us."""

import os
import platform
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from . import nvidia
from .matmul import cpus
from .metadata import hashed
from .subject import Bench

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_IDS = ("/etc/machine-id", "/var/lib/dbus/machine-id")


@dataclass(frozen=True, slots=True)
class Machine:
    """The hardware; empty or None where the system does not tell."""

    processor: str
    cpus: int
    memory_gib: float | None
    system: str
    gpu: str = ""  # as the driver names it: "NVIDIA H100 80GB HBM3"
    gpus: int = 0
    gpu_memory_gib: float | None = None
    machine: str = ""  # a hash that tells machines apart

    @property
    def line(self) -> str:
        """The machine in one line."""
        memory = f", {self.memory_gib} GiB" if self.memory_gib else ""
        cpu = f"{self.processor}, {self.cpus} CPUs{memory}"
        return f"{self.gpus} x {self.gpu}; {cpu}" if self.gpu else f"CPU: {cpu}"


def look(bench: Bench, machine: str = "") -> Machine:
    """Describe this machine; `machine` is its hash where the provider gave one."""
    gpu = bench.gpu
    return Machine(
        _processor(),
        cpus(),
        _memory_gib(),
        f"{platform.system()} {platform.machine()}",
        gpu.name if gpu else "",
        int(bench.torch.cuda.device_count()) if gpu else 0,
        gpu.memory_gib if gpu else None,
        machine or hashed(_machine_id()),
    )


def software(bench: Bench) -> dict[str, str]:
    """Versions of everything that a figure may depend on, and thread settings."""
    found = {"python": platform.python_version(), "numpy": np.__version__}
    found |= {"kernel": platform.release(), "recommend": tool_version()}
    state = nvidia.state(bench.gpu.uuid) if bench.gpu else None
    if state:
        found["driver"] = state.driver
    if bench.torch is not None:
        found["torch"] = str(bench.torch.__version__)
        found["cuda"] = str(bench.torch.version.cuda or "")
    if bench.gpu:
        found["cudnn"] = str(bench.torch.backends.cudnn.version() or "")
        with suppress(AttributeError, RuntimeError):  # builds without it
            found["nccl"] = ".".join(map(str, bench.torch.cuda.nccl.version()))
    return found | {name: os.environ[name] for name in THREADS if name in os.environ}


def tool_version() -> str:
    """Our own version, where the package is installed."""
    try:
        return version("recommend-gpus")
    except PackageNotFoundError:  # copied to the machine without being installed
        return "unknown"


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    lines = (line for line in text.splitlines() if line.startswith("model name"))
    names = (line.partition(":")[2].strip() for line in lines)
    return next(names, "") or platform.processor() or platform.machine()


def _memory_gib() -> float | None:
    try:
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None
    return round(pages / 2**30, 1)


def _machine_id() -> str:
    for name in _IDS:
        try:
            return Path(name).read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
    return platform.node()
