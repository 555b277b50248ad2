"""Groups of commands: those of a group suggest the nearest name, those at the top load late.

Click's pattern for commands that are imported when they are called, and a default command. Both
are written out here because Typer has neither: building all commands at start would import every
part of the tool, 0.3 s, to print one page of help.
"""

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from recommender.catalogs.frozen import dataclass
from recommender.cli.flags import with_records
from recommender.cli.strict import (
    HELP,
    StrictCommand,
    keep_as_typed,
    note_help_all,
    shows_all,
    write_options,
)
from recommender.errors import UsageError
from recommender.text import nearest, shown

DEFAULT = "plan"
_RARE = ("sources", "doctor", "schema", "mcp", "config", "accuracy", "backtest")
TOP_LEVEL = (*HELP, "--version", "--install-completion", "--show-completion")


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """A command or a group of commands: where it is, and its line in the list of commands."""

    name: str
    line: str
    typer: str = ""  # module of recommender.cli.commands, colon, name of a Typer in it

    @property
    def location(self) -> str:
        """Where it is."""
        return self.typer or f"{self.name}:command"

    @property
    def usual(self) -> bool:
        """Whether it is listed without --help-all."""
        return self.name not in _RARE


@cache
def load_command(location: str) -> Any:
    """Import a command."""
    module, _, name = location.partition(":")
    return typer.main.get_command(
        getattr(import_module(f"recommender.cli.commands.{module}"), name)
    )


class DefaultToPlan(TyperGroup):
    """A group that reads `recommend --deadline 24h JOB` as `recommend plan …`."""

    lazy_commands: tuple[LazyCommand, ...] = ()

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order of the help; nothing is imported."""
        return [each.name for each in self.lazy_commands]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command where there is one of that name."""
        found = [each.location for each in self.lazy_commands if each.name == cmd_name]
        return load_command(found[0]) if found else None

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `plan` in front unless a command or a flag of the group comes first."""
        first = args[0] if args else ""
        note_help_all(ctx, args)
        if args and first not in (*self.list_commands(ctx), *TOP_LEVEL):
            if not ctx.resilient_parsing:
                self._refuse_misspelt(first, self.list_commands(ctx))
            args = [DEFAULT, *args]
        elif not args and ctx.resilient_parsing:
            args = [DEFAULT]  # completion of the first word
        if first not in TOP_LEVEL:
            keep_as_typed(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def _refuse_misspelt(self, first: str, commands: list[str]) -> None:
        """A first word close to a command, and no job, is a command misspelt."""
        from recommender.job.preset_files import presets

        known = first in presets() or first.startswith("-") or os.path.exists(first)
        meant = None if known or nearest(first, presets()) else nearest(first, commands)
        if meant:
            raise UsageError(
                f"unknown command or job '{shown(first)}'; did you mean recommend {meant}?"
            )

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The exit codes, where everything is shown."""
        if shows_all(ctx):
            super().format_epilog(ctx, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The flags of the default command, then the commands."""
        write_options(self.get_command(ctx, DEFAULT).params, ctx, formatter)
        if shows_all(ctx):
            write_options([p for p in self.params if p.opts[0] in TOP_LEVEL], ctx, formatter)
        listed = [each for each in self.lazy_commands if each.usual or shows_all(ctx)]
        more = len(self.lazy_commands) - len(listed)
        title = f"Commands ({more} more: {ctx.command_path} --help-all)" if more else "Commands"
        with formatter.section(title):
            formatter.write_dl([(each.name, each.line) for each in listed])


class SuggestingGroup(TyperGroup):
    """A group of commands that offers the nearest name for one that does not exist."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse an unknown command with the nearest one; without any, show the help."""
        args = args or ["--help"]
        first = args[0]
        if first and not first.startswith("-") and first not in self.commands:
            meant = nearest(first, self.commands)
            known = f"did you mean {meant}?" if meant else f"known: {', '.join(self.commands)}"
            raise UsageError(f"unknown command '{shown(ctx.info_name)} {shown(first)}'; {known}")
        keep_as_typed(self.get_params(ctx))
        return super().parse_args(ctx, args)


def group_app(name: str, help: str) -> typer.Typer:
    """An empty group."""
    return _bare(name=name, help=help, cls=SuggestingGroup)


def command_app(
    name: str, function: Callable[..., None], cls: type[StrictCommand] = StrictCommand
) -> typer.Typer:
    """A command outside the groups."""
    app = _bare(name=name)
    add_command(app, name, function, cls)
    return app


def add_command(
    app: typer.Typer,
    name: str,
    function: Callable[..., None],
    cls: type[StrictCommand] = StrictCommand,
) -> None:
    """Add a command, whose options may be dataclasses, to a group."""
    app.command(name, cls=cls)(with_records(function))


def _bare(**given: Any) -> typer.Typer:
    """Completion is offered at the top only; messages are ours (exit_codes.py)."""
    return typer.Typer(
        add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, **given
    )
