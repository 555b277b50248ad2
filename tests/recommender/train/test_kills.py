"""A training killed at random moments loses at most what was not yet saved, and ends the same.

Kills are those of a cloud: SIGKILL for a machine that is gone, all at once or one of several, after
which the others stop too; SIGTERM for a notice, to all processes or to one.
"""

import random
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from statistics import fmean

import pytest

from recommender.catalogs.frozen import dataclass
from recommender.train.checkpoint_folder import UNFINISHED
from tests.recommender.train.fork_server import ForkServer, Run
from tests.recommender.train.killed_training import STEPS, Regression

STOPPED = 128 + signal.SIGTERM
PATIENCE_S = 20.0  # for the end of a training after SIGTERM
FINISH_S = 600.0  # for a whole training, on a machine that is busy with others


@dataclass(frozen=True, slots=True)
class Logged:
    """What one start of the training logged."""

    start: int
    last: int
    copies: tuple[int, ...]
    due: tuple[int, ...]  # steps at whose end a save was due and none was being written
    lost_s: float  # between the last copy but one, or the start, and the end


@dataclass(frozen=True, slots=True)
class Training:
    """A training that is killed and started again in one folder."""

    folder: Path
    begin: Callable[[], Run]
    happened: Counter[str] = field(default_factory=Counter[str])
    stopped: list[bool] = field(default_factory=list[bool])  # per start with a log: at SIGTERM
    lost_s: list[float] = field(default_factory=list[float])

    def kill(self, draw: random.Random) -> bool:
        """Start it, kill it at a random moment, often soon after a copy; whether it lived then."""
        starts, run = len(self.starts()), self.begin()
        word, within_s = draw.choice([("copy", 0.02), ("step", 0.25), ("start", 0.02)])
        before = self.log().count(word)
        while self.log().count(word) <= before and not run.ended(0.004):
            pass
        if run.ended(draw.uniform(0, within_s)):
            assert set(run.codes) == {0}
            return False
        number = draw.choice([signal.SIGKILL, signal.SIGTERM])
        run.send(number, *draw.choice([[], [draw.randrange(len(run.pids))]]))
        run.ended(PATIENCE_S if number == signal.SIGTERM else draw.uniform(0, 0.05))
        stopped = set(run.end()) == {STOPPED}
        self.happened[number.name] += 1
        self.happened["stopped at a step"] += stopped
        self.happened["during a save"] += any(self.folder.glob(f"step-*/{UNFINISHED}"))
        if len(self.starts()) > starts:
            self.stopped.append(stopped)
        return True

    def finish(self) -> None:
        """Let it end."""
        run = self.begin()
        assert run.ended(FINISH_S)
        assert set(run.codes) == {0}
        assert float((self.folder / "progress").read_text()) == 1.0

    def log(self) -> str:
        """All lines so far."""
        path = self.folder / "log"
        return path.read_text() if path.exists() else ""

    def starts(self) -> list[Logged]:
        """The log, start by start."""
        found: list[list[list[str]]] = []
        for line in self.log().splitlines():
            words = line.split()
            if words[0] == "start":
                found.append([])
            found[-1].append(words)
        return [read(words) for words in found]

    def check(self) -> None:
        """Each start goes on at one of the last two copies, and no due save was left out.

        Where SIGTERM stopped all processes nothing is lost.
        """
        starts = self.starts()
        for run, following, stopped in zip(starts, starts[1:], self.stopped, strict=False):
            safe = (run.last,) if stopped else (run.start, *run.copies)[-2:]
            assert following.start in safe, (run, following)
            assert set(run.due) - {run.last} <= set(run.copies), run
            self.happened["steps done twice"] += run.last - following.start
            self.lost_s.append(0.0 if stopped else run.lost_s)


def read(words: list[list[str]]) -> Logged:
    steps = [each for each in words if each[0] == "step"]
    copies = [each for each in words if each[0] == "copy"]
    safe = copies[-2] if len(copies) > 1 else words[0]
    return Logged(
        start=int(words[0][1]),
        last=int(steps[-1][1]) if steps else int(words[0][1]),
        copies=tuple(int(each[1]) for each in copies),
        due=tuple(int(each[1]) for each in steps if each[2] == "1"),
        lost_s=float(words[-1][-1]) - float(safe[-1]),
    )


def trained_through_kills(training: Training, seed: int, kills: int) -> None:
    """Kill a training so often, let it end, and check what each start found."""
    draw = random.Random(seed)
    while kills and training.kill(draw):
        kills -= 1
    training.finish()
    training.check()


def undisturbed() -> bytes:
    model = Regression()
    for _ in range(STEPS):
        model.step()
    return model.weights.tobytes()


def killed_alone(server: ForkServer, folder: Path, seed: int, kills: int) -> Training:
    """One process without torch; the weights it ends with are those of an undisturbed one."""
    folder.mkdir()
    training = Training(folder, lambda: server.start(1, str(folder)))
    trained_through_kills(training, seed, kills)
    assert (folder / "weights").read_bytes() == undisturbed()
    return training


def test_a_killed_training_ends_with_the_weights_of_an_undisturbed_one(tmp_path: Path):
    with ForkServer("tests.recommender.train.killed_training", tmp_path / "errors") as server:
        happened = killed_alone(server, tmp_path / "run", seed=1, kills=5).happened
    assert happened["SIGKILL"] + happened["SIGTERM"] == 5


@pytest.mark.slow
def test_two_hundred_kills_tear_nothing(tmp_path: Path):
    with ForkServer("tests.recommender.train.killed_training", tmp_path / "errors") as server:
        survives(200, lambda seed: killed_alone(server, tmp_path / f"run-{seed}", seed, kills=8))


def survives(kills: int, killed: Callable[[int], Training]) -> None:
    """Kill training after training until there were so many, at all kinds of moments."""
    happened, lost_s = Counter[str](), list[float]()
    while happened["SIGKILL"] + happened["SIGTERM"] < kills:
        training = killed(len(lost_s))
        happened += training.happened
        lost_s += training.lost_s
    print(dict(happened), f"lost at most {max(lost_s):.3f} s, in the mean {fmean(lost_s):.3f} s")
    assert happened["during a save"] >= kills / 10
    assert happened["stopped at a step"] >= kills / 10
