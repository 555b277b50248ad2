"""The spot advisor: a public file of how often AWS interrupts spot machines, by type and region.

Its format is not documented, so it is used only if it is unchanged.
"""

from typing import Any

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.providers.http import Web

ADVISOR = "https://spot-bid-advisor.s3.amazonaws.com/spot-advisor-data.json"
_RANGES = ("<5%", "5-10%", "10-15%", "15-20%", ">20%")  # interruptions a month, index 0 to 4
Ranges = dict[tuple[str, str], int]  # index of the range by (instance type, region)


def read_advisor(web: Web, url: str) -> Ranges:
    """Read the interruption range of every Linux machine in every region.

    Raises:
        ProviderError: the file cannot be read, or does not look as it always has.
    """
    tree = web.json(url)
    try:
        return ranges_of(tree)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"the spot advisor's file has changed its form ({type(error).__name__}: {error})"
        raise ProviderError("aws", "format", reason[:200]) from None


def ranges_of(tree: Any) -> Ranges:
    """Extract the ranges from the file; ValueError and similar if its format differs."""
    labels = {each["index"]: each["label"] for each in tree["ranges"]}
    if labels != dict(enumerate(_RANGES)):
        raise ValueError("other ranges")
    found: Ranges = {}
    for region, systems in tree["spot_advisor"].items():
        for name, row in systems.get("Linux", {}).items():
            index, saving = row["r"], row["s"]
            whole = type(index) is int and type(saving) is int
            if not whole or not 0 <= index < len(_RANGES) or not -100 <= saving <= 100:
                raise ValueError("a range or saving that is none")
            found[name, region] = index
    if not found:
        raise ValueError("no machine")
    return found
