"""Processes wait for each other through a store, and hear which of them failed."""

from threading import Thread

import pytest

from recommender.benchmarks import backend, rendezvous
from recommender.benchmarks.errors import BenchError
from recommender.benchmarks.rendezvous import Rendezvous


class Words:
    """A store of one process, as torch.distributed.HashStore is."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}

    def set(self, key: str, value: str) -> None:
        self.held[key] = value.encode()

    def get(self, key: str) -> bytes:
        return self.held[key]

    def check(self, keys: list[str]) -> bool:
        return all(key in self.held for key in keys)


def two() -> tuple[Rendezvous, Rendezvous]:
    store = Words()
    return Rendezvous(store, 0, 2), Rendezvous(store, 1, 2)


def test_every_process_receives_what_each_sends():
    first, second = two()
    heard: list[tuple[str, ...]] = []
    other = Thread(target=lambda: heard.append(second.agree("sizes", "out of memory")))
    other.start()
    assert first.agree("sizes") == ("", "out of memory")
    other.join()
    assert heard == [("", "out of memory")]


def test_a_second_rendezvous_does_not_read_the_words_of_the_first(monkeypatch: pytest.MonkeyPatch):
    first, second = two()
    second.announce("0 sizes", "old")
    assert first.agree("sizes") == ("", "old")
    monkeypatch.setattr(rendezvous, "SOON_S", 0.0)
    with pytest.raises(BenchError):
        first.agree("sizes")


def test_a_process_that_does_not_join_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rendezvous, "SOON_S", 0.0)
    first, _ = two()
    with pytest.raises(BenchError, match="process 1 of 2 did not come to '0 the start'"):
        first.agree("the start")


def test_the_first_process_that_failed_is_named_to_all():
    first, second = two()
    second.fail("no such module")
    first.fail("process 1 of 2 failed")
    with pytest.raises(BenchError, match="process 1 of 2 failed: no such module"):
        first.agree("the start")


def test_a_store_that_is_lost_is_reported():
    class Gone(Words):
        def check(self, keys: list[str]) -> bool:
            raise RuntimeError("Broken pipe")

    with pytest.raises(BenchError, match="first process or its machine has ended"):
        Rendezvous(Gone(), 1, 2).wait_for("measured", (0,), 60.0)
    Rendezvous(Gone(), 1, 2).fail("anything")  # no process is left to report to


def test_a_single_process_waits_for_no_other():
    assert Rendezvous().agree("the start", "here") == ()
    assert Rendezvous().wait_for("measured", (0,), 60.0) == ()
    Rendezvous().fail("anything")


def test_more_processes_than_gpus_are_refused_with_the_way_out():
    class Cuda:
        device_count = staticmethod(lambda: 4)

    class Torch:
        cuda = Cuda

    with pytest.raises(BenchError, match="no GPU, torch sees 4; .*--nproc-per-node=4"):
        backend.take_gpu(Torch, 4)
