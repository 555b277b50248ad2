"""Writes the files of an answer that flags ask for, and says what they are for."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recommender.catalogs.files import replace_file
from recommender.cli.open_catalog import store_at
from recommender.cli.screen import write_text
from recommender.errors import UsageError
from recommender.export.files import write_files
from recommender.export.helper import helper_file
from recommender.export.start import start_line, start_place, usual_target
from recommender.inputs.files import writing
from recommender.plan.answer import Answer
from recommender.report.answer_frame import PlanRequest
from recommender.text import shown_path

if TYPE_CHECKING:
    from recommender.export.description import RunDescription

PICTURES = (".svg", ".png")
VERSIONS = 8  # of a store that prices of the past are read from: 0.1 s each


def picture_path(word: str | None) -> Path | None:
    """Where `--plot` draws; None where it was not given.

    Raises:
        UsageError: the name does not say what form the picture has.
    """
    path = Path(word) if word else None
    if path is not None and path.suffix.lower() not in PICTURES:
        raise UsageError(f"--plot {shown_path(path)}: pictures end in {' or '.join(PICTURES)}")
    return path


def draw(path: Path, spec: dict[str, Any]) -> None:
    """Write a picture of a specification, whole or not at all."""
    from recommender.report.html.picture import drawn  # only `--plot` needs it

    with writing(f"--plot {shown_path(path)}"):
        replace_file(path, drawn(spec, path.suffix.lower()))


def write_report(answer: Answer, request: PlanRequest, file: str, catalog: str | None) -> None:
    """Write an answer with its pictures as one HTML file; an existing file is replaced.

    `catalog` is where its prices are from: a store keeps older ones.

    Raises:
        UsageError: it cannot be written there.
    """
    from recommender.catalogs.history import recent_prices
    from recommender.report.html.page import render
    from recommender.report.html.prices import offers_of

    path, store = Path(file), store_at(None if catalog and "://" in catalog else catalog)
    known = recent_prices(store, offers_of(answer), VERSIONS)
    with writing(f"--report {shown_path(path)}"):
        replace_file(path, render(answer, request, prices=known).encode("utf-8"))
    write_text(f"wrote {shown_path(path)}; open it with a browser\n", sys.stderr)


def write_export(
    run: "RunDescription", target: str | None, folder: str, force: bool = False
) -> None:
    """Write the files that run a plan to a folder, and name them; no target: the usual one."""
    from recommender.export.launchers import named_by_user
    from recommender.export.targets import export_files

    chosen = target or usual_target(run.plan)
    found = (helper_file(), *export_files(run, chosen, folder))
    paths = write_files(Path(folder), found, force)
    lines = [f"wrote {shown_path(path)}" for path in paths]
    where = start_place(run.nodes, chosen)
    start = f"start {where} with" if where else "start with"
    lines.append(f"{start}: {start_line(run.plan, chosen, folder)}")
    yours = ", ".join(f"{n}={v}" for n, v, _ in named_by_user(run.job))
    lines.append(
        f"which runs your training ({yours} in the files names it) from the folder that you start "
        "it in"
    )
    write_text("".join(f"{line}\n" for line in lines), sys.stderr)
