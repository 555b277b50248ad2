"""Reads typed values one after the other and keeps what is wrong with each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from recommender.errors import UsageError
from recommender.text import shown, unknown

T = TypeVar("T")
D = TypeVar("D")
Parser = Callable[[str, str], T]


@dataclass(slots=True)
class Reader:
    """Collects every mistake of a call, so that all are reported at once."""

    problems: list[str] = field(default_factory=list)

    def value(self, word: str | None, name: str, parse: Parser[T], default: D) -> T | D:
        """The value of one flag; its default where it was not given or is wrong."""
        if word is None:
            return default
        return self.attempt(lambda: parse(word, name), default)

    def values(self, words: Sequence[str] | None, name: str, parse: Parser[T]) -> tuple[T, ...]:
        """The values of a repeatable flag, one at a time."""
        several = [word for word in words or () if "," in word]
        if several and name != "--measured":
            each = " ".join(f"{name} {shown(w.strip())}" for w in several[0].split(",")[:3])
            self.problems.append(f"{name} {shown(several[0])} names several; write {each}")
            return ()
        found = (self.value(word, name, parse, None) for word in words or ())
        return tuple(each for each in found if each is not None)

    def choice(self, word: str | None, name: str, choices: Sequence[str], default: str) -> Any:
        """One of a few words."""
        return self.value(word, name, one_of(choices), default)

    def attempt(self, make: Callable[[], T], default: D) -> T | D:
        """What a function makes; its refusal is kept for later."""
        try:
            return make()
        except UsageError as error:
            self.problems.extend(error.problems)
            return default

    def stop(self) -> None:
        """Raise all that was wrong."""
        if self.problems:
            raise UsageError(*dict.fromkeys(self.problems))


def one_of(choices: Sequence[str]) -> Parser[str]:
    """A parser for one of a few words."""

    def parse(word: str, name: str) -> str:
        plain = word.strip().lower()
        spelt = {choice.replace("_", "-"): choice for choice in choices}
        if plain not in choices and plain.replace("_", "-") not in spelt:
            raise UsageError(f"{name}: {unknown('value', word.strip(), choices)}")
        return plain if plain in choices else spelt[plain.replace("_", "-")]

    return parse


def name_of(word: str, name: str) -> str:
    """A name as it is; only an empty one is wrong."""
    if not word.strip():
        raise UsageError(f"{name} is empty; write a name")
    return word.strip()
