"""Many back-tests at once: over the cores of this machine, or over a Dask cluster.

A piece of work holds plain data and judges itself by nothing else, so the rows do not depend on
where or in which order they are made.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, Protocol

from recommender.backtest import Row
from recommender.errors import UsageError

Engine = Literal["serial", "loky", "dask"]
ENGINES: tuple[Engine, ...] = ("serial", "loky", "dask")


class Work(Protocol):
    """A piece of work."""

    def rows(self) -> tuple[Row, ...]:
        """Its rows, by nothing but its own data."""


@dataclass(frozen=True, slots=True)
class Workers:
    """Where the work is done."""

    engine: Engine = "serial"
    jobs: int = -1  # processes of loky or of a local Dask cluster; -1: all cores
    address: str = ""  # of an existing Dask cluster


def judged(piece: Work) -> tuple[Row, ...]:
    """The rows of one piece of work."""
    return piece.rows()


def run(
    work: Sequence[Work], workers: Workers, tick: Callable[[int, int], None] | None = None
) -> tuple[Row, ...]:
    """All rows, in the order of the work; `tick` hears how many pieces are done."""
    rows: list[Row] = []
    for done, found in enumerate(_each(work, workers), 1):
        rows += found
        if tick is not None:
            tick(done, len(work))
    return tuple(rows)


def _each(work: Sequence[Work], workers: Workers) -> Iterator[tuple[Row, ...]]:
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
