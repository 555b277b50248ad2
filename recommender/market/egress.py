"""What it costs to send bytes from one region of a provider to another, or to another provider."""

from collections.abc import Sequence
from functools import cache
from itertools import permutations

from recommender.market.facts import Facts

# How names of a continent's regions begin, or what they hold; the first that fits decides
# ("australiaeast" holds "us").
_CONTINENTS = (
    ("oceania", (), ("australia", "newzealand")),
    (
        "europe",
        ("eu-", "uk"),
        ("europe", "france", "germany", "italy", "norway", "poland", "spain", "sweden")
        + ("switzerland", "austria", "belgium", "denmark"),
    ),
    ("south america", ("sa-",), ("southamerica", "brazil", "chile")),
    ("africa", ("af-",), ("africa",)),
    ("middle east", ("me-", "il-"), ("uae", "qatar", "israel")),
    ("asia", ("ap-",), ("asia", "japan", "korea", "india", "indonesia", "malaysia")),
    ("north america", ("ca-", "mx-"), ("northamerica", "us", "canada", "mexico")),
)


@cache
def continent(region: str) -> str:
    """The continent of a cloud's region by its name; "" where the name does not tell."""
    for name, begins, holds in _CONTINENTS:
        if region.startswith(begins) or any(word in region for word in holds):
            return name
    return ""


def usd_per_gb(facts: Facts, provider: str, from_region: str, to_region: str) -> float:
    """Price of a GB sent between two regions of a provider; nothing inside a region.

    Where the provider's pair is not listed (Google Cloud, Azure), the fee of the continent or,
    between two that are known to differ, the fee between continents.
    """
    if from_region == to_region:
        return 0.0
    pair = facts.egress.get((provider, from_region, to_region))
    if pair is not None:
        return pair
    ends = continent(from_region), continent(to_region)
    apart = "" not in ends and ends[0] != ends[1]
    return facts.fee(provider, "egress_continent_gb" if apart else "egress_region_gb")


def move_usd_per_gb(facts: Facts, provider: str, regions: Sequence[str]) -> float:
    """Mean price of a GB that goes from one zone of a failover list to another."""
    if len(set(regions)) < 2:
        return 0.0
    prices = [usd_per_gb(facts, provider, *pair) for pair in permutations(regions, 2)]
    return sum(prices) / len(prices)


def copies_usd_per_gb(facts: Facts, provider: str, regions: Sequence[str], at: str) -> float:
    """Price of one copy of each GB of the data in every region of a list but their own.

    `at` is where they lie, "aws:us-east-1". To another provider they go once, over
    the internet, at the price of the one that they leave.
    """
    owner, _, home = at.partition(":")
    first = 0.0
    if owner != provider:
        first, home = facts.fee(owner, "egress_internet_gb"), regions[0]
    return first + sum(usd_per_gb(facts, provider, home, other) for other in set(regions))
