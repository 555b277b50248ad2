"""Writing files so that a crash or a full disk leaves either the old content or the new.

Only regular files are replaced. A symbolic link is followed, so that it stays one; a pipe or a
device is written to, as every other program does.
"""

import errno
import json
import os
import stat
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from recommender.catalogs.bounds import check_json

Step = Callable[[str], None]  # called before each step; tests stop the program there
_NEW_FILE = 0o666  # less the umask
_SYSTEM, _UNIX = 9, b"\x03"  # place and value in a gzip header (RFC 1952)
_PREFIX = ".recommend-"  # of temporary files, whose length does not depend on the file's name


def no_step(step: str) -> None:
    """A step callback that does nothing."""


def write_new(path: Path, content: bytes, like: os.stat_result | None = None) -> None:
    """Write a file that is not read yet, and wait until it is on disk.

    Its mode and owner are those of the file that it is to replace.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _NEW_FILE)
    with open(handle, "wb") as file:
        if like is not None:
            _take_after(handle, like)
        file.write(content)
        file.flush()
        os.fsync(handle)


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file in one step: a reader sees the old content or the new.

    Raises:
        OSError: it cannot be written; what stood there stays, and nothing else is left.
    """
    if _is_stream(path):
        with path.open("wb") as file:
            file.write(content)
        return
    target = _followed(path)
    temporary = prepare(target, content)
    try:
        os.replace(temporary, target)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def prepare(path: Path, content: bytes) -> Path:
    """Write the replacement of a file next to it; renaming it then needs no space.

    Others cannot put a file in its place: the name is random, and must not exist yet.
    """
    before = path.stat() if path.exists() else None
    if before is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    temporary = path.with_name(f"{_PREFIX}{os.urandom(8).hex()}")
    try:
        write_new(temporary, content, before)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        error.filename = str(path)  # the requested name, not the temporary one
        raise
    return temporary


def remove_left_overs(folder: Path) -> None:
    """Remove temporary files of interrupted writers; call it while nothing else writes there."""
    for path in folder.glob(f"{_PREFIX}*"):
        path.unlink(missing_ok=True)


def _is_stream(path: Path) -> bool:
    """Whether something else than a file is there: a pipe, a terminal, a device."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _followed(path: Path) -> Path:
    """The file behind symbolic links, which need not be there yet."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return target


def _take_after(handle: int, like: os.stat_result) -> None:
    with suppress(OSError):  # only root may give files away; some disks know no owners
        os.fchown(handle, like.st_uid, like.st_gid)
    with suppress(OSError):
        os.fchmod(handle, stat.S_IMODE(like.st_mode))


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def gzipped(content: bytes) -> bytes:
    """Compress bytes as gzip without a date.

    Python 3.13 writes an unknown system into the header, earlier versions Unix; we always write
    Unix.
    """
    packer = zlib.compressobj(9, wbits=31)
    packed = packer.compress(content) + packer.flush()
    return packed[:_SYSTEM] + _UNIX + packed[_SYSTEM + 1 :]


def parse_json(text: str | bytes) -> Any:
    """Parse JSON.

    Raises:
        ValueError: it is none, holds more than a program can, or lists lie in lists deeper than
            the parser goes.
    """
    check_json(text)
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
