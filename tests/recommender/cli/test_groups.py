"""Commands are imported when they are called; the list of them needs no import."""

import subprocess
import sys
from typing import Any

import pytest
from typer.main import get_command

from recommender.cli.app import COMMANDS, app
from recommender.cli.groups import LazyCommand, load_command

LOADED = """
import sys
from recommender.cli import main
main(sys.argv[1:])
shown = ("recommender.cli", "numpy", "rich", "pydantic")
print(*(name for name in sys.modules if name.startswith(shown)), file=sys.stderr)
"""


@pytest.mark.parametrize("lazy", COMMANDS, ids=[each.name for each in COMMANDS])
def test_the_list_of_commands_names_what_there_is(lazy: LazyCommand) -> None:
    assert load_command(lazy.location).name == lazy.name
    assert 10 < len(lazy.line) <= 60


def test_an_unknown_command_is_none() -> None:
    top: Any = get_command(app)
    assert top.get_command(None, "simulat") is None
    assert "simulat" not in top.list_commands(None)


def test_help_imports_no_command_but_the_default_one() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, "--help"], capture_output=True, text=True, check=True
    )
    loaded = done.stderr.split()
    commands = [name for name in loaded if name.startswith("recommender.cli.commands.")]
    assert commands == ["recommender.cli.commands.plan"]
    assert not {"numpy", "rich", "pydantic"} & set(loaded)  # 0.2 s
    assert all((f"\n  {each.name} " in done.stdout) == each.usual for each in COMMANDS)
