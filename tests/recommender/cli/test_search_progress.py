"""A long search shows itself on standard error, and Ctrl-C ends a proof with an answer."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from recommender.cli import search_progress
from recommender.cli.search_progress import STOPPED, watched
from recommender.optimize.watch import Watch

pty = pytest.importorskip("pty")  # terminals of POSIX

LONG = ("--deadline", "24h", "gpt2-xl", "--prove", "--json")  # takes minutes unless it is stopped
QUIET_S = 120.0


def until(descriptor: int, words: str) -> str:
    """What a terminal shows until it shows some words."""
    seen, end = "", time.monotonic() + QUIET_S
    while words not in seen:
        assert time.monotonic() < end, seen
        seen += os.read(descriptor, 65_536).decode()
    return seen


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_a_signal_ends_a_proof_with_the_best_plan_and_the_gap_that_is_left(
    number: signal.Signals,
) -> None:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-P", "-m", "recommender", *LONG]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=theirs) as run:
        until(ours, " plans · Ctrl-C: best so far")
        run.send_signal(number)
        out, _ = run.communicate(timeout=QUIET_S)
    os.close(theirs)
    answer = json.loads(out)
    assert run.returncode == 0
    assert answer["plans"]
    assert 0.0 < answer["proof"]["gap"] < 1.0
    assert answer["proof"]["status"] == "open"
    assert answer["proof"]["open_clusters"] > 0


def test_no_progress_is_shown_for_a_quick_answer_or_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = io.StringIO()
    monkeypatch.setattr("sys.stderr", log)
    for prove in (False, True):
        with watched(Watch(), "cost", prove):
            pass
    assert log.getvalue() == ""


@pytest.fixture
def foreground() -> Iterator[None]:
    """The handler of a program in the foreground: one in the background ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("foreground")
def test_ctrl_c_interrupts_as_ever_where_no_search_can_end_early() -> None:
    watch = Watch()
    watch.show(1, 5.0)
    with pytest.raises(KeyboardInterrupt), watched(watch, "cost", prove=True):
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_stops_the_search_and_the_second_acts_as_ever(
    number: signal.Signals,
    capsys: pytest.CaptureFixture[str],
) -> None:
    watch = Watch(may_stop=True)
    watch.show(1, 5.0)

    def pressed_twice() -> None:
        with watched(watch, "cost", prove=True):
            signal.raise_signal(number)
            assert watch.asked
            signal.raise_signal(number)

    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # raises, as Ctrl-C does
    with pytest.raises(KeyboardInterrupt):
        pressed_twice()
    assert signal.signal(signal.SIGTERM, before) is signal.default_int_handler
    assert capsys.readouterr().err == STOPPED


def test_a_long_question_says_so_once_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, watch = io.StringIO(), Watch()
    monkeypatch.setattr("sys.stderr", log)
    monkeypatch.setattr(search_progress, "EVERY_S", 0.001)
    watch.show(1, 5.0)
    with watched(watch, "cost", prove=False):
        while log.getvalue().count("\n") < 1:
            threading.Event().wait(0.001)
    assert log.getvalue().count("\n") == 1


def test_a_gap_that_is_shown_never_grows() -> None:
    watch, gaps = Watch(), list[float]()
    for goal, bound in ((10.0, 2.0), (10.0, 4.0), (8.0, 3.0), (8.0, 6.0), (8.0, 5.0)):
        watch.show(1, goal, bound)
        gaps.append(watch.gap)
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] == 0.25


def test_a_search_that_cannot_end_early_or_was_asked_already_is_not_stopped_again() -> None:
    watch = Watch()
    assert not watch.stop()
    watch.may_stop = True
    assert watch.stop()
    assert not watch.stop()
    watch.close()
    assert not watch.running
