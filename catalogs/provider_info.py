"""What is registered about a cloud provider: names, places, bounds of its prices, launchers.

It is plain data: every part of the program reads it, and a provider is one `ProviderInfo`.
"""

from typing import Literal

from recommender.catalogs.frozen import dataclass

ANY_REGION = "anywhere"  # one list price wherever the provider has the machine in stock


@dataclass(frozen=True, slots=True)
class SpotBounds:
    """Plausible ranges of a provider's spot prices."""

    share: tuple[float, float]  # of the on-demand price
    jump: float  # a factor since the last price above this one is flagged
    # Bids move the price of each size by itself: no proportions inside a family.
    auction: bool = False
    # So many of the other families' spot prices move when there is a new list of all prices.
    new_list: float = 2.0  # more than all: it is not told
    at_once: float = 1.0  # the share of prices that may move by more than 3 % in a night
    floor: float | None = None  # the share of the on-demand price that unsold capacity costs
    family: float = 0.05  # how far a size may leave the proportion of its family


@dataclass(frozen=True, slots=True)
class PriceBounds:
    """Plausible ranges of a provider's prices, and the offers that must be present.

    A provider without them is never published: measure them on a good price list, with some margin.
    """

    region_spread: tuple[float, float]  # on-demand over the median of the type's regions
    regions: int  # at least
    gpus: frozenset[str]  # offered somewhere, by the catalog's short names
    spot: SpotBounds | None  # None: it sells no spot machines
    # USD per GPU over the median of the other clouds that have it, cheapest machine of each.
    level: tuple[float, float]
    rises_with_gpus: bool = False  # more of the same GPUs cost more, in every region


@dataclass(frozen=True, slots=True)
class ProviderInfo:
    """A cloud provider: its name, where it rents machines, and the bounds of its prices."""

    name: str  # as catalogs, flags and files write it; the folder of its client, if it has one
    label: str  # as tables print it
    bounds: PriceBounds
    region_pattern: str  # of the regions that a catalog holds, whole
    # How zones are named: "id" (spot only, ids of no account), "region" (they begin with their
    # region), or "" where prices hold for whole regions.
    zones: Literal["id", "region", ""] = ""
    zone_pattern: str = ""  # of ids, whole
    quota_unit: Literal["vcpu", "gpu"] = "vcpu"  # what its quotas count, where a file says nothing
    family_pattern: str = r"(?!)"  # how families of machines begin that people call by one word
    quota_page: str = ""  # where an increase is requested
    sky_name: str = ""  # as `sky launch --infra` names it; "": SkyPilot does not know it
    # Hosts of strangers, one box each: a price is the median of those that offer a machine.
    marketplace: bool = False
    has_client: bool = False  # asks the provider itself; without one only published lists do
    notice_owner: str = "the"  # whose interruption notice: "Google's"
    credential_variables: tuple[str, ...] = ()  # looked for by `recommend doctor`
    credential_files: tuple[str, ...] = ()  # neither: its prices are public
    # How the names of its confidential VMs begin. Theirs is a security type of its own at launch,
    # and encrypted copies between processor and GPU.
    confidential: tuple[str, ...] = ()
