"""What may be rented for a job: the allowed offers, their machines' speeds, and their sites.

Problems that differ only in their limits or quotas share what does not depend on these: an
`OfferSpace` depends on no cloud quota and on no limit except the number of machines, a `SiteSpace`
also on the quotas. Each part is computed once, at first use.
"""

from dataclasses import replace
from functools import cached_property

from recommender.arrays import Floats
from recommender.catalogs.catalog import Catalog
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import OWN
from recommender.catalogs.schema import InstanceType
from recommender.job.job import Job
from recommender.market.allowed import Allowed, allowed_offers
from recommender.market.dominance import OwnOffers
from recommender.market.offer_facts import Facts
from recommender.market.same_hardware import HardwareKinds, hardware_kinds, named_machines
from recommender.market.sites import SiteBuilder, SitePools
from recommender.optimize.space import SingleClusters, single_clusters
from recommender.performance.clusters import MachineColumns
from recommender.performance.machines import machine_columns
from recommender.plan.limits import Choice


@dataclass(frozen=True)
class OfferSpace:
    """The offers that a job may use, and the speed of single-type clusters of their machines."""

    facts: Facts  # of the job, the catalog and the choice
    max_machines: int
    speeds: MachineColumns | None = None  # other than the job's on these machines

    @property
    def job(self) -> Job:
        """The job being planned."""
        return self.facts.job

    @property
    def catalog(self) -> Catalog:
        """The catalog whose offers may be rented."""
        return self.facts.catalog

    def serves(self, choice: Choice, max_machines: int) -> bool:
        """Whether this space is also valid for another choice and number of machines."""
        same_offers = _offers_of(choice) == _offers_of(self.facts.choice)
        return same_offers and max_machines == self.max_machines

    @cached_property
    def allowed(self) -> Allowed:
        """Offers that may be used."""
        return allowed_offers(self.catalog, self.facts.choice)

    @cached_property
    def kinds(self) -> HardwareKinds:
        """Instance types of the allowed offers by their hardware."""
        o = self.catalog.offers
        keys = sorted({(o.provider[r], o.instance_type[r]) for r in self.allowed.rows})
        return hardware_kinds(self.catalog, keys, named_machines(self.job, self.facts.choice))

    @property
    def types(self) -> tuple[InstanceType, ...]:
        """Instance types of the allowed offers, in order of name, one of each kind of hardware."""
        return self.kinds.types

    @cached_property
    def columns(self) -> MachineColumns:
        """What a machine of each type contributes to the job."""
        if self.speeds is not None:
            return self.speeds
        catalog = self.catalog
        known = catalog.instance_types.values()
        return machine_columns(self.job, self.types, catalog.gpus, catalog.achieved, known)

    @cached_property
    def singles(self) -> SingleClusters:
        """Clusters of one type and their step times."""
        return single_clusters(self.job, self.columns, self.max_machines)

    @property
    def step_s(self) -> Floats:
        """Step seconds by (type, number of machines)."""
        return self.singles.step_s

    @cached_property
    def rows(self) -> tuple[int, ...]:
        """Allowed offers whose machines can train the job and that no other dominates."""
        able = self.columns.compute_per_s > 0
        o, kinds = self.catalog.offers, self.kinds.of
        rows = [r for r in self.allowed.rows if able[kinds[o.provider[r], o.instance_type[r]]]]
        return tuple(OwnOffers(self.facts, kinds, self.max_machines).undominated(rows))


def _offers_of(choice: Choice) -> Choice:
    """What of a choice decides on offers: its mixes and the quotas of clouds do not."""
    own = tuple(quota for quota in choice.quotas if quota.provider == OWN)
    return replace(choice, mix="auto", quotas=own)


@dataclass(frozen=True)
class SiteSpace:
    """Where the machines may be rented: sites, and the pools behind their entries."""

    offers: OfferSpace
    facts: Facts  # with the quotas that hold
    max_machines: int
    steps_left: float

    @cached_property
    def builder(self) -> SiteBuilder:
        """Builds sites from offers."""
        offers = self.offers
        kinds, step_s = offers.kinds.of, offers.singles.likely_step_s
        return SiteBuilder(self.facts, self.max_machines, kinds, step_s, self.steps_left)

    @cached_property
    def quotas_bind(self) -> bool:
        """Whether the quotas have no room for the largest cluster of some offer."""
        quotas, most = self.facts.quotas, self.max_machines
        if any(quota.provider == OWN for quota in self.facts.choice.quotas):
            return True
        o, types = self.facts.catalog.offers, self.facts.catalog.instance_types
        places = {
            (o.provider[row], o.instance_type[row], o.market[row], o.region[row])
            for row in self.offers.rows
            if o.provider[row] != OWN
        }
        return any(
            quotas.most_machines(types[provider, name], market, region) < most
            for provider, name, market, region in places
        )

    @cached_property
    def single_type(self) -> SitePools:
        """A site per provider, for clusters of one type in a region or along a failover list."""
        return self.builder.provider_sites(self.offers.rows)
