"""Writes a file as a whole or not at all: no reader sees half of it."""

import os
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Put the content beside the file, then in its place; raises `OSError`."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(content)
        os.replace(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
