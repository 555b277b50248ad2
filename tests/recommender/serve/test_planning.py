"""One question is planned once, few wait, and what is kept is bounded."""

import asyncio

import pytest

from recommender.plan.limits import Choice, Limits
from recommender.serve.planning import Busy, Planning
from recommender.serve.question import Kind, Question


def question(hours: int) -> Question:
    return Question("resnet50-imagenet", Limits(deadline_s=3600.0 * hours), Choice())


class Echo:
    """Answers with the deadline once it may go; counts its calls."""

    count, mean_s, edition = 2, 3.0, "yesterday's prices"

    def __init__(self) -> None:
        self.calls: list[Question] = []
        self.go = asyncio.Event()
        self.go.set()

    async def ask(self, _: Kind, asked: Question) -> bytes:
        self.calls.append(asked)
        await self.go.wait()
        return f"{asked.limits.deadline_s:g}".encode()


def test_a_question_of_many_callers_is_planned_once_and_cached():
    echo = Echo()
    planning = Planning(echo)

    async def run() -> list[bytes]:
        asked = (planning.answer("plan", question(1)) for _ in range(20))
        return [*await asyncio.gather(*asked), await planning.answer("plan", question(1))]

    assert asyncio.run(run()) == [b"3600"] * 21
    assert len(echo.calls) == 1
    assert planning.running == {}


def test_what_was_answered_with_another_catalog_is_planned_again():
    echo = Echo()
    planning = Planning(echo)

    async def run() -> None:
        await planning.answer("plan", question(1))
        echo.edition = "today's prices"
        await planning.answer("plan", question(1))

    asyncio.run(run())
    assert echo.calls == [question(1)] * 2


def test_a_caller_behind_too_many_others_gets_a_retry_time():
    """Five wait for two workers of 3 s each: 7.5 s."""
    echo = Echo()
    planning = Planning(echo, most_waiting=5)

    async def run() -> int:
        echo.go.clear()
        waiting = [asyncio.create_task(planning.answer("plan", question(i))) for i in range(1, 6)]
        await asyncio.sleep(0)
        with pytest.raises(Busy) as raised:
            await planning.answer("plan", question(6))
        echo.go.set()
        await asyncio.gather(*waiting)
        return raised.value.retry_s

    assert asyncio.run(run()) == 8


def test_a_caller_that_leaves_does_not_disturb_others_with_the_same_question():
    echo = Echo()
    planning = Planning(echo)

    async def run() -> bytes:
        echo.go.clear()
        leaves, stays = (asyncio.create_task(planning.answer("plan", question(1))) for _ in "ab")
        await asyncio.sleep(0)
        leaves.cancel()
        echo.go.set()
        return await stays

    assert asyncio.run(run()) == b"3600"
    assert len(echo.calls) == 1


def test_what_is_kept_is_bounded_and_the_oldest_go_first():
    planning = Planning(Echo(), most_bytes=9)

    async def run() -> None:
        for hours in (1, 2, 1, 3):
            await planning.answer("plan", question(hours))

    asyncio.run(run())
    assert [key[1] for key in planning.kept] == [question(1), question(3)]


def test_a_question_of_the_next_day_is_planned_again(monkeypatch: pytest.MonkeyPatch):
    """What was kept tells how many days old the prices were then."""
    echo = Echo()
    planning = Planning(echo)
    for moment in ("2026-09-01T10:00Z", "2026-09-01T23:00Z", "2026-09-02T01:00Z"):
        monkeypatch.setenv("RECOMMEND_NOW", moment)
        asyncio.run(planning.answer("plan", question(1)))
    assert len(echo.calls) == 2
