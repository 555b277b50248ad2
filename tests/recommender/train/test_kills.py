"""A training killed at random moments loses at most what was not yet saved, and ends the same."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from recommender.catalogs.frozen import dataclass
from recommender.train.checkpoint_folder import UNFINISHED
from tests.recommender.train import killed_training
from tests.recommender.train.killed_training import STEPS, Regression

SCRIPT = Path(killed_training.__file__)


@dataclass(frozen=True, slots=True)
class Run:
    """What one start of the training logged."""

    start: int
    last: int
    copies: tuple[int, ...]
    due: tuple[int, ...]  # steps at whose end a save was due and none was being written
    lost_s: float  # between the last copy but one, or the start, and the end


def started(folder: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, str(SCRIPT), str(folder)], stderr=subprocess.PIPE)


def killed(folder: Path, draw: random.Random) -> Counter[str]:
    """Start the training, kill it at a random moment, half of the times soon after a copy."""
    log, process = folder / "log", started(folder)
    before = log.stat().st_size if log.exists() else 0
    word = draw.choice([b"copy", b"step"])
    while process.poll() is None and not (log.exists() and word in log.read_bytes()[before:]):
        os.sched_yield()
    end = time.monotonic() + (draw.uniform(0, 0.02) if word == b"copy" else draw.uniform(0, 0.25))
    while process.poll() is None and time.monotonic() < end:
        os.sched_yield()
    number = draw.choice([signal.SIGKILL, signal.SIGTERM])
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    if process.returncode == 0:
        return Counter(ended=1)
    expected = -signal.SIGKILL if number == signal.SIGKILL else 128 + signal.SIGTERM
    early = number == signal.SIGTERM and process.returncode == -signal.SIGTERM
    assert process.returncode == expected or early, said.decode()
    torn = any(folder.glob(f"step-*/{UNFINISHED}"))
    return Counter({number.name: 1, "during a save": int(torn)})


def runs(folder: Path) -> list[Run]:
    """The log, start by start."""
    found: list[list[list[str]]] = []
    for line in (folder / "log").read_text().splitlines():
        words = line.split()
        if words[0] == "start":
            found.append([])
        found[-1].append(words)
    return [read(words) for words in found]


def read(words: list[list[str]]) -> Run:
    steps = [each for each in words if each[0] == "step"]
    copies = [each for each in words if each[0] == "copy"]
    safe = copies[-2] if len(copies) > 1 else words[0]
    return Run(
        start=int(words[0][1]),
        last=int(steps[-1][1]) if steps else int(words[0][1]),
        copies=tuple(int(each[1]) for each in copies),
        due=tuple(int(each[1]) for each in steps if each[2] == "1"),
        lost_s=float(words[-1][-1]) - float(safe[-1]),
    )


def undisturbed() -> bytes:
    model = Regression()
    for _ in range(STEPS):
        model.step()
    return model.weights.tobytes()


def trained_through_kills(folder: Path, seed: int, kills: int) -> Counter[str]:
    """Kill a training so often, let it end, and check what each start found."""
    folder.mkdir()
    draw, happened = random.Random(seed), Counter[str]()
    for _ in range(kills):
        happened += killed(folder, draw)
        if happened["ended"]:
            break
    ending = started(folder)
    _, said = ending.communicate(timeout=120)
    assert ending.returncode == 0, said.decode()
    check(runs(folder), happened)
    assert (folder / "weights").read_bytes() == undisturbed()
    assert float((folder / "progress").read_text()) == 1.0
    return happened


def check(starts: list[Run], happened: Counter[str]) -> None:
    """Each start goes on at one of the last two copies, and no due save was left out."""
    for run, following in zip(starts, starts[1:], strict=False):
        safe = (run.start, *run.copies)[-2:]
        assert following.start in safe, (run, following)
        assert set(run.due) - {run.last} <= set(run.copies), run
        happened["steps done twice"] += run.last - following.start


@pytest.mark.parametrize("seed", [1])
def test_a_killed_training_ends_with_the_weights_of_an_undisturbed_one(tmp_path: Path, seed: int):
    happened = trained_through_kills(tmp_path / "run", seed, kills=5)
    assert happened["SIGKILL"] + happened["SIGTERM"] + happened["ended"] > 1


@pytest.mark.slow
def test_two_hundred_kills_tear_nothing(tmp_path: Path):
    happened, seed = Counter[str](), 100
    while happened["SIGKILL"] + happened["SIGTERM"] < 200:
        happened += trained_through_kills(tmp_path / f"run-{seed}", seed, kills=10)
        seed += 1
    print(dict(happened))
    assert happened["during a save"] >= 20
    assert happened["SIGKILL"] >= 50
    assert happened["SIGTERM"] >= 50
