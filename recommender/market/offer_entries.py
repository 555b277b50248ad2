"""Converts offers to the optimiser's numbers: prices, laws of runs and waits, start-up times."""

import math
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import is_confidential
from recommender.catalogs.schema import BOOKED
from recommender.market.offer_facts import (
    GB,
    GIB,
    Facts,
    Pool,
    copies_usd,
    move_usd,
    places_of,
    save_usd,
)
from recommender.optimize.space import Entries, Tier
from recommender.performance.checkpoint import object_store_rate
from recommender.performance.machines import disk_bytes_per_s, network_of

TIER_TYPES = 3  # CPU types per region that are tried as a memory tier
CORRELATION_ACROSS = 0.07  # of two regions' spot states; AWS and GCP traces 2022-2025

_TYPES: dict[str, np.dtype[Any]] = {
    **dict.fromkeys(("kind", "offer", "region", "cap"), np.dtype(np.int64)),
    **dict.fromkeys(("spot", "booked", "runs_from_start"), np.dtype(np.bool_)),
}


def widened(zone_sd: float, correlation: float, common_sd: float) -> tuple[float, float]:
    """Sd and correlation of zones that also share a common error of their law.

    Zones with variance z² each and correlation ρ, plus a shared variance c², have z² + c² each, of
    which ρz² + c² is common.
    """
    if common_sd <= 0.0 or zone_sd <= 0.0:
        return zone_sd, correlation
    whole = zone_sd**2 + common_sd**2
    return math.sqrt(whole), (correlation * zone_sd**2 + common_sd**2) / whole


