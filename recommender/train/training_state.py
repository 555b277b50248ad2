"""The state a training needs to resume: copied fast, written by a thread, read later."""

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
