"""Reads the words of a call before Typer does, so that every mistake in them is reported."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
