"""Answers for many callers: each question is planned once, in turns, and the latest are kept.

A question that is being planned is planned once for all its callers; recent answers are kept, up
to a size, for the day and the catalog. Nothing else is kept between questions. Callers stand in
lines, and the lines take turns: whoever asks much waits behind their own questions, not in front
of everybody else's. A question that nobody waits for any more is not planned. If a caller would
wait too long, they are refused at once, with the time after which there is room; if all places are
taken, the longest line gives one up for a shorter one.
"""

import asyncio
import math
from collections import OrderedDict
from dataclasses import field
from datetime import date
from functools import partial
from typing import Protocol

from recommender.catalogs.frozen import dataclass
from recommender.inputs.units.times import now
from recommender.serve.question import Kind, Question

# The catalog; the day, since answers contain the age of prices in days.
Key = tuple[Kind, Question, str, date]

MAX_WAITING = 64  # questions, those that are planned among them
MAX_WAIT_S = 60.0  # nginx's default proxy_read_timeout, as of 2026-11: then nobody hears the answer
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
    """Too many questions wait; there is room for another after `retry_s`."""

    def __init__(self, retry_s: int) -> None:
        self.retry_s = retry_s
        super().__init__(retry_s)


class Asked:
    """A question, its answer to come, and how many wait for it."""

    def __init__(self, key: Key) -> None:
        self.key, self.callers = key, 0
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.answer.add_done_callback(_heard)


def _heard(answer: "asyncio.Future[bytes]") -> None:
    """Let an error that nobody waits for any more be no news."""
    if not answer.cancelled():
        answer.exception()


@dataclass(frozen=True)
class Planning:
    """The questions that wait, those that are being planned, and what was answered lately."""

    workers: Pool
    most_waiting: int = MAX_WAITING
    most_bytes: int = MAX_KEPT_BYTES
    asked: dict[Key, Asked] = field(default_factory=dict)
    lines: dict[str, list[Asked]] = field(default_factory=dict)  # the next turn first
    running: dict[Asked, "asyncio.Task[bytes]"] = field(default_factory=dict)
    kept: OrderedDict[Key, bytes] = field(default_factory=OrderedDict)

    async def answer(self, kind: Kind, question: Question, line: str = "") -> bytes:
        """The answer of a question; raises `Busy`, and what the workers raise.

        Questions of one `line` are planned in their order.
        """
        key = (kind, question, self.workers.edition, now().date())
        if key in self.kept:
            self.kept.move_to_end(key)
            return self.kept[key]
        asked = self._lined_up(key, line)
        asked.callers += 1
        try:
            return await asyncio.shield(asked.answer)  # for the others, should one caller leave
        finally:
            asked.callers -= 1
            if not asked.callers and asked not in self.running:
                self._leave(asked)

    def _lined_up(self, key: Key, line: str) -> Asked:
        """The question in this line; where others asked it already, it is planned once."""
        asked = self.asked.get(key)
        if asked is None:
            self._make_room(line)
            asked = self.asked[key] = Asked(key)
        if asked not in self.running and asked not in self.lines.get(line, ()):
            self.lines.setdefault(line, []).append(asked)
            self._take_turns()
        return asked

    def _make_room(self, line: str) -> None:
        """Refuse a caller who would wait too long; let the longest line yield to a shorter one."""
        mine = len(self.lines.get(line, ())) + 1
        ahead = {each: min(len(waiting), mine) for each, waiting in self.lines.items()}
        before = len(self.running) + sum({**ahead, line: mine - 1}.values())
        each_s = self.workers.mean_s / self.workers.count
        if before * each_s > MAX_WAIT_S:
            raise Busy(math.ceil(max(before * each_s - MAX_WAIT_S, each_s)))
        if len(self.asked) < self.most_waiting:
            return
        longest = max(self.lines.values(), key=len, default=[])
        if len(longest) <= mine:
            raise Busy(math.ceil(each_s))
        last = longest[-1]
        last.answer.set_exception(Busy(math.ceil(each_s)))
        self._leave(last)

    def _take_turns(self) -> None:
        """Plan the first question of the next line, as long as a worker is idle."""
        while self.lines and len(self.running) < self.workers.count:
            line = next(iter(self.lines))
            asked = self.lines[line][0]
            self.lines[line] = self.lines.pop(line)  # the last now
            self._leave_lines(asked)
            self.running[asked] = asyncio.create_task(self.workers.ask(*asked.key[:2]))
            self.running[asked].add_done_callback(partial(self._end, asked))

    def _end(self, asked: Asked, planned: "asyncio.Task[bytes]") -> None:
        """Tell the callers what came of a question, and plan the next one."""
        del self.running[asked], self.asked[asked.key]
        if planned.cancelled():  # the server ends
            asked.answer.cancel()
            return
        error = planned.exception()
        if error is None:
            self._keep(asked.key, planned.result())
            asked.answer.set_result(planned.result())
        else:
            asked.answer.set_exception(error)
        self._take_turns()

    def _leave(self, asked: Asked) -> None:
        """Let a question go that is not to be planned."""
        self._leave_lines(asked)
        if self.asked.get(asked.key) is asked:  # and not a later one
            del self.asked[asked.key]

    def _leave_lines(self, asked: Asked) -> None:
        for line, waiting in [*self.lines.items()]:
            if asked in waiting:
                waiting.remove(asked)
            if not waiting:
                del self.lines[line]

    def _keep(self, key: Key, found: bytes) -> None:
        """Keep an answer, and drop the least recently used ones."""
        self.kept[key] = found
        while sum(map(len, self.kept.values())) > self.most_bytes:
            self.kept.popitem(last=False)
