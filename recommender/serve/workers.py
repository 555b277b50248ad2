"""Processes that plan: each holds the catalog, answers one question at a time, and can be ended.

Threads would share one interpreter and cannot be ended: a question that takes too long would keep
a core until it is answered. A process that is killed, or dies of a defect, is
replaced by another, without effect on the questions of the others.
"""

import asyncio
import logging
import multiprocessing as mp
import os
import signal
from collections import deque
from multiprocessing.connection import Connection
from statistics import fmean
from time import monotonic

from recommender.catalogs.catalog import Catalog
from recommender.errors import RecommendError
from recommender.plan.limits import Choice, Limits
from recommender.serve.question import Kind, Question

WORKERS = 2
TIMEOUT_S = 60.0
AGAIN_S = 1.0  # until a process is started that could not be
USUAL_S = 3.0  # of a question, before any was answered
log = logging.getLogger(__name__)
READY = b"ready"
DIED = "the process that planned this ended; ask again"
# Planned by every worker as it starts, so that no caller waits for imports and tables.
FIRST = Question("resnet18-cifar10", Limits(deadline_s=86_400.0, max_machines=1), Choice())


class WorkerDied(RecommendError):
    """A process ended while it planned."""


def work(catalog: Catalog, connection: Connection) -> None:
    """The life of a worker: answer what comes down the line until it is closed.

    A catalog that comes down it takes the place of the one before.
    """
    from recommender.serve.answers import made  # the server itself plans nothing

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the server ends its workers
    made("plan", FIRST, catalog)
    connection.send(READY)
    while True:
        try:
            readable = connection.recv()
        except EOFError:
            return
        if isinstance(readable, Catalog):
            catalog = readable
            continue
        kind, question = readable
        try:
            connection.send(made(kind, question, catalog))
        except RecommendError as error:
            connection.send(error)


class Worker:
    """One process and the line to it."""

    def __init__(self, catalog: Catalog) -> None:
        context = mp.get_context("forkserver")
        context.set_forkserver_preload(["recommender.serve.answers"])
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(catalog, theirs), daemon=True)
        self.process.start()
        theirs.close()  # so that the line ends with the process
        self.catalog, self.ready = catalog, False

    async def get_ready(self) -> None:
        """Wait until the process has answered its first question."""
        if not self.ready:
            await self._receive()
            self.ready = True

    async def ask(self, kind: Kind, question: Question, catalog: Catalog) -> bytes:
        """The answer of a question; raises what planning raised, or `WorkerDied`."""
        await self.get_ready()
        if catalog is not self.catalog:
            self.catalog = catalog
            self._send(catalog)  # 0.9 MB, read at once: it waits for questions
        self._send((kind, question))
        found = await self._receive()
        if isinstance(found, RecommendError):
            raise found
        return found

    def _send(self, what: Catalog | tuple[Kind, Question]) -> None:
        try:
            self.connection.send(what)
        except OSError:
            raise WorkerDied(DIED) from None

    async def _receive(self) -> bytes | RecommendError:
        """What the process says next."""
        readable, loop = asyncio.Event(), asyncio.get_running_loop()
        loop.add_reader(self.connection.fileno(), readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(self.connection.fileno())
        try:
            # uvloop makes the line non-blocking, and an answer comes in many pieces.
            os.set_blocking(self.connection.fileno(), True)
            found: bytes | RecommendError = self.connection.recv()
        except (EOFError, OSError):
            raise WorkerDied(DIED) from None
        return found

    def end(self) -> None:
        """End the process at once, whatever it does."""
        self.process.kill()
        self.process.join()
        self.connection.close()


class Workers:
    """A pool of processes; callers wait for the next idle one, first come first served.

    Another `catalog` holds for every question that is planned from then on.
    """

    def __init__(
        self, catalog: Catalog, count: int = WORKERS, timeout_s: float = TIMEOUT_S
    ) -> None:
        self.catalog, self.count, self.timeout_s = catalog, count, timeout_s
        self.all: set[Worker] = set()
        self.ended = False
        self.idle: asyncio.Queue[Worker] = asyncio.Queue()
        self.took_s: deque[float] = deque([USUAL_S], maxlen=50)

    @property
    def edition(self) -> str:
        """The version of the catalog for new questions."""
        return self.catalog.sha256

    @property
    def mean_s(self) -> float:
        """How long the latest questions took, on average."""
        return fmean(self.took_s)

    async def start(self) -> None:
        """Start the processes, and wait until they are ready."""
        if not self.all:
            for _ in range(self.count):
                self._add()
            await asyncio.gather(*(worker.get_ready() for worker in self.all))

    def end(self) -> None:
        """End them for good."""
        self.ended = True
        for worker in self.all:
            worker.end()

    async def ask(self, kind: Kind, question: Question) -> bytes:
        """The answer of a question.

        Raises:
            TimeoutError: planning took longer than `timeout_s`, and was ended.
            RecommendError: what planning raised, or `WorkerDied`, twice.
        """
        await self.start()
        try:
            return await self._ask(kind, question)
        except WorkerDied:
            if self.ended:
                raise
            return await self._ask(kind, question)

    async def _ask(self, kind: Kind, question: Question) -> bytes:
        worker, begun = await self.idle.get(), monotonic()
        try:
            pending = worker.ask(kind, question, self.catalog)
            return await asyncio.wait_for(pending, self.timeout_s)
        except (TimeoutError, WorkerDied, asyncio.CancelledError):
            worker.end()  # in the middle of it
            raise
        finally:
            self.took_s.append(monotonic() - begun)
            self._give_back(worker)

    def _give_back(self, worker: Worker) -> None:
        """Let the next question have a worker, or another in the place of one that ended."""
        if worker.process.is_alive():
            self.idle.put_nowait(worker)
            return
        self.all.remove(worker)
        self._replace()

    def _replace(self) -> None:
        """Start another process; where none can be started now, later."""
        try:
            if not self.ended:
                self._add()
        except OSError as error:
            log.warning("no process can be started (%s)", error)
            asyncio.get_running_loop().call_later(AGAIN_S, self._replace)

    def _add(self) -> None:
        worker = Worker(self.catalog)
        self.all.add(worker)
        self.idle.put_nowait(worker)
