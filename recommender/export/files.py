"""Exported files: their text, and how they are written."""

import os
from pathlib import Path

from recommender.catalogs.files import replace_file
from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.inputs.files import writing
from recommender.text import shown_path


@dataclass(frozen=True, slots=True)
class ExportFile:
    """One file of an export."""

    name: str
    text: str = ""
    executable: bool = False
    binary: bytes = b""  # of a file that is no text

    @property
    def content(self) -> bytes:
        """What is written."""
        return self.binary or self.text.encode("utf-8")


def write_files(folder: Path, files: tuple[ExportFile, ...], force: bool) -> tuple[Path, ...]:
    """Write all files, or none where one would replace a file that has another text."""
    paths = tuple(folder / each.name for each in files)
    for path, each in zip(paths, files, strict=True):
        if not force and path.exists() and not _holds(path, each.content):
            raise UsageError(f"{shown_path(path)}: exists and is another; name another folder")
    with writing(shown_path(folder), "name another folder"):
        folder.mkdir(parents=True, exist_ok=True)
        for path, each in zip(paths, files, strict=True):
            replace_file(path, each.content)
            if each.executable:
                os.chmod(path, 0o755)
    return paths


def _holds(path: Path, content: bytes) -> bool:
    """Whether a file has this content; a pipe or a device is not read."""
    return path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content
