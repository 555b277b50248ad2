"""Reads small text files that a user names; `catalogs.files` writes files."""

from pathlib import Path

from recommender.errors import UsageError
from recommender.text import shown, shown_path

MOST_BYTES = 2**20


def read_text(path: Path, most: int = MOST_BYTES) -> str:
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
        raise UsageError(f"{shown_path(path)}: no such file")
