"""One problem made ready: catalog, allowed offers, machine speeds and the plan space."""

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from functools import cached_property

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.catalog import Catalog
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.schema import InstanceType
from recommender.errors import UsageError
from recommender.inputs.limits import exact
from recommender.job.job import Job
from recommender.job.timings import on_catalog
from recommender.market.allowed import Allowed, allowed_offers
from recommender.market.dominance import undominated_rows
from recommender.market.offer_facts import Facts, Pool
from recommender.market.quota_rows import refuse_unknown_quotas
from recommender.market.same_hardware import HardwareKinds, hardware_kinds, named_machines
from recommender.market.sites import SiteBuilder, SitePools
from recommender.optimize.lower_bounds import least_seconds, offer_lower_bounds, paid_share
from recommender.optimize.space import (
    ANCHOR,
    MEMORY_TIER,
    NONE,
    OBJECT_STORE,
    SingleClusters,
    Space,
    single_clusters,
)
from recommender.performance.clusters import MachineColumns
from recommender.performance.machines import machine_columns
from recommender.plan.limits import LIMITS, Choice, Limits, Progress
from recommender.risk.laws import gang_hazard
from recommender.risk.run_statistics import OutcomeCache

SEARCHED = 256  # paths that plans are compared on
PRINTED = 2048  # paths behind every printed figure
MERGED_SETS = 100  # sets of types whose bounds say what a mix could gain, at 1 ms each
FOLLOWED_MOST = 1000  # plans remembered on these paths: 33 kB each
# Of a problem: what only the most machines and the hourly limit among the limits decide.
SHARED = frozenset({
    "facts", "allowed", "kinds", "columns", "singles", "rows", "site_builder", "single_type_sites",
    "outcome_cache", "printed_cache",
})  # fmt: skip
# The same where only the quotas change: what is there, but not how much of it.
SHARED_OFFERS = frozenset({"allowed", "kinds", "columns", "singles", "rows", "outcome_cache"})
PATHS_OF = {
    "auto": (NONE, OBJECT_STORE, ANCHOR, MEMORY_TIER),
    "none": (NONE,),
    "object_store": (NONE, OBJECT_STORE),
    "anchor": (NONE, ANCHOR),
    "memory_tier": (NONE, MEMORY_TIER),
}


