"""Processes plan, are ended when a question takes too long, and are replaced when they die."""

import asyncio
from collections.abc import Coroutine
from signal import SIGKILL
from typing import Any

import pytest

from recommender.plan.limits import Choice, Limits
from recommender.serve import workers as module
from recommender.serve.question import Question
from recommender.serve.workers import FIRST, Worker, WorkerDied, Workers
from tests.recommender.planning import small

LONG = Question("llama3-8b-lora", Limits(deadline_s=86_400.0), Choice())


def ran(workers: Workers, steps: Coroutine[Any, Any, Any]) -> Any:
    async def run() -> Any:
        try:
            return await steps
        finally:
            workers.end()

    return asyncio.run(run())


def test_a_question_that_takes_too_long_is_ended_and_the_next_is_answered():
    workers = Workers(small(), 1)

    async def steps() -> tuple[Any, bytes, Any]:
        await workers.start()
        (before,) = workers.all
        workers.timeout_s = 0.0
        with pytest.raises(TimeoutError):
            await workers.ask("report", LONG)
        workers.timeout_s = 60.0
        return before, await workers.ask("plan", FIRST), workers.all

    before, found, now = ran(workers, steps())
    assert before not in now
    assert len(now) == 1
    assert b"recommend.plan/v1" in found


def test_a_process_that_cannot_be_started_is_started_later(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "AGAIN_S", 0.0)
    pool = Workers(small(), 1)

    async def steps() -> bytes:
        await pool.start()
        start = module.Worker

        def fails_once(catalog: Any) -> Any:
            monkeypatch.setattr(module, "Worker", start)
            raise BlockingIOError("no process is left")

        monkeypatch.setattr(module, "Worker", fails_once)
        pool.timeout_s = 0.0
        with pytest.raises(TimeoutError):
            await pool.ask("report", LONG)
        pool.timeout_s = 60.0
        return await pool.ask("plan", FIRST)

    assert b"recommend.plan/v1" in ran(pool, steps())


def test_the_question_of_a_process_that_dies_is_asked_again_once():
    workers = Workers(small(), 1)

    async def steps() -> tuple[bytes, bytes]:
        await workers.start()
        (worker,) = workers.all
        asked = asyncio.create_task(workers.ask("plan", FIRST))
        await asyncio.sleep(0)
        worker.process.kill()
        busy = await asked
        (worker,) = workers.all
        await worker.get_ready()
        worker.process.kill()  # while it waits for a question
        worker.process.join()
        return busy, await workers.ask("plan", FIRST)

    for found in ran(workers, steps()):
        assert b"recommend.plan/v1" in found


def test_a_question_that_ends_two_processes_is_an_error(monkeypatch: pytest.MonkeyPatch):
    workers = Workers(small(), 1)

    async def dies(self: Worker, *_: object) -> bytes:
        self.process.kill()
        self.process.join()
        raise WorkerDied("ended")

    async def steps() -> bytes:
        await workers.start()
        with monkeypatch.context() as patch:
            patch.setattr(Worker, "ask", dies)
            with pytest.raises(WorkerDied):
                await workers.ask("plan", FIRST)
        return await workers.ask("plan", FIRST)

    assert b"recommend.plan/v1" in ran(workers, steps())


def test_no_process_outlives_the_server():
    workers = Workers(small(), 2)
    ran(workers, workers.start())
    assert [worker.process.exitcode for worker in workers.all] == [-SIGKILL] * 2
