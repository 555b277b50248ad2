"""Writes the files that run a plan, and says how they are started."""

import sys
from pathlib import Path

from recommender.cli.screen import write_text
from recommender.export.description import RunDescription
from recommender.export.files import write_files
from recommender.export.start import start_line, usual_target
from recommender.export.targets import export_files
from recommender.text import shown_path


def write_export(run: RunDescription, target: str | None, folder: str, force: bool = False) -> None:
    """Write the files of a plan to a folder and name them; no target: the usual one."""
    chosen = target or usual_target(run)
    paths = write_files(Path(folder), export_files(run, chosen, folder), force)
    lines = [f"wrote {shown_path(path)}" for path in paths]
    lines.append(f"start with: {start_line(run, chosen, folder)}")
    write_text("".join(f"{line}\n" for line in lines), sys.stderr)
