"""The progress of a long search; Ctrl-C and SIGTERM end it with the best plan so far.

On a terminal one live line on standard error, once a search has lasted `QUIET_S`; elsewhere one
line after `EVERY_S`, and every `EVERY_S` if a proof was requested. Standard output is left alone.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from threading import Event, current_thread, main_thread
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, TextIO

from recommender.cli.screen import QUIET_S, OutputClosed, meanwhile, screen, write_text

if TYPE_CHECKING:
    from recommender.optimize.watch import Watch

Goal = Literal["cost", "time", "frontier"]

LIVE_S = 0.25  # between two live lines
EVERY_S = 10.0  # between two lines of a log
_CLEAR = "\r\x1b[2K"
STOPPED = "stopped: the best plans so far, with the gap that is left; Ctrl-C again ends at once\n"


@contextmanager
def watched(
    watch: "Watch", goal: Goal, prove: bool, after: str = "looking at alternatives"
) -> Iterator[None]:
    """Show the search while it runs; with a proof the first Ctrl-C ends the search alone.

    `after` is said once the search is over; nothing if empty.
    """
    stream = sys.stderr
    live = stream is not None and not stream.closed and stream.isatty()
    with _stops_search(watch, live) if prove else nullcontext():
        if stream is None:
            yield
            return
        with meanwhile(_show, watch, goal, after, stream, live, live or prove):
            yield


@contextmanager
def _stops_search(watch: "Watch", live: bool) -> Iterator[None]:
    """A first signal ends the search with its best plan; without a search it does as usual."""
    if current_thread() is not main_thread():  # only there may signals be handled
        yield
        return

    def interrupted(number: int, frame: Any) -> None:
        if watch.stop():
            write_text((_CLEAR if live else "") + STOPPED, sys.stderr)
        elif number == signal.SIGINT:
            raise KeyboardInterrupt
        else:
            signal.signal(number, before[signal.Signals(number)])
            signal.raise_signal(number)

    before = {each: signal.signal(each, interrupted) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _show(
    watch: "Watch", goal: Goal, after: str, stream: TextIO, live: bool, repeat: bool, over: Event
) -> None:
    """Write lines until the answer is there; an error of the stream ends them."""
    began, written = monotonic(), False
    pause = QUIET_S if live else EVERY_S
    try:
        while not over.wait(pause):
            words = _words(watch, goal, monotonic() - began, after)
            pause = LIVE_S if live else EVERY_S
            if live and (words or written):
                width = screen(stream=stream).width
                write_text(_CLEAR + words[: width - 1], stream)
            elif words:
                write_text(words + "\n", stream)
            stream.flush()
            written = bool(words)
            if written and not repeat:
                return
        if live and written:
            write_text(_CLEAR, stream)
            stream.flush()
    except (OSError, ValueError, OutputClosed):
        return  # without a terminal to write to there is still an answer


def _words(watch: "Watch", goal: Goal, seconds: float, after: str) -> str:
    """One line: how long, what was done, the best plan and what may be left."""
    if not watch.running or watch.asked:
        return after and f"{seconds:.0f} s · {after}"
    parts = [f"{seconds:.0f} s", *_best(watch, goal), f"{watch.simulated:,} plans"]
    if watch.may_stop:
        parts.append("Ctrl-C: best so far")
    return " · ".join(parts)


def _best(watch: "Watch", goal: Goal) -> list[str]:
    """The best plan so far, and how much better another may be."""
    from recommender.report import formatting as fmt

    if watch.best_goal == float("inf"):
        return ["no plan yet"]
    if goal == "frontier":
        return []
    best = f"{fmt.usd(watch.best_goal)} USD" if goal == "cost" else fmt.duration(watch.best_goal)
    return [f"best {best}"] + ([f"gap {fmt.percent(watch.gap)}"] if watch.gap < 1.0 else [])
