"""Offers of the user's own that differ by name, region and price only: what of them can be best.

A list of quotes has a hundred thousand rows and a few dozen kinds of machines. A kind is modelled
once, and of its offers only those enter plans that no other beats in price and in number.
"""

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from operator import attrgetter

from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import OWN
from recommender.catalogs.schema import InstanceType
from recommender.job.job import Job
from recommender.market.offer_facts import Facts
from recommender.plan.limits import Choice

_NAMES = ("instance_type", "family", "quota_family")
_HARDWARE = attrgetter(*(name for name in InstanceType.__slots__ if name not in _NAMES))


@dataclass(frozen=True, slots=True)
class HardwareKinds:
    """The kinds of machines among instance types, and the kind of each by (provider, name)."""

    types: tuple[InstanceType, ...]  # the first of each kind
    of: dict[tuple[str, str], int]


def hardware_kinds(types: Iterable[InstanceType], apart: Collection[str]) -> HardwareKinds:
    """Number instance types by their hardware; a cloud's are each a kind of their own.

    So are the user's own that are named in `apart`.
    """
    kinds: dict[Hashable, int] = {}
    firsts: list[InstanceType] = []
    of: dict[tuple[str, str], int] = {}
    for t in types:
        key = (t.provider, t.instance_type)
        alike = t.provider == OWN and t.instance_type not in apart
        hardware = _HARDWARE(t) if alike else key
        if hardware not in kinds:
            kinds[hardware] = len(firsts)
            firsts.append(t)
        of[key] = kinds[hardware]
    return HardwareKinds(tuple(firsts), of)


def named_machines(job: Job, choice: Choice) -> frozenset[str]:
    """Own machines that a job's timings or a trace of the user's tell apart from their like."""
    feeds = () if job.calibration is None else job.calibration.feeds
    timed = {t.instance_type for t in job.timings} | {feed.machine for feed in feeds}
    traced = {law.machine for law in choice.spot_laws if law.provider == OWN}
    return frozenset(name.removeprefix(f"{OWN}/") for name in timed | traced)


def undominated(
    alike: Sequence[Hashable],
    usd: Sequence[float],
    max_usd: Sequence[float],
    machines: Sequence[float],
    most: int,
) -> list[int]:
    """The places of the offers that no offer like them beats; `most` machines are enough.

    Of each kind the cheapest stay until so many machines can be rented together, and dearer ones
    that have more machines or cost less at their most expensive place.
    """
    kept: list[int] = []
    best: dict[Hashable, tuple[float, float, float]] = {}  # max_usd, machines of one and of all
    for place in sorted(range(len(usd)), key=usd.__getitem__):
        least_usd, largest, total = best.get(alike[place], (math.inf, 0.0, 0.0))
        one = min(machines[place], most)
        if max_usd[place] < least_usd or one > largest or total < most:
            kept.append(place)
            found = min(least_usd, max_usd[place]), max(largest, one), total + one
            best[alike[place]] = found
    return sorted(kept)


def undominated_rows(
    facts: Facts, kinds: Mapping[tuple[str, str], int], rows: Sequence[int], most: int
) -> list[int]:
    """Offers without those of the user's own that the same hardware beats in the same region.

    Spot machines of one name in several places stay, since they stand in for each other.
    """
    o, types = facts.catalog.offers, facts.catalog.instance_types
    own = [row for row in rows if o.provider[row] == OWN]
    in_places = Counter(o.instance_type[row] for row in own if o.market[row] == "spot")
    alike: list[Hashable] = []
    for row in own:
        name, market = o.instance_type[row], o.market[row]
        several = name if market == "spot" and in_places[name] > 1 else ""
        law = facts.there(types[OWN, name], market, (row,))
        alike.append((kinds[OWN, name], market, o.region[row], law, several))
    usd = [facts.planning_price(row) for row in own]
    quotas = any(quota.provider == OWN for quota in facts.choice.quotas)
    machines = [math.inf] * len(own)
    if quotas:
        places = ((types[OWN, o.instance_type[r]], o.market[r], o.region[r]) for r in own)
        machines = [facts.quotas.most_machines(*place) for place in places]
    kept = {own[place] for place in undominated(alike, usd, usd, machines, most)}
    return [row for row in rows if o.provider[row] != OWN or row in kept]