@dataclass(frozen=True)
class Problem:
    """A job, its limits and everything that may be rented for it."""

    job: Job
    limits: Limits  # what is left of them, when the job has begun
    choice: Choice
    catalog: Catalog
    now: datetime
    steps_left: float
    seed: int
    progress: Progress = Progress()  # what of the job and of its limits is gone

    @cached_property
    def facts(self) -> Facts:
        """Look-ups by offer."""
        return Facts(self.catalog, self.choice, self.job, self.now)

    @cached_property
    def allowed(self) -> Allowed:
        """Offers that may be used."""
        return allowed_offers(self.catalog, self.choice)

    @property
    def types(self) -> tuple[InstanceType, ...]:
        """Instance types of the allowed offers, in order of name, one of each kind of hardware."""
        return self.kinds.types

    @cached_property
    def kinds(self) -> HardwareKinds:
        """Instance types of the allowed offers by their hardware."""
        o = self.catalog.offers
        keys = sorted({(o.provider[r], o.instance_type[r]) for r in self.allowed.rows})
        types = (self.catalog.instance_types[key] for key in keys)
        return hardware_kinds(types, named_machines(self.job, self.choice))

    @cached_property
    def columns(self) -> MachineColumns:
        """What a machine of each type brings to the job."""
        return machine_columns(self.job, self.types, self.catalog.gpus, self.catalog.achieved)

    @cached_property
    def singles(self) -> SingleClusters:
        """Clusters of one type and how long their steps take."""
        return single_clusters(self.job, self.columns, self.limits.max_machines)

    @property
    def step_s(self) -> Floats:
        """Step seconds by (type, number of machines)."""
        return self.singles.step_s

    @cached_property
    def rows(self) -> tuple[int, ...]:
        """Allowed offers whose machines can train the job, and that no other beats in all."""
        able = self.columns.compute_per_s > 0
        o, kinds = self.catalog.offers, self.kinds.of
        rows = [r for r in self.allowed.rows if able[kinds[o.provider[r], o.instance_type[r]]]]
        return tuple(undominated_rows(self.facts, kinds, rows, self.limits.max_machines))

    @cached_property
    def site_builder(self) -> SiteBuilder:
        """Makes sites out of offers."""
        kinds = self.kinds.of
        return SiteBuilder(self.facts, self.limits, kinds, self.step_s, self.steps_left)

    @cached_property
    def single_type_sites(self) -> SitePools:
        """A site per provider, for clusters of one type in a region or along a failover list."""
        return self.site_builder.provider_sites(self.rows)

    @cached_property
    def outcome_cache(self) -> OutcomeCache:
        """The plans simulated so far, by all searches of this problem."""
        return OutcomeCache(SEARCHED, self.seed)

    @cached_property
    def printed_cache(self) -> OutcomeCache:
        """Those of them that were followed on the printed paths."""
        return OutcomeCache(PRINTED, self.seed, FOLLOWED_MOST)

    def under(self, limits: Limits) -> "Problem":
        """This problem under other limits, with what does not depend on those that changed."""
        other = replace(self, limits=limits)
        mine = self.limits
        if (limits.max_machines, limits.hourly_usd) == (mine.max_machines, mine.hourly_usd):
            other.__dict__.update({k: v for k, v in self.__dict__.items() if k in SHARED})
        return other

    def among(self, choice: Choice) -> "Problem":
        """This problem with other offers, mixes or quotas, and what does not depend on these."""
        other = replace(self, choice=choice)
        quotas, mix = self.choice.quotas, self.choice.mix
        shared = frozenset({"outcome_cache"})
        if replace(choice, quotas=quotas, mix=mix) == self.choice:
            shared = SHARED if choice.quotas == quotas else SHARED_OFFERS
        other.__dict__.update({k: v for k, v in self.__dict__.items() if k in shared})
        return other

    def with_columns(self, columns: MachineColumns) -> "Problem":
        """This problem with machines of other speeds; nothing that rests on them is kept."""
        other = replace(self)
        other.__dict__["columns"] = columns
        return other

    def space(self, sites: SitePools) -> Space:
        """The plan space of some sites."""
        return Space(
            job=self.job,
            limits=self.limits,
            columns=self.columns,
            sites=sites.sites,
            steps_left=self.steps_left,
            checkpoint_paths=PATHS_OF[self.choice.checkpoint_to],
            mix=self.choice.mix != "no",
            trust_notice=self.choice.trust_notice,
            cache=self.outcome_cache,
            printed=self.printed_cache,
            singles=self.singles,
        )

    def is_derived(self, pool: Pool) -> bool:
        """Whether nobody quoted the price of the place tried first."""
        return self.catalog.offers.kind[pool.rows[0]] == "derived"

    def mix_regions(
        self,
        cutoff: float,
        most: int | None,
        providers: Collection[str] | None = None,
        pairs: int | None = None,
    ) -> tuple[SitePools, float]:
        """Sites of the regions where some entry could be part of a better mix, best first.

        A mix costs at least what its best entry would at perfect scaling (mediant inequality).
        With `most`, only so many regions, with `pairs` as many as hold so many pairs of offers
        together, one at least; the second value is the lower bound of the rest. With `providers`,
        only theirs.
        """
        if not self.rows:
            return SitePools((), ()), float("inf")
        o = self.catalog.offers
        bounds: dict[tuple[str, str], float] = {}
        offers: Counter[tuple[str, str]] = Counter()
        for row, bound in zip(self.rows, self._row_lower_bounds().tolist(), strict=True):
            key = (o.provider[row], o.region[row])
            if providers is None or key[0] in providers:
                bounds[key] = min(bound, bounds.get(key, np.inf))
                offers[key] += 1
        promising = sorted((bound, key) for key, bound in bounds.items() if bound < cutoff)
        if pairs is not None:
            sums = np.cumsum([offers[key] ** 2 for _, key in promising])
            most = max(1, int((sums <= pairs).sum()))
        bound_of_rest = promising[most][0] if most is not None and len(promising) > most else np.inf
        chosen = {key for _, key in promising[:most]}
        rows = [r for r in self.rows if (o.provider[r], o.region[r]) in chosen]
        return self.site_builder.region_sites(rows, self.single_type_sites), bound_of_rest

    def mix_lower_bound(self, cutoff: float, thorough: bool) -> float:
        """Least goal of any cluster of several types, the cutoff if none is below it.

        Of its best entry at perfect scaling; if thorough, of all regions as one where that is more,
        which takes as long as half an answer.
        """
        space = self.space(self.single_type_sites)
        if self.limits.goal == "time":
            scaled = least_seconds(space)
        else:
            scaled = float(self._row_lower_bounds().min(initial=np.inf))
        if scaled >= cutoff:
            return cutoff
        if not thorough:
            return scaled
        from recommender.optimize.merged_regions import least_mix_goal  # most answers need none

        sites = self.site_builder.regions_of_providers(self.rows, self.single_type_sites)
        return max(scaled, least_mix_goal(space, sites, cutoff, MERGED_SETS))

    def _row_lower_bounds(self) -> Floats:
        """Least goal of each allowed offer at perfect scaling, shape (rows,)."""
        o, kinds = self.catalog.offers, self.kinds.of
        names = [(o.provider[r], o.instance_type[r]) for r in self.rows]
        kind = np.array([kinds[name] for name in names], dtype=np.int64)
        spot = np.array([o.market[r] == "spot" for r in self.rows], dtype=np.bool_)
        price = np.array([self.facts.planning_price(r) for r in self.rows], dtype=np.float64)
        share = np.where(spot, self._least_shares()[kind], 1.0)
        return offer_lower_bounds(self.space(self.single_type_sites), kind, price * share)

    def _least_shares(self) -> Floats:
        """Least share of spot time that is charged, by instance type."""
        return np.array([self._least_share(t) for t in self.types])

    def _least_share(self, t: InstanceType) -> float:
        """Of all laws that a machine may follow: the shortest run with every shape."""
        laws, rule = self.facts.spot_classes(t), self.facts.billing(t.provider, "spot")
        together = np.array([c.co_interruption for c in laws])
        hazard = gang_hazard(self.limits.max_machines + 1, together)
        runs = [c.run_mean_s / factor for c, factor in zip(laws, hazard.tolist(), strict=True)]
        sigma = np.array([c.run_sigma for c in laws] or [1.0])
        free = 0.0 if rule is None else rule.free_if_interrupted_within_s
        run = np.full(len(sigma), min(runs, default=1e9))
        return float(paid_share(run, sigma, np.full(len(sigma), free)).min())


def planning_problem(
    job: Job,
    limits: Limits,
    choice: Choice,
    catalog: Catalog,
    progress: Progress,
    now: datetime,
    seed: int,
) -> Problem:
    """What is left of a job and of its limits, ready to be planned.

    Raises `UsageError` for quotas that no machine of the catalog falls under, and for limits
    that are used up.
    """
    refuse_unknown_quotas(choice.quotas, catalog)
    _refuse_used_up(limits, progress)
    job = on_catalog(job, catalog.gpus, catalog.instance_types.values())
    if job.machines:
        limits = replace(limits, max_machines=job.machines)
    steps = job.steps * (1.0 - progress.done_share)
    return Problem(job, limits.left_after(progress), choice, catalog, now, steps, seed, progress)


def _refuse_used_up(limits: Limits, progress: Progress) -> None:
    problems = [
        f"{limit.spent.flag} {exact(limit, limit.spent.of(progress))} leaves nothing of "
        f"{limit.flag} {exact(limit, most)}; allow more"
        for limit, most in limits.given(LIMITS)
        if limit.spent is not None and limit.spent.of(progress) >= most
    ]
    if problems:
        raise UsageError(*problems)
