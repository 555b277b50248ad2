"""One question made ready: catalog, allowed offers, machine speeds and the plan space."""

from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

import numpy as np

from catalogs.catalog import Catalog
from catalogs.schema import InstanceType
from recommender.job import Job
from recommender.limits import Choice, Limits, Progress
from recommender.market.allowed import Allowed, allowed_offers
from recommender.market.facts import Facts
from recommender.market.sites import Built, Pool, SiteBuilder
from recommender.optimize.space import ANCHOR, MEMORY_TIER, NONE, OBJECT_STORE, Space
from recommender.optimize.tables import single_steps
from recommender.performance.fleet import Floats, MachineColumns
from recommender.performance.machines import machine_columns
from recommender.timings import on_catalog

SEARCHED = 256  # histories that plans are compared on
PRINTED = 2048  # histories behind every printed figure
PATHS_OF = {
    "auto": (NONE, OBJECT_STORE, ANCHOR, MEMORY_TIER),
    "none": (NONE,),
    "object_store": (NONE, OBJECT_STORE),
    "anchor": (NONE, ANCHOR),
    "memory_tier": (NONE, MEMORY_TIER),
}


@dataclass(frozen=True)
class Question:
    """A job, its limits and everything that may be rented for it."""

    job: Job
    limits: Limits  # what is left of them, when the job has begun
    choice: Choice
    catalog: Catalog
    now: datetime
    steps_left: float
    seed: int

    @cached_property
    def facts(self) -> Facts:
        """Look-ups by offer."""
        return Facts(self.catalog, self.choice, self.job, self.now)

    @cached_property
    def allowed(self) -> Allowed:
        """Offers that may be used."""
        return allowed_offers(self.catalog, self.choice)

    @cached_property
    def types(self) -> tuple[InstanceType, ...]:
        """Instance types of the allowed offers, in order of name."""
        o = self.catalog.offers
        keys = sorted({(o.provider[r], o.instance_type[r]) for r in self.allowed.rows})
        return tuple(self.catalog.instance_types[key] for key in keys)

    @cached_property
    def columns(self) -> MachineColumns:
        """What a machine of each type brings to the job."""
        return machine_columns(self.job, self.types, self.catalog.gpus, self.catalog.achieved)

    @cached_property
    def step_s(self) -> Floats:
        """Step seconds by (type, number of machines)."""
        return single_steps(self.job, self.columns, self.limits.max_machines)

    @cached_property
    def rows(self) -> tuple[int, ...]:
        """Allowed offers whose machines can train the job."""
        able = self.columns.compute_per_s > 0
        o = self.catalog.offers
        kinds = self.builder.kinds
        return tuple(r for r in self.allowed.rows if able[kinds[o.provider[r], o.instance_type[r]]])

    @cached_property
    def builder(self) -> SiteBuilder:
        """Makes sites out of offers."""
        kinds = {(str(t.provider), t.instance_type): i for i, t in enumerate(self.types)}
        return SiteBuilder(self.facts, self.limits, kinds, self.step_s)

    @cached_property
    def lists(self) -> Built:
        """Sites of single regions and failover lists."""
        return self.builder.lists(self.rows)

    def space(self, built: Built, histories: int = SEARCHED) -> Space:
        """The plan space of some sites."""
        return Space(
            job=self.job,
            limits=self.limits,
            columns=self.columns,
            sites=built.sites,
            steps_left=self.steps_left,
            paths=PATHS_OF[self.choice.checkpoint_to],
            mix=self.choice.mix,
            trust_notice=self.choice.trust_notice,
            histories=histories,
            seed=self.seed,
        )

    def regions_below(self, bar: float) -> Built:
        """Sites of the regions where some entry could be part of a better mix.

        A mix costs at least what its best entry would at perfect scaling (mediant inequality).
        """
        o = self.catalog.offers
        per_speed = self._usd_per_work()
        good = {
            (o.provider[r], o.region[r])
            for r, floor in zip(self.rows, per_speed, strict=True)
            if floor < bar
        }
        rows = [r for r in self.rows if (o.provider[r], o.region[r]) in good]
        return self.builder.regions(rows, self.lists)

    def _usd_per_work(self) -> Floats:
        """Least goal of each allowed offer at perfect scaling, shape (rows,)."""
        from recommender.optimize.floors import offer_floor

        o, builder = self.catalog.offers, self.builder
        kind = np.array([builder.kinds[o.provider[r], o.instance_type[r]] for r in self.rows])
        spot = np.array([o.market[r] == "spot" for r in self.rows])
        pools = [
            Pool((r,), bool(s), int(k), self.types[k])
            for r, s, k in zip(self.rows, spot, kind, strict=True)
        ]
        price = np.array([builder.machine_usd(pool) for pool in pools])
        free = np.array([self._free_share(pool) for pool in pools])
        return offer_floor(self.space(self.lists), kind, price * np.where(spot, free, 1.0))

    def _free_share(self, pool: Pool) -> float:
        """Least share of a pool's spot time that is charged."""
        from recommender.optimize.floors import paid_share

        rule = self.facts.billing(pool.type.provider, "spot")
        law = self.facts.spot_class(pool.type)
        if rule is None or law is None or not pool.spot:
            return 1.0
        run = law.run_mean_s / (1.0 + self.limits.max_machines * (1.0 - law.co_interruption))
        one = np.ones(1)
        free = rule.free_if_interrupted_within_s
        return float(paid_share(one * run, one * law.run_sigma, one * free)[0])


def question_of(
    job: Job,
    limits: Limits,
    choice: Choice,
    catalog: Catalog,
    progress: Progress,
    now: datetime,
    seed: int,
) -> Question:
    """What is left of a job and of its limits, ready to be planned."""
    left = replace(
        limits,
        deadline_s=None if limits.deadline_s is None else limits.deadline_s - progress.elapsed_s,
        budget_usd=None if limits.budget_usd is None else limits.budget_usd - progress.spent_usd,
    )
    job = on_catalog(job, catalog.gpus, catalog.instance_types.values())
    steps = job.steps * (1.0 - progress.done_share)
    return Question(job, left, choice, catalog, now, steps, seed)
