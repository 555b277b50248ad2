"""What is got from an address: over https only, and never for longer than allowed in all."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from urllib.request import Request

import pytest

from recommender.catalogs.errors import CatalogError
from recommender.catalogs.fetch import (
    _SameScheme,
    check_address,
    fetch,
    get_within,
    shown_address,
)

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"


class Dripping:
    """Sends a beginning at once, then a byte on each request, without sleeping."""

    def __init__(self, beginning: bytes) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.listener.getsockname()[1]}/manifest.json"
        self.over = threading.Event()
        self.beginning = beginning
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self) -> None:
        with suppress(OSError):
            caller, _ = self.listener.accept()
            with caller:
                caller.recv(10_000)
                caller.sendall(self.beginning)
                while not self.over.wait(0.01):
                    caller.sendall(b"a")

    def close(self) -> None:
        self.over.set()
        self.listener.close()
        self.thread.join()


@pytest.fixture(params=[b"", HEAD[:20], HEAD], ids=["nothing", "the head", "the content"])
def dripping(request: pytest.FixtureRequest) -> Iterator[Dripping]:
    server = Dripping(request.param)
    yield server
    server.close()


def test_a_server_that_never_ends_its_answer_is_left_behind(dripping: Dripping) -> None:
    with pytest.raises(TimeoutError, match="did not end its answer in time"):
        fetch(dripping.address, 1_000_000, 0.1)


def test_a_server_that_is_slow_for_long_is_left_behind_before_the_time_is_over(
    dripping: Dripping,
) -> None:
    reported: list[str] = []
    with pytest.raises(TimeoutError, match="it sends less than 2 kB a second"):
        fetch(dripping.address, 1_000_000, 3600.0, reported.append, look_s=0.05)
    assert len(reported) == 2
    assert all(f"{dripping.address}: " in line and " bytes in 0 s" in line for line in reported)


def test_a_server_that_pauses_is_waited_for() -> None:
    reported = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            caller, _ = listener.accept()
            with caller:
                caller.recv(10_000)
                caller.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab")
                reported.wait()
                caller.sendall(b"c")

        server = threading.Thread(target=serve)
        server.start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/manifest.json"
        assert fetch(address, 3, 3600.0, lambda message: reported.set(), look_s=0.3) == b"abc"
        server.join()


def test_the_time_is_for_all_files_together() -> None:
    get = get_within(-1.0)
    with pytest.raises(TimeoutError):
        get("https://example.org/manifest.json", 10)


@pytest.mark.parametrize(
    "address",
    [
        "http://[::1/manifest.json", "https://example.org:port/manifest.json",
        "https://example.org/mani fest.json", "https://example.org/\r\nX: y", "https://\x00/",
        "https:// example.org/manifest.json", "https://[v1.x/manifest.json",
        "https://me:secret@[::1/manifest.json",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused_in_one_line(address: str) -> None:
    with pytest.raises(CatalogError) as refused:
        check_address(address)
    assert "secret" not in str(refused.value)


def test_an_address_is_shown_with_its_port_and_without_what_may_be_secret() -> None:
    address = "https://me:secret@example.org:8443/a/manifest.json?sig=secret"
    assert shown_address(address) == "https://example.org:8443/a/manifest.json"


@pytest.mark.parametrize("answer", [b"hello\r\n\r\n", b"\x00" * 100])
def test_an_answer_that_is_no_http_is_refused(answer: bytes) -> None:
    server = Dripping(answer)
    server.over.set()
    try:
        with pytest.raises((CatalogError, OSError)):
            fetch(server.address, 1000, 10.0)
    finally:
        server.close()


@pytest.mark.parametrize("target", ["http://127.0.0.1/x", "http://localhost/x", "http://[::1]/x"])
def test_a_redirect_from_https_to_this_machine_is_refused(target: str) -> None:
    class Answer:
        closed = False

        def close(self) -> None:
            self.closed = True

    answer = Answer()
    asked = Request("https://example.org/manifest.json")
    with pytest.raises(CatalogError, match="leads from https:// to http://"):
        _SameScheme().redirect_request(asked, answer, 302, "Found", {}, target)
    assert answer.closed
