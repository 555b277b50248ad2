"""The sites of the plan space: every region with its offers, and failover lists across regions."""

from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import cached_property

from recommender.arrays import Floats
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import OWN
from recommender.market.dominance import OwnOffers, regions_worth_renting, undominated_pools
from recommender.market.failover_lists import FailoverLists
from recommender.market.fallbacks import fallbacks_of
from recommender.market.offer_entries import OfferEntries
from recommender.market.offer_facts import GIB, HOURS_PER_MONTH, Facts, Pool
from recommender.market.quota_rows import quota_rows
from recommender.optimize.space import Fallbacks, Site

KEPT_CHECKPOINTS = 2.0  # the newest complete one and the one being written


@dataclass(frozen=True, slots=True)
class SitePools:
    """Sites, with the pool behind every entry and every fallback of each."""

    sites: tuple[Site, ...] = ()
    pools: tuple[tuple[Pool, ...], ...] = ()
    fallbacks: tuple[tuple[Pool, ...], ...] = ()

    def __add__(self, other: "SitePools") -> "SitePools":
        return SitePools(
            self.sites + other.sites, self.pools + other.pools, self.fallbacks + other.fallbacks
        )


@dataclass(frozen=True)
class SiteBuilder:
    """Builds the sites of one problem; `kinds` numbers the instance types of machine columns."""

    facts: Facts
    max_machines: int
    kinds: dict[tuple[str, str], int]
    step_s: Floats  # (kinds, machines)
    steps_left: float
    regions: dict[tuple[int, ...], SitePools] = field(default_factory=dict)  # by their offers

    @cached_property
    def entries(self) -> OfferEntries:
        """The converted offers of a site."""
        return OfferEntries(self.facts, self.max_machines)

    @cached_property
    def lists(self) -> FailoverLists:
        """Failover lists of instance types."""
        return FailoverLists(self.facts, self.max_machines, self.kinds)

    def provider_sites(self, rows: Sequence[int]) -> SitePools:
        """One site per provider, with single regions and failover lists as entries."""
        found = SitePools()
        rows = OwnOffers(self.facts, self.kinds, self.max_machines).undominated_anywhere(rows)
        for provider, mine in self.facts.by(rows, "provider").items():
            held = self._held(mine)
            some = self._worth_renting(held)
            lists = self._undominated(self.lists.across_regions(mine))
            singles = [*(held if provider == OWN else some), *lists]
            found += self._site(provider, "", singles, self.fallbacks(_on_demand(some)))
        return found

    def _worth_renting(self, held: list[Pool]) -> list[Pool]:
        """The regions, and lists of them, where machines may be rented alone or as a fallback."""
        return regions_worth_renting(self.entries, self.lists.across_regions_held(held))

    def region_sites(self, rows: Sequence[int], providers: SitePools) -> SitePools:
        """One site per region, for clusters that mix entries; each is built once."""
        fallbacks = {
            site.provider: (site.fallbacks, pools)
            for site, pools in zip(providers.sites, providers.fallbacks, strict=True)
        }
        found = SitePools()
        for provider, mine in self.facts.by(rows, "provider").items():
            for region, local in self.facts.by(mine, "region").items():
                key = tuple(local)
                if key not in self.regions:
                    self.regions[key] = self._region(provider, region, local, fallbacks[provider])
                found += self.regions[key]
        return found

    def _region(
        self,
        provider: str,
        region: str,
        rows: Sequence[int],
        fallbacks: tuple[Fallbacks, tuple[Pool, ...]],
    ) -> SitePools:
        """The site of a region; none where fewer than two entries can be in one cluster."""
        on_demand = _on_demand(self._held(rows))
        here = [*on_demand, *self._undominated(self.lists.inside_region(rows))]
        here = joinable(here)
        return self._site(provider, region, here, fallbacks) if len(here) > 1 else SitePools()

    def site_of(self, pools: Sequence[Pool], fallback: Sequence[Pool]) -> SitePools:
        """A site with these pools of a provider as its entries and no other fallbacks."""
        o, first = self.facts.catalog.offers, pools[0].rows[0]
        region = o.region[first] if len(pools) > 1 else ""
        return self._site(o.provider[first], region, pools, self.fallbacks(fallback))

    def _held(self, rows: Iterable[int]) -> list[Pool]:
        """Machines that nobody interrupts: on demand and booked."""
        o, types = self.facts.catalog.offers, self.facts.catalog.instance_types
        keys = ((r, (o.provider[r], o.instance_type[r])) for r in rows if o.market[r] != "spot")
        pools = [Pool((r,), o.market[r], self.kinds[k], types[k]) for r, k in keys]
        return self._undominated(pools)

    def _undominated(self, pools: list[Pool]) -> list[Pool]:
        return undominated_pools(self.entries, pools)

    def fallbacks(self, pools: Sequence[Pool]) -> tuple[Fallbacks, tuple[Pool, ...]]:
        """On-demand clusters of these pools that can finish the job, and the pool of each."""
        return fallbacks_of(self.entries, self.step_s, self.steps_left, pools)

    def _site(
        self,
        provider: str,
        region: str,
        pools: Sequence[Pool],
        fallbacks: tuple[Fallbacks, tuple[Pool, ...]],
    ) -> SitePools:
        quotas = quota_rows(self.facts, pools, self.max_machines)
        kept_gib = KEPT_CHECKPOINTS * self.facts.job.checkpoint_bytes / GIB
        store = kept_gib * self.facts.fee(provider, "storage_gib_month") / HOURS_PER_MONTH
        regions = {self.facts.catalog.offers.region[p.rows[0]] for p in pools}
        site = Site(
            provider=provider,
            region=region,
            singles=not region,
            entries=self.entries.of(pools),
            fallbacks=fallbacks[0],
            tier=self.entries.tier_of(provider, sorted(regions)),
            quota_use=quotas.use,
            quota=quotas.amount,
            store_usd_per_hour=store,
            quota_names=quotas.names,
        )
        return SitePools((site,), (tuple(pools),), (fallbacks[1],))


def _on_demand(pools: Iterable[Pool]) -> list[Pool]:
    """Of these those that can be rented at any moment, for as long as they are needed."""
    return [pool for pool in pools if pool.market == "on_demand"]


def joinable(pools: Iterable[Pool]) -> list[Pool]:
    """Of these those whose machines a known network joins to others in one cluster."""
    return [pool for pool in pools if pool.type.network_gbit_per_s]
