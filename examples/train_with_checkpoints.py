"""A training that may be killed at any step: started again with its folder, it goes on."""

import os
import sys
import tempfile

import numpy as np

from recommender.train import Checkpointer, PickledState


class Model:
    """Weights; a PyTorch model and its optimiser go into `TorchState` instead."""

    def __init__(self) -> None:
        self.weights = np.zeros(8)

    def state_dict(self) -> dict[str, np.ndarray]:
        return {"weights": self.weights}

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        self.weights = state["weights"]


named = [*sys.argv[1:], os.environ.get("CHECKPOINT_DIR")][0]  # exported files set the variable
folder = named or tempfile.mkdtemp()
model = Model()
checkpointer = Checkpointer(PickledState(model=model), total_steps=1000, folder=folder)
for _step in checkpointer.steps():
    model.weights += 0.01 * (1.0 - model.weights)
print(f"{checkpointer.total_steps} steps, weights {model.weights.mean():.4f}")
