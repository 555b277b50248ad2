"""Calls to AWS: clients, time limits, counters, many regions in parallel, and error handling.

Credentials come from boto3's standard chain. Messages contain only AWS's error code, not its text,
which may contain account numbers and signatures.
"""

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from recommender.catalogs.errors import ProviderError, ProviderFault
from recommender.catalogs.providers.contract import Counters, SeenPages, ThreadResult, Wanted
from recommender.catalogs.providers.http import Patience, Web

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_pricing import PricingClient
    from mypy_boto3_service_quotas import ServiceQuotasClient


HOME = "us-east-1"  # knows all regions; the Price List API of this region lists all prices
_ATTEMPTS = 6  # boto3's standard mode: waits of 1, 2, 4, 8, 16 s at most, drawn at random
_CONNECT_S = 5.0
_MAX_PAGES = 2000  # of one listing; AmazonEC2 has some 300 pages in all
_CREDENTIALS = re.compile(
    r"Auth|Unauthorized|AccessDenied|Expired(Token|Credential)|RequestExpired|Credential|"
    r"(Invalid|Unrecognized)ClientToken|InvalidClientTokenId|UnrecognizedClient|Signature|"
    r"OptInRequired|NotAuthorized"
)
_THROTTLED = re.compile(r"Throttl|RequestLimitExceeded|TooManyRequests|SlowDown|BandwidthLimit")

T = TypeVar("T")


class Refused(ProviderError):
    """AWS answered with an error; `code` is its name."""

    def __init__(self, action: str, code: str) -> None:
        self.code = re.sub(r"[^\w.:-]", "", code)[:60] or "without a code"
        reason = f"{action} was refused: {self.code}{_advice(self.code)}"
        super().__init__("aws", _fault_of(self.code), reason)


class Caller:
    """Makes clients and calls within the remaining time, and counts them.

    Clients may be used from several threads, but are created by one at a time.
    """

    def __init__(self, wanted: Wanted, patience: Patience | None = None) -> None:
        from boto3.session import Session
        from botocore.config import Config

        self.wanted, self._patience = wanted, patience or Patience()
        self._lock = threading.Lock()
        self._counts = {"calls": 0, "attempts": 0, "pages": 0, "bytes": 0}
        self._call = threading.local()
        self._session = Session()
        self._config = Config(
            retries={"mode": "standard", "max_attempts": _ATTEMPTS},
            connect_timeout=min(_CONNECT_S, wanted.call_timeout_s),
            read_timeout=wanted.call_timeout_s,
        )
        for event, hook in (
            ("before-call", self._began),
            ("before-send", self._may_send),
            ("after-call", self._answered),
        ):
            self._session.events.register(event, hook)

    def has_credentials(self) -> bool:
        """Whether the standard chain finds credentials, which may still be refused."""
        return self.one("finding credentials", self._session.get_credentials) is not None

    def ec2(self, region: str) -> "EC2Client":
        """Make a client of EC2 in a region."""
        return self._made(lambda: self._session.client("ec2", region, config=self._config))

    def pricing(self) -> "PricingClient":
        """Make a client of the Price List API, which lists all regions."""
        return self._made(lambda: self._session.client("pricing", HOME, config=self._config))

    def quotas(self, region: str) -> "ServiceQuotasClient":
        """Make a client of Service Quotas in a region."""
        return self._made(
            lambda: self._session.client("service-quotas", region, config=self._config)
        )

    def one(self, action: str, call: Callable[[], T]) -> T:
        """Make one call.

        Raises:
            ProviderError: whatever went wrong, with its kind.
        """
        self.wanted.check_time("aws")
        stop_at = min(self.wanted.stop_at, time.monotonic() + self.wanted.call_timeout_s)
        self._call.stop_at = stop_at
        try:
            return call()
        except _errors() as error:
            raise provider_error(action, error) from None

    def pages(self, action: str, listing: Iterable[T]) -> Iterator[T]:
        """Iterate over the pages of a listing, with each call as in `one`."""
        pages, seen = iter(listing), SeenPages("aws", _MAX_PAGES)
        while (page := self.one(action, lambda: next(pages, None))) is not None:
            with self._lock:
                self._counts["pages"] += 1
            listed = cast(Mapping[str, object], page).values()
            seen.add([rows for rows in listed if isinstance(rows, list) and rows])
            yield page

    @contextmanager
    def web(self) -> Iterator[Web]:
        """Reads public files, and counts them."""
        with Web("aws", self.wanted, patience=self._patience) as web:
            try:
                yield web
            finally:
                with self._lock:
                    self._counts["calls"] += web.calls - web.retries
                    self._counts["attempts"] += web.calls
                    self._counts["bytes"] += web.bytes

    def counters(self, raw_rows: int, ignored: int) -> Counters:
        """Return the counts so far."""
        with self._lock:
            done = dict(self._counts)
        return Counters(
            calls=done["calls"],
            retries=max(done["attempts"] - done["calls"], 0),
            pages=done["pages"],
            raw_rows=raw_rows,
            ignored=ignored,
            bytes=done["bytes"],
        )

    def _made(self, make: Callable[[], T]) -> T:
        with self._lock:
            try:
                return make()
            except _errors() as error:
                raise provider_error("making a client", error) from None

    def _began(self, **_: Any) -> None:
        with self._lock:
            self._counts["calls"] += 1

    def _may_send(self, **_: Any) -> None:
        """Refuse a further attempt of a call whose time is over."""
        if time.monotonic() >= getattr(self._call, "stop_at", float("inf")):
            raise ProviderError("aws", "timeout", "no answer in time")
        with self._lock:
            self._counts["attempts"] += 1

    def _answered(self, http_response: Any, **_: Any) -> None:
        with self._lock:
            self._counts["bytes"] += len(http_response.content)


