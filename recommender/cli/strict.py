"""Commands that report every mistake of a call at once, and whose help is sorted by subject.

Click stops at the first flag that it does not know, takes the next flag for a value that was left
out, and lets the last of two values win in silence. So the words of a call are checked before it
parses them: it is given those that it can read, and all problems are reported together.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import typer
from typer.core import TyperCommand

from recommender.errors import UsageError
from recommender.text import nearest, shown

_PROBLEMS = "recommend.problems"
HELP = ["-h", "--help", "--help-all"]
_ALL = "recommend.help_all"
PLANNING = (  # subjects of the flags that several commands share
    *("Limits (all must hold)", "What may be rented", "Your own figures", "The job"),
    *("Search", "Trace", "Workers", "Output"),
)
_MANY = 30  # flags of a command from which on `--help` shows the usual ones only
USUAL = (
    *("--deadline", "--budget", "--hourly", "--confidence", "--provider", "--gpu", "--no-spot"),
    *("--quota", "--table", "--explain", "--json"),
)
# What other tools call some flags, and what to write instead.
_ELSEWHERE = {
    "--spot": "--market spot",
    "--spot-only": "--market spot",
    "--use-spot": "--market spot",
    "--on-demand": "--market on-demand",
    "--on-demand-only": "--market on-demand",
    "--max-cost": "--budget",
    "--max-price": "--hourly",
    "--max-time": "--deadline",
}


class StrictCommand(TyperCommand):
    """A command that finds every wrong flag of a call, and shows its flags by subject."""

    collects = False  # whether the command itself reports the problems, with its own

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take out what cannot be parsed, and remember what was wrong with it."""
        if ctx.resilient_parsing or set(HELP) & set(args):
            note_help_all(ctx, args)
            return super().parse_args(ctx, args)
        keep_as_typed(self.get_params(ctx))
        kept, ctx.meta[_PROBLEMS] = check_words(args, options_of(self.get_params(ctx)))
        return super().parse_args(ctx, kept)

    def invoke(self, ctx: Any) -> Any:
        """Run the command unless the call was wrong."""
        if call_problems(ctx) and not self.collects:
            raise UsageError(*call_problems(ctx))
        return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Flags under the name of their subject."""
        write_options(self.params, ctx, formatter)


class _AsTyped:
    """Text stays text, and what is not given needs no check; the rest is read as Typer does.

    From 0.29 on Typer builds a pydantic validator for every flag that a command has, given or not:
    a tenth of the time of an answer. Our flags are text, and `inputs` reads it.
    """

    def __init__(self, as_typer: Callable[[], Any]) -> None:
        self.as_typer = as_typer  # builds what Typer reads the flag with

    def __call__(self) -> "_AsTyped":
        """What reads the flag, as `get_runtime_param` of Typer's parameters gives it."""
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value of a parameter."""
        many = param.multiple or param.nargs == -1
        if value is None:
            return () if many else None
        if param.type_descriptor.annotation in (str, list[str]):
            return list(value) if many else value
        return self.as_typer().coerce(value, param=param, ctx=ctx)


def keep_as_typed(params: Iterable[Any]) -> None:
    """Do without Typer's validators where Typer would build them; older ones have none."""
    for param in params:
        as_typer = getattr(param, "get_runtime_param", None)
        if as_typer is not None and not isinstance(as_typer, _AsTyped):
            param.get_runtime_param = _AsTyped(as_typer)


class PlanCommand(StrictCommand):
    """A command that plans: its own mistakes and those of the call are reported together."""

    collects = True


def call_problems(ctx: typer.Context) -> list[str]:
    """What was wrong with the words of the call."""
    return list(ctx.meta.get(_PROBLEMS, ()))


def options_of(params: Iterable[Any]) -> dict[str, Any]:
    """Click's options by each of their spellings."""
    options = [param for param in params if param.param_type_name == "option"]
    return {flag: each for each in options for flag in (*each.opts, *each.secondary_opts)}


