"""Where machines are known to stand: from the shipped snapshot, for providers that do not say."""

from collections import defaultdict
from collections.abc import Mapping

from catalogs.load import load_snapshot

Places = Mapping[str, Mapping[str, tuple[str, ...]]]  # zones ("" if unknown) by type and region


def shipped_places(provider: str) -> Places:
    """The regions and zones of each machine of a provider in the shipped snapshot."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for offer in load_snapshot().offers:
        if offer.provider == provider:
            found[offer.instance_type][offer.region].add(offer.zone)
    return {
        name: {region: tuple(sorted(zones)) for region, zones in sorted(regions.items())}
        for name, regions in sorted(found.items())
    }
