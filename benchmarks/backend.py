"""PyTorch where it is installed. It is never needed: without it numpy measures the processor."""

import os
from importlib import import_module
from typing import Any, Literal

from . import nvidia
from .errors import BenchError
from .subject import GpuFacts


def find_torch() -> Any:
    """Import torch, or give None; its types are not known here."""
    try:
        return import_module("torch")
    except (ImportError, OSError):  # OSError: a build whose CUDA libraries are missing
        return None


def choose_device(torch: Any, requested: str | None) -> Literal["cpu", "cuda"]:
    """The requested device, else a GPU if torch sees one."""
    there = torch is not None and bool(torch.cuda.is_available())
    if requested == "cuda" and not there:
        why = "torch is not installed" if torch is None else "torch sees no GPU"
        raise BenchError(f"--device cuda: {why}; install a CUDA build of torch, or --device cpu")
    return "cuda" if there and requested != "cpu" else "cpu"


def place() -> tuple[int, int, int]:
    """Rank, number of processes and rank on this machine, as torchrun tells them."""
    try:
        return tuple(  # type: ignore[return-value]
            int(os.environ.get(name, default))
            for name, default in (("RANK", "0"), ("WORLD_SIZE", "1"), ("LOCAL_RANK", "0"))
        )
    except ValueError:
        raise BenchError("RANK, WORLD_SIZE and LOCAL_RANK must be numbers; use torchrun") from None


def machines(world: int) -> int:
    """Machines that take part: torchrun starts LOCAL_WORLD_SIZE of all processes on this one."""
    try:
        here = int(os.environ.get("LOCAL_WORLD_SIZE", world))
    except ValueError:
        raise BenchError("LOCAL_WORLD_SIZE must be a number; use torchrun") from None
    return max(-(-world // here), 1) if here > 0 else 1


def take_gpu(torch: Any, local: int) -> GpuFacts:
    """Give this process the GPU of its rank on this machine.

    Raises BenchError where torchrun started more processes than there are GPUs.
    """
    count = int(torch.cuda.device_count())
    if local >= count:
        raise BenchError(
            f"process {local} of this machine has no GPU, torch sees {count}; start torchrun with "
            f"--nproc-per-node={count}"
        )
    torch.cuda.set_device(local)
    return gpu_facts(torch, local)


def gpu_facts(torch: Any, index: int) -> GpuFacts:
    """What torch and the driver tell of a GPU; clocks are None where the driver is silent."""
    own = torch.cuda.get_device_properties(index)
    # torch counts the visible GPUs, nvidia-smi all of them: the number alone may be another GPU.
    uuid = str(getattr(own, "uuid", "") or "").removeprefix("GPU-")
    uuid = f"GPU-{uuid}" if uuid else str(index)
    state = nvidia.state(uuid)
    bits = getattr(own, "memory_bus_width", None)
    return GpuFacts(
        name=str(own.name),
        memory_gib=round(own.total_memory / 2**30, 1),
        capability=(int(own.major), int(own.minor)),
        processors=int(own.multi_processor_count),
        max_mhz=state.max_mhz if state else None,
        max_memory_mhz=state.max_memory_mhz if state else None,
        bus_bits=int(bits) if bits else None,
        uuid=uuid,
    )


def synchroniser(torch: Any, device: str) -> Any:
    """What waits for the device: kernels run on after the call that starts them returns."""
    return torch.cuda.synchronize if device == "cuda" else None
