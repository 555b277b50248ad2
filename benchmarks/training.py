"""Trainings whose stalls are measured: a small CNN, a small transformer, or the user's own.

Without torch a two-layer perceptron in numpy is trained; the record says which. Data are pictures
as `inputs` makes them, in files of one batch each. A user's own is a function that is given the
kind of run and returns what does one step:

    def steps(kind: str):            # synthetic_one, synthetic_all, cached, cold
        ...
        return step                  # step() trains on one batch and waits for the device
"""

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import BenchError, Skipped, guard
from .input_pipeline import (
    BATCH,
    CROP,
    Loader,
    augment,
    coder,
    drop,
    picture,
    write_safely,
)
from .matmul import cpus
from .progress_log import ProgressLog
from .stalls import KINDS, Kind, Profile, Run, Training, profile, time_runs, what_ifs
from .subject import Bench

NAMES = ("cnn", "transformer", "mlp")
FILES = 32  # of one batch each, read in turn
_HIDDEN = 256
_WIDTH = {"cpu": 16, "cuda": 32}  # channels of the CNN's first layer
_PATCH = {"cpu": 32, "cuda": 16}  # pixels per side of the transformer's tokens
_POOL = 16  # pixels per side that the perceptron sees
_MAX_WORKERS = 32  # threads of one interpreter: more gain nothing and hold memory

Batch = NDArray[np.float32]
Step = Callable[[Any], object]


@dataclass(slots=True)
class OwnTraining:
    """A function of the user, named on the command line and nowhere else."""

    make: Callable[[str], Callable[[], object]]

    def begin(self, kind: Kind) -> Callable[[], object]:
        """Get a step from the user's function."""
        return self.make(kind)

    def close(self) -> None:
        """Nothing of the user's is ours to end."""


class BuiltIn:
    """A network that is trained on random pictures."""

    def __init__(self, bench: Bench, name: str, workers: int) -> None:
        self._bench = replace(bench, torch=None) if name == "mlp" else bench  # numpy's own
        self._name, self._workers = name, workers
        self._folder = TemporaryDirectory(prefix="recommend-", dir=bench.folder)
        self._loader: Loader[list[bytes], Batch] | None = None
        self.decoder, encoded, self._decode = coder(picture(2))
        for path in self._paths():
            write_safely(path, len(encoded).to_bytes(4, "big") + encoded * BATCH)

    def begin(self, kind: Kind) -> Callable[[], object]:
        """Start the loader of this kind of data, or hold one batch ready."""
        self._end()
        step = _network(self._bench, self._name, parallel=kind != "synthetic_one")
        if kind.startswith("synthetic"):
            fixed = np.random.default_rng(1).standard_normal((BATCH, CROP, CROP, 3), np.float32)
            held = _on_device(self._bench, fixed)
            return lambda: step(held)
        cold, paths = kind == "cold", self._paths()
        for path in paths if cold else ():
            drop(path)
        loader = Loader(lambda i: _fetch(paths[i % FILES], cold), self._prepare, self._workers)
        self._loader = loader
        return lambda: step(_on_device(self._bench, loader.next()))

    def close(self) -> None:
        """End the loader and remove the files."""
        self._end()
        self._folder.cleanup()

    def _paths(self) -> list[Path]:
        return [Path(self._folder.name) / f"{i}.batch" for i in range(FILES)]

    def _prepare(self, encoded: list[bytes]) -> Batch:
        rng = np.random.default_rng()
        return np.stack([augment(self._decode(each), rng) for each in encoded])

    def _end(self) -> None:
        if self._loader is not None:
            self._loader.close()
            self._loader = None


def workers_of(bench: Bench) -> int:
    """Loading threads of one process: the processors, shared with the others of this machine."""
    return min(max(cpus() * bench.machines // bench.world, 1), _MAX_WORKERS)


def find_training(bench: Bench, name: str) -> Callable[[], Training]:
    """What makes a built-in network by its name, or `module:function` of the working directory.

    Raises BenchError for a name that is neither.
    """
    if name in NAMES:
        if name != "mlp" and bench.torch is None:
            raise BenchError(f"--profile {name} needs torch, which is not installed; use mlp")
        return partial(BuiltIn, bench, name, workers_of(bench))
    module, colon, function = name.partition(":")
    if not colon or not module or not function:
        raise BenchError(f"--profile {name}: write {', '.join(NAMES)} or module:function")
    sys.path.append(str(Path.cwd()))  # after our own modules, which it cannot hide then
    made = guard(lambda: getattr(import_module(module), function), f"--profile {name}")
    if isinstance(made, Skipped):
        raise BenchError(str(made))
    if not callable(made):
        raise BenchError(f"--profile {name}: {function} is not a function")
    return partial(OwnTraining, made)


def _fetch(path: Path, cold: bool) -> list[bytes]:
    data = path.read_bytes()
    if cold:  # for the next time; without fsync, which waits for what other programs write
        drop(path)
    size = int.from_bytes(data[:4], "big")
    return [data[4 + i * size : 4 + (i + 1) * size] for i in range(BATCH)]


def _on_device(bench: Bench, batch: Batch) -> Any:
    if bench.torch is None:
        return batch
    return bench.torch.from_numpy(batch).to(bench.device)


def _network(bench: Bench, name: str, parallel: bool) -> Step:
    if name == "mlp":
        return _perceptron()
    torch = bench.torch
    torch.manual_seed(1)
    model = (
        _cnn(torch, _WIDTH[bench.device])
        if name == "cnn"
        else _transformer(torch, _PATCH[bench.device])
    ).to(bench.device)
    if parallel and bench.world > 1:
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimiser = torch.optim.SGD(model.parameters(), 1e-4, momentum=0.9)

    # On GPUs mixed precision, as trainings use it; weights stay in 32 bits.
    mixed = partial(
        torch.autocast, bench.device, bench.training_type, enabled=bench.device == "cuda"
    )

    def step(batch: Any) -> None:
        optimiser.zero_grad(set_to_none=True)
        with mixed():
            loss = model(batch.permute(0, 3, 1, 2)).float().square().mean()
        loss.backward()
        optimiser.step()
        if bench.device == "cuda":
            torch.cuda.synchronize()

    return step


def _cnn(torch: Any, width: int) -> Any:
    nn = torch.nn
    layers: list[Any] = []
    before = 3
    for channels in (width, 2 * width, 4 * width, 8 * width):
        stride = 4 if before == 3 else 2
        layers += [nn.Conv2d(before, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels)]
        layers += [nn.ReLU(), _residual(torch, channels)]
        before = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 1000))


