"""Public files of AWS: price lists and the spot advisor, read over HTTPS without an account."""

import http.client
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from catalogs.errors import ProviderError
from catalogs.refresh.aws_calls import Caller

_WAITS_S = (0.5, 2.0)  # before the second and third attempt
_MOST_LINE = 1 << 20
_PASSING = (429, 500, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class Places:
    """Where the public files are."""

    prices: str = "https://pricing.us-east-1.amazonaws.com"
    advisor: str = "https://spot-bid-advisor.s3.amazonaws.com/spot-advisor-data.json"


def read_whole(caller: Caller, url: str, most: int) -> bytes:
    """Read a file of at most `most` bytes.

    Raises:
        ProviderError: it cannot be read, is truncated, or larger.
    """
    with _opened(caller, url) as answer:
        return b"".join(_blocks(caller, answer, url, most))


def read_lines(caller: Caller, url: str) -> Iterator[bytes]:
    """Read a large file line by line; memory holds one line.

    Raises:
        ProviderError: as `read_whole`; a truncated file is found out at its end, so nothing
            read from it may be used before the last line.
    """
    with _opened(caller, url) as answer:
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
def _opened(caller: Caller, url: str) -> Iterator[http.client.HTTPResponse]:
    answer = _open(caller, url)
    try:
        yield answer
    finally:
        answer.close()


def _open(caller: Caller, url: str) -> http.client.HTTPResponse:
    for wait in _WAITS_S:
        try:
            return _attempt(caller, url)
        except ProviderError as error:
            if error.fault not in ("server", "throttled", "network"):
                raise
        time.sleep(wait)
    return _attempt(caller, url)


def _attempt(caller: Caller, url: str) -> http.client.HTTPResponse:
    caller.wanted.check_time("aws")
    caller.fetched()
    request = Request(url, headers={"User-Agent": "recommend", "Accept-Encoding": "identity"})
    with _told(url):
        answer: http.client.HTTPResponse = urlopen(request, timeout=caller.wanted.call_timeout_s)
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
