"""Checkpoints of a Transformers Trainer at the plan's intervals, complete ones only.

    callback = CheckpointCallback()  # $CHECKPOINT_DIR, which is the Trainer's output_dir, too
    trainer = Trainer(..., callbacks=[callback])
    trainer.train(resume_from_checkpoint=callback.resume_from())

The Trainer writes `checkpoint-STEP` itself, with optimiser, schedule, random numbers and the place
in the data, and removes old ones (`save_total_limit`). With `save_strategy="no"` it saves when this
says so, and at the last step.
"""

import time
from importlib import import_module
from typing import Any

from recommender.train.framework_saves import FrameworkSaves

_TrainerCallback: Any = import_module("transformers").TrainerCallback


class CheckpointCallback(FrameworkSaves, _TrainerCallback):  # type: ignore[misc]
    """Makes a Trainer save every τ, at a provider's notice and at SIGTERM, then stop."""

    name, keep = "checkpoint", 0
    _began_s = 0.0

    def resume_from(self) -> str | None:
        """The `resume_from_checkpoint` for `Trainer.train`; None at first."""
        newest = self.newest()
        return None if newest is None else str(newest)

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Start the clock."""
        self.begin(state.global_step, state.max_steps)

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Request a save if it is due."""
        if self.is_due(state.global_step, state.global_step >= state.max_steps):
            control.should_save = True
        self._began_s = time.monotonic()

    def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Complete the checkpoint."""
        self.saved(state.global_step, self._began_s)

    def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Wait for the last checkpoint."""
        self.end()
