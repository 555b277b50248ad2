"""What stands where a file is to be written: kept, followed or written to, never swept away."""

import gzip
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from recommender.catalogs import files
from recommender.catalogs.files import gzipped, prepare, remove_left_overs, replace_file, write_new

ROOT = Path(__file__).parents[2]


def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        replace_file(tmp_path / "new", b"1")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o755])
def test_a_file_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b"old")
    path.chmod(mode)
    replace_file(path, b"new")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_file_keeps_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "theirs"
    path.write_bytes(b"old")
    os.chown(path, 12345, 23456)
    replace_file(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_one_and_what_it_points_to_is_written(tmp_path: Path, there: bool) -> None:
    """As a config.toml that points into a repository of dotfiles."""
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    if there:
        (dotfiles / "config.toml").write_bytes(b"old")
    hop, link = tmp_path / "hop", tmp_path / "config.toml"
    hop.symlink_to(dotfiles / "config.toml")
    link.symlink_to("hop")
    replace_file(link, b"new")
    assert link.is_symlink()
    assert hop.is_symlink()
    assert (dotfiles / "config.toml").read_bytes() == b"new"
    assert [path.name for path in dotfiles.iterdir()] == ["config.toml"]


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        replace_file(tmp_path / "a", b"new")
    assert (tmp_path / "a").is_symlink()


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        replace_file(tmp_path, b"new")


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    replace_file(pipe, b"new")
    reader.join()
    assert found == [b"new"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_is_written_to_and_stays(tmp_path: Path) -> None:
    """A copy of /dev/full where this program may make one; else the real one, which only root
    could harm."""
    full = Path("/dev/full")
    if os.geteuid() == 0:
        full = tmp_path / "full"
        try:
            os.mknod(full, stat.S_IFCHR | 0o666, os.makedev(1, 7))
        except PermissionError:
            pytest.skip("no device can be made here")
    try:
        full.write_bytes(b"x")
    except PermissionError:
        pytest.skip("devices on this disk cannot be opened")
    except OSError:
        pass
    with pytest.raises(OSError, match="No space left"):
        replace_file(full, b"new")
    assert stat.S_ISCHR(full.stat().st_mode)
    assert [path.name for path in tmp_path.iterdir()] in ([], ["full"])


def test_an_open_pipe_is_written_by_its_number() -> None:
    """`>(cmd)` of a shell names /dev/fd/63: nothing can stand next to it."""
    words = [sys.executable, "-c",
             "from pathlib import Path\n"
             "from recommender.catalogs.files import replace_file\n"
             "replace_file(Path('/dev/fd/1'), b'through')"]  # fmt: skip
    done = subprocess.run(words, capture_output=True, cwd=ROOT)
    assert (done.stdout, done.stderr) == (b"through", b"")


def test_what_lies_in_the_way_of_the_new_file_is_never_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"safe")
    monkeypatch.setattr(os, "urandom", bytes)  # an attacker who can guess the name
    (tmp_path / f"{files._PREFIX}{'00' * 8}").symlink_to(victim)
    with pytest.raises(FileExistsError):
        prepare(tmp_path / "shared", b"new")
    assert victim.read_bytes() == b"safe"


def test_temporary_names_are_random_and_a_name_may_have_255_characters(
    tmp_path: Path,
) -> None:
    path = tmp_path / ("n" * 255)
    assert len({prepare(path, b"1").name for _ in range(5)}) == 5
    replace_file(path, b"1")
    remove_left_overs(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_failure_leaves_the_old_file_alone_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old"
    path.write_bytes(b"old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="old") as failed:
        replace_file(path, b"new")
    assert failed.value.filename == str(path)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("old", b"old")]


def test_a_file_that_may_not_be_written_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "read-only"
    path.write_bytes(b"old")
    path.chmod(0o444)
    if os.geteuid() == 0:  # root may write anything
        monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"


def test_a_new_file_never_goes_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "link", b"new")


def test_the_program_makes_nothing_that_all_may_write(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "recommender", "config", "set", "confidence", "90%"]
    env = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}
    subprocess.run(words, check=True, capture_output=True, env=env, umask=0)
    (made,) = tmp_path.rglob("config.toml")
    for path in (made, made.parent):
        assert not path.stat().st_mode & stat.S_IWOTH


def test_the_bundle_contains_neither_its_date_nor_the_version_of_python() -> None:
    packed = gzipped(b"x" * 1000)
    assert packed[:10].hex() == "1f8b0800000000000203"
    assert gzip.decompress(packed) == b"x" * 1000
