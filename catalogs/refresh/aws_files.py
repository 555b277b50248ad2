"""Public files of AWS: price lists and the spot advisor, read over HTTPS without an account."""

import http.client
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from catalogs.errors import ProviderError
from catalogs.refresh.aws_calls import Caller
from catalogs.refresh.copies import VALIDATORS, Copies, Copy

_WAITS_S = (0.5, 2.0)  # before the second and third attempt
_MOST_LINE = 1 << 20
FIRST_LINES = 20  # the header of a price list follows five lines about the file
_NOT_MODIFIED = 304
_PASSING = (429, 500, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class Places:
    """Where the public files are."""

    prices: str = "https://pricing.us-east-1.amazonaws.com"
    advisor: str = "https://spot-bid-advisor.s3.amazonaws.com/spot-advisor-data.json"


def read_whole(caller: Caller, url: str, name: str, most: int) -> bytes:
    """Read a file of at most `most` bytes, or its copy `name` where it has not changed.

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
        copies.keep(name, url, _validators(answer), content)
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
        copies.keep(name, url, _validators(answer), b"".join(kept))


def _lines(caller: Caller, answer: http.client.HTTPResponse, url: str) -> Iterator[bytes]:
    size, length = 0, _length(answer)
    with _told(url):
        while line := answer.readline(_MOST_LINE):
            size += len(line)
            if len(line) == _MOST_LINE:
                raise _malformed(url, "a line is too long")
            caller.wanted.check_time("aws")
            yield line
    caller.got(size)
    _check_length(url, size, length)


def _blocks(
    caller: Caller, answer: http.client.HTTPResponse, url: str, most: int
) -> Iterator[bytes]:
    size, length = 0, _length(answer)
    with _told(url):
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
            return _attempt(caller, url, headers)
        except ProviderError as error:
            if error.fault not in ("server", "throttled", "network"):
                raise
        time.sleep(wait)
    return _attempt(caller, url, headers)


def _attempt(
    caller: Caller, url: str, headers: Mapping[str, str]
) -> http.client.HTTPResponse | None:
    caller.wanted.check_time("aws")
    caller.fetched()
    own = {"User-Agent": "recommend", "Accept-Encoding": "identity"}
    request = Request(url, headers={**own, **headers})
    with _told(url):
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
def _told(url: str) -> Iterator[None]:
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
