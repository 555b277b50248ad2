"""Public files of AWS: price lists and the spot advisor, read over HTTPS without an account.

Each region's file is read line by line; lines that cannot be a price are dropped before they are
parsed. The format is not documented, so a file is used only if its format is unchanged.
"""

import csv
import http.client
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.files import parse_json
from recommender.catalogs.providers.aws.client import Caller
from recommender.catalogs.providers.aws.price_list import REGION, Listing, PriceRow, judge
from recommender.catalogs.providers.http import VALIDATORS, Copies, Copy
from recommender.catalogs.schema import InstanceType

_WAITS_S = (0.5, 2.0)  # before the second and third attempt
_MAX_LINE = 1 << 20
FIRST_LINES = 20  # the header of a price list follows five lines about the file
_NOT_MODIFIED = 304
_PASSING = (429, 500, 502, 503, 504)
_INDEX = "/offers/v1.0/aws/AmazonEC2/current/region_index.json"
_MAX_INDEX = 4 << 20
_MAX_BYTES = 64 << 20  # some 3 MB in 2026
_RANGES = ("<5%", "5-10%", "10-15%", "15-20%", ">20%")  # interruptions a month, index 0 to 4


@dataclass(frozen=True, slots=True)
class Places:
    """Where the public files are."""

    prices: str = "https://pricing.us-east-1.amazonaws.com"
    advisor: str = "https://spot-bid-advisor.s3.amazonaws.com/spot-advisor-data.json"


def read_whole(caller: Caller, url: str, name: str, most: int) -> bytes:
    """Read a file of at most `most` bytes, or its copy `name` if it has not changed.

    Raises:
        ProviderError: it cannot be read, is truncated, or larger.
    """
    copies = Copies(caller.wanted.copies)
    copy = copies.find(name, url)
    with _opened(caller, url, copy) as answer:
        if answer is None and copy is not None:
            return copy.content
        assert answer is not None
        content = b"".join(_blocks(caller, answer, url, most))
        copies.save(name, url, _validators(answer), content)
        return content


def read_lines(
    caller: Caller, url: str, name: str, used: Callable[[bytes], bool]
) -> Iterator[bytes]:
    """Read the first lines of a large file, and of the others those that are `used`.

    Memory holds these lines only; they are the copy `name`, which is read where the file has
    not changed.

    Raises:
        ProviderError: as `read_whole`; a truncated file is found out at its end, so nothing
            read from it may be used before the last line.
    """
    copies = Copies(caller.wanted.copies)
    copy = copies.find(name, url)
    with _opened(caller, url, copy) as answer:
        if answer is None and copy is not None:
            yield from copy.content.splitlines(keepends=True)
            return
        assert answer is not None
        kept = []
        for number, line in enumerate(_lines(caller, answer, url)):
            if number < FIRST_LINES or used(line):
                kept.append(line)
                yield line
        copies.save(name, url, _validators(answer), b"".join(kept))


def _lines(caller: Caller, answer: http.client.HTTPResponse, url: str) -> Iterator[bytes]:
    size, length = 0, _length(answer)
    with _as_provider_errors(url):
        while line := answer.readline(_MAX_LINE):
            size += len(line)
            if len(line) == _MAX_LINE:
                raise _malformed(url, "a line is too long")
            caller.wanted.check_time("aws")
            yield line
    caller.got(size)
    _check_length(url, size, length)


def _blocks(
    caller: Caller, answer: http.client.HTTPResponse, url: str, most: int
) -> Iterator[bytes]:
    size, length = 0, _length(answer)
    with _as_provider_errors(url):
        while block := answer.read1(1 << 16):
            size += len(block)
            if size > most:
                raise _malformed(url, f"it is larger than {most} bytes")
            caller.wanted.check_time("aws")
            yield block
    caller.got(size)
    _check_length(url, size, length)


@contextmanager
def _opened(
    caller: Caller, url: str, copy: Copy | None
) -> Iterator[http.client.HTTPResponse | None]:
    """The answer; None where the file is that of the copy."""
    answer = _open(caller, url, copy.headers if copy else {})
    try:
        yield answer
    finally:
        if answer is not None:
            answer.close()


