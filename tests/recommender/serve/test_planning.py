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

    count, edition = 2, "yesterday's prices"

    def __init__(self) -> None:
        self.mean_s = 3.0
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
    assert planning.asked == planning.running == {}


def test_what_was_answered_with_another_catalog_is_planned_again():
    echo = Echo()
    planning = Planning(echo)

    async def run() -> None:
        await planning.answer("plan", question(1))
        echo.edition = "today's prices"
        await planning.answer("plan", question(1))

    asyncio.run(run())
    assert echo.calls == [question(1)] * 2


def held(planning: Planning, asked: list[tuple[int, str]]) -> "list[asyncio.Task[bytes]]":
    """Questions with so many hours, each in a line."""
    return [asyncio.create_task(planning.answer("plan", question(i), line)) for i, line in asked]


def hours(echo: Echo) -> list[float]:
    """What was planned, in order."""
    return [asked.limits.deadline_s / 3600 for asked in echo.calls]


def test_a_caller_behind_too_many_others_is_told_when_one_of_them_is_through():
    """Five wait for two workers of 3 s each: one is through after 1.5 s."""
    echo = Echo()
    planning = Planning(echo, most_waiting=5)

    async def run() -> int:
        echo.go.clear()
        waiting = held(planning, [(hour, "") for hour in range(1, 6)])
        await asyncio.sleep(0)
        with pytest.raises(Busy) as raised:
            await planning.answer("plan", question(6))
        echo.go.set()
        await asyncio.gather(*waiting)
        return raised.value.retry_s

    assert asyncio.run(run()) == 2


def test_a_caller_who_would_wait_too_long_is_told_when_the_wait_is_short_enough():
    """Of questions of 20 s for two workers the eighth waits 70 s, 10 too many."""
    echo = Echo()
    echo.mean_s = 20.0
    planning = Planning(echo)

    async def run() -> int:
        echo.go.clear()
        waiting = held(planning, [(hour, "") for hour in range(1, 8)])
        await asyncio.sleep(0)
        with pytest.raises(Busy) as raised:
            await planning.answer("plan", question(8))
        echo.go.set()
        await asyncio.gather(*waiting)
        return raised.value.retry_s

    assert asyncio.run(run()) == 10


def test_lines_take_turns():
    """One caller asks ten things; another, who comes then, is third, after the two under way."""
    echo = Echo()
    planning = Planning(echo)

    async def run() -> None:
        echo.go.clear()
        asked = held(planning, [(hour, "much") for hour in range(1, 11)])
        await asyncio.sleep(0)
        asked += held(planning, [(21, "little"), (22, "little")])
        await asyncio.sleep(0)
        echo.go.set()
        await asyncio.gather(*asked)

    asyncio.run(run())
    assert hours(echo) == [1, 2, 3, 21, 4, 22, 5, 6, 7, 8, 9, 10]


def test_the_longest_line_gives_a_place_up_to_a_shorter_one():
    echo = Echo()
    planning = Planning(echo, most_waiting=6)

    async def run() -> list[object]:
        echo.go.clear()
        asked = held(planning, [(hour, "much") for hour in range(1, 7)])
        await asyncio.sleep(0)
        asked += held(planning, [(21, "little"), (22, "little"), (23, "little")])
        await asyncio.sleep(0)
        echo.go.set()
        return list(await asyncio.gather(*asked, return_exceptions=True))

    found = asyncio.run(run())
    refused = [number for number, each in enumerate(found) if isinstance(each, Busy)]
    assert refused == [4, 5, 8]  # each line keeps two places beside those under way
    assert sorted(hours(echo)) == [1, 2, 3, 4, 21, 22]
    assert planning.asked == planning.lines == planning.running == {}


def test_a_question_of_a_long_line_is_planned_as_soon_as_a_short_one_asks_it():
    echo = Echo()
    planning = Planning(echo)

    async def run() -> None:
        echo.go.clear()
        asked = held(planning, [(hour, "much") for hour in range(1, 11)])
        await asyncio.sleep(0)
        asked += held(planning, [(10, "little")])
        await asyncio.sleep(0)
        echo.go.set()
        await asyncio.gather(*asked)

    asyncio.run(run())
    assert hours(echo) == [1, 2, 3, 10, 4, 5, 6, 7, 8, 9]


def test_what_nobody_waits_for_any_more_is_not_planned():
    echo = Echo()
    planning = Planning(echo)

    async def run() -> None:
        echo.go.clear()
        asked = held(planning, [(1, ""), (2, ""), (3, ""), (4, ""), (3, "")])
        await asyncio.sleep(0)
        asked[2].cancel()
        asked[3].cancel()
        await asyncio.sleep(0)
        echo.go.set()
        await asyncio.gather(*asked, return_exceptions=True)

    asyncio.run(run())
    assert hours(echo) == [1, 2, 3]  # another waits for the third


def test_an_error_is_the_answer_of_its_question_only():
    class Fails(Echo):
        async def ask(self, kind: Kind, asked: Question) -> bytes:
            if asked == question(2):
                raise TimeoutError
            return await super().ask(kind, asked)

    async def run() -> list[object]:
        planning = Planning(Fails())
        asked = held(planning, [(hour, "") for hour in (1, 2, 3, 4)])
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert planning.asked == planning.running == {}
        return list(found)

    found = asyncio.run(run())
    assert isinstance(found.pop(1), TimeoutError)
    assert found == [b"3600", b"10800", b"14400"]


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
        for each in (1, 2, 1, 3):
            await planning.answer("plan", question(each))

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
