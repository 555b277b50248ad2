"""Writing files so that a crash or a full disk leaves either the old content or the new."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

Step = Callable[[str], None]  # told before each step; tests stop the program there


def no_step(step: str) -> None:
    """Nothing happens at a step."""


def write_new(path: Path, content: bytes) -> None:
    """Write a file that nobody reads yet, and wait until the disk has it."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file in one step: a reader sees the old content or the new.

    Raises:
        OSError: it cannot be written; what stood there stays, and nothing else is left.
    """
    aside = prepare(path, content, str(os.getpid()))  # two programs may write the same file
    try:
        os.replace(aside, path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def prepare(path: Path, content: bytes, suffix: str = "new") -> Path:
    """Write what shall replace a file next to it; taking its place then needs no room."""
    aside = path.with_name(f".{path.name}.{suffix}")
    aside.unlink(missing_ok=True)
    try:
        write_new(aside, content)
    except OSError:
        aside.unlink(missing_ok=True)
        raise
    return aside


def sync_folder(folder: Path) -> None:
    """Wait until the disk knows the names in a folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def parse_json(text: str | bytes) -> Any:
    """Read JSON.

    Raises:
        ValueError: it is none, or lists lie in lists deeper than the parser goes.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
