"""A progress bar on standard error, where a person watches and the work takes a while."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tick = Callable[[int, int], None]  # done, in all


@contextmanager
def progress(what: str, total: int, least: int = 50_000) -> Iterator[Tick | None]:
    """A function that moves the bar; none where nobody watches or it would only flicker."""
    if total < least or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Left

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), Left())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=total)
        yield lambda done, _: shown.update(task, completed=done)
