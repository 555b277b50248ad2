"""Many back-tests at once: over the cores of this machine, or over a Dask cluster.

One piece of work is a trace under one job setting; it is judged by a pure function of plain
data, so the rows do not depend on where or in which order they are made.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from recommender.backtest import EVERY_S, Contender, Row, Trace, bounds, judge
from recommender.errors import UsageError
from recommender.replay.engine import windows
from recommender.replay.state import Prices, Task

Engine = Literal["serial", "loky", "dask"]
ENGINES: tuple[Engine, ...] = ("serial", "loky", "dask")


@dataclass(frozen=True, slots=True)
class Piece:
    """One trace under one setting, with everything that is judged on it."""

    contenders: tuple[Contender, ...]
    trace: Trace
    task: Task
    prices: Prices
    every_s: float = EVERY_S


@dataclass(frozen=True, slots=True)
class Workers:
    """Where the work is done."""

    engine: Engine = "serial"
    jobs: int = -1  # processes of loky or of a local Dask cluster; -1: all cores
    address: str = ""  # of an existing Dask cluster


def pieces(
    contenders: Sequence[Contender],
    traces: Sequence[Trace],
    tasks: Sequence[Task],
    prices: Prices,
    every_s: float = EVERY_S,
) -> tuple[Piece, ...]:
    """The work of a back-test; raises `UsageError` where no trace is as long as a deadline."""
    found = tuple(
        Piece(tuple(contenders), trace, task, prices, every_s)
        for trace in traces
        for task in tasks
        if len(windows(len(trace.judged), trace.tick_s, task, every_s))
    )
    if not found:
        longest = max((len(t.judged) * t.tick_s for t in traces), default=0.0) / 3600.0
        raise UsageError(
            f"no trace is as long as a deadline: the longest judged part has {longest:.3g} h; "
            "give longer traces, a shorter --job, or a smaller --past"
        )
    return found


def judged(piece: Piece) -> tuple[Row, ...]:
    """The rows of one piece of work."""
    within = bounds(piece.trace, piece.task, piece.prices, piece.every_s)
    one = (piece.trace, piece.task, piece.prices, within)
    return tuple(judge(each, *one) for each in piece.contenders)


def run(
    work: Sequence[Piece], workers: Workers, tick: Callable[[int, int], None] | None = None
) -> tuple[Row, ...]:
    """All rows, in the order of the work; `tick` hears how many pieces are done."""
    rows: list[Row] = []
    for done, found in enumerate(_each(work, workers), 1):
        rows += found
        if tick is not None:
            tick(done, len(work))
    return tuple(rows)


def _each(work: Sequence[Piece], workers: Workers) -> Iterator[tuple[Row, ...]]:
    if workers.engine == "serial":
        yield from map(judged, work)
    elif workers.engine == "loky":
        joblib: Any = import_module("joblib")  # has no types
        many = joblib.Parallel(n_jobs=workers.jobs, backend="loky", return_as="generator")
        yield from many(joblib.delayed(judged)(piece) for piece in work)
    else:
        with _cluster(workers) as client:
            # Work of a worker that dies is done again by another one.
            for future in client.map(judged, work, pure=False, retries=RETRIES):
                yield future.result()


RETRIES = 3  # times a piece of work is tried again after an error of its worker


@contextmanager
def _cluster(workers: Workers) -> Iterator[Any]:
    """A client of the cluster at an address, or of one with processes on this machine."""
    try:
        distributed: Any = import_module("distributed")  # has no types
    except ImportError:
        raise UsageError("--engine dask needs Dask: pip install 'recommend-gpus[dask]'") from None
    if workers.address:
        try:
            client = distributed.Client(workers.address, timeout="10s", set_as_default=False)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"--dask-address {workers.address}: no cluster answers there ({error})"
            ) from None
        with client:
            yield client
        return
    count = workers.jobs if workers.jobs > 0 else None
    local = {"n_workers": count, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(**local, silence_logs=50) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client
