"""Commands that report every mistake of a call at once, and a group whose default is `plan`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from recommender.cli.lazy import Commands, LazyCommand
from recommender.errors import UsageError
from recommender.text import nearest, shown


@dataclass(frozen=True, slots=True)
class Flag:
    """What a flag takes: nothing, one value, or one value each time it is given."""

    name: str  # the first long spelling
    takes_value: bool
    repeatable: bool
    value: str = ""  # what stands for its value in the help


def scan(words: Sequence[str], flags: Mapping[str, Flag]) -> tuple[list[str], list[str]]:
    """Split the words of a call into those that can be parsed and what is wrong with the rest."""
    kept: list[str] = []
    problems: list[str] = []
    seen: dict[str, str] = {}
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            return [*kept, *words[at:]], problems
        name, flag = _flag(word, flags)
        following = words[at + 1] if at + 1 < len(words) else None
        if flag is None:
            step = _unknown(word, name, following, flags, kept, problems)
        else:
            _note_twice(flag, name, seen, problems)
            step = _known(word, name, flag, following, flags, kept, problems)
        at += step
    return kept, problems


def _flag(word: str, flags: Mapping[str, Flag]) -> tuple[str, Flag | None]:
    """The flag in a word: `--top=3` holds `--top`, `-ojson` holds `-o`."""
    name = word.partition("=")[0] if word.startswith("--") else word[:2]
    return name, flags.get(name)


def _unknown(
    word: str,
    name: str,
    following: str | None,
    flags: Mapping[str, Flag],
    kept: list[str],
    problems: list[str],
) -> int:
    """An argument is kept; a flag that does not exist is reported, with its value."""
    if not word.startswith("-") or word == "-":
        kept.append(word)
        return 1
    name = word.partition("=")[0]
    meant = nearest(name, [each for each in flags if each.startswith("--")])
    hint = f"did you mean {meant}?" if meant else "see recommend --help"
    problems.append(f"unknown flag {shown(name)}; {hint}")
    takes = flags[meant].takes_value if meant else False
    has_value = following is not None and not following.startswith("-")
    return 2 if takes and has_value and "=" not in word else 1


def _known(
    word: str,
    name: str,
    flag: Flag,
    following: str | None,
    flags: Mapping[str, Flag],
    kept: list[str],
    problems: list[str],
) -> int:
    attached = word != name
    if not flag.takes_value:
        if word.startswith("--") and attached:
            problems.append(f"{name} takes no value; write {name} alone")
            return 1
        kept.append(word)
        return 1
    if attached:
        kept.append(word)
        return 1
    if following is None or _flag(following, flags)[1] is not None:
        problems.append(f"{name} needs a value: {name} {flag.value}".rstrip())
        return 1
    kept += [word, following]
    return 2


def _note_twice(flag: Flag, name: str, seen: dict[str, str], problems: list[str]) -> None:
    if flag.name in seen and flag.takes_value and not flag.repeatable:
        problems.append(f"{name} is given twice; keep one")
    if not flag.takes_value and seen.get(flag.name, name) != name and name.startswith("--"):
        problems.append(f"{name} contradicts {seen[flag.name]}; keep one")
    seen[flag.name] = name


DEFAULT = "plan"
TOP_LEVEL = ("--help", "-h", "--version", "--install-completion", "--show-completion")
_PROBLEMS = "recommend.problems"


class StrictCommand(TyperCommand):
    """A command that finds every wrong flag of a call, and shows its flags by subject."""

    collects = False  # whether the command itself reports the problems, with its own

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take out what cannot be parsed, and remember what was wrong with it."""
        if ctx.resilient_parsing or {"--help", "-h"} & set(args):
            return super().parse_args(ctx, args)
        kept, problems = scan(args, flags_of(self.params))
        ctx.meta[_PROBLEMS] = problems
        return super().parse_args(ctx, kept)

    def invoke(self, ctx: Any) -> Any:
        """Run the command unless the call was wrong."""
        if ctx.meta.get(_PROBLEMS) and not self.collects:
            raise UsageError(*ctx.meta[_PROBLEMS])
        return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Flags under the name of their subject."""
        write_options(self.params, ctx, formatter)


class PlanCommand(StrictCommand):
    """The default command: its own mistakes and those of the call are reported together."""

    collects = True


class DefaultToPlan(TyperGroup):
    """A group that reads `recommend --deadline 24h JOB` as `recommend plan …`."""

    known: tuple[LazyCommand, ...] = ()

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands: Any = Commands(self.known)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `plan` in front unless a command or a flag of the group comes first."""
        first = args[0] if args else ""
        if args and first not in self.commands and first not in TOP_LEVEL:
            if not ctx.resilient_parsing:
                self._refuse_misspelt(first)
            args = [DEFAULT, *args]
        elif not args and ctx.resilient_parsing:
            args = [DEFAULT]  # completion of the first word
        return super().parse_args(ctx, args)

    def _refuse_misspelt(self, first: str) -> None:
        """A first word close to a command, and no job, is a command misspelt."""
        from recommender.job.preset_files import presets

        known = first in presets() or first.startswith("-") or Path(first).exists()
        meant = None if known or nearest(first, presets()) else nearest(first, self.commands)
        if meant:
            raise UsageError(f"unknown word '{shown(first)}'; did you mean recommend {meant}?")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The flags of the default command, then the commands."""
        write_options(self.commands[DEFAULT].params, ctx, formatter)
        write_options([p for p in self.params if p.opts[0] in TOP_LEVEL], ctx, formatter)
        with formatter.section("Commands"):
            formatter.write_dl(self.commands.lines())


class SuggestingGroup(TyperGroup):
    """A group of commands that offers the nearest name for one that does not exist."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse an unknown command with the nearest one; without any, show the help."""
        args = args or ["--help"]
        first = args[0] if args else ""
        if first and not first.startswith("-") and first not in self.commands:
            meant = nearest(first, self.commands)
            known = f"did you mean {meant}?" if meant else f"known: {', '.join(self.commands)}"
            raise UsageError(f"unknown command '{shown(ctx.info_name)} {shown(first)}'; {known}")
        return super().parse_args(ctx, args)


