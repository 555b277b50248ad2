"""The interface of all subjects: a subject lists its cases, a case makes a trial.

for case in subject(bench):           # what is measured, in which unit, up to what ceiling
    trial = case.setup()              # memory is taken, data are drawn, nothing is timed
    trial.run()                       # one repetition; timed by `method.measure`
    trial.check()                     # its result against a reference
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from .errors import Skipped
from .rendezvous import Rendezvous

Suite = Literal["quick", "full"]


def _nothing() -> None:
    return None


def _exact() -> float:
    return 0.0


@dataclass(frozen=True, slots=True)
class Trial:
    """One case, ready to be timed."""

    run: Callable[[], object]
    check: Callable[[], float] = _exact  # largest relative error; raises WrongResult
    close: Callable[[], object] = _nothing
    timed: Callable[[], float] | None = None  # runs and gives its own seconds, in place of `run`


@dataclass(frozen=True, slots=True)
class Case:
    """What is measured: `work` is done in each repetition, in `unit` times seconds."""

    subject: str
    name: str
    unit: str
    work: float
    setup: Callable[[], Trial]
    ceiling: float | None = None  # in the same unit; None where physics gives no known bound
    facts: dict[str, object] = field(default_factory=dict)  # precision, sizes, bytes


@dataclass(frozen=True, slots=True)
class Bench:
    """Where and how a suite runs."""

    suite: Suite
    device: Literal["cpu", "cuda"]
    torch: Any  # the module, or None: numpy alone
    folder: Path  # where files are written
    s3: str = ""  # "s3://bucket/prefix"; empty: not measured
    s3_endpoint: str = ""
    rank: int = 0
    world: int = 1
    machines: int = 1
    gpu: "GpuFacts | None" = None
    mount: Path | None = None  # a mounted path, besides the disk of `folder`
    rendezvous: Rendezvous = field(default_factory=Rendezvous)

    @property
    def quick(self) -> bool:
        """Whether small sizes suffice."""
        return self.suite == "quick"

    @property
    def precision(self) -> str:
        """In which trainings compute on this device."""
        if self.gpu is None:
            return "fp32"
        return "bf16" if self.gpu.capability >= (8, 0) else "fp16"

    @property
    def training_type(self) -> Any:
        """The type that trainings run in, as torch names it."""
        names = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
        return getattr(self.torch, names[self.precision])


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """What bounds a GPU's speed."""

    name: str
    memory_gib: float
    capability: tuple[int, int]
    processors: int  # streaming multiprocessors
    max_mhz: float | None
    max_memory_mhz: float | None
    bus_bits: int | None
    uuid: str = ""  # as the driver's tool names it, whatever CUDA_VISIBLE_DEVICES says


class Subject(Protocol):
    """A subject is a function from where it runs to its cases, or why there is none."""

    def __call__(self, bench: Bench) -> Iterator[Case | Skipped]:
        """List the cases that this machine can measure."""
