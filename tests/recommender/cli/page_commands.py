"""The commands of a page of the documentation, run in their order in one folder."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

from tests.recommender.cli.conftest import Result

ROOT = Path(__file__).parents[3]


def commands_of(page: str) -> list[list[str]]:
    """The words behind `recommend` of each line of its `sh` blocks."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
    return [shlex.split(line)[1:] for block in blocks for line in block.splitlines()]


def run_page(page: str, run: Callable[..., Result], folder: Path) -> list[tuple[list[str], Result]]:
    """Run them all; `> FILE` writes what a command says."""
    found = []
    for words in commands_of(page):
        said = run(*(words[: words.index(">")] if ">" in words else words))
        if ">" in words:
            (folder / words[words.index(">") + 1]).write_text(said.out, encoding="utf-8")
        found.append((words, said))
    return found
