"""Fetching a `config.json`, from a server on this machine."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from recommender.errors import UsageError
from recommender.networks.find import find_network
from recommender.networks.hub import fetch_config

LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 128256,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
}  # fmt: skip


@contextmanager
def hub(answers: dict[str, tuple[int, bytes]]) -> Iterator[str]:
    """A server that answers some paths, and 404 elsewhere."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, content = answers.get(self.path, (404, b""))
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_config_is_fetched_and_kept(tmp_path: Path) -> None:
    with hub({"/me/mine-8b/raw/main/config.json": (200, json.dumps(LLAMA).encode())}) as at:
        path = fetch_config("me/mine-8b", tmp_path, at)
    assert path == tmp_path / "mine-8b.config.json"
    assert find_network(str(path)).network.count.parameters == 8_030_261_248


def test_models_of_diffusers_keep_theirs_in_a_folder(tmp_path: Path) -> None:
    with hub({"/me/paint/raw/main/unet/config.json": (200, b'{"_class_name": "X"}')}) as at:
        assert fetch_config("me/paint", tmp_path, at).name == "paint.config.json"


@pytest.mark.parametrize(
    ("status", "content", "said"),
    [
        (404, b"", "has no config.json"),
        (401, b"", "gated"),
        (500, b"", "answered 500"),
        (200, b"<html>", "not JSON"),
        (200, b"\xff", "utf-8"),
        (200, b" " * 1_000_001, "more than 1,000,000 bytes"),
    ],
)
def test_what_the_hub_refuses_is_reported(
    tmp_path: Path, status: int, content: bytes, said: str
) -> None:
    with (
        hub({"/me/mine/raw/main/config.json": (status, content)}) as at,
        pytest.raises(UsageError) as refused,
    ):
        fetch_config("me/mine", tmp_path, at)
    assert said in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["gpt2", "a/b/c", "../x", "/x", "x/", "./."])
def test_only_names_of_the_hub_are_requested(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="no name of the hub"):
        fetch_config(name, tmp_path, "http://127.0.0.1:9")
