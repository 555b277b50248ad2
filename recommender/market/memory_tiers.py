"""Memory tiers: CPU machines that receive the checkpoints of a cluster in the same region."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import is_confidential
from recommender.market.offer_entries import OfferEntries
from recommender.market.offer_facts import GB, GIB
from recommender.optimize.space import Tier

TIER_TYPES = 3  # CPU types per region that are tried as a memory tier


@dataclass(frozen=True)
class MemoryTiers:
    """Selects the CPU machines of a catalog that are worth trying."""

    entries: OfferEntries

    def of(self, provider: str, regions: Sequence[str]) -> Tier:
        """The cheapest CPU machines of each region that could receive checkpoints."""
        found = [row for region in regions for row in self._cpu_rows.get((provider, region), ())]
        o, types = self.entries.facts.catalog.offers, self.entries.facts.catalog.instance_types
        shapes = [types[provider, o.instance_type[r]] for r in found]
        fees = self.entries.facts.running_fees(provider, "on_demand")
        return Tier(
            offer=np.array(found, dtype=np.int64),
            region=np.array(
                [self.entries.region_number(provider, o.region[r]) for r in found], dtype=np.int64
            ),
            usd_per_hour=np.array([self.entries.facts.planning_price(r) + fees for r in found]),
            memory_bytes=np.array([t.memory_gib * 0.9 * GIB for t in shapes]),
            network_bytes_per_s=np.array([(t.network_gbit_per_s or 1.0) * GB / 8 for t in shapes]),
        )

    @cached_property
    def _cpu_rows(self) -> dict[tuple[str, str], list[int]]:
        """The cheapest CPU machines of each region."""
        catalog, found = self.entries.facts.catalog, defaultdict(list)
        o = catalog.offers
        types, like = catalog.instance_types, catalog.like
        cpu = {key for key in types if not types[like(key)].gpu}
        for row in range(len(o)):
            key = (o.provider[row], o.instance_type[row])
            if key not in cpu or is_confidential(*key) != self.entries.facts.choice.confidential:
                continue
            if o.market[row] == "on_demand" and o.obtainable[row] == "open":
                found[o.provider[row], o.region[row]].append(row)
        return {
            key: sorted(rows, key=lambda r: (o.usd_per_hour[r], o.instance_type[r]))[:TIER_TYPES]
            for key, rows in found.items()
        }
