"""Communication between the processes of one training: one process, or torch.distributed."""

import sys
from collections.abc import Sequence
from typing import Any, Protocol


class Ranks(Protocol):
    """The processes of a training; every rank calls each method, in the same order."""

    rank: int
    count: int
    group: Any  # the process group of torch.distributed, None alone

    def largest(self, values: Sequence[int]) -> list[int]:
        """The largest of all ranks, value by value."""
        ...

    def gather(self, value: Any) -> list[Any]:
        """The value of every rank, on all of them."""
        ...

    def another(self) -> "Ranks":
        """A channel of these ranks for another thread, separate from this one."""
        ...


class OneProcess:
    """A training of one process."""

    rank, count, group = 0, 1, None

    def largest(self, values: Sequence[int]) -> list[int]:
        """The values themselves."""
        return list(values)

    def gather(self, value: Any) -> list[Any]:
        """The value itself."""
        return [value]

    def another(self) -> Ranks:
        """Itself, because there are no other ranks."""
        return self


class TorchRanks:
    """The processes that torchrun started, over a Gloo group that the training does not use."""

    def __init__(self, torch: Any) -> None:
        self._torch, self._messages = torch, torch.distributed
        self.group = self._messages.new_group(backend="gloo")
        self.rank: int = self._messages.get_rank()
        self.count: int = self._messages.get_world_size()

    def largest(self, values: Sequence[int]) -> list[int]:
        """The largest of all ranks, by one all-reduce on CPU."""
        shared = self._torch.tensor(list(values), dtype=self._torch.int64)
        operation = self._messages.ReduceOp.MAX
        self._messages.all_reduce(shared, op=operation, group=self.group)
        return [int(value) for value in shared]

    def gather(self, value: Any) -> list[Any]:
        """Every rank's value; also a barrier."""
        found: list[Any] = [None] * self.count
        self._messages.all_gather_object(found, value, group=self.group)
        return found

    def another(self) -> Ranks:
        """A further Gloo group of all ranks."""
        return TorchRanks(self._torch)


def ranks_of_this_run() -> Ranks:
    """All ranks if torch.distributed is initialised, otherwise this process alone."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available():
        return OneProcess()
    return TorchRanks(torch) if torch.distributed.is_initialized() else OneProcess()
