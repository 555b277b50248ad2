"""`recommend offers`: machines outside the catalog, as a file that plans read."""

import os
from pathlib import Path

from recommender.catalogs.files import replace_file
from recommender.cli.flags import Word, flag
from recommender.cli.groups import add_command, group_app
from recommender.cli.open_catalog import load_catalog
from recommender.cli.screen import write_text
from recommender.errors import UsageError
from recommender.inputs.files import writing
from recommender.inputs.offers_file import offers_template
from recommender.text import shown_path

group = group_app("offers", "A file for machines you own or rent elsewhere.")


@group.callback()
def offers() -> None:
    """A file for machines you own or rent elsewhere."""
    # Typer would make a group of one command that command


def new_offers(
    output: Word = flag("FILE", "New file to write.", "--output", "-o"),
) -> None:
    """Print an example file of your own machines, with its columns explained.

    \b
    recommend offers new -o offers.csv
    """

    text = offers_template(load_catalog(None).gpus)
    if output is None:
        write_text(text)
    else:
        _write_new(Path(output), text)


def _write_new(path: Path, text: str) -> None:
    if os.path.lexists(path):
        raise UsageError(f"--output {shown_path(path)} exists; name another file")
    with writing(f"--output {shown_path(path)}"):
        replace_file(path, text.encode("utf-8"))


add_command(group, "new", new_offers)
