"""Checks names against the catalog: an unknown one is a mistake, not an empty answer."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from recommender.cli.reader import Reader
from recommender.limits import Choice
from recommender.text import nearest, shown, unknown
from recommender.units import PROVIDERS

if TYPE_CHECKING:
    from catalogs.catalog import Catalog

_FEW = 12  # names that fit into one message
_VENDOR = re.compile(r"^(nvidia|tesla|amd)[- ]|-\d+ ?GB$", re.IGNORECASE)  # A100-40GB is A100
_AWS_LETTER = re.compile(r"[a-z]{2}(-[a-z]+)+-\d[a-f]")  # what it names differs between accounts


def check_names(choice: Choice, catalog: "Catalog", data_at: str, read: Reader) -> None:
    """Report every region, zone, GPU and instance type that no offer has."""
    named = (choice.regions, choice.zones, choice.instances, choice.gpus, choice.deny, data_at)
    if not any(named) and "own" not in choice.providers:
        return  # most calls name none, and gathering all names takes 5 ms
    offers = catalog.offers
    places = set(zip(offers.provider, offers.region, strict=True))
    places |= {(each.provider, each.to_region) for each in catalog.egress}
    regions = {region for _, region in places}
    types = {name for _, name in catalog.instance_types}
    wished = [wish.name for wish in choice.gpus if wish.name]
    anything = [*types, *catalog.gpus, *regions, *set(offers.provider)]
    found = (
        _problems("--region", "region", choice.regions, regions),
        _problems("--zone", "zone", choice.zones, set(offers.zone) - {""}),
        _problems("--instance", "instance type", choice.instances, types),
        _problems("--gpu", "GPU", wished, catalog.gpus),
        _place(data_at, places),
        _problems("--deny", "name", choice.deny, anything),
    )
    read.problems.extend(problem for problems in found for problem in problems)
    if "own" in choice.providers and "own" not in set(offers.provider):
        read.problems.append("--provider own: no machine of yours is known; name a file: --offers")


def _place(data_at: str, places: set[tuple[str, str]]) -> list[str]:
    """What is wrong with the place of the data, where it can be read at all."""
    provider, _, region = (part.strip() for part in data_at.partition(",")[0].partition(":"))
    there = {name for owner, name in places if owner == provider.lower()}
    known = there or {name for _, name in places}
    if not region or provider.lower() not in PROVIDERS:
        return []
    return _problems("--data-at", f"{provider.lower()} region", [region], known)


def _problems(flag: str, what: str, words: Iterable[str], known: Iterable[str]) -> list[str]:
    names = sorted(known)
    return [f"{flag}: {_unknown(what, w, names)}" for w in words if not _found(w, names)]


def _found(word: str, names: list[str]) -> bool:
    return any(fnmatchcase(name.lower(), word.lower()) for name in names)


def _unknown(what: str, word: str, names: list[str]) -> str:
    bare = _VENDOR.sub("", word)
    if bare != word and _found(bare, names):
        return f"unknown {what} '{shown(word)}'; did you mean {bare.upper()}?"
    if _AWS_LETTER.fullmatch(word):
        return f"unknown {what} '{shown(word)}'; AWS zones go by id, such as use1-az3"
    if nearest(word, names) or len(names) <= _FEW:
        return unknown(what, word, names)
    if _found(f"{word}*", names):
        return f"unknown {what} '{shown(word)}'; did you mean {shown(word)}*?"
    return f"unknown {what} '{shown(word)}'; see recommend catalog show"
