"""Limits on foreign texts before they are parsed: a parsed cell takes up to 60 times its bytes.

A few kilobytes of gzip unpack to a hundred million commas, each of which would become a string in a
list. So texts are counted before they are split; counting takes a millisecond per megabyte.
"""

import os
import re
import stat
from pathlib import Path
from typing import BinaryIO

_LONG, _LONG_BYTES = re.compile("[0-9]{301}"), re.compile(b"[0-9]{301}")
MAX_VALUES = 5_000_000  # of a JSON text: 0.4 GB at worst; a page of a provider has 200,000
MAX_CELLS = 8_000_000  # of a table: 0.6 GB at worst; 100,000 offers have 1,300,000
MAX_LINE = 100_000  # characters; a row of a table has 1,000 at most
MAX_MANIFEST = 1_000_000  # bytes; that of a catalog has 10,000


def read_at_most(path: Path, most: int) -> bytes:
    """Read a file that may be larger than a program can hold, or a device that never ends.

    Raises:
        ValueError: it holds more bytes.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return _at_most(file, most)


def read_plain_file(path: Path, most: int) -> bytes:
    """Read a file of a folder that others may have filled, without waiting (a pipe is refused).

    Raises:
        ValueError: it holds more bytes, or is a pipe or device.
        OSError: it cannot be read.
    """
    # Opening a pipe would wait for its writer.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("no plain file")
        return _at_most(file, most)


def _at_most(file: BinaryIO, most: int) -> bytes:
    content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"larger than {most:,} bytes")
    return content


def check_json(text: str | bytes) -> None:
    """Refuse JSON of more values than a program can hold.

    Raises:
        ValueError: it has more.
    """
    if len(text) > MAX_VALUES and _count(text, ",[{") > MAX_VALUES:
        raise ValueError(f"holds more than {MAX_VALUES:,} values")
    _check_numbers(text)


def check_table(text: str) -> None:
    """Refuse a table of more cells than a program can hold, or with a line that is no row.

    Raises:
        ValueError: it has.
    """
    if len(text) > MAX_CELLS and _count(text, ",\n\t") > MAX_CELLS:
        raise ValueError(f"holds more than {MAX_CELLS:,} cells")
    start = 0
    while len(text) - start > MAX_LINE:  # the last line break within reach of each start
        end = text.rfind("\n", start, start + MAX_LINE + 1)
        if end < 0:
            raise ValueError(f"holds a line of more than {MAX_LINE:,} characters")
        start = end + 1
    _check_numbers(text)


def _check_numbers(text: str | bytes) -> None:
    """Numbers beyond any float: Python refuses to read them, or to reckon with them."""
    found = _LONG.search(text) if isinstance(text, str) else _LONG_BYTES.search(text)
    if found:
        raise ValueError("holds a number of more than 300 digits")


def _count(text: str | bytes, marks: str) -> int:
    if isinstance(text, bytes):
        return sum(text.count(mark.encode()) for mark in marks)
    return sum(text.count(mark) for mark in marks)
