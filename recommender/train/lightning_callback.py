"""Checkpoints of a Lightning Trainer at the plan's intervals, complete ones only.

    callback = CheckpointCallback()  # in $CHECKPOINT_DIR
    trainer = Trainer(..., callbacks=[callback], enable_checkpointing=False)
    trainer.fit(module, ckpt_path=callback.resume_from())

Lightning saves model, optimisers, schedules and how far it is; this adds the random numbers of rank
0. The place in the data is saved where the data loader has a `state_dict` (torchdata's
StatefulDataLoader); with any other one an epoch that goes on begins at its first sample again.
"""

import time
from importlib import import_module
from typing import Any

from recommender.train.framework_saves import FrameworkSaves
from recommender.train.random_numbers import random_numbers, set_random_numbers
from recommender.train.restore import of_this_training

_FILE = "lightning.ckpt"


def _callback_of_lightning() -> Any:
    """Its base class, by the package's new name or the old one."""
    try:
        return import_module("lightning.pytorch").Callback
    except ImportError:
        return import_module("pytorch_lightning").Callback


class CheckpointCallback(FrameworkSaves, _callback_of_lightning()):  # type: ignore[misc]
    """Makes a Trainer save every τ, at a provider's notice and at SIGTERM, then stop."""

    _numbers: dict[str, Any] | None = None

    def resume_from(self) -> str | None:
        """The `ckpt_path` for `Trainer.fit`; None at the first start."""
        newest = self.newest()
        if newest is None:
            return None
        with of_this_training(newest):
            (newest / _FILE).stat()
        return str(newest / _FILE)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Start the clock."""
        self.begin(trainer.global_step, int(trainer.estimated_stepping_batches))

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        """Take random numbers over here: iterating over data draws some at each start."""
        numbers, self._numbers = self._numbers, None
        if numbers is not None:
            set_random_numbers(numbers)

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Save if it is due, at the end of an optimiser step."""
        step, began_s = trainer.global_step, time.monotonic()
        if not self.is_due(step, step >= trainer.estimated_stepping_batches):
            return
        trainer.save_checkpoint(self.prepare(step) / _FILE)
        self.saved(step, began_s)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Wait for the last checkpoint."""
        self.end()

    def state_dict(self) -> dict[str, Any]:
        """The random number states, which Lightning omits."""
        return random_numbers()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Keep the random numbers for the first batch."""
        self._numbers = state_dict
