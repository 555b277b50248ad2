"""Writes traces into a file of the project's own format, packed where its name ends in .gz."""

import gzip
from collections.abc import Sequence
from pathlib import Path

from recommender.errors import UsageError
from recommender.text import shown, shown_path
from recommender.traces.own import write
from recommender.traces.trace import Trace
from recommender.wholefile import write_whole


def write_file(traces: Sequence[Trace], path: Path) -> None:
    """Write a trace file in one step; the same traces give the same bytes."""
    data = write(traces).encode()
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    try:
        write_whole(path, data)
    except OSError as error:
        raise UsageError(f"{shown_path(path)}: cannot be written ({shown(error)})") from None
