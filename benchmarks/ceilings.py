"""What physics allows: no measured rate may be above it.

A processor: cores × clock × operations per cycle. A GPU: multiprocessors × highest clock ×
operations per cycle of its generation. Memory: two transfers per clock over the bus.
"""

import re
from pathlib import Path

from .subject import GpuFacts

# Operations per cycle and multiprocessor, a multiply-add counting two, by compute capability.
# NVIDIA, CUDA C++ Programming Guide, "Arithmetic Instructions", and the architecture white papers
# (V100 2017, T4 2018, A100 2020, GA102 2021, Ada 2023, H100 2022, Blackwell 2025); dense.
# They give the vendor's peaks: 108 · 1.41 GHz · 2048 = 312 TFLOP/s on an A100.
_TENSOR = {
    (7, 0): {"fp16": 1024},
    (7, 5): {"fp16": 1024, "int8": 2048},
    (8, 0): {"tf32": 1024, "fp16": 2048, "bf16": 2048, "int8": 4096},
    (8, 6): {"tf32": 512, "fp16": 1024, "bf16": 1024, "int8": 2048},
    (8, 9): {"tf32": 512, "fp16": 1024, "bf16": 1024, "fp8": 2048, "int8": 2048},
    (9, 0): {"tf32": 2048, "fp16": 4096, "bf16": 4096, "fp8": 8192, "int8": 8192},
    (10, 0): {"tf32": 4096, "fp16": 8192, "bf16": 8192, "fp8": 16384, "int8": 16384},
}
_CUDA_CORES = {(3, 7): 192, (6, 0): 64, (7, 0): 64, (7, 5): 64, (8, 0): 64}
_CORES_SINCE_GA102 = 128

# Floats of 32 bits in one vector register, and multiply-add units per core: two on every server
# core since Haswell (2013) and Zen 2 (2019). Where a core has one, the bound is loose.
_LANES = (("avx512f", 16), ("avx2", 8), ("asimd", 4), ("avx", 8))
_UNITS = 2
# No server processor sold by 2026 clocks higher (AMD EPYC 9575F and 4584PX: 5.0 and 5.7 GHz).
# A virtual machine does not tell its turbo clock; the listed clock would be no bound.
MAX_GHZ = 5.7
_CPUINFO = Path("/proc/cpuinfo")
_FREQUENCY = Path("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")


def gpu_flops(gpu: GpuFacts | None, precision: str) -> float | None:
    """TFLOP/s that a GPU cannot exceed at a precision."""
    if gpu is None or gpu.max_mhz is None:
        return None
    cores = _CUDA_CORES.get(gpu.capability, _CORES_SINCE_GA102)
    table = _TENSOR.get(gpu.capability, {})
    per_cycle = 2 * cores if precision == "fp32" else table.get(precision)
    if per_cycle is None:
        return None
    return gpu.processors * gpu.max_mhz * 1e6 * per_cycle / 1e12


def gpu_memory(gpu: GpuFacts | None) -> float | None:
    """GB/s that a GPU's memory cannot exceed: the clock moves two bits per wire."""
    if gpu is None or not gpu.bus_bits or not gpu.max_memory_mhz:
        return None
    return 2 * gpu.max_memory_mhz * 1e6 * gpu.bus_bits / 8 / 1e9


def cpu_flops(precision: str, cores: int, cpuinfo: str | None = None) -> float | None:
    """TFLOP/s that so many cores cannot exceed; None for an unknown instruction set."""
    text = _read(_CPUINFO) if cpuinfo is None else cpuinfo
    flags = set(re.split(r"\s+", _line(text, "flags") or _line(text, "Features")))
    lanes = next((n for name, n in _LANES if name in flags), None)
    if lanes is None or precision not in ("fp32", "fp64"):
        return None  # bf16 goes through units (AMX, dot products) that differ too much
    per_cycle = 2 * _UNITS * lanes / (2 if precision == "fp64" else 1)
    return cores * highest_ghz(_read(_FREQUENCY)) * per_cycle / 1e3


def highest_ghz(frequency: str) -> float:
    """The clock that the kernel names as highest, in kHz; else that of the fastest processor."""
    return int(frequency) / 1e6 if frequency.strip().isdecimal() else MAX_GHZ


def _line(text: str, name: str) -> str:
    found = re.search(rf"^{name}\s*:(.*)$", text, re.MULTILINE)
    return found.group(1) if found else ""


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""
