"""One line for each flag: what a command takes, as fields of records or defaults of parameters.

Typer wants every option as a parameter of its own. Many are shared by several commands: they are
fields of records, written once, which may hold other records; `PANEL` is the heading over them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import MISSING, Field, field, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer

Word = str | None
Words = list[str] | None
REQUIRED = MISSING  # the default of what must be given
_PLACEHOLDERS = ("NAME", "ADDRESS", "FILE", "LAW", "VERSION", "…")  # among words to choose from


def flag(
    metavar: str | Iterable[str],
    help: str,
    *names: str,
    default: Any = None,
    autocompletion: Callable[..., list[str]] | None = None,
) -> Any:
    """An option with a value; a metavar such as `a|b` lists what completes it."""
    metavar = metavar if isinstance(metavar, str) else "|".join(metavar)
    choices = [word for word in metavar.split("|") if word not in _PLACEHOLDERS]
    if "|" in metavar:
        autocompletion = one_of(choices)
    typed = typer.Option(*names, help=help, metavar=metavar, autocompletion=autocompletion)
    typed.show_default = isinstance(default, str)
    return _taken(typed, default)


def switch(help: str, *names: str, default: bool | None = False) -> Any:
    """An option without a value."""
    return _taken(typer.Option(*names, help=help, show_default=False), default)


def argument(
    metavar: str,
    help: str,
    default: Any = REQUIRED,
    autocompletion: Callable[..., list[str]] | None = None,
) -> Any:
    """A word without a flag, which must be given unless there is a default."""
    typed = typer.Argument(metavar=metavar, help=help, autocompletion=autocompletion)
    typed.show_default = False
    return _taken(typed, default)


def one_of(words: Sequence[str]) -> Callable[[str], list[str]]:
    """What completes a flag that takes one of a few words."""

    def completions(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return completions


def _taken(typed: Any, default: Any) -> Any:
    return field(default=default, metadata={"typed": typed})


def with_records(command: Callable[..., None]) -> Callable[..., None]:
    """Offer what a command takes as options; gather its records when it is called."""
    given = signature(command).parameters
    kinds = {name: each.annotation for name, each in given.items()}

    @wraps(command)
    def run(**values: Any) -> None:
        command(**_gathered(kinds, values))

    options = [option for each in given.values() for option in _options(each)]
    options.sort(key=lambda option: option.default is not Parameter.empty)  # as Python wants it
    run.__signature__ = Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    del run.__wrapped__  # Typer would read its signature instead
    return run


def _gathered(kinds: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _record(kinds[name], values) if is_dataclass(kinds[name]) else values[name]
            for name in kinds}  # fmt: skip


def _record(kind: Any, values: Mapping[str, Any]) -> Any:
    return kind(**_gathered({f.name: f.type for f in _typed(kind)}, values))


def _typed(record: Any) -> Iterable[Field[Any]]:
    """The fields of a record that are typed, or records themselves."""
    return (f for f in fields(record) if "typed" in f.metadata or is_dataclass(f.type))


def _options(given: Parameter, panel: str | None = None) -> list[Parameter]:
    """A parameter of a command as Typer takes it: itself, or each field of its record."""
    record = given.annotation
    if is_dataclass(record):
        panel = getattr(record, "PANEL", None)
        made = (given.replace(name=f.name, default=f, annotation=f.type) for f in _typed(record))
        return [option for each in made for option in _options(each, panel)]
    if not isinstance(given.default, Field):
        return [given]
    typed, default = copy(given.default.metadata["typed"]), given.default.default
    typed.rich_help_panel = panel
    if given.annotation is bool and not typed.param_decls:  # no `--no-force` beside `--force`
        typed.param_decls = (f"--{given.name.replace('_', '-')}",)
    return [
        given.replace(
            default=Parameter.empty if default is MISSING else default,
            annotation=Annotated[given.annotation, typed],
        )
    ]
