"""A real training on CPU that tests start, kill and start again; it logs each step and save.

Linear regression by stochastic gradient descent, its samples drawn from a generator whose place is
part of the state: one step done twice or left out changes the weights.
"""

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from recommender.train import Checkpointer, PickledState

WEIGHTS, STEPS, INTERVAL_S = 100_000, 200, 0.02
_MOMENTUM, _RATE = 0.9, 1e-6


class Regression:
    """Weights and momentum, and where the samples' generator stands."""

    def __init__(self) -> None:
        self.weights, self.momentum = np.zeros(WEIGHTS), np.zeros(WEIGHTS)
        self.samples = np.random.default_rng(17)

    def step(self) -> None:
        """One sample of y = Σx."""
        x = self.samples.standard_normal(WEIGHTS, dtype=np.float32)
        error = float(x @ self.weights) - float(x.sum())
        self.momentum = _MOMENTUM * self.momentum + error * x
        self.weights -= _RATE * self.momentum

    def state_dict(self) -> dict[str, Any]:
        """All that a step reads."""
        samples = self.samples.bit_generator.state
        return {"weights": self.weights, "momentum": self.momentum, "samples": samples}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take a state over."""
        self.weights, self.momentum = state["weights"], state["momentum"]
        self.samples.bit_generator.state = state["samples"]


class Log:
    """Lines that a kill does not take back."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def notify(self, *words: object) -> None:
        """One line, with the time."""
        line = " ".join(str(word) for word in (*words, time.monotonic()))
        os.write(self._file, f"{line}\n".encode())


class LoggedState(PickledState):
    """The state, which logs when it is copied."""

    def __init__(self, log: Log, model: Regression) -> None:
        super().__init__(model=model)
        self._log, self.step, self.copied = log, 0, True

    def copy(self) -> bytes:
        """Log the step whose state is copied."""
        copied = super().copy()
        self.copied = True
        self._log.notify("copy", self.step)
        return copied


def main(rank: int, ranks: int, name: str) -> None:
    """Train to the end, or to the kill."""
    folder = Path(name)
    log, model = Log(folder / "log"), Regression()
    state = LoggedState(log, model)
    training = Checkpointer(
        state, STEPS, folder=folder, interval_s=INTERVAL_S, shortest_interval_s=INTERVAL_S
    )
    since = 0.0
    for step in training.steps():
        if state.step == 0:
            log.notify("start", step)
        if state.copied:  # read after the helper read it: what is due here is due there
            state.copied, since = False, time.monotonic()
        model.step()
        state.step = step + 1
        due = not training.saving and time.monotonic() - since >= training.schedule.interval_s
        log.notify("step", step + 1, int(due))
    (folder / "weights").write_bytes(model.weights.tobytes())