def _errors() -> tuple[type[Exception], ...]:
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    # ValueError and the rest: numbers and dates in an answer that are none.
    kinds = (ValueError, KeyError, TypeError, AttributeError, OSError, OverflowError)
    return (BotoCoreError, ClientError, ResponseParserError, ProviderError, *kinds)


def provider_error(action: str, error: Exception) -> ProviderError:
    """Describe the error of a call, without secrets."""
    from botocore import exceptions as known

    if isinstance(error, ProviderError):
        return ProviderError("aws", error.fault, f"{action}: {error.reason}")
    if isinstance(error, known.ClientError):
        return Refused(action, str(error.response.get("Error", {}).get("Code", "")))
    kinds: tuple[tuple[tuple[type[Exception], ...], ProviderFault, str], ...] = (
        (
            (known.ReadTimeoutError, known.ConnectTimeoutError, TimeoutError),
            "timeout",
            "no answer in time",
        ),
        (
            (
                known.NoCredentialsError,
                known.PartialCredentialsError,
                known.CredentialRetrievalError,
                known.ProfileNotFound,
                known.NoAuthTokenError,
                known.TokenRetrievalError,
                known.SSOError,
                known.ConfigParseError,
                known.ConfigNotFound,
            ),
            "credentials",
            "the credentials cannot be used; see `aws sts get-caller-identity`",
        ),
        ((known.HTTPClientError, known.ConnectionError, OSError), "network", "no connection"),
    )
    for types, fault, reason in kinds:
        if isinstance(error, types):
            return ProviderError("aws", fault, f"{action}: {reason} ({type(error).__name__})")
    reason = f"{action}: the answer is of no known form ({type(error).__name__})"
    return ProviderError("aws", "format", reason)


def _fault_of(code: str) -> ProviderFault:
    if _THROTTLED.search(code):
        return "throttled"
    return "credentials" if _CREDENTIALS.search(code) else "server"


def _advice(code: str) -> str:
    code = code.casefold()
    if "expired" in code and "token" in code:
        return "; get new credentials"
    if "unauthorized" in code or "accessdenied" in code:
        return "; allow it as in deploy/aws-iam-policy.json"
    return ""


class Tasks(Generic[T]):
    """Running work, by the name of its region."""

    def __init__(self, tasks: Mapping[str, Callable[[], T]], at_once: int) -> None:
        answers: dict[str, ThreadResult[T]] = {name: ThreadResult() for name in tasks}
        self._futures = {name: answer.future for name, answer in answers.items()}
        self._waiting = deque((answers[name], task) for name, task in tasks.items())
        for _ in range(min(at_once, len(tasks))):
            # Daemons: the program ends even where a server sends a byte now and then for ever.
            # The threads of a ThreadPoolExecutor would be waited for.
            Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while self._waiting:
            try:
                answer, task = self._waiting.popleft()
            except IndexError:  # another thread was faster
                return
            if answer.future.set_running_or_notify_cancel():
                with answer as future:
                    future.set_result(task())

    def results(self, wanted: Wanted) -> tuple[dict[str, T], dict[str, ProviderError]]:
        """Wait until all work is done or time is over; return results and failures by region."""
        left = max(wanted.stop_at - time.monotonic(), 0.0)
        wait(self._futures.values(), timeout=None if left == float("inf") else left)
        for each in self._futures.values():
            each.cancel()
        found: dict[str, T] = {}
        failed: dict[str, ProviderError] = {}
        for name, future in self._futures.items():
            error = _error(future)
            if error is None:
                found[name] = future.result()
            else:
                failed[name] = error
        return found, failed


def _error(future: "Future[T]") -> ProviderError | None:
    if not future.done() or future.cancelled():
        return ProviderError("aws", "timeout", "no answer before the deadline")
    error = future.exception()
    if error is None or isinstance(error, ProviderError):
        return error
    if isinstance(error, Exception):
        return provider_error("reading", error)
    raise error
