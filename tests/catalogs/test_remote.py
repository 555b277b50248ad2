"""A catalog served over HTTP: checked file by file, kept for days without a connection."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from recommender.catalogs.errors import CatalogError
from recommender.catalogs.fetch import fetch
from recommender.catalogs.remote import load_remote
from tests.catalogs import small


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder and counts what was requested."""

    asked: list[str] = []

    def do_GET(self) -> None:
        """Serve a file, or what the test wants instead."""
        self.asked.append(self.path)
        if self.path == "/moved/manifest.json":
            self.send_response(302)
            self.send_header("Location", "ftp://example.org/manifest.json")
            self.end_headers()
            return
        super().do_GET()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def as_pipe(path: Path) -> None:
    """A pipe without a writer: opening it would wait forever."""
    path.unlink()
    os.mkfifo(path)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A small catalog in a folder and the address of its manifest."""
    folder = small.written(tmp_path / "served")
    Quiet.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}/manifest.json"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_catalog_is_read_once_and_then_only_its_manifest(
    served: tuple[Path, str], tmp_path: Path
) -> None:
    _, address = served
    for _ in range(2):
        remote = load_remote(address, tmp_path / "cache")
        assert remote.catalog.offers.usd_per_hour[0] == 0.526
        assert remote.notes == ()
    assert Quiet.asked.count("/manifest.json") == 2
    assert Quiet.asked.count("/offers.csv.gz") == 1


READ = """
import sys
from pathlib import Path
from recommender.catalogs.remote import load_remote
input()
remote = load_remote(sys.argv[1], Path(sys.argv[2]))
print(remote.catalog.offers.usd_per_hour[0], remote.notes)
"""


def test_programs_that_read_a_new_catalog_at_once_do_not_disturb_each_other(
    served: tuple[Path, str], tmp_path: Path
) -> None:
    words = [sys.executable, "-c", READ, served[1], str(tmp_path / "cache")]
    root = Path(__file__).parents[2]
    programs = [
        subprocess.Popen(words, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True, cwd=root)
        for _ in range(4)
    ]
    for program in programs:
        assert program.stdin
        program.stdin.write("\n")
        program.stdin.flush()
    said = [program.communicate(timeout=60) for program in programs]
    assert said == [("0.526 ()\n", "")] * 4
    (kept,) = (tmp_path / "cache").iterdir()
    assert len(list(kept.iterdir())) == 2  # the copy, and its name


def test_an_answer_of_many_pieces_is_read_whole(served: tuple[Path, str]) -> None:
    content = bytes(range(256)) * 1000
    (served[0] / "large").write_bytes(content)
    address = served[1].replace("manifest.json", "large")
    assert fetch(address, len(content), 60.0) == content
    with pytest.raises(CatalogError, match="more than 255,999 bytes"):
        fetch(address, len(content) - 1, 60.0)


def test_a_damaged_copy_is_got_again(served: tuple[Path, str], tmp_path: Path) -> None:
    load_remote(served[1], tmp_path / "cache")
    (file,) = (tmp_path / "cache").glob("*/*/offers.csv.gz")
    file.write_bytes(b"damaged")
    assert load_remote(served[1], tmp_path / "cache").notes == ()
    assert file.read_bytes() == (served[0] / "offers.csv.gz").read_bytes()


def test_a_copy_that_grew_or_became_a_pipe_is_got_again(
    served: tuple[Path, str], tmp_path: Path
) -> None:
    for damage in (lambda path: path.write_bytes(b" " * 2_000_000), as_pipe):
        load_remote(served[1], tmp_path / "cache")
        (manifest,) = (tmp_path / "cache").glob("*/*/manifest.json")
        damage(manifest)
        assert load_remote(served[1], tmp_path / "cache").notes == ()


def test_a_cache_that_cannot_be_written_costs_the_copy_not_the_answer(
    served: tuple[Path, str], tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("no folder")
    assert load_remote(served[1], tmp_path / "cache").catalog.offers.usd_per_hour[0] == 0.526


def test_a_signed_address_keeps_its_signature_for_every_file(
    served: tuple[Path, str], tmp_path: Path
) -> None:
    load_remote(f"{served[1]}?sig=abc", tmp_path / "cache")
    assert "/offers.csv.gz?sig=abc" in Quiet.asked


def test_a_file_that_differs_from_the_manifest_is_refused(
    served: tuple[Path, str], tmp_path: Path
) -> None:
    folder, address = served
    (folder / "offers.csv.gz").write_bytes(b"half")
    with pytest.raises(CatalogError, match="sha256 differs"):
        load_remote(address, tmp_path / "cache")


def test_a_half_written_upload_leaves_the_last_copy(
    served: tuple[Path, str], tmp_path: Path
) -> None:
    folder, address = served
    load_remote(address, tmp_path / "cache")
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"rows": 2', '"rows": 3'))
    remote = load_remote(address, tmp_path / "cache")
    assert len(remote.catalog.offers) == 2
    assert "its last copy is used" in remote.notes[0]


def test_without_a_connection_the_last_copy_is_used_and_said_so(
    served: tuple[Path, str], tmp_path: Path
) -> None:
    load_remote(served[1], tmp_path / "cache")

    def down(address: str, most: int) -> bytes:
        raise TimeoutError("timed out")

    remote = load_remote(served[1], tmp_path / "cache", down)
    assert len(remote.catalog.offers) == 2
    assert "(timed out); its last copy is used" in remote.notes[0]
    with pytest.raises(CatalogError, match="no copy is kept"):
        load_remote(served[1], tmp_path / "other", down)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("http://example.org/manifest.json", "over https:// only"),
        ("ftp://example.org/manifest.json", "over https:// only"),
        ("file:///etc/manifest.json", "over https:// only"),
        ("https://me:secret@example.org/manifest.json", "holds a password"),
        ("https://example.org/offers.csv", "name the manifest"),
    ],
)
def test_an_address_that_is_not_safe_is_refused_without_showing_a_password(
    tmp_path: Path, address: str, words: str
) -> None:
    with pytest.raises(CatalogError, match=words) as refused:
        load_remote(address, tmp_path)
    assert "secret" not in str(refused.value)


def test_a_redirect_away_from_https_is_refused(served: tuple[Path, str], tmp_path: Path) -> None:
    address = served[1].replace("/manifest.json", "/moved/manifest.json")
    with pytest.raises(CatalogError, match="over https:// only"):
        load_remote(address, tmp_path / "cache")


@pytest.mark.parametrize(
    "manifest",
    [b"[", b"[]", b'{"tables": 1}', b'{"tables": {"../x": {}}}',
     b'{"tables": {"offers": {"parts": {"../../x": {}}}}}'],
)  # fmt: skip
def test_a_manifest_that_names_other_files_is_refused(tmp_path: Path, manifest: bytes) -> None:
    with pytest.raises(CatalogError, match="manifest"):
        load_remote("https://example.org/manifest.json", tmp_path, lambda a, most: manifest)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_an_answer_that_is_too_large_is_refused(
    served: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recommender.catalogs.remote.MAX_BYTES", 10)
    with pytest.raises(CatalogError, match="more than 10 bytes"):
        load_remote(served[1], tmp_path / "cache")
