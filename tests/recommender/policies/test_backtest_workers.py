"""Back-tests spread over processes and over a Dask cluster give the rows of a single process."""

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from recommender.errors import UsageError
from recommender.inputs.workers import LOCAL, Workers
from recommender.policies.backtest import FixedRule, Market, Piece, pieces, run
from recommender.policies.replay import RecordedZones
from recommender.policies.rules import Greedy, OnDemand, UniformProgress
from recommender.policies.state import ModePrices, Policy, Task

HOUR = 3600.0
PRICES = ModePrices(1.0, 3.0)
TASKS = (Task(2 * HOUR, 4 * HOUR, 600.0), Task(3 * HOUR, 5 * HOUR, 600.0))
RULES = (FixedRule(Greedy()), FixedRule(UniformProgress()), FixedRule(OnDemand()))

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


def traces() -> tuple[Market, ...]:
    """Three zones of two days, up for some hours and down for some."""
    made = []
    for period in (7, 11, 19):
        up = (np.arange(288) // period) % 3 != 1
        made.append(Market.of_one(f"zone {period}", 600.0, up[:144], up[144:], PRICES))
    return tuple(made)


@dataclass(frozen=True, slots=True)
class DiesOnce:
    """A rule whose first worker is killed while it enters."""

    mark: str  # made by the one that dies

    @property
    def name(self) -> str:
        """As the greedy rule."""
        return "greedy"

    def enter(self, market: Market) -> tuple[Policy, RecordedZones]:
        """Leave a mark and die; a process that finds the mark goes on."""
        try:
            Path(self.mark).mkdir()
        except FileExistsError:
            return Greedy(), market.judged
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("still alive")


def work(*extra: DiesOnce) -> tuple[Piece, ...]:
    return pieces([*RULES, *extra], traces(), TASKS)


def test_one_process_gives_the_rows_of_each_piece() -> None:
    rows = [row for piece in work() for row in piece.rows()]
    assert list(run(work(), Workers())) == rows


@pytest.fixture
def died(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mark of the worker that died; workers find the policy above by its name in `tests`."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(Path(__file__).parents[3])])
    return tmp_path / "died"


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", ["", LOCAL])
def test_workers_give_the_same_rows_although_one_is_killed(died: Path, scheduler: str) -> None:
    pytest.importorskip("distributed")
    expected = run(work(), Workers())
    found = run(work(DiesOnce(str(died))), Workers(2, scheduler))
    assert died.is_dir()
    assert tuple(row for i, row in enumerate(found) if i % 4 != 3) == expected
    greedy = [row.mean_usd for row in expected if row.policy == "greedy"]
    assert [row.mean_usd for row in found[3::4]] == greedy


def halved(_: None, piece: int) -> float:
    """What a worker does; of an odd number it dies."""
    if piece % 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return piece / 2


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", ["", LOCAL])
def test_a_piece_of_which_every_worker_dies_is_given_up_alone(died: Path, scheduler: str) -> None:
    pytest.importorskip("distributed")
    found = dict(Workers(2, scheduler).results(halved, None, [2, 5, 8]))
    assert found == {0: 1.0, 1: None, 2: 4.0}


def test_every_piece_is_heard_of() -> None:
    heard: list[tuple[int, int]] = []
    run(work(), Workers(), lambda done, of: heard.append((done, of)))
    assert heard == [(i, 6) for i in range(1, 7)]


def test_traces_shorter_than_every_deadline_are_refused() -> None:
    with pytest.raises(UsageError, match="longest evaluated part has 24 h"):
        pieces(RULES, traces(), (Task(20 * HOUR, 30 * HOUR, 600.0),))


def test_a_cluster_that_is_not_there_is_named() -> None:
    pytest.importorskip("distributed")
    with pytest.raises(UsageError, match="no cluster answers"):
        run(work(), Workers(scheduler="tcp://127.0.0.1:9"))