def check_words(words: Sequence[str], options: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Split the words of a call into those that can be parsed and what is wrong with the rest."""
    kept: list[str] = []
    problems: list[str] = []
    given: dict[str, str] = {}
    rest = list(words)
    while rest and rest[0] != "--":
        word = rest.pop(0)
        flag = _flag(word)
        option = options.get(flag)
        problem, values = "", 0  # how many of the next words are values of this one
        if option is not None:
            problem = _misuse(word, flag, option, rest, options)
            values = int(_takes_value(option) and word == flag and not problem)
            problems += _repetition(flag, option, given)
        elif word.startswith("-") and word != "-":
            problem, values = _unknown_flag(word, rest, options)
        if problem:
            problems.append(problem)
        else:
            kept += [word, *rest[:values]]
        del rest[:values]
    return kept + rest, problems


def _flag(word: str) -> str:
    """The flag in a word: `--top=3` holds `--top`, `-ojson` holds `-o`."""
    return word.partition("=")[0] if word.startswith("--") else word[:2]


def _takes_value(option: Any) -> bool:
    return not (option.is_flag or option.count)


def _misuse(
    word: str, flag: str, option: Any, rest: Sequence[str], options: Mapping[str, Any]
) -> str:
    """What is wrong with a flag that exists, as it is written; empty where nothing is."""
    if not _takes_value(option):
        wrong = word.startswith("--") and word != flag
        return f"{flag} takes no value; write {flag} alone" if wrong else ""
    if word != flag or (rest and _flag(rest[0]) not in options):
        return ""
    return f"{flag} needs a value: {flag} {option.metavar or ''}".rstrip()


def _repetition(flag: str, option: Any, given: dict[str, str]) -> list[str]:
    """Two values where one is taken, or a switch turned on and off."""
    before = given.get(option.name)
    given[option.name] = flag
    if before is None or option.multiple:
        return []
    if _takes_value(option):
        return [f"{flag} is given twice; keep one"]
    turned = (flag in option.secondary_opts) != (before in option.secondary_opts)
    return [f"{flag} contradicts {before}; keep one"] if turned else []


def _unknown_flag(word: str, rest: Sequence[str], options: Mapping[str, Any]) -> tuple[str, int]:
    """What is wrong with a flag that does not exist, and how many words are values of it."""
    name = word.partition("=")[0]
    meant = _meant_flag(name, options)
    hint = f"did you mean {meant}?" if meant else "see recommend --help-all"
    has_value = bool(rest) and not rest[0].startswith("-") and "=" not in word
    takes = meant in options and _takes_value(options[meant])
    is_value = has_value and (takes or rest[0][:1].isdigit())  # no job begins with a digit
    return f"unknown flag {shown(name)}; {hint}", int(is_value)


def _meant_flag(name: str, options: Mapping[str, Any]) -> str:
    """The flag that another one probably stands for, with its value where that is clear."""
    known = _ELSEWHERE.get(name.lower(), "")
    if known.partition(" ")[0] in options:
        return known
    names = [each[2:] for each in options if each.startswith("--")]
    bare = nearest(name.lstrip("-"), names, cutoff=0.7)
    return f"--{bare}" if bare else ""


def note_help_all(ctx: Any, args: Sequence[str]) -> None:
    """Remember that every flag is to be shown: the two kinds of help share one callback."""
    ctx.meta[_ALL] = "--help-all" in args


def shows_all(ctx: Any) -> bool:
    """Whether help for every flag was requested."""
    return bool(ctx.meta.get(_ALL))


def write_options(params: Sequence[Any], ctx: Any, formatter: Any) -> None:
    """The flags by subject; of a command with many the usual ones, unless all were requested."""
    options = [each for each in params if each.param_type_name == "option"]
    if len(options) < _MANY or shows_all(ctx):
        _write_sections(params, _subject, ctx, formatter)
        return
    planning = [each for each in options if _subject(each) in PLANNING]
    usual = [each for each in planning if each.opts[0] in USUAL]
    own = [each for each in options if each not in planning]
    title = f"Flags ({len(planning) - len(usual)} more: {ctx.command_path} --help-all)"
    _write_sections(own, _subject, ctx, formatter)
    _write_sections(usual, lambda _: title, ctx, formatter)


def _subject(param: Any) -> str:
    """What a flag is about."""
    if param.param_type_name == "argument":
        return "Arguments"
    return getattr(param, "rich_help_panel", None) or "Options"


def _write_sections(
    params: Sequence[Any], title: Callable[[Any], str], ctx: Any, formatter: Any
) -> None:
    sections: dict[str, list[tuple[str, str]]] = {}
    for param in params:
        argument = param.param_type_name == "argument"
        record = (param.metavar or "", param.help or "") if argument else param.get_help_record(ctx)
        if record is not None:
            sections.setdefault(title(param), []).append(record)
    for name, records in sections.items():
        with formatter.section(name):
            formatter.write_dl(records)


def complete_job(ctx: typer.Context, incomplete: str) -> list[str]:
    """What a first word can be: a job, or a command where nothing else was typed yet."""
    from recommender.job.preset_files import presets

    nothing_yet = not any(ctx.params.values())
    group: Any = ctx.parent.command if ctx.parent is not None else None
    commands = group.list_commands(ctx) if nothing_yet and group is not None else []
    return [word for word in (*presets(), *commands) if word.startswith(incomplete)]
