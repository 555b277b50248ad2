"""The state of a PyTorch training: model, optimiser, schedulers, random numbers.

One process writes one file with `torch.save`; several write shards with
torch.distributed.checkpoint, which another number of processes can read (replicated, DDP, FSDP2).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from recommender.errors import UsageError
from recommender.train.random_numbers import random_numbers, set_random_numbers
from recommender.train.ranks import Ranks
from recommender.train.training_state import Stateful

MISSING = "PyTorch is not installed: pip install torch"
_FILE = "state-0.pt"


class TorchState:
    """A model, its optimiser, and whatever else has a `state_dict`, by name.

    Raises:
        UsageError: torch is not installed.
    """

    def __init__(self, model: Any, optimizer: Any, **others: Stateful) -> None:
        self._torch = _found_torch()
        self._model, self._optimizer, self._others = model, optimizer, others

    def copy(self) -> Any:
        """Copy all tensors to host memory, so that training may change the originals."""
        return self._on_host(self._state())

    def write(self, copied: Any, folder: Path, ranks: Ranks) -> list[Path]:
        """One file of one process, or this rank's shards; rank 0 also has their metadata."""
        if ranks.group is None:
            path = folder / _FILE
            with _disk_errors(RuntimeError), path.open("wb") as file:
                self._torch.save(copied, file)
            return [path]
        sharding = _sharding()
        with _disk_errors(sharding.CheckpointException):
            sharding.save(copied, checkpoint_id=str(folder), process_group=ranks.group)
        own = sorted(folder.glob(f"__{ranks.rank}_*.distcp"))
        return own + ([folder / ".metadata"] if ranks.rank == 0 else [])

    def read(self, folder: Path, ranks: Ranks) -> None:
        """Load tensors in place and restore the rest; random numbers only on the same rank."""
        if ranks.group is None:
            with (folder / _FILE).open("rb") as file:
                found = self._torch.load(file, map_location="cpu", weights_only=True)
        else:
            found = self._shards(folder, ranks)
        self._take_over(found)

    def _state(self) -> dict[str, Any]:
        """Names of shards are the model's own; the numbers of a rank bear its number."""
        ranks = _rank_and_count(self._torch)
        if ranks is None:
            parts = {"model": self._model.state_dict(), "optimizer": self._optimizer.state_dict()}
        else:
            model, optimizer = _sharded_states().get_state_dict(self._model, self._optimizer)
            parts = {"model": model, "optimizer": optimizer}
        parts |= {name: each.state_dict() for name, each in self._others.items()}
        return {**parts, self._numbers_name(): random_numbers()}

    def _numbers_name(self) -> str:
        return f"random_numbers_{(_rank_and_count(self._torch) or (0, 1))[0]}"

    def _shards(self, folder: Path, ranks: Ranks) -> dict[str, Any]:
        sharding, own = _sharding(), self._state()
        kept = sharding.FileSystemReader(str(folder)).read_metadata().state_dict_metadata
        name = self._numbers_name()
        if not any(each.partition(".")[0] == name for each in kept):
            del own[name]  # more processes than before
        with _disk_errors(sharding.CheckpointException):
            sharding.load(own, checkpoint_id=str(folder), process_group=ranks.group)
        return own

    def _take_over(self, found: dict[str, Any]) -> None:
        if _rank_and_count(self._torch) is None:
            self._model.load_state_dict(found["model"])
            self._optimizer.load_state_dict(found["optimizer"])
        else:
            states = {"model_state_dict": found["model"], "optim_state_dict": found["optimizer"]}
            _sharded_states().set_state_dict(self._model, self._optimizer, **states)
        for name, each in self._others.items():
            each.load_state_dict(found[name])
        if self._numbers_name() in found:
            set_random_numbers(found[self._numbers_name()])

    def _on_host(self, value: Any) -> Any:
        if isinstance(value, self._torch.Tensor):
            return value.detach().to("cpu", copy=True)
        if isinstance(value, dict):
            return {key: self._on_host(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self._on_host(each) for each in value)
        return value


@contextmanager
def _disk_errors(kind: type[BaseException]) -> Iterator[None]:
    """What torch raises, on all ranks alike, where a disk refuses: no OSError, or no Exception."""
    try:
        yield
    except kind as error:
        raise OSError(str(error)) from error


def _found_torch() -> Any:
    try:
        return import_module("torch")
    except ImportError as error:
        raise UsageError(MISSING) from error


def _sharding() -> Any:
    return import_module("torch.distributed.checkpoint")


def _sharded_states() -> Any:
    return import_module("torch.distributed.checkpoint.state_dict")


def _rank_and_count(torch: Any) -> tuple[int, int] | None:
    messages = torch.distributed
    if not messages.is_available() or not messages.is_initialized():
        return None
    return messages.get_rank(), messages.get_world_size()
