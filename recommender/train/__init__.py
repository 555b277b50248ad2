"""The checkpoint helper: a training that survives interruptions as its plan counts it.

    from recommender.train import Checkpointer, TorchState
    checkpointer = Checkpointer(TorchState(model, optimizer), total_steps=10_000)
    for step in checkpointer.steps():
        train_one(step)

Saves come every τ, at the provider's notice and at SIGTERM; a new start goes on at the newest
complete checkpoint. Nothing of planning is imported, and torch only by `TorchState`.
"""

from recommender.train.checkpointer import Checkpointer
from recommender.train.pickled_state import PickledState
from recommender.train.torch_state import TorchState

__all__ = ["Checkpointer", "PickledState", "TorchState"]
