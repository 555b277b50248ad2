"""The state a training needs to resume: copied fast, written by a thread, read later.

`PickledState` is that of a training without torch (NumPy, JAX, scikit-learn), as pickled objects.
Read only checkpoints that you wrote yourself: a pickle can run any code.
"""

import pickle
import random
from pathlib import Path
from typing import Any, Protocol

from recommender.train.ranks import Ranks


class Stateful(Protocol):
    """An object with a state, such as torch's models, optimisers, schedulers, data loaders."""

    def state_dict(self) -> Any:
        """The state, as plain data."""
        ...

    def load_state_dict(self, state: Any) -> Any:
        """Restore a state."""
        ...


class TrainingState(Protocol):
    """The whole state of a training; `write` runs in a thread while training goes on."""

    def copy(self) -> Any:
        """A copy of the state that training does not change; training waits for it."""
        ...

    def write(self, copied: Any, folder: Path, ranks: Ranks) -> list[Path]:
        """Write a copy into a folder; return the files that this rank wrote."""
        ...

    def read(self, folder: Path, ranks: Ranks) -> None:
        """Restore the state from a complete checkpoint."""
        ...


class PickledState:
    """Objects with a `state_dict`, and Python's random numbers; each rank has its own file."""

    def __init__(self, **objects: Stateful) -> None:
        self._objects = objects

    def copy(self) -> bytes:
        """All states as one pickle."""
        states = {name: each.state_dict() for name, each in self._objects.items()}
        return pickle.dumps((states, random.getstate()), protocol=pickle.HIGHEST_PROTOCOL)

    def write(self, copied: bytes, folder: Path, ranks: Ranks) -> list[Path]:
        """Write this rank's pickle."""
        path = _file(folder, ranks)
        path.write_bytes(copied)
        return [path]

    def read(self, folder: Path, ranks: Ranks) -> None:
        """Load this rank's pickle."""
        states, numbers = pickle.loads(_file(folder, ranks).read_bytes())
        for name, each in self._objects.items():
            each.load_state_dict(states[name])
        random.setstate(numbers)


def _file(folder: Path, ranks: Ranks) -> Path:
    return folder / f"state-{ranks.rank}.pickle"
