"""Every command and flag has help, and docs/cli.md names it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from recommender.cli.app import app

PAGE = (Path(__file__).parents[3] / "docs" / "cli.md").read_text("utf-8")


def commands(command: Any, path: str = "recommend") -> Iterator[tuple[str, Any]]:
    """Every command with the words that call it."""
    yield path, command
    if hasattr(command, "list_commands"):
        for name in command.list_commands(None):
            yield from commands(command.get_command(None, name), f"{path} {name}")


ALL = dict(commands(get_command(app)))
FLAGS = sorted(
    {name for each in ALL.values() for p in each.params for name in [*p.opts, *p.secondary_opts]}
)


@pytest.mark.parametrize("path", ALL)
def test_a_command_has_help_and_is_documented(path: str) -> None:
    assert ALL[path].help
    assert path in PAGE


@pytest.mark.parametrize("path", [path for path in ALL if not hasattr(ALL[path], "list_commands")])
def test_a_command_has_an_example(path: str) -> None:
    words = path if path != "recommend plan" else "recommend"
    assert f"\n{words}" in ALL[path].help


@pytest.mark.parametrize("flag", [f for f in FLAGS if f.startswith("-")])
def test_a_flag_is_documented(flag: str) -> None:
    assert f"`{flag}" in PAGE or f" {flag}`" in PAGE


@pytest.mark.parametrize("path", ALL)
def test_every_flag_has_help(path: str) -> None:
    assert not [param.name for param in ALL[path].params if not param.help]
