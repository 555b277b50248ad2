"""Files are read and written as a whole, or refused."""

from pathlib import Path

import pytest

from recommender.catalogs.files import replace_file
from recommender.errors import UsageError
from recommender.inputs.files import read_text, writing


def test_files_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"a: \xff\xfe")
    (tmp_path / "large").write_bytes(b"a" * (2**20 + 1))
    for name, reason in [
        ("latin", "UTF-8"),
        ("large", "1 MiB"),
        ("none", "no such"),
        ("", "is a folder"),
    ]:
        with pytest.raises(UsageError, match=reason):
            read_text(tmp_path / name)
    (tmp_path / "marked").write_bytes(b"\xef\xbb\xbfa: 1")
    assert read_text(tmp_path / "marked") == "a: 1"


def test_a_file_that_cannot_be_put_in_place_leaves_nothing_next_to_it(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        replace_file(tmp_path / "taken", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("old")
    replace_file(tmp_path / "kept", b"new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("kept", "new")]


def test_another_name_is_requested_only_where_one_would_help(tmp_path: Path) -> None:
    """A full disk is no wrong call: its code is 1 everywhere (docs/cli.md)."""
    said = "--out no/x: cannot be written .*; name another"
    with pytest.raises(UsageError, match=said), writing("--out no/x"):
        replace_file(tmp_path / "no" / "x", b"")
    with pytest.raises(OSError, match="No space left") as full, writing("--out /dev/full"):
        replace_file(Path("/dev/full"), b"x")
    assert full.value.filename == "--out /dev/full"
