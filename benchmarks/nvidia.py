"""Clocks, temperature and power of a GPU, as the driver's own tool tells them."""

import math
import subprocess
from dataclasses import dataclass

_FIELDS = (
    "driver_version", "clocks.sm", "clocks.max.sm", "clocks.max.mem", "temperature.gpu",
    "power.draw", "power.limit", "clocks_event_reasons.active",
)  # fmt: skip
_TIMEOUT_S = 5.0
# NVML's bits for a clock held down by power or heat, not by idleness (nvml.h, 2024):
# 0x4 power cap, 0x8 hardware slowdown, 0x20 and 0x40 software and hardware heat, 0x80 power brake.
_SLOWED = 0x4 | 0x8 | 0x20 | 0x40 | 0x80


@dataclass(frozen=True, slots=True)
class GpuState:
    """One reading; None where the driver does not tell."""

    driver: str
    mhz: float | None
    max_mhz: float | None
    max_memory_mhz: float | None
    celsius: float | None
    watts: float | None
    most_watts: float | None
    slowed: bool  # the clock is held down by power or heat


def state(index: int = 0) -> GpuState | None:
    """Ask nvidia-smi, which asks NVML; None without a driver."""
    call = ["nvidia-smi", "-i", str(index), "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            [*call, f"--query-gpu={','.join(_FIELDS)}"],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return parse(done.stdout)


def parse(line: str) -> GpuState | None:
    """Read one line of nvidia-smi; "[N/A]" becomes None."""
    cells = [cell.strip() for cell in line.strip().split(",")]
    if len(cells) != len(_FIELDS):
        return None
    mhz, most, memory, celsius, watts, most_watts = map(_number, cells[1:7])
    slowed = _slowed(cells[7])
    return GpuState(cells[0], mhz, most, memory, celsius, watts, most_watts, slowed)


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _slowed(cell: str) -> bool:
    try:
        return bool(int(cell, 16) & _SLOWED)
    except ValueError:
        return False
