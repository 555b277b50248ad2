"""Commands that take their options as dataclasses.

Typer wants every option as a parameter of its own. `recommend plan` has some sixty, most of them
shared with `recommend simulate`: they stand as fields of dataclasses, each written once, and are
handed to Typer one by one.
"""

from collections.abc import Callable
from dataclasses import is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Offer the fields of every dataclass parameter as options; gather them when it is called."""
    given = signature(command).parameters
    groups: dict[str, Any] = {n: p.annotation for n, p in given.items() if _is_group(p)}
    fields = {name: signature(group).parameters for name, group in groups.items()}

    @wraps(command)
    def run(**values: Any) -> None:
        gathered = {
            name: group(**{field: values[field] for field in fields[name]})
            for name, group in groups.items()
        }
        command(**{name: gathered[name] if name in gathered else values[name] for name in given})

    options = [
        option
        for name, each in given.items()
        for option in (fields[name].values() if name in groups else [each])
    ]
    options.sort(key=lambda option: option.default is not Parameter.empty)  # as Python wants it
    run.__signature__ = Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    del run.__wrapped__  # Typer would read its signature instead
    return run


def _is_group(parameter: Parameter) -> bool:
    return is_dataclass(parameter.annotation)
