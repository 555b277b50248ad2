"""Providers are asked at once; what one of them does wrong stays with it."""

import logging
import threading
import time
from datetime import UTC, datetime

import pytest

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.providers.clients import makers
from recommender.catalogs.providers.contract import Fetched, Wanted
from recommender.catalogs.refresh.collect import Deadlines, collect
from tests.catalogs.refresh.world import Client

WANTED = Wanted(types={}, gpus={}, now=datetime(2026, 11, 21, 3, 0, tzinfo=UTC))


def test_all_providers_are_read_at_the_same_time() -> None:
    together = threading.Barrier(3)

    class Meeting(Client):
        def fetch(self, wanted: Wanted) -> Fetched:
            together.wait(10)  # breaks unless all three are here
            return super().fetch(wanted)

    names = ("aws", "gcp", "azure")
    asked = {name: (lambda name=name: Meeting(name, ())) for name in names}
    found = collect(asked, dict.fromkeys(names, WANTED))
    assert [found[name].problem for name in names] == ["", "", ""]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ProviderError("aws", "throttled", "429"), "throttled: 429"),
        (KeyError("skus"), "the client failed (KeyError: 'skus'); please report it"),
        (MemoryError(), "the client failed (MemoryError: ); please report it"),
        (SystemExit(3), "the client failed (SystemExit: 3); please report it"),
    ],
)
def test_a_failure_is_a_reason_and_no_traceback(
    error: BaseException, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = collect({"aws": lambda: Client("aws", (), error=error)}, {"aws": WANTED})
    assert (found["aws"].fetched, found["aws"].problem) == (None, words)
    assert capsys.readouterr().err == ""


def test_a_client_that_answers_for_another_is_refused() -> None:
    found = collect({"aws": lambda: Client("gcp", ())}, {"aws": WANTED})
    assert found["aws"].problem == "the client answered for 'gcp'"


def test_a_client_learns_when_its_time_is_over() -> None:
    reported: list[Wanted] = []

    class Asked(Client):
        def fetch(self, wanted: Wanted) -> Fetched:
            reported.append(wanted)
            return super().fetch(wanted)

    began = time.monotonic()
    collect({"aws": lambda: Asked("aws", ())}, {"aws": WANTED}, Deadlines(7.0, 60.0, 50.0))
    assert reported[0].call_timeout_s == 7.0
    assert began + 50 <= reported[0].stop_at <= time.monotonic() + 50
    reported[0].check_time("aws")
    with pytest.raises(ProviderError, match="the time for this provider is over"):
        Wanted({}, {}, WANTED.now, stop_at=began).check_time("aws")


def test_libraries_do_not_log_their_requests() -> None:
    logging.getLogger("botocore").setLevel(logging.DEBUG)
    collect({}, {})
    assert logging.getLogger("botocore").level == logging.WARNING


def test_a_provider_without_client_says_so() -> None:
    with pytest.raises(ProviderError, match="its client cannot be loaded") as refused:
        makers(("ibm",))["ibm"]()
    assert refused.value.fault == "library"
