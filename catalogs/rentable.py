"""What is really sold where: a price list is a tariff, and no promise of machines.

`rentable.csv` names the listed offers that hardly anybody can rent, with date and evidence; whole
machine types have their `status` in the catalog.
"""

import csv
import re
from functools import cache
from pathlib import Path
from typing import cast

from recommender.catalogs.frozen import dataclass
from recommender.catalogs.schema import Obtainable

_EVERYWHERE = "*"


@dataclass(frozen=True, slots=True)
class Rule:
    """Offers of a provider in a market that are listed and not sold as listed."""

    provider: str
    pattern: str  # of the instance type, whole
    market: str
    regions: str  # separated by spaces; "*" for all
    obtainable: str
    as_of: str
    evidence: str

    def holds(self, instance_type: str, region: str) -> bool:
        """Whether it is about a machine in a region."""
        here = self.regions == _EVERYWHERE or region in self.regions.split()
        return here and bool(re.fullmatch(self.pattern, instance_type))


def sold_as(provider: str, instance_type: str, market: str, region: str) -> Obtainable | None:
    """How a listed offer is really sold; None if nothing else is known than its type's status."""
    for rule in _rules().get((provider, market), ()):
        if rule.holds(instance_type, region):
            return cast(Obtainable, rule.obtainable)
    return None


@cache
def _rules() -> dict[tuple[str, str], list[Rule]]:
    found: dict[tuple[str, str], list[Rule]] = {}
    text = Path(__file__).with_name("rentable.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        found.setdefault((row["provider"], row["market"]), []).append(Rule(**row))
    return found
