"""What a training needs to go on: copied fast, written by a thread, read at the next start."""

from pathlib import Path
from typing import Any, Protocol

from recommender.train.ranks import Ranks


class Stateful(Protocol):
    """Anything with a state, as torch's models, optimisers, schedulers and data loaders have it."""

    def state_dict(self) -> Any:
        """The state, as plain data."""
        ...

    def load_state_dict(self, state: Any) -> Any:
        """Take a state over."""
        ...


class TrainingState(Protocol):
    """The whole state of a training; `write` runs in a thread while training goes on."""

    def copy(self) -> Any:
        """The state in memory that training no longer changes; training waits for it."""
        ...

    def write(self, copied: Any, folder: Path, ranks: Ranks) -> list[Path]:
        """Write a copy into a folder; the files that this rank wrote."""
        ...

    def read(self, folder: Path, ranks: Ranks) -> None:
        """Take over what a complete checkpoint holds."""
        ...
