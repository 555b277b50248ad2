"""The checkpoint helper, with which a training survives interruptions as its plan assumes.

    from recommender.train import Checkpointer, TorchState
    checkpointer = Checkpointer(TorchState(model, optimizer), total_steps=10_000)
    for step in checkpointer.steps():
        train_one(step)

It saves every τ, at the provider's notice and at SIGTERM; a new start resumes from the newest
complete checkpoint. It imports none of the planner, and torch only in `TorchState`.
"""

from recommender.train.checkpointer import Checkpointer
from recommender.train.torch_state import TorchState
from recommender.train.training_state import PickledState

__all__ = ["Checkpointer", "PickledState", "TorchState"]
