"""`recommend accuracy`: how far predictions are from what others measured."""

import os
from pathlib import Path
from typing import Annotated

import typer

from recommender.cli.flags import PageFlags, Word, Words
from recommender.cli.group import Careful
from recommender.cli.later import alone
from recommender.cli.pager import as_json, put_json
from recommender.cli.screen import screen, show
from recommender.errors import UsageError
from recommender.text import shown_path

REFERENCE = "RECOMMEND_REFERENCE_DATA"


def accuracy(
    flags: PageFlags,
    studies: Annotated[
        Words,
        typer.Argument(
            metavar="[STUDY]...",
            help="Studies by key or how it begins; all without.",
            show_default=False,
        ),
    ] = None,
    reference: Annotated[
        Word,
        typer.Option(help=f"Folder of the large reference tables ({REFERENCE}).", metavar="DIR"),
    ] = None,
) -> None:
    """Errors of the models on published measurements they did not see.

    \b
    recommend accuracy
    recommend accuracy cmdare
    """
    from recommender.accuracy.studies import chosen
    from recommender.report import accuracyview

    wanted = chosen(studies or ())
    folder = _folder(reference)
    findings = [study.finding(folder) for study in wanted]
    where = "" if folder is None else shown_path(folder)
    if as_json(flags):
        put_json(accuracyview.facts(findings, where))
        return
    on = screen(flags.color or "auto")
    show(accuracyview.render(findings, where, on.width), on)


def _folder(word: str | None) -> Path | None:
    """The folder of the reference tables; from the environment without a flag."""
    given = word if word is not None else os.environ.get(REFERENCE) or None
    if given is None:
        return None
    folder = Path(given).expanduser()
    if not (folder / "measured").is_dir():
        where = "--reference" if word is not None else REFERENCE
        raise UsageError(f"{where} {shown_path(folder)}: no folder 'measured' with tables in it")
    return folder


command = alone("accuracy", accuracy, Careful)
