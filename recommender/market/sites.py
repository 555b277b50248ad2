"""Sites of the plan space: every region with its offers, and the failover lists across regions."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import OWN, is_confidential
from recommender.catalogs.schema import InstanceType
from recommender.market.offer_facts import (
    HOURS_PER_MONTH,
    Facts,
    Pool,
    copies_usd_per_gb,
    migration_usd_per_gb,
)
from recommender.market.quota_rows import max_machines_by_quota, quota_rows
from recommender.market.same_hardware import undominated
from recommender.optimize.space import Entries, Fallbacks, Site, Tier
from recommender.performance.checkpoint import object_store_rate
from recommender.performance.machines import disk_bytes_per_s, network_of
from recommender.plan.limits import Choice, Limits
from recommender.risk.on_demand_wait import OnDemandLaw
from recommender.risk.random_numbers import MAX_LISTED_ZONES

GIB = 2.0**30
GB = 1e9
KEPT_CHECKPOINTS = 2.0  # the newest complete one and the one being written
CORRELATION_ACROSS = 0.07  # of two regions' spot states; AWS and GCP traces 2022-2025
TIER_TYPES = 3  # CPU types per region that are tried as a memory tier
LIST_LENGTHS = (1, 2, MAX_LISTED_ZONES)  # lengths of failover lists that are tried
LIST_PRICE_RANGE = 1.6  # a failover list holds no zone more expensive than this times its first


_TYPES: dict[str, np.dtype[Any]] = {
    **dict.fromkeys(("kind", "offer", "region", "cap"), np.dtype(np.int64)),
    **dict.fromkeys(("spot", "held"), np.dtype(np.bool_)),
}


def widened(zone_sd: float, correlation: float, common_sd: float) -> tuple[float, float]:
    """Sd and correlation of the zones of a list when all of them may differ from their law alike.

    Places with the variance z² each and correlation ρ, and c² that they share: z² + c² each, of
    which ρz² + c² in common.
    """
    if common_sd <= 0.0 or zone_sd <= 0.0:
        return zone_sd, correlation
    whole = zone_sd**2 + common_sd**2
    return math.sqrt(whole), (correlation * zone_sd**2 + common_sd**2) / whole


def _all_at_least(some: tuple[float, ...], others: tuple[float, ...]) -> bool:
    return all(mine >= theirs for mine, theirs in zip(some, others, strict=True))


@dataclass(frozen=True, slots=True)
class SitePools:
    """Sites and, for each, the pool behind every entry."""

    sites: tuple[Site, ...]
    pools: tuple[tuple[Pool, ...], ...]

    def __add__(self, other: "SitePools") -> "SitePools":
        return SitePools(self.sites + other.sites, self.pools + other.pools)


@dataclass(frozen=True)
class SiteBuilder:
    """Builds sites of one problem; `kinds` numbers the instance types of the machine columns."""

    facts: Facts
    limits: Limits
    kinds: dict[tuple[str, str], int]
    step_s: Floats  # (kinds, machines)

    def provider_sites(self, rows: Sequence[int]) -> SitePools:
        """A site per provider whose entries are single regions and failover lists."""
        sites, pools = [], []
        for provider, mine in self._by(rows, "provider").items():
            on_demand = self._on_demand(mine)
            some = self._worth_renting(on_demand)
            lists = self._undominated(self._failover_lists(mine, self.facts.choice))
            singles = [*(on_demand if provider == OWN else some), *lists]
            sites.append(self._site(provider, "", singles, self._fallbacks(some)))
            pools.append(tuple(singles))
        return SitePools(tuple(sites), tuple(pools))

    def region_sites(self, rows: Sequence[int], providers: SitePools) -> SitePools:
        """A site per region, for clusters that mix entries."""
        fallbacks = {site.provider: site.fallbacks for site in providers.sites}
        sites, pools = [], []
        for provider, mine in self._by(rows, "provider").items():
            for region, local in self._by(mine, "region").items():
                lists = self._local_failover_lists(local)
                here = [*self._on_demand(local), *self._undominated(lists)]
                if len(here) > 1:
                    sites.append(self._site(provider, region, here, fallbacks[provider]))
                    pools.append(tuple(here))
        return SitePools(tuple(sites), tuple(pools))

    def site_of(self, pools: Sequence[Pool], fallback: Sequence[Pool]) -> SitePools:
        """One site with these pools of a provider as its entries, and no other fallbacks."""
        o, first = self.facts.catalog.offers, pools[0].rows[0]
        region = o.region[first] if len(pools) > 1 else ""
        site = self._site(o.provider[first], region, pools, self._fallbacks(fallback))
        return SitePools((site,), (tuple(pools),))

    def regions_of_providers(self, rows: Sequence[int], providers: SitePools) -> tuple[Site, ...]:
        """A site per provider with the entries of all its regions, for what bounds all of them."""
        sites = []
        for site, mine in zip(providers.sites, self._by(rows, "provider").values(), strict=True):
            pools = self._on_demand(mine)
            for local in self._by(mine, "region").values():
                pools += self._undominated(self._local_failover_lists(local))
            use, quota = quota_rows(self.facts, pools)
            entries = self._entries(pools)
            sites.append(replace(site, entries=entries, quota_use=use, quota=quota))
        return tuple(sites)

    def _by(self, rows: Iterable[int], column: str) -> dict[str, list[int]]:
        groups: dict[str, list[int]] = defaultdict(list)
        values = getattr(self.facts.catalog.offers, column)
        for row in rows:
            groups[values[row]].append(row)
        return dict(sorted(groups.items()))

    def _type(self, row: int) -> tuple[int, InstanceType]:
        o = self.facts.catalog.offers
        key = (o.provider[row], o.instance_type[row])
        return self.kinds[key], self.facts.catalog.instance_types[key]

    def _on_demand(self, rows: Iterable[int]) -> list[Pool]:
        o = self.facts.catalog.offers
        pools = [Pool((r,), False, *self._type(r)) for r in rows if o.market[r] == "on_demand"]
        return self._undominated(pools)

    def _undominated(self, pools: list[Pool]) -> list[Pool]:
        """Pools of the user's own machines without those that the same hardware beats elsewhere."""
        if not pools or pools[0].type.provider != OWN:
            return pools
        facts, regions = self.facts, self.facts.catalog.offers.region
        alike = [
            (
                pool.kind,
                pool.spot,
                len(pool.rows),
                len({regions[row] for row in pool.rows}),
                facts.there(pool.type, "spot" if pool.spot else "on_demand", pool.rows),
            )
            for pool in pools
        ]
        usd, max_usd = map(self.machine_usd, pools), map(self._max_usd, pools)
        machines = [max_machines_by_quota(facts, pool) for pool in pools]
        most = self.limits.max_machines
        return [pools[i] for i in undominated(alike, [*usd], [*max_usd], machines, most)]

    def _spot_by_type(self, rows: Iterable[int]) -> dict[str, list[int]]:
        o = self.facts.catalog.offers
        return self._by([r for r in rows if o.market[r] == "spot"], "instance_type")

    def _failover_lists(self, rows: Sequence[int], choice: Choice) -> list[Pool]:
        """Failover lists: the cheapest zones of a type, as far apart as the user allows."""
        pools: list[Pool] = []
        for mine in self._spot_by_type(rows).values():
            groups: list[list[int]] = [mine]
            if choice.failover == "zone":
                groups = list(self._by(mine, "region").values())
            elif choice.failover == "none":
                groups = [[row] for row in mine]
            parts = (part for group in groups for part in self._by_quota(group))
            lists = (pool for part in parts for pool in self._prefixes(self._failover_list(part)))
            pools += dict.fromkeys(lists)
        return pools

    def _by_quota(self, rows: list[int]) -> list[list[int]]:
        """The places of a type that may hold as many machines, for each such number.

        A list is no longer than its least quota: places without one stand in no list.
        """
        if not self.facts.choice.quotas:
            return [rows]
        most = [min(int(self._most(row)), self.limits.max_machines) for row in rows]
        levels = sorted({n for n in most if n > 0}) or [0]
        return [[r for r, n in zip(rows, most, strict=True) if n >= level] for level in levels]

    def _most(self, row: int) -> float:
        """Most machines of an offer that the quotas allow on their own; inf where they all do."""
        o = self.facts.catalog.offers
        most = self.facts.quotas.most_machines(self._type(row)[1], o.market[row], o.region[row])
        return min(most, 1e9)

    def _prefixes(self, pool: Pool) -> list[Pool]:
        """A list and its shorter beginnings: fewer zones are cheaper, more are interrupted less."""
        lengths = sorted({min(length, len(pool.rows)) for length in LIST_LENGTHS})
        return [replace(pool, rows=pool.rows[:length]) for length in lengths]

    def _local_failover_lists(self, rows: Sequence[int]) -> list[Pool]:
        """Lists inside one region, for clusters that mix entries."""
        alone = self.facts.choice.failover == "none"
        pools = []
        for mine in self._spot_by_type(rows).values():
            pools.append(self._failover_list(mine[:1] if alone else mine))
        return pools

    def _failover_list(self, rows: Sequence[int]) -> Pool:
        o = self.facts.catalog.offers
        ordered = sorted(rows, key=lambda r: (self._price(r), o.region[r], o.zone[r]))
        most = self._price(ordered[0]) * LIST_PRICE_RANGE
        kept = [r for r in ordered if self._price(r) <= most][:MAX_LISTED_ZONES]
        return Pool(tuple(kept), True, *self._type(kept[0]))

    def _price(self, row: int) -> float:
        return self.facts.planning_price(row)

    def machine_usd(self, pool: Pool) -> float:
        """Expected USD per hour of one machine while it runs, fees included.

        The share of a zone in a list is the chance that it is the first one up.
        """
        o, fees = self.facts.catalog.offers, self.facts.running_fees
        market = "spot" if pool.spot else "on_demand"
        if len(pool.rows) == 1:
            return self._price(pool.rows[0]) + fees(o.provider[pool.rows[0]], market)
        law = self.facts.spot_class(pool.type)
        weights, down = [], 1.0
        for row in pool.rows:
            up = 1.0 if law is None else self.facts.row_law(law, pool.type, row).availability
            weights.append(up * down)
            down *= 1.0 - up
        price = sum(w * self._price(r) for w, r in zip(weights, pool.rows, strict=True))
        return price / sum(weights) + fees(o.provider[pool.rows[0]], market)

    def _max_usd(self, pool: Pool) -> float:
        """USD per hour of one machine at the most expensive listed place: limits hold there too."""
        provider = self.facts.catalog.offers.provider[pool.rows[0]]
        fees = self.facts.running_fees(provider, "spot" if pool.spot else "on_demand")
        return max(map(self._price, pool.rows)) + fees

    def _site(
        self, provider: str, region: str, pools: Sequence[Pool], fallbacks: Fallbacks
    ) -> Site:
        entries = self._entries(pools)
        use, quota = quota_rows(self.facts, pools)
        job = self.facts.job
        kept_gib = KEPT_CHECKPOINTS * job.checkpoint_bytes / GIB
        store = kept_gib * self.facts.fee(provider, "storage_gib_month") / HOURS_PER_MONTH
        regions = {self.facts.catalog.offers.region[p.rows[0]] for p in pools}
        return Site(
            provider=provider,
            region=region,
            singles=not region,
            entries=entries,
            fallbacks=fallbacks,
            tier=self._tier(provider, sorted(regions)),
            quota_use=use,
            quota=quota,
            store_usd_per_hour=store,
        )

    def _entries(self, pools: Sequence[Pool]) -> Entries:
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
        provider, market = o.provider[first], "spot" if pool.spot else "on_demand"
        law, rule = facts.spot_class(pool.type, pool.rows), facts.billing(provider, market)
        share, wait, slope = (1.0, 0.0, 0.0) if pool.spot else facts.on_demand_wait(pool.type)
        spread = facts.offer_price_sd(first)
        head = (
            pool.kind,
            first,
            self.region_number(provider, o.region[first]),
            pool.spot,
            self.machine_usd(pool),
            self._max_usd(pool),
            self.limits.max_machines,
            self._fixed_usd(pool),
            self._move_usd(pool),
            self._start_s(pool),
        )
        capacity = (1e9, 1.0, 1.0, 40.0, slope, 0.0, 0.0, 1.0, 0.0, True)
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
            (60.0, 0.0, 30.0)
            if rule is None
            else (
                rule.minimum_s,
                rule.free_if_interrupted_within_s,
                rule.notice_s,
            )
        )
        return (*head, *capacity, spread, *bill, share, wait)

    def region_number(self, provider: str, region: str) -> int:
        """A number for a region, the same in every site."""
        return self._regions[provider, region]

    @cached_property
    def _regions(self) -> dict[tuple[str, str], int]:
        o = self.facts.catalog.offers
        names = sorted(set(zip(o.provider, o.region, strict=True)))
        return {name: number for number, name in enumerate(names)}

    def _correlation(self, pool: Pool, inside: float) -> float:
        """Mean correlation of the listed zones: high inside a region, low across."""
        regions = self._places(pool)[1]
        pairs = [(a, b) for i, a in enumerate(regions) for b in regions[i + 1 :]]
        if not pairs:
            return 0.0
        return sum(inside if a == b else CORRELATION_ACROSS for a, b in pairs) / len(pairs)

    def _fixed_usd(self, pool: Pool) -> float:
        """Egress of the data to the regions of a pool that do not hold them already."""
        data = self.facts.job.data
        if not data.at:
            return 0.0
        provider, regions = self._places(pool)
        return data.gib * GIB / GB * copies_usd_per_gb(self.facts, provider, regions, data.at)

    def _move_usd(self, pool: Pool) -> float:
        """Egress of one checkpoint where a list spans regions."""
        if len(pool.rows) < 2:
            return 0.0
        gb = self.facts.job.checkpoint_bytes / GB
        return gb * migration_usd_per_gb(self.facts, *self._places(pool))

    def _places(self, pool: Pool) -> tuple[str, tuple[str, ...]]:
        """Provider and regions of a pool, in the order tried."""
        o = self.facts.catalog.offers
        return o.provider[pool.rows[0]], tuple(o.region[row] for row in pool.rows)

    def _start_s(self, pool: Pool) -> float:
        """Seconds from the request of a machine until its program has all that it reads first."""
        facts = self.facts
        copied = facts.staged_gib * GIB + facts.base_weight_bytes
        if not copied:
            return facts.boot_s(pool.type)
        store = float(object_store_rate(np.array([network_of(pool.type)[0]]))[0])
        return facts.boot_s(pool.type) + copied / min(store, disk_bytes_per_s(pool.type))

    def _tier(self, provider: str, regions: Sequence[str]) -> Tier:
        """The cheapest CPU machines of each region that could take checkpoints."""
        found = [row for region in regions for row in self._cpu_rows.get((provider, region), ())]
        o, types = self.facts.catalog.offers, self.facts.catalog.instance_types
        shapes = [types[provider, o.instance_type[r]] for r in found]
        fees = self.facts.running_fees(provider, "on_demand")
        return Tier(
            offer=np.array(found, dtype=np.int64),
            region=np.array(
                [self.region_number(provider, o.region[r]) for r in found], dtype=np.int64
            ),
            usd_per_hour=np.array([self._price(r) + fees for r in found]),
            memory_bytes=np.array([t.memory_gib * 0.9 * GIB for t in shapes]),
            network_bytes_per_s=np.array([(t.network_gbit_per_s or 1.0) * GB / 8 for t in shapes]),
        )

    @cached_property
    def _cpu_rows(self) -> dict[tuple[str, str], list[int]]:
        """The cheapest CPU machines of each region."""
        catalog, found = self.facts.catalog, defaultdict(list)
        o = catalog.offers
        cpu = {key for key, t in catalog.instance_types.items() if not t.gpu}
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

    def _fallbacks(self, pools: Sequence[Pool]) -> Fallbacks:
        """On-demand clusters that can finish the job: those not beaten in speed and cost."""
        options = sorted(
            (float(step), n * price * float(step), n * price, n, pool.kind, place)
            for place, pool in enumerate(pools)
            for price, most in [(self.machine_usd(pool), max_machines_by_quota(self.facts, pool))]
            for n, step in enumerate(self.step_s[pool.kind], start=1)
            if np.isfinite(step) and n <= most and self._affordable(n * price)
        )
        kept: list[tuple[float, float, float, int, int, int]] = []
        for option in options:
            if not kept or option[1] < kept[-1][1] * (1.0 - 1e-9):
                kept.append(option)
        kept.reverse()
        pools = [pools[place] for *_, place in kept]
        counts = np.array([n for *_, n, _, _ in kept], dtype=np.int64)
        one = np.array([self.facts.on_demand_wait(p.type) for p in pools]).reshape(-1, 3).T
        law = OnDemandLaw(one[0], one[1]).of_gang(counts, one[2])
        return Fallbacks(
            kind=np.array([p.kind for p in pools], dtype=np.int64),
            count=counts,
            offer=np.array([p.rows[0] for p in pools], dtype=np.int64),
            step_s=np.array([option[0] for option in kept]),
            usd_per_hour=np.array([option[2] for option in kept]),
            boot_s=np.array([self._start_s(p) for p in pools]),
            at_once=law.at_once,
            wait_s=law.wait_s,
            entries=self._entries(pools),
        )

    def _worth_renting(self, pools: Iterable[Pool]) -> list[Pool]:
        """Of each type the cheapest region, and dearer ones that have more of something.

        On demand the machines of a type differ by region in nothing but their price, whether
        anybody quoted it, what the quotas leave, and where the data are.
        """
        kept: dict[int, list[tuple[tuple[float, ...], Pool]]] = defaultdict(list)
        for pool in sorted(pools, key=lambda p: self._price(p.rows[0])):
            has = self._besides_price(pool)
            if not any(_all_at_least(other, has) for other, _ in kept[pool.kind]):
                kept[pool.kind].append((has, pool))
        return [pool for _, found in sorted(kept.items()) for _, pool in found]

    def _besides_price(self, pool: Pool) -> tuple[float, ...]:
        """What an on-demand machine has in its region: more of each is better."""
        quoted = self.facts.catalog.offers.kind[pool.rows[0]] != "derived"
        return max_machines_by_quota(self.facts, pool), -self._fixed_usd(pool), float(quoted)

    def _affordable(self, usd_per_hour: float) -> bool:
        cap = self.limits.hourly_usd
        return cap is None or usd_per_hour <= cap + 1e-9
