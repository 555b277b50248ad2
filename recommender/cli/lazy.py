"""Commands that are imported when they are called, and that take dataclasses of flags."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from importlib import import_module
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints

import typer

Command = Callable[..., None]


def with_option_groups(command: Command) -> Command:
    """Spread the fields of every dataclass parameter; gather them again when it is called."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    def run(**values: Any) -> None:
        made = {name: _made(group, values) for name, group in groups.items()}
        rest = {name: values[name] for name in signature(command).parameters if name not in groups}
        command(**made, **rest)

    parameters: list[Parameter] = [
        spread
        for name, parameter in signature(command).parameters.items()
        for spread in (_spread(groups[name]) if name in groups else [parameter])
    ]
    parameters.sort(key=lambda each: each.default is not Parameter.empty)  # as Python wants it
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run


def _made(group: Any, values: dict[str, Any]) -> Any:
    return group(**{each.name: values[each.name] for each in fields(group)})


def _spread(group: Any) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(
            each.name,
            Parameter.POSITIONAL_OR_KEYWORD,
            default=_default(each),
            annotation=hints[each.name],
        )
        for each in fields(group)
    ]


def _default(each: "Field[Any]") -> Any:
    return Parameter.empty if each.default is MISSING else each.default


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """A command or a group of commands: where it is, and its line in the list of commands."""

    name: str
    place: str  # module of recommender.cli, colon, name of a Typer in it
    line: str


class Commands(Mapping[str, Any]):
    """Commands by name, each imported when it is first asked for."""

    def __init__(self, known: Iterable[LazyCommand]) -> None:
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


def command_app(name: str, function: Callable[..., None], made_by: type[Any]) -> typer.Typer:
    """A command that stands in no group."""
    made = _bare(name=name)
    made.command(name, cls=made_by)(with_option_groups(function))
    return made


def group_app(name: str, help: str, made_by: type[Any]) -> typer.Typer:
    """A group, to which its module adds commands."""
    return _bare(name=name, help=help, cls=made_by)


def _bare(**given: Any) -> typer.Typer:
    """Completion is offered at the top only; messages are ours (edge.py)."""
    return typer.Typer(
        add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, **given
    )
