"""Plans for many callers: one thread each for a few questions, the others wait or are sent away.

A question that is being planned is planned once, however many ask it; what was answered lately is
kept, by its bytes. Nothing else is kept between questions. A thread cannot be ended: after
`timeout_s` its caller is told so, and its answer is there for who asks again.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import field

from recommender.catalogs.frozen import dataclass
from recommender.serve.question import Question

Key = tuple[str, Question]
Make = Callable[[Question], bytes]

WORKERS = 2
MOST_WAITING = 100  # questions, those that are planned among them
TIMEOUT_S = 60.0
MOST_KEPT_BYTES = 64 * 2**20


class Busy(Exception):
    """Too many questions wait."""


@dataclass(frozen=True)
class Planning:
    """The questions that are being planned, and what was answered lately."""

    workers: int = WORKERS
    most_waiting: int = MOST_WAITING
    timeout_s: float = TIMEOUT_S
    most_bytes: int = MOST_KEPT_BYTES
    running: dict[Key, "asyncio.Task[bytes]"] = field(default_factory=dict)
    kept: OrderedDict[Key, bytes] = field(default_factory=OrderedDict)
    desks: list[asyncio.Semaphore] = field(default_factory=list)  # made in the loop that uses it

    async def answer(self, kind: str, question: Question, make: Make) -> bytes:
        """What `make` makes of a question; raises `Busy`, or `TimeoutError`."""
        key = (kind, question)
        if key in self.kept:
            self.kept.move_to_end(key)
            return self.kept[key]
        if key not in self.running:
            if len(self.running) >= self.most_waiting:
                raise Busy
            self.running[key] = asyncio.create_task(self._planned(key, make))
        return await asyncio.wait_for(asyncio.shield(self.running[key]), self.timeout_s)

    async def _planned(self, key: Key, make: Make) -> bytes:
        if not self.desks:
            self.desks.append(asyncio.Semaphore(self.workers))
        try:
            async with self.desks[0]:
                found = await asyncio.to_thread(make, key[1])
            self._keep(key, found)
            return found
        finally:
            del self.running[key]

    def _keep(self, key: Key, found: bytes) -> None:
        """Keep an answer, and let those go that were asked for longest ago."""
        self.kept[key] = found
        while sum(map(len, self.kept.values())) > self.most_bytes:
            self.kept.popitem(last=False)
