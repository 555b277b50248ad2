"""Downloads files over https only, within limits on size and total time."""

import time
from collections.abc import Callable
from concurrent.futures import wait
from http.client import HTTPException
from threading import Thread
from typing import Any
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from recommender.catalogs.errors import CatalogError
from recommender.catalogs.providers.contract import ThreadResult

Get = Callable[[str, int], bytes]  # from an address, at most so many bytes
Notify = Callable[[str], None]
_LOOK_S = 5.0  # between two reports of how much has arrived
_LOOKS = 3  # a server may be slow for so long
_SLOW = 2_000.0  # bytes a second; a catalog, 1 MB, would take eight minutes
_PIECE = 65_536
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def ignore_message(message: str) -> None:
    """A progress callback that does nothing."""


def get_within(total_s: float, notify: Notify = ignore_message) -> Get:
    """Make a function that downloads files within a total time."""
    stop_at = time.monotonic() + total_s
    return lambda address, most: fetch(address, most, stop_at - time.monotonic(), notify)


def fetch(
    address: str,
    most: int,
    within_s: float,
    notify: Notify = ignore_message,
    look_s: float = _LOOK_S,
) -> bytes:
    """Download a file, reporting progress if it is slow.

    A server that answers a byte at a time, head or content, is left behind.

    Raises:
        OSError: it does not answer, or not in time.
        CatalogError: the address is not allowed, or it answers too much.
    """
    answer: ThreadResult[bytes] = ThreadResult()
    content = bytearray()
    # A daemon: a server that never ends its answer does not keep the program from ending.
    Thread(target=_ask, args=(address, most, content, answer), daemon=True).start()
    began, counts = time.monotonic(), [0]
    while True:
        left_s = began + within_s - time.monotonic()
        wait((answer.future,), timeout=max(0.0, min(look_s, left_s)))
        if answer.future.done():
            return answer.future.result()
        if left_s <= look_s:
            raise TimeoutError("it did not end its answer in time")
        counts.append(len(content))
        if len(counts) > _LOOKS and counts[-1] - counts[-1 - _LOOKS] < _SLOW * _LOOKS * look_s:
            raise TimeoutError(f"it sends less than {_SLOW / 1000:g} kB a second")
        notify(
            f"{shown_address(address)}: {counts[-1]:,} bytes in {time.monotonic() - began:.0f} s"
        )


def _ask(address: str, most: int, content: bytearray, answer: ThreadResult[bytes]) -> None:
    with answer as future:
        try:
            _fetch(address, most, content)
            future.set_result(bytes(content))
        except (HTTPException, ValueError) as error:  # no answer in HTTP, or no usable address
            reason = f"no usable answer ({type(error).__name__})"
            raise CatalogError(f"{shown_address(address)}: {reason}") from error


def _fetch(address: str, most: int, content: bytearray) -> None:
    check_address(address)
    request = Request(address, headers={"User-Agent": "recommend", "Accept-Encoding": "identity"})
    with build_opener(_SameScheme()).open(request, timeout=_LOOKS * _LOOK_S) as answer:
        while piece := answer.read1(_PIECE):
            content += piece
            if len(content) > most:
                raise CatalogError(f"{shown_address(address)}: more than {most:,} bytes")


class _SameScheme(HTTPRedirectHandler):
    """Follows a redirect to another https address only."""

    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        """Refuse to leave https, be it for this machine."""
        try:
            check_address(newurl)
            if urlsplit(req.full_url).scheme == "https" and urlsplit(newurl).scheme != "https":
                raise CatalogError(f"{shown_address(newurl)}: leads from https:// to http://")
        except CatalogError:
            fp.close()
            raise
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def check_address(address: str) -> None:
    """Refuse an invalid address, and any that is neither https nor this machine.

    Raises:
        CatalogError: it is so.
    """
    if not address.isprintable() or " " in address:
        why = "an address contains no spaces or invisible characters"
        raise CatalogError(f"{shown_address(address)}: {why}")
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise CatalogError(f"{shown_address(address)}: no address ({error})") from error
    local = parts.scheme == "http" and host in _LOOPBACK
    if parts.scheme != "https" and not local:
        raise CatalogError(f"{shown_address(address)}: a catalog is read over https:// only")
    if parts.username or parts.password:
        raise CatalogError(f"{shown_address(address)}: the address holds a password; remove it")


def shown_address(address: str) -> str:
    """The address without user, password and query, which may be secret."""
    try:
        parts = urlsplit(address)
        host = parts.netloc.rpartition("@")[2]  # with its port
        return f"{parts.scheme}://{host}{parts.path}"
    except ValueError:
        return address.partition("?")[0].rpartition("@")[2][:60]
