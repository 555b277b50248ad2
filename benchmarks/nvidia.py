"""Clocks, temperature and power of a GPU, as the driver's own tool tells them."""

import math
import subprocess
from dataclasses import dataclass
from threading import Event, Thread

_FIELDS = (
    "driver_version", "clocks.sm", "clocks.max.sm", "clocks.max.mem", "temperature.gpu",
    "power.draw", "power.limit", "utilization.gpu",
)  # fmt: skip
# Renamed in driver 535 (2023); an unknown field makes the whole query fail.
_REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
_EVERY_S = 2.0
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
    busy: float | None = None  # share of the last second in which a kernel ran


def state(gpu: str) -> GpuState | None:
    """Query nvidia-smi (NVML) for a GPU by number or UUID; None without a driver."""
    for reasons in _REASONS:
        fields = ",".join((*_FIELDS, reasons))
        call = ["nvidia-smi", "-i", gpu, "--format=csv,noheader,nounits", f"--query-gpu={fields}"]
        try:
            done = subprocess.run(
                call, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
            )
        except subprocess.CalledProcessError:
            continue
        except (OSError, subprocess.SubprocessError):
            return None
        return parse(done.stdout)
    return None


class Watch:
    """Reads the state of a GPU every two seconds while it works: between cases it idles."""

    def __init__(self, gpu: str, every_s: float = _EVERY_S) -> None:
        self._gpu, self._every_s = gpu, every_s
        self._stop = Event()
        first = state(gpu)  # before our own work: what is seen now is another program's
        self._states = [first] if first else []
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def stop(self) -> tuple[GpuState, ...]:
        """End the readings and give them."""
        self._stop.set()
        self._thread.join()
        return tuple(self._states)

    def _read(self) -> None:
        while self._states and not self._stop.wait(self._every_s):  # no first one: no driver
            found = state(self._gpu)
            if found:
                self._states.append(found)


def parse(line: str) -> GpuState | None:
    """Read one line of nvidia-smi; "[N/A]" becomes None."""
    cells = [cell.strip() for cell in line.strip().split(",")]
    if len(cells) != len(_FIELDS) + 1:
        return None
    mhz, most, memory, celsius, watts, most_watts, busy = map(_number, cells[1:8])
    share = busy / 100 if busy is not None else None
    slowed = _slowed(cells[8])
    return GpuState(cells[0], mhz, most, memory, celsius, watts, most_watts, slowed, share)


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
