"""What fetched offers are measured by, and what was found of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from recommender.catalogs.providers.contract import Failed, Quarantined
from recommender.catalogs.schema import Gpu, InstanceType, Offer
from recommender.catalogs.store import FetchTime

Key = tuple[str, str, str, str]  # instance type, region, zone, market
Prices = Mapping[Key, float]
MAX_SPOT_SHARE = 0.9 - 1e-9  # at this share of the list price and above there is no spot offer


@dataclass(frozen=True, slots=True)
class History:
    """Older prices of a provider's offers (by `held_key`) and parts: what creeps is seen from afar.

    Of before the night in which a person last accepted all changes, there are none.
    """

    parts: Prices = field(default_factory=dict)  # of the last good version
    week: Prices = field(default_factory=dict)  # 7 nights ago, or the oldest kept
    month: Prices = field(default_factory=dict)  # 30 nights ago, or the oldest kept
    shipped: Prices = field(default_factory=dict)  # with this program


@dataclass(frozen=True, slots=True)
class Reference:
    """The reference values for a fetch."""

    provider: str
    types: Mapping[str, InstanceType]
    gpus: Mapping[str, Gpu]
    last: Sequence[Offer]  # of this provider, in the last good version
    usd_per_gpu: Mapping[str, float]  # typical on-demand price of a GPU, over all providers
    today: date
    accept: bool = False  # a person has looked at the changes
    regions: frozenset[str] = frozenset()  # that are known; none: any that is well formed
    zones: Mapping[str, str] = field(default_factory=dict)  # the region of each known zone
    history: History = field(default_factory=History)
    fetch_times: Sequence[FetchTime] = ()  # of the last good version

    def comparable(self, market: str) -> bool:
        """Whether the last rows of a market came from a refresh, so that counts compare."""
        return any(f.market == market and f.by_refresh for f in self.fetch_times)


@dataclass(frozen=True, slots=True)
class Validated:
    """The accepted offers, and the fate of the others."""

    offers: tuple[Offer, ...]
    types: tuple[InstanceType, ...] = ()  # new ones that are used
    held: frozenset[Key] = frozenset()  # by `held_key`: the last good price stays, with its age
    quarantined: tuple[Quarantined, ...] = ()
    failed: tuple[Failed, ...] = ()  # places whose last good offers stay
    problems: tuple[str, ...] = ()  # why nothing of this provider is believed
    alerts: tuple[str, ...] = ()
    ignored: Mapping[str, int] = field(default_factory=dict)  # known not to be meant, by rule
    gone: tuple[str, ...] = ()  # offers of the last version that the provider no longer lists


def offer_key(offer: Offer) -> Key:
    """The identity of an offer of a provider."""
    return offer.instance_type, offer.region, offer.zone, offer.market


def held_key(offer: Offer) -> Key:
    """What is held back with an offer: on-demand prices apply to all zones of a region."""
    zone = "" if offer.market == "on_demand" else offer.zone
    return offer.instance_type, offer.region, zone, offer.market


def place_of(offer: Offer) -> tuple[str, str]:
    """The machine and region of an offer."""
    return offer.instance_type, offer.region


def offer_name(offer: Offer) -> str:
    """An offer in words, the same every night."""
    return f"{offer.instance_type} {offer.zone or offer.region} {offer.market}"


def failure_reason(failed: Iterable[Failed], region: str, market: str) -> str:
    """Why a region could not be read in a market; empty if it was."""
    for place in failed:
        if place.region in ("", region) and place.market in ("", market):
            return place.reason or "could not be read"
    return ""
