"""What changed from one catalog to another: offers added, gone and repriced."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from catalogs.catalog import Catalog
from catalogs.schema import Offer

Key = tuple[str, str, str, str, str]  # provider, instance type, region, zone, market
_SAME = 1e-6  # prices of one type differ in the 8th digit between sources


@dataclass(frozen=True, slots=True)
class Change:
    """An offer whose price differs."""

    offer: Offer  # as it is now
    before: float
    after: float

    @property
    def ratio(self) -> float:
        """The new price over the old one."""
        return self.after / self.before


@dataclass(frozen=True, slots=True)
class Difference:
    """All changes between two catalogs."""

    added: tuple[Offer, ...]
    gone: tuple[Offer, ...]
    changed: tuple[Change, ...]  # the largest first
    new_types: tuple[tuple[str, str], ...]
    gone_types: tuple[tuple[str, str], ...]

    def counts(self) -> dict[tuple[str, str], tuple[int, int, int]]:
        """Added, gone and repriced offers by provider and market."""
        columns = (
            Counter((o.provider, o.market) for o in self.added),
            Counter((o.provider, o.market) for o in self.gone),
            Counter((c.offer.provider, c.offer.market) for c in self.changed),
        )
        keys = sorted({key for column in columns for key in column})
        return {key: (columns[0][key], columns[1][key], columns[2][key]) for key in keys}


def difference(before: Catalog, after: Catalog) -> Difference:
    """Compare two catalogs offer by offer."""
    old, new = _by_key(before), _by_key(after)
    changed = [
        Change(offer, old[key].usd_per_hour, offer.usd_per_hour)
        for key, offer in new.items()
        if key in old and abs(offer.usd_per_hour / old[key].usd_per_hour - 1) > _SAME
    ]
    changed.sort(key=lambda c: (-max(c.ratio, 1 / c.ratio), _key(c.offer)))
    offered = [{key[:2] for key in each} for each in (old, new)]
    return Difference(
        added=tuple(new[key] for key in sorted(new.keys() - old.keys())),
        gone=tuple(old[key] for key in sorted(old.keys() - new.keys())),
        changed=tuple(changed),
        new_types=tuple(sorted(offered[1] - offered[0])),
        gone_types=tuple(sorted(offered[0] - offered[1])),
    )


def _by_key(catalog: Catalog) -> Mapping[Key, Offer]:
    return {_key(offer): offer for offer in catalog.offers}


def _key(offer: Offer) -> Key:
    return offer.provider, offer.instance_type, offer.region, offer.zone, offer.market
