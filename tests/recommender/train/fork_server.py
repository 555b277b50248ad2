"""Starts trainings in no time: one process imports what they need and forks their ranks.

Run as a program it reads lines of JSON, [ranks, words...], forks so many processes that call the
training's `main(rank, ranks, *words)`, prints their ids, and their exit codes when all are gone.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import traceback
from importlib import import_module
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[3]
Words = tuple[str | int | float, ...]


class Run:
    """The processes of one start; `codes` are known when all are gone."""

    def __init__(self, server: "ForkServer", pids: list[int]) -> None:
        self._server, self.pids, self.codes = server, pids, list[int]()

    def ended(self, within_s: float) -> bool:
        """Wait for the end of all, but no longer than this."""
        if not self.codes and self._server.can_be_read(within_s):
            self.codes = self._server.numbers()
        return bool(self.codes)

    def send(self, number: signal.Signals, *ranks: int) -> None:
        """Send a signal to some ranks, to all where none is named."""
        for rank in ranks or range(len(self.pids)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pids[rank], number)

    def end(self) -> list[int]:
        """Kill what is left."""
        if not self.ended(0):
            self.send(signal.SIGKILL)
            assert self.ended(60)
        return self.codes


class ForkServer:
    """A program that has imported a training and starts it when asked."""

    def __init__(self, training: str, errors: Path) -> None:
        with errors.open("wb") as file:
            self._program = subprocess.Popen(
                [sys.executable, __file__, training],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                bufsize=0,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )

    def start(self, ranks: int, *words: str | int | float) -> Run:
        """Start the training with so many processes."""
        assert self._program.stdin is not None
        self._program.stdin.write(json.dumps([ranks, *words]).encode() + b"\n")
        return Run(self, self.numbers())

    def numbers(self) -> list[int]:
        """The next line."""
        assert self._program.stdout is not None
        return [int(each) for each in self._program.stdout.readline().split()]

    def can_be_read(self, within_s: float) -> bool:
        """Wait for the next line."""
        return bool(select.select([self._program.stdout], [], [], within_s)[0])

    def __enter__(self) -> "ForkServer":
        return self

    def __exit__(self, *_: object) -> None:
        self._program.communicate(timeout=60)


def forked(training: ModuleType, rank: int, ranks: int, words: Words) -> int:
    """The id of a process that runs one rank and has gone when `main` is left."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        training.main(rank, ranks, *words)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def serve(training: ModuleType) -> None:
    """Answer every line of the standard input."""
    for line in sys.stdin:
        ranks, *words = json.loads(line)
        pids = [forked(training, rank, ranks, tuple(words)) for rank in range(ranks)]
        print(*pids, flush=True)
        print(*[os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids], flush=True)


if __name__ == "__main__":
    sys.path.append(str(ROOT))
    serve(import_module(sys.argv[1]))
