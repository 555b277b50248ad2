"""Reads typed values one after the other, and keeps what is wrong with each."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeVar

from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.inputs.units import PROVIDERS
from recommender.plan.limits import MARKETS, Choice
from recommender.text import nearest, shown, unknown

if TYPE_CHECKING:
    from recommender.catalogs.catalog import Catalog


T = TypeVar("T")
D = TypeVar("D")
Parser = Callable[[str, str], T]
_FEW = 12  # names that fit into one message


@dataclass(slots=True)
class ErrorCollector:
    """Collects every mistake of a call, so that all are reported at once."""

    problems: list[str] = field(default_factory=list)

    def parse(self, word: str | None, name: str, parse: Parser[T], default: D) -> T | D:
        """The value of one flag; its default where it was not given or is wrong."""
        if word is None:
            return default
        return self.attempt(lambda: parse(word, name), default)

    def parse_all(self, words: Sequence[str] | None, name: str, parse: Parser[T]) -> tuple[T, ...]:
        """The values of a repeatable flag, one at a time."""
        several = [word for word in words or () if "," in word]
        if several and name != "--measured":
            each = " ".join(f"{name} {shown(w.strip(' {}[]'))}" for w in several[0].split(",")[:3])
            self.problems.append(f"{name} {shown(several[0])} names several; write {each}")
            return ()
        found = (self.parse(word, name, parse, None) for word in words or ())
        return tuple(each for each in found if each is not None)

    def choose(self, word: str | None, name: str, choices: Sequence[str], default: str) -> Any:
        """One of a few words."""
        return self.parse(word, name, one_of(choices), default)

    def market(self, word: str | None) -> str:
        """The market that `--market` names, as catalogs write it; "" for all."""
        known = tuple(sorted(each.replace("_", "-") for each in MARKETS["any"]))
        chosen: str = self.choose(word, "--market", known, "")
        return chosen.replace("-", "_")

    def attempt(self, make: Callable[[], T], default: D) -> T | D:
        """What a function makes; its refusal is kept for later."""
        try:
            return make()
        except UsageError as error:
            self.problems.extend(error.problems)
            return default

    def raise_all(self) -> None:
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


_AWS_LETTER = re.compile(r"[a-z]{2}(-[a-z]+)+-\d[a-f]")  # what it names differs between accounts


def check_names(choice: Choice, catalog: "Catalog", data_at: str, errors: ErrorCollector) -> None:
    """Report every region, zone, GPU and instance type that no offer has."""
    named = (choice.regions, choice.zones, choice.instances, choice.gpus, choice.deny, data_at)
    if not any(named) and "own" not in choice.providers:
        return  # most calls name none, and gathering all names takes 5 ms
    offers = catalog.offers
    places = set(zip(offers.provider, offers.region, strict=True))
    places |= {(each.provider, each.to_region) for each in catalog.egress}
    regions = {region for _, region in places}
    types = {name for _, name in catalog.instance_types}
    requested = [gpu_filter.name for gpu_filter in choice.gpus if gpu_filter.name]
    anything = [*types, *catalog.gpus, *regions, *set(offers.provider)]
    found = (
        _unmatched("--region", "region", choice.regions, regions) or _elsewhere(choice, places),
        _unmatched("--zone", "zone", choice.zones, set(offers.zone) - {""}),
        _unmatched("--instance", "instance type", choice.instances, types),
        _problems("--gpu", "GPU", requested, catalog.gpus),
        _place(data_at, places),
        _unmatched("--deny", "name", choice.deny, anything),
    )
    errors.problems.extend(problem for problems in found for problem in problems)
    missing = "own" in choice.providers and "own" not in set(offers.provider)
    if missing and not errors.problems:  # else a file may have been refused
        errors.problems.append(
            "--provider own: no machine of yours is known; name a file: --offers"
        )


def known_region(region: str | None, catalog: "Catalog") -> str:
    """The region if anything is offered there, "" for all; raises `UsageError` otherwise."""
    errors = ErrorCollector()
    if region:
        errors.problems += _problems("--region", "region", [region], set(catalog.offers.region))
    errors.raise_all()
    return region or ""


def _elsewhere(choice: Choice, places: set[tuple[str, str]]) -> list[str]:
    """Regions that only other providers have than those that are allowed."""
    allowed = {region for provider, region in places if provider in choice.providers}
    if not choice.providers:
        return []
    names = ", ".join(choice.providers)
    return [
        f"--region {region}: no region of {names}; "
        + (f"did you mean {meant}?" if (meant := nearest(region, allowed)) else "leave one out")
        for region in choice.regions
        if "*" not in region and region not in allowed
    ]


def _place(data_at: str, places: set[tuple[str, str]]) -> list[str]:
    """What is wrong with the place of the data, where it can be read at all."""
    provider, _, region = (part.strip() for part in data_at.partition(",")[0].partition(":"))
    there = {name for owner, name in places if owner == provider.lower()}
    known = there or {name for _, name in places}
    if not region or provider.lower() not in PROVIDERS:
        return []
    return _problems("--data-at", f"{provider.lower()} region", [region], known)


def _problems(flag: str, what: str, words: Iterable[str], known: Iterable[str]) -> list[str]:
    """Words that are no name."""
    names = sorted(known)
    spelt = {name.lower() for name in names}
    return [f"{flag}: {_unknown(what, w, names)}" for w in words if w.lower() not in spelt]


def _unmatched(flag: str, what: str, words: Iterable[str], known: Iterable[str]) -> list[str]:
    """Words that are neither a name nor a pattern of one."""
    names = sorted(known)
    return [
        f"{flag}: {_pattern_of(what, w, names) or _unknown(what, w, names)}"
        for w in words
        if not _found(w, names)
    ]


def _found(word: str, names: list[str]) -> bool:
    return any(fnmatchcase(name.lower(), word.lower()) for name in names)


def _pattern_of(what: str, word: str, names: list[str]) -> str:
    """The pattern that somebody who wrote the beginning of names may mean; "" if none."""
    begins = _found(f"{word}[-._]*", names)  # us-east, p4d, Standard_ND96isr
    begins |= not _is_near(word, names) and _found(f"{word}*", names)
    return f"unknown {what} '{shown(word)}'; did you mean {shown(word)}*?" if begins else ""


def _is_near(word: str, names: list[str]) -> bool:
    return nearest(word, names) is not None or len(names) <= _FEW


def _unknown(what: str, word: str, names: list[str]) -> str:
    if _AWS_LETTER.fullmatch(word):
        return f"unknown {what} '{shown(word)}'; AWS zones go by id, such as use1-az3"
    if _is_near(word, names):
        return unknown(what, word, names)
    return f"unknown {what} '{shown(word)}'; see recommend catalog show"
