"""Small servers on this machine: HTTP that can fail in every way, and Google's gRPC service."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Asked:
    """A request as it came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class Reply:
    """An answer, or a way not to answer."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None  # bytes after which the connection breaks
    never: bool = False  # answer only when the server stops

    @property
    def content(self) -> bytes:
        """The body as bytes; JSON unless it is bytes already."""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


Answer = Callable[[Asked], Reply]


@dataclass
class Server:
    """A running server: what it was asked, and what it answers next instead of the usual."""

    address: str = ""
    asked: list[Asked] = field(default_factory=list)
    instead: list[Reply | None] = field(default_factory=list)  # None: the usual answer

    def fail(self, *replies: Reply | None) -> None:
        """Answer the next requests so."""
        self.instead += replies


@contextmanager
def http_server(answer: Answer) -> Iterator[Server]:
    """Serve until the block ends."""
    server, stopped = Server(), Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply(None)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if "form" in self.headers.get("Content-Type", ""):
                self._reply({name: each[0] for name, each in parse_qs(body.decode()).items()})
            else:
                self._reply(json.loads(body or b"null"))

        def _reply(self, body: Any) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            heads = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, parts.path, query, heads, body)
            server.asked.append(asked)
            reply = (server.instead.pop(0) if server.instead else None) or answer(asked)
            if reply.never:
                stopped.wait(10)
                self.close_connection = True
                return
            content = reply.content
            self.send_response(reply.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content if reply.cut is None else content[: reply.cut])
            self.close_connection = reply.cut is not None

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    class Listening(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """A client that hangs up is no news here."""

    with Listening(("127.0.0.1", 0), Handler) as listening:
        listening.daemon_threads = True
        listening.block_on_close = False
        server.address = f"http://127.0.0.1:{listening.server_port}"
        thread = Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            stopped.set()
            listening.shutdown()
            thread.join()


@contextmanager
def grpc_server(list_skus: Callable[[Any, Any], Any]) -> Iterator[str]:
    """Serve `ListSkus` of Google's Cloud Catalog by gRPC."""
    import grpc
    from google.cloud.billing_v1 import ListSkusRequest, ListSkusResponse

    handler = grpc.unary_unary_rpc_method_handler(
        list_skus,
        request_deserializer=ListSkusRequest.deserialize,
        response_serializer=ListSkusResponse.serialize,
    )
    service = "google.cloud.billing.v1.CloudCatalog"
    with ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool)
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, {"ListSkus": handler}),)
        )
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.stop(None).wait()
