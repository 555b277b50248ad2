"""A Trainer of Transformers on CPU under torchrun: FOLDER, and the step at which SIGTERM comes."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch
import transformers

from recommender.train.transformers_callback import CheckpointCallback

STEPS, INTERVAL_S = 24, 0.05  # short, so that ranks ask one another after each step


class Network(torch.nn.Module):
    """Two layers; the second rank kills itself, softly, when a step begins."""

    def __init__(self, killed_at: int) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)
        )
        self.killed_at, self.seen = killed_at, 0

    def forward(self, x: Any, labels: Any) -> dict[str, Any]:
        self.seen += 1
        if self.seen == self.killed_at and os.environ["RANK"] == "1":
            os.kill(os.getpid(), signal.SIGTERM)
        return {"loss": ((self.layers(x).squeeze(1) - labels) ** 2).mean()}


def main(folder: Path, killed_at: int) -> None:
    """Train, from the newest whole checkpoint on."""
    transformers.set_seed(5)
    x = torch.randn(64, 8, generator=torch.Generator().manual_seed(3))
    network = Network(killed_at)
    callback = CheckpointCallback(folder, interval_s=INTERVAL_S, shortest_interval_s=INTERVAL_S)
    arguments = transformers.TrainingArguments(
        str(folder), max_steps=STEPS, save_strategy="no", report_to="none", use_cpu=True,
        per_device_train_batch_size=4, disable_tqdm=True,
    )  # fmt: skip
    rows = [{"x": row, "labels": row.sum()} for row in x]
    trainer = transformers.Trainer(network, arguments, train_dataset=rows, callbacks=[callback])
    trainer.train(resume_from_checkpoint=callback.resume_from())
    if os.environ["RANK"] == "0":
        torch.save(network.state_dict(), folder / "weights.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
