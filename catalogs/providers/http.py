"""Reads JSON and files over HTTPS: deadline, size limit, retries."""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote, urlsplit

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.files import parse_json
from recommender.catalogs.providers.contract import SeenPages, Wanted

if TYPE_CHECKING:
    import httpx


_MAX_PAGES = 5000  # of a listing; GPU machines of all Azure regions are some 200 pages
_MAX_BYTES = 64_000_000  # of one answer; the largest real one, all machine types, has 10 MB


_AGAIN = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Patience:
    """The number of tries of a call, and the waits between them."""

    tries: int = 6
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    sleep: Callable[[float], None] = time.sleep


class _Passing(Exception):
    """A failure that may pass: throttled, a server's fault, a broken connection."""

    def __init__(self, error: ProviderError, wait_s: float = 0.0) -> None:
        self.error = error
        self.wait_s = wait_s
        super().__init__(str(error))


class Web:
    """Calls one provider's addresses, and counts requests and bytes."""

    def __init__(
        self,
        provider: str,
        wanted: Wanted,
        headers: Mapping[str, str] | None = None,
        patience: Patience = Patience(),
    ) -> None:
        self._provider, self._wanted, self._patience = provider, wanted, patience
        self._headers = dict(headers or {})
        self._client: httpx.Client | None = None  # made for the first call
        self.calls = self.retries = self.bytes = 0

    def __enter__(self) -> "Web":
        return self

    def __exit__(self, *_: object) -> None:
        if self._client is not None:
            self._client.close()

    def json(self, address: str, body: object = None, form: Mapping[str, str] | None = None) -> Any:
        """Send a GET request, or POST a body or a form, and parse the JSON response.

        Raises:
            ProviderError: after all tries, or at once where trying again cannot help.
        """
        try:
            return parse_json(self.content(address, body, form))
        except ValueError:
            where = urlsplit(address).netloc
            self._refuse("format", f"{where} sent an answer that is no JSON")

    def pages(self, start: str, rows: str, following: str) -> Iterator[dict[str, Any]]:
        """The pages of a listing from an address on; `rows` and `following` are fields of a page.

        What follows is a token or the next address.

        Raises:
            ProviderError: as `json`; a page is one of before or of elsewhere, or they never end.
        """
        seen, address, asked = SeenPages(self._provider, _MAX_PAGES), start, set[str]()
        while address:
            if address in asked:  # which empty pages do not show
                self._refuse("format", "the pages of a list repeat themselves")
            asked.add(address)
            page = self.json(address)
            more = page.get(following) or "" if isinstance(page, dict) else None
            if not isinstance(more, str):
                self._refuse("format", "a page of a list has no known form")
            seen.add(page.get(rows))
            yield page
            token = more and f"{start}&pageToken={quote(more, safe='')}"
            address = token if following == "nextPageToken" else more
            if address and _server(address) != _server(start):
                self._refuse("format", "the next page is on another server")

    def content(
        self, address: str, body: object = None, form: Mapping[str, str] | None = None
    ) -> bytes:
        """Send a GET request, or POST a body or a form, and return the bytes of the response.

        Raises:
            ProviderError: as `json`.
        """
        for tried in range(self._patience.tries):
            self._wanted.check_time(self._provider)
            try:
                return self._once(address, body, form)
            except _Passing as failed:
                if tried + 1 == self._patience.tries:
                    raise failed.error from None
                self.retries += 1
                self._wait(tried, failed.wait_s)
        raise AssertionError("a call is tried at least once")

    def _wait(self, tried: int, asked_s: float) -> None:
        wait_s = self._patience.first_wait_s * 2**tried * random.uniform(0.5, 1.0)
        wait_s = min(max(wait_s, asked_s), self._patience.longest_wait_s)
        if time.monotonic() + wait_s >= self._wanted.stop_at:
            self._refuse("timeout", "no time is left for another try")
        self._patience.sleep(wait_s)

    def _once(self, address: str, body: object, form: Mapping[str, str] | None) -> bytes:
        import httpx

        if self._client is None:
            timeout = self._wanted.call_timeout_s
            self._client = httpx.Client(headers=self._headers, timeout=timeout)
        self.calls += 1
        method = "GET" if body is None and form is None else "POST"
        where = urlsplit(address).netloc
        try:
            with self._client.stream(method, address, json=body, data=form) as response:
                self._check(response, where)
                return self._content(response, where)
        except httpx.TimeoutException:
            raise _Passing(self._error("timeout", f"{where} did not answer in time")) from None
        except httpx.TransportError as error:
            reason = f"{where} cannot be reached ({type(error).__name__})"
            raise _Passing(self._error("network", reason)) from None
        except httpx.DecodingError:
            self._refuse("format", f"{where} sent an answer that cannot be unpacked")

    def _check(self, response: "httpx.Response", where: str) -> None:
        status = response.status_code
        if status == 200:
            return
        if status in _AGAIN:
            fault = "throttled" if status == 429 else "server"
            error = ProviderError(self._provider, fault, f"{where} answered {status}")  # type: ignore[arg-type]
            raise _Passing(error, _seconds(response.headers.get("retry-after", "")))
        if status in (401, 403):
            self._refuse("credentials", f"{where} answered {status}: not allowed; sign in again")
        self._refuse("server", f"{where} answered {status}")

    def _content(self, response: "httpx.Response", where: str) -> bytes:
        ends = time.monotonic() + self._wanted.call_timeout_s
        content = bytearray()
        for chunk in response.iter_bytes():
            content += chunk
            if len(content) > _MAX_BYTES:
                self._refuse("format", f"{where} sent more than {_MAX_BYTES} bytes")
            if time.monotonic() > ends:
                raise _Passing(self._error("timeout", f"{where} is too slow"))
        self.bytes += len(content)
        return bytes(content)

    def _error(self, fault: Any, reason: str) -> ProviderError:
        return ProviderError(self._provider, fault, reason)

    def _refuse(self, fault: Any, reason: str) -> NoReturn:
        raise self._error(fault, reason) from None


def _server(address: str) -> tuple[str, str, int]:
    try:
        parts = urlsplit(address)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return parts.scheme, parts.hostname or "", port
    except ValueError:
        return "", "", 0


def _seconds(text: str) -> float:
    return float(text) if text.isdecimal() and len(text) < 6 else 0.0
