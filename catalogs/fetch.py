"""Gets what an address serves: over https only, within limits of size and of time in all."""

import time
from collections.abc import Callable
from http.client import HTTPException
from threading import Thread
from typing import Any
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from recommender.catalogs.errors import CatalogError
from recommender.catalogs.providers.contract import ThreadResult

Get = Callable[[str, int], bytes]  # from an address, at most so many bytes
_TIMEOUT_S = 30.0  # without a byte
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def get_within(total_s: float) -> Get:
    """A function that gets files, all of them together within a time."""
    stop_at = time.monotonic() + total_s
    return lambda address, most: fetch(address, most, stop_at - time.monotonic())


def fetch(address: str, most: int, within_s: float) -> bytes:
    """Get what an address serves.

    A server that answers a byte at a time, head or content, is left behind when time is over.

    Raises:
        OSError: it does not answer, or not in time.
        CatalogError: the address is not allowed, or it answers too much.
    """
    answer: ThreadResult[bytes] = ThreadResult()
    # A daemon: a server that never ends its answer does not keep the program from ending.
    Thread(target=_ask, args=(address, most, answer), daemon=True).start()
    try:
        return answer.future.result(timeout=max(0.0, within_s))
    except TimeoutError:
        if answer.future.done():
            raise
        raise TimeoutError("it did not end its answer in time") from None


def _ask(address: str, most: int, answer: ThreadResult[bytes]) -> None:
    with answer as future:
        try:
            future.set_result(_fetch(address, most))
        except (HTTPException, ValueError) as error:  # no answer in HTTP, or no usable address
            said = f"no usable answer ({type(error).__name__})"
            raise CatalogError(f"{shown_address(address)}: {said}") from error


def _fetch(address: str, most: int) -> bytes:
    check_address(address)
    request = Request(address, headers={"User-Agent": "recommend", "Accept-Encoding": "identity"})
    with build_opener(_SameScheme()).open(request, timeout=_TIMEOUT_S) as answer:
        content: bytes = answer.read(most + 1)
    if len(content) > most:
        raise CatalogError(f"{shown_address(address)}: more than {most:,} bytes")
    return content


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
    """Refuse an address that is none, or that leads anywhere but to https or this machine.

    Raises:
        CatalogError: it is so.
    """
    if not address.isprintable() or " " in address:
        raise CatalogError(f"{shown_address(address)}: an address holds no space")
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
