"""Lets a command take dataclasses of flags where Typer wants one flat list of parameters."""

from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints

Command = Callable[..., None]


def flat(command: Command) -> Command:
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
