"""One question is planned once, few at a time, and what is kept is bounded."""

import asyncio
from threading import Event, Lock

import pytest

from recommender.plan.limits import Choice, Limits
from recommender.serve.planning import Busy, Planning
from recommender.serve.question import Question


def question(hours: int) -> Question:
    return Question("resnet50-imagenet", Limits(deadline_s=3600.0 * hours), Choice())


class Maker:
    """Answers with the deadline; counts calls and how many run at once."""

    def __init__(self) -> None:
        self.calls: list[Question] = []
        self.now, self.most, self.lock, self.go = 0, 0, Lock(), Event()
        self.go.set()

    def __call__(self, asked: Question) -> bytes:
        with self.lock:
            self.calls.append(asked)
            self.now += 1
            self.most = max(self.most, self.now)
        assert self.go.wait(20.0)
        with self.lock:
            self.now -= 1
        return f"{asked.limits.deadline_s:g}".encode()


def test_a_question_that_many_ask_is_planned_once_and_kept():
    make, planning = Maker(), Planning()

    async def run() -> list[bytes]:
        asked = (planning.answer("plan", question(1), make) for _ in range(20))
        return [*await asyncio.gather(*asked), await planning.answer("plan", question(1), make)]

    assert asyncio.run(run()) == [b"3600"] * 21
    assert len(make.calls) == 1
    assert planning.running == {}


def test_no_more_are_planned_at_once_than_there_are_workers():
    make, planning = Maker(), Planning(workers=2)

    async def run() -> None:
        await asyncio.gather(*(planning.answer("plan", question(i), make) for i in range(1, 9)))

    asyncio.run(run())
    assert make.most <= 2
    assert len(make.calls) == 8


def test_who_comes_when_too_many_wait_is_sent_away():
    make, planning = Maker(), Planning(workers=1, most_waiting=2)

    async def run() -> None:
        make.go.clear()
        waiting = [asyncio.create_task(planning.answer("plan", question(i), make)) for i in (1, 2)]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await planning.answer("plan", question(3), make)
        make.go.set()
        await asyncio.gather(*waiting)

    asyncio.run(run())


def test_who_waits_too_long_is_told_so_and_finds_the_answer_later():
    make, planning = Maker(), Planning(timeout_s=0.0)

    async def run() -> bytes:
        make.go.clear()
        with pytest.raises(TimeoutError):
            await planning.answer("plan", question(1), make)
        make.go.set()
        await asyncio.gather(*planning.running.values())
        return await planning.answer("plan", question(1), make)

    assert asyncio.run(run()) == b"3600"
    assert len(make.calls) == 1


def test_what_is_kept_is_bounded_and_the_oldest_go_first():
    make, planning = Maker(), Planning(most_bytes=9)

    async def run() -> None:
        for hours in (1, 2, 1, 3):
            await planning.answer("plan", question(hours), make)

    asyncio.run(run())
    assert [key[1] for key in planning.kept] == [question(1), question(3)]


def test_a_question_that_fails_can_be_asked_again():
    planning = Planning()

    def fails(_: Question) -> bytes:
        raise ValueError("no")

    async def run() -> None:
        for _ in range(2):
            with pytest.raises(ValueError, match="no"):
                await planning.answer("plan", question(1), fails)

    asyncio.run(run())
    assert planning.running == {}
