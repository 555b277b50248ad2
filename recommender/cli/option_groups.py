"""Commands that take their options as dataclasses.

Typer wants every option as a parameter of its own. `recommend plan` has some sixty, most of them
shared with `recommend simulate`: they are fields of dataclasses, each written once, and are
handed to Typer one by one.
"""

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Offer the fields of every dataclass parameter as options; gather them when it is called."""
    given = signature(command).parameters
    groups: dict[str, Any] = {n: p.annotation for n, p in given.items() if _is_group(p)}
    options_of = {name: _options(group) for name, group in groups.items()}

    @wraps(command)
    def run(**values: Any) -> None:
        gathered = {
            name: group(**{option: values[option] for option in options_of[name]})
            for name, group in groups.items()
        }
        command(**{name: gathered[name] if name in gathered else values[name] for name in given})

    options = [
        option
        for name, each in given.items()
        for option in (options_of[name].values() if name in groups else [each])
    ]
    options.sort(key=lambda option: option.default is not Parameter.empty)  # as Python wants it
    run.__signature__ = Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    del run.__wrapped__  # Typer would read its signature instead
    return run


def _is_group(parameter: Parameter) -> bool:
    return is_dataclass(parameter.annotation)


def _options(group: Any) -> dict[str, Parameter]:
    """The fields of a dataclass as parameters."""
    return {
        field.name: Parameter(
            field.name,
            Parameter.POSITIONAL_OR_KEYWORD,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=field.type,
        )
        for field in fields(group)
    }
