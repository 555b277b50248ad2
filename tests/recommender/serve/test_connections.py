"""The server over real sockets, with each event loop and protocol that people install.

Needs Starlette and uvicorn; uvloop and httptools, of `uvicorn[standard]`, where they are installed.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from importlib import import_module
from typing import Any

import httpx
import pytest

from recommender.serve import connections
from recommender.serve.app import Server
from recommender.serve.connections import MAX_OPEN, server_config
from recommender.serve.planning import Planning
from recommender.serve.workers import Workers
from tests.recommender.planning import small

pytest.importorskip("starlette", reason="Starlette is not installed")
uvicorn = pytest.importorskip("uvicorn", reason="uvicorn is not installed")
REPORT = "/report?job=resnet18-cifar10&deadline=24h"
KINDS = [
    ("asyncio", "uvicorn.protocols.http.h11_impl", "H11Protocol", ()),
    ("uvloop", "uvicorn.protocols.http.httptools_impl", "HttpToolsProtocol",
     ("uvloop", "httptools")),
]  # fmt: skip


class Served:
    """A server in a thread."""

    def __init__(self, loop: str, module: str, protocol: str) -> None:
        pool = Workers(small(), 1)
        app = Server(pool, Planning(pool)).app()
        http = getattr(import_module(module), protocol)
        self.server = uvicorn.Server(server_config(app, "127.0.0.1", 0, loop=loop, http=http))
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            self.thread.join(0.02)
            assert self.thread.is_alive()
        self.address = self.server.servers[0].sockets[0].getsockname()

    def get(self, path: str, **headers: str) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{self.address[1]}{path}", headers=headers, timeout=60)

    def silent(self) -> socket.socket:
        """A connection that asks nothing."""
        return socket.create_connection(self.address)


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: str(kind[0]))
def served(request: Any) -> Iterator[Served]:
    loop, module, protocol, needed = request.param
    for each in needed:
        pytest.importorskip(each, reason="a part of uvicorn[standard] is not installed")
    made = Served(loop, module, protocol)
    yield made
    made.server.should_exit = True
    made.thread.join(20)
    assert not made.thread.is_alive()


def test_a_report_that_comes_in_many_pieces_is_whole(served: Served):
    found = served.get(REPORT)
    assert found.status_code == 200
    assert found.text.rstrip().endswith("</html>")
    assert len(found.content) > 200_000


def test_silent_connections_stop_nobody(served: Served):
    with ExitStack() as stack:
        opened = [stack.enter_context(closing(served.silent())) for _ in range(MAX_OPEN)]
        for each in opened[-100:]:
            each.sendall(b"GET / HTTP/1.1\r\nHost:")
        assert served.get("/healthz").status_code == 200
        opened[0].settimeout(30)
        assert opened[0].recv(1) == b""


def test_whoever_asks_is_heard_before_a_flood_that_came_with_them_closes_them(served: Served):
    """The server is busy while 50 ask and then 900 connect; it accepts all of them at once."""
    free, busy = threading.Event(), threading.Event()
    served.server.servers[0].get_loop().call_soon_threadsafe(lambda: (busy.set(), free.wait(30)))
    assert busy.wait(30)
    with ExitStack() as stack:
        asking = [stack.enter_context(closing(served.silent())) for _ in range(50)]
        for each in asking:
            each.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for _ in range(900):
            stack.enter_context(closing(served.silent()))
        free.set()
        for each in asking:
            each.settimeout(30)
            assert each.recv(12) == b"HTTP/1.1 200"


def test_a_head_that_does_not_end_is_not_waited_for(
    served: Served, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(connections, "HEAD_S", 0.05)
    with closing(served.silent()) as opened:
        opened.settimeout(30)
        opened.sendall(b"GET /healthz HTTP/1.1\r\nHost: loc")
        assert opened.recv(1) == b""
    with closing(served.silent()) as opened:  # between two requests, too
        opened.settimeout(30)
        opened.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        said = b""
        while part := opened.recv(65_536):
            said += part
        assert said.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("length", [70_000, 5_000_000])
def test_a_body_that_is_too_long_is_an_answer(served: Served, length: int):
    address = f"http://127.0.0.1:{served.address[1]}/api/plan"
    head = {"content-type": "application/json"}
    found = httpx.post(address, content=b" " * length, headers=head, timeout=30)
    assert found.status_code == 413


@pytest.mark.parametrize("start", [b"GET /", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "])
def test_a_head_of_any_length_is_not_kept(
    served: Served, start: bytes, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(connections, "HEAD_S", 60)  # it is not the time that ends it
    with closing(served.silent()) as opened:
        opened.settimeout(30)
        with pytest.raises(ConnectionError):
            opened.sendall(start + b"a" * 100_000_000)
    assert served.get("/healthz").status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_elsewhere_gets_no_answer(served: Served, site: str):
    assert served.get(REPORT, **{"Sec-Fetch-Site": site}).status_code == 403
    assert served.get("/", **{"Sec-Fetch-Site": site}).status_code == 200
    assert served.get(REPORT, **{"Sec-Fetch-Site": "same-origin"}).status_code == 200


@pytest.mark.parametrize("host", ["[::1", "[", "]", "", "[::1]:x:", "a" * 3000])
def test_an_odd_host_is_an_answer(served: Served, host: str):
    with closing(served.silent()) as opened:
        opened.settimeout(30)
        head = f"GET /api/jobs HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        opened.sendall(head.encode())
        said = b""
        while part := opened.recv(65_536):
            said += part
    assert b"421" in said[:20] or b"200" in said[:20] or b"400" in said[:20]
    assert b"500" not in said[:20]


@pytest.mark.parametrize("loop", KINDS, ids=lambda kind: str(kind[0]))
def test_a_server_ends_while_it_plans(loop: Any):
    for each in loop[3]:
        pytest.importorskip(each, reason="a part of uvicorn[standard] is not installed")
    made = Served(*loop[:3])
    asked = socket.create_connection(made.address)
    path = "/report?job=llama3-8b-lora&deadline=24h"
    asked.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert made.get("/healthz").status_code == 200
    made.server.should_exit = True
    made.thread.join(20)
    assert not made.thread.is_alive()
    asked.close()