def call_problems(ctx: typer.Context) -> list[str]:
    """What was wrong with the words of the call."""
    return list(ctx.meta.get(_PROBLEMS, ()))


def flags_of(params: Any) -> Mapping[str, Flag]:
    """Every spelling of every flag, and what it takes."""
    found = {}
    for param in params:
        if param.param_type_name != "option":
            continue
        long = next((name for name in param.opts if name.startswith("--")), param.opts[0])
        takes = not (param.is_flag or param.count)
        flag = Flag(long, takes, param.multiple, param.metavar or "")
        found.update(dict.fromkeys([*param.opts, *param.secondary_opts], flag))
    found.setdefault("--help", Flag("--help", False, False))
    found.setdefault("-h", Flag("--help", False, False))
    return found


def write_options(params: Any, ctx: Any, formatter: Any) -> None:
    """A section of help for each subject, in the order of the flags."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for param in params:
        if param.param_type_name == "argument":
            sections.setdefault("Arguments", []).append((param.metavar or "", param.help or ""))
            continue
        record = param.get_help_record(ctx)
        if record is not None:
            panel = getattr(param, "rich_help_panel", None) or "Options"
            sections.setdefault(panel, []).append(record)
    for name, records in sections.items():
        with formatter.section(name):
            formatter.write_dl(records)


def complete_job(ctx: typer.Context, incomplete: str) -> list[str]:
    """What a first word can be: a job, or a command where nothing else was typed yet."""
    from recommender.job.preset_files import presets

    nothing_yet = not any(ctx.params.values())
    group = ctx.parent.command if ctx.parent is not None else None
    commands = list(getattr(group, "commands", {})) if nothing_yet else []
    return [word for word in (*presets(), *commands) if word.startswith(incomplete)]
