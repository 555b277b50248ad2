"""Commands that are imported when they are called, not at every start."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer

from recommender.cli.flat import flat


@dataclass(frozen=True, slots=True)
class Later:
    """A command or a group of commands: where it is, and its line in the list of commands."""

    name: str
    place: str  # module of recommender.cli, colon, name of a Typer in it
    line: str


class Commands(Mapping[str, Any]):
    """Commands by name, each imported when it is first asked for."""

    def __init__(self, known: Iterable[Later]) -> None:
        self._known = {each.name: each for each in known}
        self._made: dict[str, Any] = {}

    def lines(self) -> list[tuple[str, str]]:
        """Names and their lines; nothing is imported."""
        return [(each.name, each.line) for each in self._known.values()]

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            module, _, held = self._known[name].place.partition(":")
            found = getattr(import_module(f"recommender.cli.{module}"), held)
            self._made[name] = typer.main.get_command(found)
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


def alone(name: str, function: Callable[..., None], made_by: type[Any]) -> typer.Typer:
    """A command that stands in no group."""
    made = _bare(name=name)
    made.command(name, cls=made_by)(flat(function))
    return made


def together(name: str, help: str, made_by: type[Any]) -> typer.Typer:
    """A group, to which its module adds commands."""
    return _bare(name=name, help=help, cls=made_by)


def _bare(**given: Any) -> typer.Typer:
    """Completion is offered at the top only; messages are ours (edge.py)."""
    return typer.Typer(
        add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, **given
    )
