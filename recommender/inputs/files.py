"""Reads small text files that a user names, and says which named file could not be written."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recommender.errors import UsageError
from recommender.text import shown, shown_path

MAX_BYTES = 2**20
_SYSTEM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # another name would not help


def read_text(path: Path, most: int = MAX_BYTES) -> str:
    """Read a small text file or pipe; refuse anything else."""
    try:
        refuse_no_file(path)
        with path.open("rb") as file:
            content = file.read(most + 1)
        if len(content) > most:
            limit = f"larger than {most // 2**20} MiB"
            raise UsageError(f"{shown_path(path)}: {limit}; is it the right file?")
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{shown_path(path)}: not UTF-8 text; save it as UTF-8") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{shown_path(path)}: cannot be read ({shown(error)})") from None


def refuse_no_file(path: Path) -> None:
    """Refuse a path that is not a readable file, and say what it is instead."""
    if path.is_dir():
        raise UsageError(f"{shown_path(path)}: is a folder; name a file in it")
    if not path.exists():
        raise UsageError(f"{shown_path(path)}: no such file; check its name and folder")


@contextmanager
def writing(named: str, instead: str = "name another") -> Iterator[None]:
    """Say whose fault it is where a file of the call cannot be written.

    Raises:
        UsageError: the call's: there is no such folder, say.
        OSError: the system's: the disk is full or fails.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _SYSTEM:
            raise OSError(error.errno, error.strerror, named) from None
        raise UsageError(f"{named}: cannot be written ({error.strerror}); {instead}") from None