def _open(caller: Caller, url: str, headers: Mapping[str, str]) -> http.client.HTTPResponse | None:
    for wait in _WAITS_S:
        try:
            return _open_once(caller, url, headers)
        except ProviderError as error:
            if error.fault not in ("server", "throttled", "network"):
                raise
        time.sleep(wait)
    return _open_once(caller, url, headers)


def _open_once(
    caller: Caller, url: str, headers: Mapping[str, str]
) -> http.client.HTTPResponse | None:
    caller.wanted.check_time("aws")
    caller.count_call()
    own = {"User-Agent": "recommend", "Accept-Encoding": "identity"}
    request = Request(url, headers={**own, **headers})
    with _as_provider_errors(url):
        try:
            answer: http.client.HTTPResponse = urlopen(
                request, timeout=caller.wanted.call_timeout_s
            )
        except HTTPError as error:
            if error.code != _NOT_MODIFIED or not headers:
                raise
            error.close()
            return None
    if urlsplit(answer.url).scheme != urlsplit(url).scheme:
        answer.close()
        raise _malformed(url, "it is redirected to another protocol")
    return answer


@contextmanager
def _as_provider_errors(url: str) -> Iterator[None]:
    """Turn errors of the connection into `ProviderError`."""
    name = _name(url)
    try:
        yield
    except HTTPError as error:
        error.close()
        fault = "throttled" if error.code == 429 else "server"
        if error.code not in _PASSING:
            fault = "format"  # it is not there, or not for us: another attempt will not help
        raise ProviderError("aws", fault, f"{name}: HTTP {error.code}") from None  # type: ignore[arg-type]
    except TimeoutError:
        raise ProviderError("aws", "timeout", f"{name}: no answer in time") from None
    except (URLError, OSError) as error:
        timed_out = isinstance(getattr(error, "reason", None), TimeoutError)
        kind = type(getattr(error, "reason", error)).__name__
        if timed_out:
            raise ProviderError("aws", "timeout", f"{name}: no answer in time") from None
        raise ProviderError("aws", "network", f"{name}: no connection ({kind})") from None
    except (http.client.HTTPException, ValueError) as error:
        raise _malformed(url, f"truncated or malformed ({type(error).__name__})") from None


def _validators(answer: http.client.HTTPResponse) -> dict[str, str]:
    return {name: answer.headers.get(name, "") for name in VALIDATORS}


def _length(answer: http.client.HTTPResponse) -> int | None:
    length = answer.headers.get("Content-Length", "")
    return int(length) if length.isdecimal() else None


def _check_length(url: str, size: int, length: int | None) -> None:
    # Reading by lines or blocks, Python's HTTP client takes a lost connection for the end.
    if length is not None and size != length:
        raise _malformed(url, f"{size} of {length} bytes arrived")


def _malformed(url: str, reason: str) -> ProviderError:
    return ProviderError("aws", "format", f"{_name(url)}: {reason}")


def _name(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.netloc}{parts.path}"


_VERSION = re.compile(r"/offers/v1\.0/aws/AmazonEC2/[\w.-]+/[a-z0-9-]+/index\.json")
# The columns that are read, by the field that each fills.
_COLUMNS = (
    ("instance_type", "Instance Type"),
    ("region", "Region Code"),
    ("location_type", "Location Type"),
    ("operating_system", "Operating System"),
    ("tenancy", "Tenancy"),
    ("software", "Pre Installed S/W"),
    ("licence", "License Model"),
    ("capacity_status", "CapacityStatus"),
    ("market_option", "MarketOption"),
    ("term", "TermType"),  # reserved terms are of the same product, so of the same MarketOption
    ("usage_type", "usageType"),
    ("operation", "operation"),
    ("vcpus", "vCPU"),
    ("gpus", "GPU"),
    ("begin", "StartingRange"),
    ("end", "EndingRange"),
    ("unit", "Unit"),
    ("currency", "Currency"),
    ("price", "PricePerUnit"),
    ("effective", "EffectiveDate"),
)


