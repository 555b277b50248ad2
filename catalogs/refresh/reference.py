"""The reference prices for checks of fetched offers, and the verdicts on these offers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from recommender.catalogs.providers.contract import Quarantined
from recommender.catalogs.schema import Gpu, InstanceType, Offer

COMPARABLE_DAYS = 400  # an on-demand price older than this is no measure of today's

Key = tuple[str, str, str, str]  # instance type, region, zone, market
Place = tuple[str, str]  # instance type, region


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


class Verdicts:
    """Collects verdicts on rows, and alerts for a person."""

    def __init__(self, reference: Reference) -> None:
        self.reference = reference
        self.quarantined: list[Quarantined] = []
        self.held: set[Key] = set()
        self.alerts: list[str] = []
        self.ignored: Counter[str] = Counter()

    def quarantine(self, offer: Offer, rule: str, reason: str) -> None:
        """Quarantine an offer."""
        message = f"{offer.usd_per_hour!r} USD/h: {reason}"
        self.quarantined.append(
            Quarantined(self.reference.provider, offer_name(offer), message, rule)
        )

    def hold_back(self, offer: Offer, rule: str, reason: str) -> None:
        """Quarantine an offer and keep the last good one instead."""
        self.quarantine(offer, rule, reason)
        self.held.add(held_key(offer))


def offer_key(offer: Offer) -> Key:
    """The identity of an offer of a provider."""
    return offer.instance_type, offer.region, offer.zone, offer.market


def held_key(offer: Offer) -> Key:
    """What is held back with an offer: on-demand prices apply to all zones of a region."""
    zone = "" if offer.market == "on_demand" else offer.zone
    return offer.instance_type, offer.region, zone, offer.market


def place_of(offer: Offer) -> Place:
    """The machine and region of an offer."""
    return offer.instance_type, offer.region


def offer_name(offer: Offer) -> str:
    """An offer in words, the same every night."""
    return f"{offer.instance_type} {offer.zone or offer.region} {offer.market}"


def days_old(offer: Offer, reference: Reference) -> int:
    """How many days ago a price was read."""
    try:
        return (reference.today - date.fromisoformat(offer.as_of[:10])).days
    except ValueError:  # of an imported catalog
        return COMPARABLE_DAYS + 1
