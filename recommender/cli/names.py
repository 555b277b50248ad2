"""Checks names against the catalog: an unknown one is a mistake, not an empty answer."""

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
    offers, place = catalog.offers, data_at.partition(",")[0].partition(":")[2].strip()
    wished = [wish.name for wish in choice.gpus if wish.name]

    def regions() -> set[str]:
        return set(offers.region) | {each.to_region for each in catalog.egress}

    def types() -> set[str]:
        return {name for _, name in catalog.instance_types}

    def anything() -> set[str]:
        return types() | set(catalog.gpus) | regions() | set(offers.provider)

    for flag, what, words, known in (
        ("--region", "region", choice.regions, regions),
        ("--zone", "zone", choice.zones, lambda: set(offers.zone) - {""}),
        ("--instance", "instance type", choice.instances, types),
        ("--gpu", "GPU", wished, lambda: set(catalog.gpus)),
        ("--data-at", "region", [place] if place else [], regions),
        ("--deny", "name", choice.deny, anything),
    ):
        names = sorted(known()) if words else []
        read.problems += [
            f"{flag}: {_unknown(what, w, names)}" for w in words if not _found(w, names)
        ]


def _found(word: str, names: list[str]) -> bool:
    return any(fnmatchcase(name.lower(), word.lower()) for name in names)


def _unknown(what: str, word: str, names: list[str]) -> str:
    if nearest(word, names) or len(names) <= _FEW:
        return unknown(what, word, names)
    return f"unknown {what} '{shown(word)}'; see recommend catalog show"