def bulk_files(caller: Caller, base: str) -> dict[str, str]:
    """Find the price list file of each region, by region.

    Raises:
        ProviderError: the index cannot be read, or is of no known form.
    """
    url = base + _INDEX
    try:
        listed = parse_json(read_whole(caller, url, "aws-price-lists", _MAX_INDEX))[
            "regions"
        ].values()
        files = {str(each["regionCode"]): str(each["currentVersionUrl"]) for each in listed}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"the index of price lists is of no known form ({type(error).__name__})"
        raise ProviderError("aws", "format", reason) from None
    wanted = caller.wanted.regions
    found = {
        region: base + path.removesuffix("index.json") + "index.csv"
        for region, path in sorted(files.items())
        if REGION.fullmatch(region)
        and _VERSION.fullmatch(path)
        and (not wanted or region in wanted)
    }
    if not found:
        raise ProviderError("aws", "format", "the index of price lists names no region")
    return found


def bulk_prices(
    caller: Caller, region: str, url: str, machines: Mapping[str, InstanceType | None]
) -> Listing:
    """Read the on-demand prices of one region.

    Raises:
        ProviderError: the file cannot be read to its end, or lacks a column.
    """
    out = Listing()
    lines = read_lines(caller, url, f"aws-prices-{region}", _is_likely)
    columns = _header(lines, region)
    for cells in csv.reader(_likely(lines)):
        if len(cells) <= max(columns.values()):
            out.rows += 1
            out.refuse(f"a row of {region}", "format", f"{len(cells)} cells")
            continue
        row = PriceRow(**{field: cells[index] for field, index in columns.items()})
        if row.region and row.region != region:
            out.rows += 1
            out.refuse(row.name, "region", f"in the file of {region}")
            continue
        judge(row, machines, caller.wanted.today, out)
    return out


def _header(lines: Iterable[bytes], region: str) -> dict[str, int]:
    for number, line in enumerate(lines):
        cells = next(csv.reader([line.decode("utf-8", "replace")]), [])
        if cells[:1] == ["SKU"]:
            missing = [name for _, name in _COLUMNS if name not in cells]
            if not missing:
                return {field: cells.index(name) for field, name in _COLUMNS}
            reason = f"the price list of {region} has no column {', '.join(missing)}"
            raise ProviderError("aws", "format", reason)
        if number >= FIRST_LINES:
            break
    raise ProviderError("aws", "format", f"the price list of {region} has no header")


def _likely(lines: Iterable[bytes]) -> Iterator[str]:
    """Only the lines of machines on demand: one in some fifty."""
    for line in lines:
        if _is_likely(line):
            yield line.decode("utf-8", "replace")


def _is_likely(line: bytes) -> bool:
    return b'"OnDemand"' in line and b'"Linux"' in line and b'"Shared"' in line


Ranges = dict[tuple[str, str], int]  # index of the range by (instance type, region)


def read_advisor(caller: Caller, url: str) -> Ranges:
    """Read the interruption range of every Linux machine in every region.

    Raises:
        ProviderError: the file cannot be read, or does not look as it always has.
    """
    content = read_whole(caller, url, "aws-spot-advisor", _MAX_BYTES)
    try:
        return ranges_of(parse_json(content))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"the spot advisor's file has changed its form ({type(error).__name__}: {error})"
        raise ProviderError("aws", "format", reason[:200]) from None


def ranges_of(tree: Any) -> Ranges:
    """Extract the ranges from the file; ValueError and similar if its format differs."""
    labels = {each["index"]: each["label"] for each in tree["ranges"]}
    if labels != dict(enumerate(_RANGES)):
        raise ValueError("other ranges")
    found: Ranges = {}
    for region, systems in tree["spot_advisor"].items():
        for name, row in systems.get("Linux", {}).items():
            index, saving = row["r"], row["s"]
            whole = type(index) is int and type(saving) is int
            if not whole or not 0 <= index < len(_RANGES) or not -100 <= saving <= 100:
                raise ValueError("a range or saving that is none")
            found[name, region] = index
    if not found:
        raise ValueError("no machine")
    return found
