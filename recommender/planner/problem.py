"""One planning problem: its limits, what may be rented for it, and the plan space."""

from dataclasses import replace
from datetime import datetime

from recommender.arrays import Floats
from recommender.catalogs.catalog import Catalog
from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.inputs.limits import exact
from recommender.job.job import Job
from recommender.job.timings import on_catalog
from recommender.market.offer_facts import Facts, Pool
from recommender.market.quota_rows import refuse_unknown_quotas
from recommender.market.sites import SitePools
from recommender.optimize.space import (
    ANCHOR,
    MEMORY_TIER,
    NONE,
    OBJECT_STORE,
    Space,
)
from recommender.performance.carried_precision import in_own_precision
from recommender.performance.clusters import MachineColumns
from recommender.plan.limits import LIMITS, Choice, Limits, Progress
from recommender.planner.offer_space import OfferSpace, SiteSpace
from recommender.risk.run_statistics import OutcomeCache

SEARCHED = 256  # paths that plans are compared on
PRINTED = 2048  # paths behind every printed figure
MAX_PRINTED_PLANS = 1000  # plans remembered on these paths: 33 kB each
PATHS_OF = {
    # What exported files run: none keeps a tier or an anchor by itself (docs/export.md).
    "auto": (NONE, OBJECT_STORE),
    "none": (NONE,),
    "object_store": (NONE, OBJECT_STORE),
    "anchor": (NONE, ANCHOR),
    "memory_tier": (NONE, MEMORY_TIER),
}


@dataclass(frozen=True)
class Problem:
    """A job, its limits and everything that may be rented for it."""

    job: Job  # as it is planned: perhaps as a gang
    limits: Limits  # what is left of them, when the job has begun
    choice: Choice
    site_space: SiteSpace  # and the offers and the job behind it
    seed: int
    progress: Progress  # work done, time and money spent so far
    outcome_cache: OutcomeCache  # the plans simulated so far, by all searches of this problem
    printed_cache: OutcomeCache  # those of them that were simulated on the printed paths

    @property
    def offers(self) -> OfferSpace:
        """What may be rented."""
        return self.site_space.offers

    @property
    def facts(self) -> Facts:
        """Look-ups by offer."""
        return self.site_space.facts

    @property
    def catalog(self) -> Catalog:
        """The catalog whose offers may be rented."""
        return self.offers.catalog

    @property
    def steps_left(self) -> float:
        """The remaining optimiser steps."""
        return self.site_space.steps_left

    @property
    def columns(self) -> MachineColumns:
        """What a machine of each type contributes to the job."""
        return self.offers.columns

    @property
    def step_s(self) -> Floats:
        """Step seconds by (type, number of machines)."""
        return self.offers.step_s

    @property
    def rows(self) -> tuple[int, ...]:
        """Allowed offers whose machines can train the job and that no other dominates."""
        return self.offers.rows

    @property
    def single_type_sites(self) -> SitePools:
        """A site per provider, for clusters of one type."""
        return self.site_space.single_type

    @property
    def quotas_bind(self) -> bool:
        """Whether the quotas have no room for the largest cluster of some offer."""
        return bool(self.choice.quotas) and self.site_space.quotas_bind

    def under(self, limits: Limits) -> "Problem":
        """This problem with other limits; independent parts are shared."""
        if limits.max_machines == self.limits.max_machines:
            return replace(self, limits=limits)
        return self._with_sites(limits, self.choice)

    def among(self, choice: Choice) -> "Problem":
        """This problem with other offers, mixes or quotas; independent parts are shared."""
        if replace(choice, mix=self.choice.mix) == self.choice:
            return replace(self, choice=choice)
        return self._with_sites(self.limits, choice)

    def with_speeds(self, columns: MachineColumns) -> "Problem":
        """This problem with other machine speeds, without anything derived from the old ones."""
        return self._with_offers(replace(self.offers, speeds=columns))

    def with_job(self, job: Job) -> "Problem":
        """This problem with another job with the same number of steps."""
        offers = replace(self.offers, facts=replace(self.facts, job=job))
        return replace(self._with_offers(offers), job=job)

    def with_catalog(self, catalog: Catalog) -> "Problem":
        """This problem with the offers of another catalog."""
        return self._with_offers(replace(self.offers, facts=replace(self.facts, catalog=catalog)))

    def _with_offers(self, offers: OfferSpace) -> "Problem":
        """This problem with other offers, and nothing simulated so far."""
        outcome_cache, printed_cache = _caches(self.seed)
        site_space = replace(self.site_space, offers=offers, facts=offers.facts)
        return replace(
            self, site_space=site_space, outcome_cache=outcome_cache, printed_cache=printed_cache
        )

    def _with_sites(self, limits: Limits, choice: Choice) -> "Problem":
        """This problem with other sites, of the same offers where these remain."""
        offers, most = self.offers, limits.max_machines
        facts = self.facts if choice == self.facts.choice else replace(self.facts, choice=choice)
        if not offers.serves(choice, most):
            offers = OfferSpace(facts, most, offers.speeds)
        site_space = SiteSpace(offers, facts, most, self.steps_left)
        return replace(self, limits=limits, choice=choice, site_space=site_space)

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
            singles=self.offers.singles,
        )

    def is_derived(self, pool: Pool) -> bool:
        """Whether the price of the first location was derived, not quoted."""
        return self.catalog.offers.kind[pool.rows[0]] == "derived"


def planning_problem(
    job: Job,
    limits: Limits,
    choice: Choice,
    catalog: Catalog,
    progress: Progress,
    now: datetime,
    seed: int,
) -> Problem:
    """The problem of the remaining job under its remaining limits.

    Raises `UsageError` for quotas that apply to no machine of the catalog, and for limits that are
    used up.
    """
    refuse_unknown_quotas(choice.quotas, catalog)
    _refuse_used_up(limits, progress)
    types = catalog.instance_types.values()
    job = on_catalog(job, catalog.gpus, types)
    job = in_own_precision(job, types, catalog.gpus, catalog.achieved)
    if job.machines:
        limits = replace(limits, max_machines=job.machines)
    facts, left = Facts(catalog, choice, job, now), limits.left_after(progress)
    offers = OfferSpace(facts, left.max_machines)
    steps_left = job.run_steps * (1.0 - progress.done_share)
    site_space = SiteSpace(offers, facts, left.max_machines, steps_left)
    return Problem(job, left, choice, site_space, seed, progress, *_caches(seed))


def _caches(seed: int) -> tuple[OutcomeCache, OutcomeCache]:
    """Nothing simulated so far, on the paths of a search and on those printed."""
    return OutcomeCache(SEARCHED, seed), OutcomeCache(PRINTED, seed, MAX_PRINTED_PLANS)


def _refuse_used_up(limits: Limits, progress: Progress) -> None:
    problems = [
        f"{limit.spent.flag} {exact(limit, limit.spent.of(progress))} leaves nothing of "
        f"{limit.flag} {exact(limit, most)}; allow more"
        for limit, most in limits.given(LIMITS)
        if limit.spent is not None and limit.spent.of(progress) >= most
    ]
    if problems:
        raise UsageError(*problems)
