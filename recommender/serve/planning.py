"""Answers for many callers: each question is planned once, few wait, and the latest are kept.

A question that is being planned is planned once for all its callers; recent answers are kept, up
to a size, for the day and the catalog. Nothing else is kept between questions. If too many callers
wait, the next is refused at once, with the time after which those will have their answers.
"""

import asyncio
import math
from collections import OrderedDict
from dataclasses import field
from datetime import date
from typing import Protocol

from recommender.catalogs.frozen import dataclass
from recommender.inputs.units.times import now
from recommender.serve.question import Kind, Question

# The catalog; the day, since answers contain the age of prices in days.
Key = tuple[Kind, Question, str, date]

MAX_WAITING = 64  # questions, those that are planned among them
MAX_WAIT_S = 60.0  # as long as a question may be planned
MAX_KEPT_BYTES = 64 * 2**20


class Pool(Protocol):
    """What carries out the planning: `count` questions at once, each in `mean_s`."""

    count: int

    @property
    def edition(self) -> str:
        """The version of the catalog for new questions."""

    @property
    def mean_s(self) -> float:
        """How long a question takes."""

    async def ask(self, kind: Kind, question: Question) -> bytes:
        """The answer of a question."""


class Busy(Exception):
    """Too many questions wait; those before it are through after `retry_s`."""

    def __init__(self, retry_s: int) -> None:
        self.retry_s = retry_s
        super().__init__(retry_s)


@dataclass(frozen=True)
class Planning:
    """The questions that are being planned, and what was answered lately."""

    workers: Pool
    most_waiting: int = MAX_WAITING
    most_bytes: int = MAX_KEPT_BYTES
    running: dict[Key, "asyncio.Task[bytes]"] = field(default_factory=dict)
    kept: OrderedDict[Key, bytes] = field(default_factory=OrderedDict)

    async def answer(self, kind: Kind, question: Question) -> bytes:
        """The answer of a question; raises `Busy`, and what the workers raise."""
        key = (kind, question, self.workers.edition, now().date())
        if key in self.kept:
            self.kept.move_to_end(key)
            return self.kept[key]
        if key not in self.running:
            wait_s = self.workers.mean_s * len(self.running) / self.workers.count
            if len(self.running) >= self.most_waiting or wait_s > MAX_WAIT_S:
                raise Busy(math.ceil(wait_s))
            self.running[key] = asyncio.create_task(self._planned(key))
        return await asyncio.shield(self.running[key])  # for the others, should one caller leave

    async def _planned(self, key: Key) -> bytes:
        try:
            found = await self.workers.ask(*key[:2])
            self._keep(key, found)
            return found
        finally:
            del self.running[key]

    def _keep(self, key: Key, found: bytes) -> None:
        """Keep an answer, and drop the least recently used ones."""
        self.kept[key] = found
        while sum(map(len, self.kept.values())) > self.most_bytes:
            self.kept.popitem(last=False)
