"""Checks names against the catalog: an unknown one is a mistake, not an empty answer."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from recommender.cli.reader import Reader
from recommender.limits import Choice
from recommender.text import nearest, shown, unknown

if TYPE_CHECKING:
    from catalogs.catalog import Catalog

_FEW = 12  # names that fit into one message


def check_names(choice: Choice, catalog: "Catalog", data_at: str, read: Reader) -> None:
    """Report every region, zone, GPU and instance type that no offer has."""
    offers = catalog.offers
    regions = set(offers.region) | {each.to_region for each in catalog.egress}
    types = {name for _, name in catalog.instance_types}
    wished = [wish.name for wish in choice.gpus if wish.name]
    place = data_at.partition(",")[0].partition(":")[2].strip()
    anything = [*types, *catalog.gpus, *regions, *set(offers.provider)]
    found = (
        _problems("--region", "region", choice.regions, regions),
        _problems("--zone", "zone", choice.zones, set(offers.zone) - {""}),
        _problems("--instance", "instance type", choice.instances, types),
        _problems("--gpu", "GPU", wished, catalog.gpus),
        _problems("--data-at", "region", [place] if place else [], regions),
        _problems("--deny", "name", choice.deny, anything),
    )
    read.problems.extend(problem for problems in found for problem in problems)


def _problems(flag: str, what: str, words: Iterable[str], known: Iterable[str]) -> list[str]:
    names = sorted(known)
    return [f"{flag}: {_unknown(what, w, names)}" for w in words if not _found(w, names)]


def _found(word: str, names: list[str]) -> bool:
    return any(fnmatchcase(name.lower(), word.lower()) for name in names)


def _unknown(what: str, word: str, names: list[str]) -> str:
    if nearest(word, names) or len(names) <= _FEW:
        return unknown(what, word, names)
    return f"unknown {what} '{shown(word)}'; see recommend catalog show"
