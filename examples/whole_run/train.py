"""Some seconds of training on CPU, by the environment that exported files set: CHECKPOINT_DIR."""

import numpy as np

from recommender.train import Checkpointer, PickledState

WIDTH, STEPS = 200_000, 800


class Regression:
    """y = Σx by stochastic gradients; where the samples' generator stands is part of the state."""

    def __init__(self) -> None:
        self.weights, self.samples = np.zeros(WIDTH), np.random.default_rng(1)

    def step(self) -> None:
        x = self.samples.standard_normal(WIDTH, dtype=np.float32)
        self.weights -= (float(x @ self.weights) - float(x.sum())) / WIDTH * x

    def state_dict(self) -> dict[str, object]:
        return {"weights": self.weights, "samples": self.samples.bit_generator.state}

    def load_state_dict(self, state: dict[str, object]) -> None:
        self.weights = np.asarray(state["weights"])
        self.samples.bit_generator.state = state["samples"]


model = Regression()
checkpointer = Checkpointer(PickledState(model=model), total_steps=STEPS)
steps = 0
for _ in checkpointer.steps():
    model.step()
    steps += 1
print(f"{steps} of {STEPS} steps here, weights {float(model.weights.sum())!r}")
