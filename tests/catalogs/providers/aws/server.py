"""Serves a cloud on a local socket, with its bad days."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from tests.catalogs.providers.aws.cloud import Answer, Cloud


class _Handler(BaseHTTPRequestHandler):
    cloud: Cloud
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        scope = re.search(r"Credential=[^/]+/\d+/([\w-]+)/", self.headers.get("Authorization", ""))
        region = scope[1] if scope else ""
        target = self.headers.get("X-Amz-Target", "")
        query = json.loads(body) if target else parse_qs(body, keep_blank_values=True)
        action = target.rpartition(".")[2] or query["Action"][0]
        self._send(self.cloud.answer(action, region, query))

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.cloud.seen["GET"] += 1
        for key in (("GET", path), ("GET", "")):
            if self.cloud.trouble[key]:
                bad = self.cloud.trouble[key].pop(0)
                if isinstance(bad, int):
                    self._send((bad, b"no"))
                    return
                if bad != "truncate":
                    self._send(self.cloud.bad(bad, "GET", "", {}))
                    return
                content = self.cloud.file(path) or b""
                self._send((200, content[: len(content) // 2]), len(content))
                return
        content = self.cloud.file(path)
        self._send((200, content) if content is not None else (404, b"no"))

    def _send(self, answer: Answer | str, length: int | None = None) -> None:
        if isinstance(answer, str):
            if answer == "truncate":
                self._send((200, b"<?xml version='1.0'?><Desc"), 4000)
            self.close_connection = True
            return
        status, body = answer
        self.send_response(status)
        self.send_header("Content-Type", "application/x-amz-json-1.1")
        self.send_header("Content-Length", str(length or len(body)))
        self.end_headers()
        self.wfile.write(body)
        if length:
            self.close_connection = True

    def handle(self) -> None:
        with suppress(ConnectionError):
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""


@contextmanager
def serving(cloud: Cloud) -> Iterator[Cloud]:
    """Serve a cloud on a free local port."""
    handler = type("Handler", (_Handler,), {"cloud": cloud})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    cloud.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield cloud
    finally:
        cloud.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