@dataclass(frozen=True)
class OfferEntries:
    """Converts pools to entries of a plan space."""

    facts: Facts
    max_machines: int

    def machine_usd(self, pool: Pool) -> float:
        """Expected USD per hour of one running machine, including fees.

        The weight of a zone in a spot list is the probability that it is the first one up. The
        regions of an on-demand list weigh the same. The cheapest are tried first, so this is not
        too low for any number of machines.
        """
        if len(pool.rows) == 1:
            return self.max_usd(pool)
        if not pool.spot:
            usd = sum(map(self.facts.planning_price, pool.rows)) / len(pool.rows)
            return usd + self._fees(pool)
        law = self.facts.spot_class(pool.type)
        weights, down = [], 1.0
        for row in pool.rows:
            up = 1.0 if law is None else self.facts.row_law(law, pool.type, row).availability
            weights.append(up * down)
            down *= 1.0 - up
        price = sum(
            w * self.facts.planning_price(r) for w, r in zip(weights, pool.rows, strict=True)
        )
        return price / sum(weights) + self._fees(pool)

    def max_usd(self, pool: Pool) -> float:
        """USD per hour of one machine at the most expensive location, for hourly limits."""
        return max(map(self.facts.planning_price, pool.rows)) + self._fees(pool)

    def _fees(self, pool: Pool) -> float:
        """USD per hour that a running machine costs besides its price."""
        t = pool.type
        return self.facts.running_fees(t.provider, pool.market, t.instance_type)

    def of(self, pools: Sequence[Pool]) -> Entries:
        """One entry per pool."""
        columns = list(zip(*(self._entry(p) for p in pools), strict=True))
        if not columns:
            columns = [()] * len(Entries.__slots__)
        arrays = {
            name: np.array(values, dtype=_TYPES.get(name, np.dtype(np.float64)))
            for name, values in zip(Entries.__slots__, columns, strict=True)
        }
        return Entries(**arrays)

    def _entry(self, pool: Pool) -> tuple[float, ...]:
        """One row of `Entries`, in the order of its fields."""
        facts, first = self.facts, pool.rows[0]
        o = facts.catalog.offers
        provider, market = o.provider[first], pool.market
        law, rule = facts.spot_class(pool.type, pool.rows), facts.terms(pool.type, market)
        share, wait, slope = (1.0, 0.0, 0.0) if pool.spot else facts.wait(pool.type, market)
        spread = facts.offer_price_sd(first)
        head = (
            pool.kind,
            first,
            self._regions[provider, o.region[first]],
            pool.spot,
            market in BOOKED,
            self.machine_usd(pool),
            self.max_usd(pool),
            self.max_machines,
            copies_usd(self.facts, pool.rows),
            move_usd(self.facts, pool),
            save_usd(self.facts, pool),
            pool.move_after_s,
            self.start_s(pool),
        )
        capacity = (1e9, 1.0, 1.0, 40.0, slope, 0.0, 0.0, float(len(pool.rows)), 0.0, True)
        if pool.spot and law is not None:
            run = law.run_mean_s if facts.choice.mtbf_h is None else facts.choice.mtbf_h * 3600.0
            zone_sd, correlation = widened(
                law.zone_sd,
                self._correlation(pool, law.correlation_region),
                facts.carried_sd(pool.type, law),
            )
            capacity = (
                run,
                law.run_sigma,
                law.outage_sigma,
                facts.availability_logit(law, o.interruption_range[first]),
                law.availability_slope,
                zone_sd,
                law.co_interruption,
                float(len(pool.rows)),
                correlation,
                law.held,
            )
        bill = (
            rule.minimum_s,
            rule.step_s,
            math.inf if rule.maximum_s is None else rule.maximum_s,
            rule.free_if_interrupted_within_s,
            rule.notice_s,
        )
        return (*head, *capacity, spread, *bill, share, wait)

    @cached_property
    def _regions(self) -> dict[tuple[str, str], int]:
        """A number for each region, the same in every site."""
        o = self.facts.catalog.offers
        names = sorted(set(zip(o.provider, o.region, strict=True)))
        return {name: number for number, name in enumerate(names)}

    def _correlation(self, pool: Pool, inside: float) -> float:
        """Mean correlation of the listed zones: high inside a region, low across."""
        regions = places_of(self.facts, pool.rows)[1]
        pairs = [(a, b) for i, a in enumerate(regions) for b in regions[i + 1 :]]
        if not pairs:
            return 0.0
        return sum(inside if a == b else CORRELATION_ACROSS for a, b in pairs) / len(pairs)

    def start_s(self, pool: Pool) -> float:
        """Seconds from the request of a machine until its program has read its first data."""
        facts = self.facts
        copied = facts.staged_gib * GIB + facts.base_weight_bytes
        boot_s = facts.boot_s(pool.type.provider, pool.type.gpus)
        if not copied:
            return boot_s
        store = float(object_store_rate(np.array([network_of(pool.type)[0]]))[0])
        return boot_s + copied / min(store, disk_bytes_per_s(pool.type))

    def tier_of(self, provider: str, regions: Sequence[str]) -> Tier:
        """The cheapest CPU machines of each region, which could receive checkpoints in memory."""
        found = [row for region in regions for row in self._cpu_rows.get((provider, region), ())]
        o, types = self.facts.catalog.offers, self.facts.catalog.instance_types
        shapes = [types[provider, o.instance_type[r]] for r in found]
        fees, numbers = self.facts.running_fees(provider, "on_demand"), self._regions
        return Tier(
            offer=np.array(found, dtype=np.int64),
            region=np.array([numbers[provider, o.region[r]] for r in found], dtype=np.int64),
            usd_per_hour=np.array([self.facts.planning_price(r) + fees for r in found]),
            memory_bytes=np.array([t.memory_gib * 0.9 * GIB for t in shapes]),
            network_bytes_per_s=np.array([(t.network_gbit_per_s or 1.0) * GB / 8 for t in shapes]),
        )

    @cached_property
    def _cpu_rows(self) -> dict[tuple[str, str], list[int]]:
        """The cheapest CPU machines of each region."""
        catalog, found = self.facts.catalog, defaultdict(list)
        o = catalog.offers
        types, like = catalog.instance_types, catalog.like
        cpu = {key for key in types if not types[like(key)].gpu}
        for row in range(len(o)):
            key = (o.provider[row], o.instance_type[row])
            if key not in cpu or is_confidential(*key) != self.facts.choice.confidential:
                continue
            if o.market[row] == "on_demand" and o.obtainable[row] == "open":
                found[o.provider[row], o.region[row]].append(row)
        return {
            key: sorted(rows, key=lambda r: (o.usd_per_hour[r], o.instance_type[r]))[:TIER_TYPES]
            for key, rows in found.items()
        }
