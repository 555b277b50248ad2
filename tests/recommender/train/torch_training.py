"""A real PyTorch training over Gloo that tests start, kill and start again with other processes.

The samples of a step are the same however many processes share them. Each rank drops units by
random numbers of its own, so that a state that forgets them ends with other weights.
"""

from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # what optimisers import at their first step; here before any fork
import torch.distributed as dist
import torch.distributed.checkpoint
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from recommender.train import Checkpointer, TorchState
from tests.recommender.train.killed_training import Log

INTERVAL_S = 0.02
_SAMPLES, _WIDTH = 16, 32
torch.set_num_threads(1)


class LoggedState(TorchState):
    """The state; rank 0 logs each copy of it."""

    def __init__(self, model: Any, optimizer: Any, log: Log, rank: int) -> None:
        super().__init__(model, optimizer)
        self._log, self._rank, self.step = log, rank, 0

    def copy(self) -> Any:
        """Log the step whose state is copied."""
        copied = super().copy()
        if self._rank == 0:
            self._log.notify("copy", self.step)
        return copied


def network(dropout: float) -> torch.nn.Sequential:
    """Three layers, the same at every start."""
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Linear(_WIDTH, 64),
        torch.nn.Tanh(),
        torch.nn.Dropout(dropout),
        torch.nn.Linear(64, 64),
        torch.nn.Tanh(),
        torch.nn.Linear(64, 1),
    )


def shared(model: torch.nn.Module, how: str) -> torch.nn.Module:
    """The model over all processes: replicated ("ddp"), sharded ("fsdp") or neither."""
    if how == "ddp":
        return DistributedDataParallel(model)
    if how == "fsdp":
        mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
        fully_shard(model, mesh=mesh)
    return model


def loss(model: torch.nn.Module, step: int, rank: int, ranks: int) -> torch.Tensor:
    """Of this rank's share of a step's samples, of y = Σx."""
    numbers = torch.Generator().manual_seed(step)
    x = torch.randn(_SAMPLES, _WIDTH, generator=numbers)[rank::ranks]
    return ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()


def main(
    rank: int, ranks: int, folder: str, start: int, how: str, warm_up: int, dropout: float, end: int
) -> None:
    """Train up to a step, or to the kill; rank 0 leaves the weights."""
    root = Path(folder)
    if how != "alone":
        meeting = f"file://{root}/meeting-{start}"
        dist.init_process_group("gloo", meeting, timedelta(seconds=60), ranks, rank)
    model = shared(network(dropout), how)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(2 * warm_up):
        loss(model, step, rank, ranks).backward()
        optimizer.zero_grad()
    torch.manual_seed(100 + rank)
    train(model, optimizer, rank, ranks, root, end)
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    weights = get_model_state_dict(model, options=options)
    if rank == 0:
        torch.save(weights, root / f"weights-{end}.pt")
    if how != "alone":
        dist.barrier()
        dist.destroy_process_group()


def train(model: Any, optimizer: Any, rank: int, ranks: int, root: Path, end: int) -> None:
    """The loop that a user writes, and its log."""
    log = Log(root / "log")
    state = LoggedState(model, optimizer, log, rank)
    training = Checkpointer(
        state, end, folder=root, interval_s=INTERVAL_S, shortest_interval_s=INTERVAL_S
    )
    began = False
    for step in training.steps():
        if rank == 0 and not began:
            log.notify("start", step)
        began = True
        optimizer.zero_grad()
        loss(model, step, rank, ranks).backward()
        optimizer.step()
        state.step = step + 1
        if rank == 0:
            log.notify("step", step + 1, 0)
