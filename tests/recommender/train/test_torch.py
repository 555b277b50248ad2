"""PyTorch trainings go on with the same bits where that can be, and a message where it cannot."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.recommender.train.fork_server import ForkServer, Run
from tests.recommender.train.test_kills import Training, survives, trained_through_kills

torch = pytest.importorskip("torch", reason="the checkpoint helper's torch part needs PyTorch")
STEPS = 40
Weights = dict[str, Any]


class Trainings:
    """Starts trainings in folders of their own."""

    def __init__(self, server: ForkServer, root: Path) -> None:
        self._server, self._root = server, root
        self._starts = itertools.count()

    def folder(self, name: str) -> Path:
        """Where a training keeps its checkpoints."""
        folder = self._root / name
        folder.mkdir(exist_ok=True)
        return folder

    def begin(
        self, name: str, ranks: int, how: str, end: int, warm_up: bool = True, dropout: float = 0.1
    ) -> Run:
        """Start one, from the beginning or where it was left, that ends at a step."""
        words = (str(self.folder(name)), next(self._starts), how, int(warm_up), dropout, end)
        return self._server.start(ranks, *words)

    def weights(
        self,
        name: str,
        how: str,
        *parts: tuple[int, int],
        warm_up: bool = True,
        dropout: float = 0.1,
    ) -> Weights:
        """Train with so many processes up to a step, then with so many up to the next one."""
        for ranks, end in parts:
            run = self.begin(name, ranks, how, end, warm_up, dropout)
            assert run.ended(120)
            assert set(run.codes) == {0}
        return self.found(name, end)

    def found(self, name: str, end: int) -> Weights:
        """What a training ended with."""
        return torch.load(self.folder(name) / f"weights-{end}.pt", weights_only=True)


@pytest.fixture(scope="module")
def trainings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trainings]:
    root = tmp_path_factory.mktemp("torch")
    with ForkServer("tests.recommender.train.torch_training", root / "errors") as server:
        yield Trainings(server, root)


def same_bits(one: Weights, other: Weights) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one.keys() | other.keys())


def largest_difference(one: Weights, other: Weights) -> float:
    return max(float((one[name] - other[name]).abs().max()) for name in one)


def test_one_process_that_goes_on_ends_with_the_same_bits(trainings: Trainings):
    whole = trainings.weights("alone", "alone", (1, STEPS))
    parts = trainings.weights("alone in parts", "alone", (1, 13), (1, 14), (1, STEPS))
    assert same_bits(whole, parts)


def test_ddp_that_warmed_up_before_it_goes_on_ends_with_the_same_bits(trainings: Trainings):
    whole = trainings.weights("ddp", "ddp", (4, STEPS))
    assert same_bits(whole, trainings.weights("ddp in parts", "ddp", (4, 17), (4, STEPS)))


@pytest.mark.slow
def test_ddp_that_did_not_differs_by_rounding_for_its_gradients_lie_elsewhere_at_first(
    trainings: Trainings,
):
    """After its first step DDP lays its buckets again, in the order in which gradients came.

    An all-reduce adds the ranks' values in an order that depends on the place in the bucket.
    """
    whole = trainings.weights("cold", "ddp", (4, STEPS), warm_up=False)
    parts = trainings.weights("cold in parts", "ddp", (4, 17), (4, STEPS), warm_up=False)
    assert 0 < largest_difference(whole, parts) < 1e-5


@pytest.mark.slow
def test_shards_go_on_with_the_same_bits(trainings: Trainings):
    whole = trainings.weights("fsdp", "fsdp", (4, STEPS), warm_up=False)
    parts = trainings.weights("fsdp in parts", "fsdp", (4, 17), (4, STEPS), warm_up=False)
    assert same_bits(whole, parts)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["fsdp", "ddp"])
def test_fewer_and_more_processes_go_on_with_the_same_state(trainings: Trainings, how: str):
    whole = trainings.weights(f"{how} of four", how, (4, STEPS), dropout=0)
    parts = ((4, 15), (2, 28), (4, STEPS))
    elastic = trainings.weights(f"{how} of four, two, four", how, *parts, dropout=0)
    assert largest_difference(whole, elastic) < 1e-5


@pytest.mark.slow
def test_two_hundred_kills_of_four_processes_tear_nothing(trainings: Trainings):
    end = 150
    whole = trainings.weights("undisturbed", "ddp", (4, end))

    def killed(seed: int) -> Training:
        name = f"killed-{seed}"
        training = Training(
            trainings.folder(name), lambda: trainings.begin(name, 4, "ddp", end=end)
        )
        trained_through_kills(training, seed, kills=8)
        assert same_bits(whole, trainings.found(name, end))
        return training

    survives(200, killed)
