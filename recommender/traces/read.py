"""Reads trace files: detects the format, unpacks gzip, and reports every error.

The project's own format (`own_format.py`), and what the clouds' tools print (`cloud_records.py`).
"""

import gzip
import zlib
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from recommender.errors import UsageError, refuse_all
from recommender.inputs.files import refuse_no_file
from recommender.text import shown, shown_path, unknown
from recommender.traces import own_format
from recommender.traces.cloud_records import AWS_TEXT, aws_prices, gcp_operations, plain, tree_of
from recommender.traces.trace import Trace

MAX_S = 100 * 365.25 * 86_400
MAX_BYTES = 256 * 2**20  # unpacked
_GZIP = b"\x1f\x8b"
_HEAD = 10_000  # characters that a first line may have


def _parsed(text: str, name: str) -> tuple[Trace, ...]:
    """The series of a text in whichever format it has."""
    source: Any = text
    first = text[:_HEAD].lstrip("\r\n").partition("\n")[0]
    columns = set(first.split(","))
    if set(own_format.REQUIRED) <= {cell.strip().replace(" ", "_").lower() for cell in columns}:
        return own_format.parse(text, name)
    if text.lstrip()[:1] in ("{", "["):
        tree = source = tree_of(text, name)
        if _lists(tree, "operationType"):
            return gcp_operations(tree, name)
        prices = "SpotPriceHistory" in tree if isinstance(tree, dict) else _lists(tree, "SpotPrice")
    else:
        prices = first.startswith(AWS_TEXT) or {"spotprice", "timestamp"} <= set(
            map(plain, columns)
        )
    if prices:
        return aws_prices(source, name)
    raise UsageError(
        f"{name}: no known trace format; known: recommend.trace/v1 (CSV with t_s and event), "
        "aws ec2 describe-spot-price-history, gcloud compute operations list --format=json"
    )


def _lists(tree: Any, key: str) -> bool:
    """Whether a document is a list of entries with this key."""
    return isinstance(tree, list) and any(isinstance(each, dict) and key in each for each in tree)


def read_trace(path: Path | str, series: str = "") -> Trace:
    """Read the only series of a file, or the one named `series`; raises `UsageError`."""
    path = Path(path)
    traces = read_traces(path)
    names = [trace.name for trace in traces]
    if series:
        found = [trace for trace in traces if trace.name == series]
        if not found:
            raise UsageError(f"{shown(path.name)}: {unknown('series', series, names)}")
        return found[0]
    if len(traces) > 1:
        listed = ", ".join(map(shown, names[:8])) + (", …" if len(names) > 8 else "")
        raise UsageError(f"{shown(path.name)}: holds {len(names)} series ({listed}); name one")
    return traces[0]


def read_traces(path: Path | str) -> tuple[Trace, ...]:
    """Read every series of a file; raises `UsageError`."""
    path = Path(path)
    traces = _parsed(text_of(path), shown(path.name))
    too_long = [
        f"{shown(path.name)}: series '{shown(t.name)}' lasts {t.end_s:.3g} s; "
        f"a trace lasts at most {MAX_S:.3g} s (a century): give its times in seconds"
        for t in traces
        if not t.end_s <= MAX_S
    ]
    refuse_all(too_long)
    return traces


def read_all(paths: Sequence[Path]) -> tuple[Trace, ...]:
    """Read the series of several files; files distinguish two series of the same name."""
    traces: list[Trace] = []
    problems: list[str] = []
    for path in paths:
        try:
            traces += read_traces(path)
        except UsageError as error:
            problems += error.problems
    names = [trace.name for trace in traces]
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    problems += [f"series '{shown(name)}' occurs twice; give each its own name" for name in twice]
    refuse_all(problems)
    return tuple(traces)


def chosen(paths: Sequence[Path], series: Sequence[str] = ()) -> tuple[Trace, ...]:
    """Read some series of some files by name; * matches; none: all.

    Raises `UsageError`, also for a name that no series has.
    """
    traces = read_all(paths)
    wanted = series or ("*",)
    names = [trace.name for trace in traces]
    missing = [word for word in wanted if not any(fnmatchcase(name, word) for name in names)]
    if missing:
        raise UsageError(*(f"--series: {unknown('series', word, names)}" for word in missing))
    return tuple(t for t in traces if any(fnmatchcase(t.name, word) for word in wanted))


def text_of(path: Path) -> str:
    """The text of a file, unpacked if it is gzip; refuses what is too large or no text."""
    try:
        refuse_no_file(path)
        with path.open("rb") as file:  # once: a pipe cannot be read again
            packed = file.peek(2)[:2] == _GZIP
            data = (gzip.GzipFile(fileobj=file) if packed else file).read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{shown_path(path)}: cannot be read ({shown(error)})") from None
    if len(data) > MAX_BYTES:
        limit = f"larger than {MAX_BYTES // 2**20} MiB"
        raise UsageError(f"{shown_path(path)}: {limit}; is it the right file?")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{shown_path(path)}: not UTF-8 text; save it as UTF-8") from None
