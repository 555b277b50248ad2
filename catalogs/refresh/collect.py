"""Fetches from several providers in parallel, isolating the failures of each."""

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from threading import Thread

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.providers.clients import Maker
from recommender.catalogs.providers.contract import Fetched, ThreadResult, Wanted
from recommender.catalogs.providers.redact import redacted

Handed = tuple[Fetched, float]  # and the seconds it took
_GRACE_S = 5.0  # a client may hand over what it has when its time is over
_PROVIDER_S, _TOTAL_S = 600.0, 1200.0


@dataclass(frozen=True, slots=True)
class Deadlines:
    """The time limits of a call, of a provider, and of all of them together."""

    call_s: float = 30.0
    provider_s: float = _PROVIDER_S
    total_s: float = _TOTAL_S


@dataclass(frozen=True, slots=True)
class Collected:
    """A fetch, or why there is none."""

    fetched: Fetched | None
    problem: str
    seconds: float


def collect(
    makers: Mapping[str, Maker],
    wanted: Mapping[str, Wanted],
    deadlines: Deadlines = Deadlines(),
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Collected]:
    """Fetch from every provider in its own thread, and wait until they finish or time is over.

    The result of a client that ignores its deadline is not used.
    """
    for name in ("boto3", "botocore", "urllib3", "google", "httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)  # below, they log requests with keys
    began = clock()
    limit = min(deadlines.provider_s, deadlines.total_s)
    answers: dict[str, ThreadResult[Handed]] = {name: ThreadResult() for name in makers}
    for name, maker in makers.items():
        within = _within(wanted[name], began + limit, deadlines.call_s)
        # A daemon: a client that hangs for ever does not keep the program from ending.
        Thread(target=_ask, args=(maker, within, answers[name]), daemon=True).start()
    futures = {name: answer.future for name, answer in answers.items()}
    wait(futures.values(), timeout=limit + _GRACE_S)
    return {name: _collected(name, future, clock() - began) for name, future in futures.items()}


def _within(wanted: Wanted, stop_at: float, call_s: float) -> Wanted:
    return replace(wanted, stop_at=stop_at, call_timeout_s=call_s)


def _ask(maker: Maker, wanted: Wanted, answer: ThreadResult[Handed]) -> None:
    began = time.monotonic()
    with answer as future:
        fetched = maker().fetch(wanted)
        future.set_result((fetched, time.monotonic() - began))


def _collected(name: str, future: "Future[Handed]", seconds: float) -> Collected:
    if not future.done():
        return Collected(None, "no answer before the deadline", seconds)
    error = future.exception()
    if isinstance(error, ProviderError):
        return Collected(None, redacted(f"{error.fault}: {error.reason}"), seconds)
    if error is not None:
        message = f"the client failed ({type(error).__name__}: {error}); please report it"
        return Collected(None, redacted(message), seconds)
    fetched, took = future.result()
    if fetched.provider != name:
        return Collected(None, f"the client answered for {fetched.provider!r}", took)
    return Collected(fetched, "", took)
