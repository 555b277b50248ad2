"""Where lines go: width, colour, terminals that know fewer characters, and a progress bar."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Thread
from typing import TextIO

from recommender.catalogs.frozen import dataclass

QUIET_S = 1.0  # what takes less shows nothing
REDRAW_S = 0.1  # between two states of a bar
_NARROWEST = 40
_WIDEST = 1000
_PIPE_WIDTH = 80  # without a terminal, unless COLUMNS says otherwise
_BLOCKS = {**dict.fromkeys("█▉▊▋▌", "#"), **dict.fromkeys("▍▎▏", "")}
_LEVELS = dict(zip("▁▂▃▄▅▆▇", "_.:-=+*", strict=True))
_SIMPLER = str.maketrans(
    {**_BLOCKS, **_LEVELS, "×": "x", "─": "-", "·": "-", "≥": ">=", "±": "+-", "…": "..."}
)


class OutputClosed(Exception):
    """The reader of the output has gone; not an OSError, which Typer would handle itself."""


@dataclass(frozen=True, slots=True)
class Screen:
    """How wide a line may be and whether it may carry colour."""

    width: int
    colour: bool


def screen(colour: str = "auto", stream: TextIO | None = None) -> Screen:
    """The screen behind a stream, as flags and environment want it."""
    stream = stream or sys.stdout
    terminal = _is_terminal(stream)
    return Screen(_width(terminal, os.environ), _coloured(colour, terminal, os.environ))


def _is_terminal(stream: TextIO) -> bool:
    return stream is not None and not stream.closed and stream.isatty()


def _width(terminal: bool, env: Mapping[str, str]) -> int:
    given = env.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return min(max(int(given), _NARROWEST), _WIDEST)
    return max(shutil.get_terminal_size().columns if terminal else _PIPE_WIDTH, _NARROWEST)


def _coloured(setting: str, terminal: bool, env: Mapping[str, str]) -> bool:
    """A flag wins over NO_COLOR, that over FORCE_COLOR, that over the kind of terminal."""
    if setting != "auto":
        return setting == "always"
    if env.get("NO_COLOR"):
        return False
    if env.get("FORCE_COLOR"):
        return True
    return terminal and env.get("TERM") != "dumb"


def write_text(text: str, stream: TextIO | None = None) -> None:
    """Write text; characters that the stream cannot encode are written more simply."""
    stream = stream or sys.stdout
    encoding = stream.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_SIMPLER).encode(encoding, "replace").decode(encoding)
    try:
        stream.write(text)
    except BrokenPipeError as error:
        raise OutputClosed from error
    except OSError as error:  # a full disk, say, when the buffer is written
        raise _named(error, stream) from error


def flush(stream: TextIO) -> None:
    """Write what is still in the buffer of a stream."""
    try:
        stream.flush()
    except BrokenPipeError as error:
        raise OutputClosed from error
    except OSError as error:
        raise _named(error, stream) from error


def _named(error: OSError, stream: TextIO) -> OSError:
    """The error of a stream that has a name for people only."""
    names = {"<stdout>": "standard output", "<stderr>": "standard error"}
    return OSError(error.errno, error.strerror, names.get(stream.name, stream.name))


Tick = Callable[[int, int], None]  # done, in all


@contextmanager
def progress(what: str, total: int | None = None, after_first: bool = False) -> Iterator[Tick]:
    """A function that moves a bar, which is drawn on a terminal once a second has passed.

    Without a `total` the bar only shows that something goes on. With `after_first` it waits for the
    first tick, since what comes before shows a line of its own.
    """
    done = [0]
    tick: Tick = lambda count, _: done.__setitem__(0, count)  # noqa: E731
    if not _is_terminal(sys.stderr):
        yield tick
        return
    with meanwhile(_draw, what, total, done, after_first):
        yield tick


@contextmanager
def meanwhile(draw: Callable[..., None], *given: object) -> Iterator[None]:
    """Draw in a thread, which is told by an event that all is over."""
    over = Event()
    drawing = Thread(target=draw, args=(*given, over), daemon=True)
    drawing.start()
    try:
        yield
    finally:
        over.set()
        drawing.join()


def _draw(what: str, total: int | None, done: list[int], after_first: bool, over: Event) -> None:
    """Draw the bar until all is over, from its time on."""
    pause = QUIET_S
    while not over.wait(pause):
        pause = REDRAW_S
        if done[0] or not after_first:
            break
    else:
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as Left

    counts = "{task.completed:,} of {task.total:,}"
    ends = (TimeElapsedColumn(),) if total is None else (TextColumn(counts), Left())
    columns = (TextColumn(what), BarColumn(), *ends)
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=total)
        while not over.wait(REDRAW_S):
            shown.update(task, completed=done[0])
