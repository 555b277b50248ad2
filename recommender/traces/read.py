"""Reads trace files: detects the format, unpacks gzip, and reports every error.

    spot-traces      {"metadata": {"gap_seconds"}, "data": [...]}: machines UP at each tick
                     (skypilot-org/spot-traces, "Can't Be Late", NSDI'24)
    preempted        the same shape, but 1 = PREEMPTED and 0 = up: converted SkyNomad files (with
                     prices), skypilot-spot-strategy, Frontier-CS
    skynomad-probes  a JSON list of probe rounds, each with the machines got in every zone
    aws-prices       describe-spot-price-history as JSON, as CSV with its names, or as text
    bamboo           milliseconds,add|remove,node without a header (uclasystem/bamboo, NSDI'23)
    gcp-operations   gcloud compute operations list --format=json

Azure publishes eviction rates, not events; write its evictions in the project's own format.
"""

import gzip
import re
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
from recommender.traces.aws_prices import AWS_TEXT, aws_prices, plain
from recommender.traces.public_formats import (
    bamboo,
    gcp_operations,
    is_number,
    kind_of,
    preempted,
    skynomad_probes,
    spot_traces,
    tree_of,
)
from recommender.traces.trace import Trace

MAX_S = 100 * 365.25 * 86_400

FORMATS = {
    "spot-traces": spot_traces,
    "preempted": preempted,
    "skynomad-probes": skynomad_probes,
    "aws-prices": aws_prices,
    "bamboo": bamboo,
    "gcp-operations": gcp_operations,
}
MAX_BYTES = 256 * 2**20  # unpacked
_GZIP = b"\x1f\x8b"
_HEAD = 10_000  # characters that a first line may have


def recognised(text: str, path: Path) -> str:
    """The public format of a text; raises `UsageError` if it cannot be determined."""
    name, head = shown(path.name), text.lstrip()[:1]
    if head in ("{", "["):
        return _recognised_json(tree_of(text, name), path)
    first = text[:_HEAD].lstrip("\r\n").partition("\n")[0]
    if first.startswith(AWS_TEXT) or {"spotprice", "timestamp"} <= set(
        map(plain, first.split(","))
    ):
        return "aws-prices"
    if re.match(r"\d+,(add|remove),", first):
        return "bamboo"
    raise UsageError(f"{name}: no known trace format; known: recommend, {', '.join(FORMATS)}")


def _recognised_json(tree: Any, path: Path) -> str:
    name = shown(path.name)
    if isinstance(tree, dict) and "SpotPriceHistory" in tree:
        return "aws-prices"
    if isinstance(tree, list) and any(isinstance(t, dict) and "operationType" in t for t in tree):
        return "gcp-operations"
    if isinstance(tree, list) and any(isinstance(t, dict) and "zone_results" in t for t in tree):
        return "skynomad-probes"
    if isinstance(tree, list) and any(isinstance(t, dict) and "SpotPrice" in t for t in tree):
        return "aws-prices"
    if not (isinstance(tree, dict) and isinstance(tree.get("data"), list)):
        raise UsageError(f"{name}: no known trace format; known: recommend, {', '.join(FORMATS)}")
    data, meta = tree["data"], tree.get("metadata")
    if "prices" in tree or (isinstance(meta, dict) and "price_info" in meta):
        return "preempted"
    if kind_of(path) or any(is_number(v) and v > 1 for v in data):
        return "spot-traces"
    ones = sum(1 for v in data if v == 1) / max(len(data), 1)
    raise UsageError(
        f"{name}: 1 can mean up (--format spot-traces: up {ones:.0%} of the time) or preempted "
        f"(--format preempted: up {1 - ones:.0%}); public files of this shape use both: state which"
    )


def named_format(word: str) -> str:
    """Check the name of a format."""
    known = ("recommend", *FORMATS)
    if word not in known:
        raise UsageError(f"--format: {unknown('format', word, known)}")
    return word


def read_trace(path: Path | str, series: str = "", form: str = "") -> Trace:
    """Read the only series of a file, or the one named `series`.

    `form` names the format where it cannot be recognised (`recommend`, `spot-traces`,
    `preempted`, `skynomad-probes`, `aws-prices`, `bamboo`, `gcp-operations`). Raises
    `UsageError`.
    """
    path = Path(path)
    traces = read_traces(path, form)
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


def read_traces(path: Path | str, form: str = "") -> tuple[Trace, ...]:
    """Read every series of a file; see `read_trace`."""
    path = Path(path)
    text = text_of(path)
    if not form:
        form = "recommend" if _is_own(text) else recognised(text, path)
    if form == "recommend":
        traces = own_format.parse(text, shown(path.name))
    else:
        traces = FORMATS[named_format(form)](text, path)
    too_long = [
        f"{shown(path.name)}: series '{shown(t.name)}' lasts {t.end_s:.3g} s; "
        f"a trace lasts at most {MAX_S:.3g} s (a century): give its times in seconds"
        for t in traces
        if not t.end_s <= MAX_S
    ]
    refuse_all(too_long)
    return traces


def read_all(paths: Sequence[Path], form: str = "") -> tuple[Trace, ...]:
    """Read the series of several files; files distinguish two series of the same name."""
    traces: list[Trace] = []
    problems: list[str] = []
    for path in paths:
        try:
            traces += read_traces(path, form)
        except UsageError as error:
            problems += error.problems
    names = [trace.name for trace in traces]
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    problems += [f"series '{shown(name)}' occurs twice; give each its own name" for name in twice]
    refuse_all(problems)
    return tuple(traces)


def chosen(paths: Sequence[Path], form: str = "", series: Sequence[str] = ()) -> tuple[Trace, ...]:
    """Read some series of some files by name; * matches; none: all.

    `form` as in `read_trace`. Raises `UsageError`, also for a name that no series has.
    """
    traces = read_all(paths, named_format(form) if form else "")
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


def _is_own(text: str) -> bool:
    head = text[:_HEAD].lstrip("\r\n").partition("\n")[0].lower()
    columns = {cell.strip().replace(" ", "_") for cell in head.split(",")}
    return set(own_format.REQUIRED) <= columns