def _residual(torch: Any, channels: int) -> Any:
    """A block of ResNet-18: two 3x3 convolutions next to the way straight through (He, 2016)."""
    nn = torch.nn

    class Residual(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.block = nn.Sequential(
                nn.Conv2d(channels, channels, 3, 1, 1, bias=False),
                nn.BatchNorm2d(channels),
                nn.ReLU(),
                nn.Conv2d(channels, channels, 3, 1, 1, bias=False),
                nn.BatchNorm2d(channels),
            )

        def forward(self, x: Any) -> Any:
            return torch.relu(x + self.block(x))

    return Residual()


def _transformer(torch: Any, patch: int) -> Any:
    nn = torch.nn
    width = 192  # the smallest vision transformer's, three layers of it
    layer = nn.TransformerEncoderLayer(width, 3, 4 * width, dropout=0.0, batch_first=True)
    return nn.Sequential(
        nn.Conv2d(3, width, patch, patch),
        nn.Flatten(2),
        nn.Unflatten(1, (1, width)),
        nn.Flatten(0, 1),
        _swapped(torch),
        nn.TransformerEncoder(layer, 3, enable_nested_tensor=False),
        nn.Linear(width, 1000),
    )


def _swapped(torch: Any) -> Any:
    """A layer that swaps channels and patches, as the encoder wants them."""

    class Transpose(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return x.transpose(1, 2)

    return Transpose()


def _perceptron() -> Step:
    rng = np.random.default_rng(1)
    side = CROP // _POOL
    first = rng.standard_normal((side * side * 3, _HIDDEN), np.float32) * np.float32(0.03)
    second = rng.standard_normal((_HIDDEN, 10), np.float32) * np.float32(0.05)

    def step(batch: Batch) -> None:
        pooled = batch.reshape(len(batch), side, _POOL, side, _POOL, 3).mean((2, 4))
        x = pooled.reshape(len(batch), -1)
        hidden = np.maximum(x @ first, 0)
        out = hidden @ second
        back = (out @ second.T) * (hidden > 0)
        second[:] -= 1e-4 * (hidden.T @ out)
        first[:] -= 1e-4 * (x.T @ back)

    return step


_STEPS, _WARM_UP = 60, 12


def steps_of(bench: Bench) -> tuple[int, int]:
    """Steps of a profile's runs that are timed, and those before: for many bursts of a loader.

    Workers that began together deliver together, and hold up to three batches each in advance.
    """
    workers = workers_of(bench)
    return max(_STEPS, 10 * workers), max(_WARM_UP, 3 * workers)


def stalls_of(
    bench: Bench, name: str, make: Callable[[], Training] | None, log: ProgressLog
) -> Profile | None:
    """Time a training on four kinds of data, if one was named."""
    if make is None:
        log.skipped.append("stall profile: no training named; --profile")
        return None
    log.notify(f"stall profile of {name}: runs on {', '.join(_kinds(bench))}")
    measured = guard(lambda: profile(_timed(bench, make), name), f"stall profile of {name}")
    if isinstance(measured, Skipped):
        if bench.world > 1:
            raise BenchError(f"process {bench.rank}, {measured}")
        log.record(measured)
        return None
    if bench.world == 1:
        log.skipped.append("interconnect stall: one process; start it under torchrun")
    for each in measured.stalls:
        log.notify(
            f"{'stall':12}{each.name:36}{each.seconds * 1e3:11.4g} ms/step   "
            f"{each.share:4.0%} of the step, {each.low * 1e3:.3g} to {each.high * 1e3:.3g} ms"
        )
    for change in what_ifs(measured):
        log.notify(
            f"{'what if':12}{change.change:36}{change.step_s * 1e3:11.4g} ms/step   predicted"
        )
    return measured


def _kinds(bench: Bench) -> tuple[Kind, ...]:
    """With one process there is no exchange: its run on one GPU is that on all."""
    return KINDS if bench.world > 1 else KINDS[1:]


def _timed(bench: Bench, make: Callable[[], Training]) -> tuple[Run, ...]:
    """The runs of a training."""
    steps, warm_up = steps_of(bench)
    training = make()
    try:
        return time_runs(
            training, _kinds(bench), steps, warm_up, bench.world, BATCH, machines=bench.machines
        )
    finally:
        with suppress(OSError):
            training.close()
