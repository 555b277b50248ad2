"""The plan space: what may be combined into a plan, as columns.

An *entry* is an instance type in one market at one site. A *site* is where a cluster runs: a
region, or the failover list of one type across regions. A plan is a count per entry, a checkpoint
path and a fallback, so everything below is arrays over entries or over fallbacks.
"""

from dataclasses import field, replace
from typing import Any

import numpy as np

from recommender.arrays import Bools, Floats, Ints, Table
from recommender.catalogs.frozen import dataclass
from recommender.job.job import Job
from recommender.performance.clusters import Clusters, MachineColumns, Steps, clusters_of
from recommender.performance.step import steps
from recommender.plan.limits import Limits
from recommender.risk.on_demand_wait import OnDemandLaw
from recommender.risk.random_numbers import SEED
from recommender.risk.run_statistics import OutcomeCache

Masks = tuple[Bools, ...]  # per site, which entries may be used

# Standard errors within which a chance in a search may be enough. Strata halve the error: of 297
# plans near the chance asked, 256 paths were off by half of these (sd), the most by 1.4
# (2026-11-29).
CHANCE_ERRORS = 2.0
MIN_FITS = 0.95  # chance that a fallback, on which a plan relies, fits the memory
NONE, OBJECT_STORE, ANCHOR, MEMORY_TIER = range(4)  # as in `CHECKPOINT_PATHS`


@dataclass(frozen=True, slots=True)
class Entries(Table):
    """Offers of one site; every field has shape (entries,)."""

    kind: Ints  # row of the machine columns
    offer: Ints  # row of the catalog, for printing
    region: Ints  # number of its region (of a list: the first), for the CPU machines next to it
    spot: Bools
    booked: Bools  # for a time, and nobody interrupts it: flex-start, blocks of days
    usd_per_hour: Floats  # fees of a running machine included
    max_usd_per_hour: Floats  # the same at the most expensive place of a failover list
    cap: Ints  # most machines of it
    fixed_usd: Floats  # paid once: egress of the data
    usd_per_move: Floats  # egress of one checkpoint to the next zone of the list
    usd_per_save: Floats  # egress of one to a bucket elsewhere; 0 at clouds with buckets
    move_after_s: Floats  # for which only its last region is tried before a move; 0: not at all
    boot_s: Floats  # request to a running container, data staged
    run_mean_s: Floats  # spot: of one machine
    run_sigma: Floats
    outage_sigma: Floats
    availability_logit: Floats
    availability_slope: Floats  # logits lost per log2(1 + (n-1)/8) of a gang; at_once as well
    zone_sd: Floats
    co_interruption: Floats  # rho
    zone_count: Floats  # places of its failover list; on demand: regions that are tried in turn
    correlation: Floats
    runs_from_start: Bools
    price_sigma: Floats
    minimum_s: Floats  # least that is charged,
    step_s: Floats  # in whole steps of this
    maximum_s: Floats  # longest rental; inf: as long as wanted
    free_s: Floats
    notice_s: Floats
    at_once: Floats  # without spot: chance to get one machine at once
    wait_s: Floats  # and the median wait otherwise


@dataclass(frozen=True, slots=True)
class Fallbacks(Table):
    """On-demand clusters that can finish a job; shape (fallbacks,).

    Those that a search tries are sorted, the slowest first, of one speed the cheapest last.
    """

    kind: Ints
    count: Ints
    offer: Ints
    step_s: Floats
    usd_per_hour: Floats
    boot_s: Floats
    at_once: Floats  # chance that all of its machines are there at once
    wait_s: Floats  # and the median wait otherwise

    @property
    def law(self) -> OnDemandLaw:
        """How soon each fallback is available."""
        return OnDemandLaw(self.at_once, self.wait_s)


@dataclass(frozen=True, slots=True)
class Tier(Table):
    """CPU machines that can receive checkpoints in memory; shape (types,)."""

    offer: Ints
    region: Ints
    usd_per_hour: Floats
    memory_bytes: Floats
    network_bytes_per_s: Floats


@dataclass(frozen=True, slots=True)
class Site:
    """One location where a cluster can run, and its offers."""

    provider: str
    region: str  # "" where every cluster is a single entry of its own region or list
    singles: bool  # whether clusters of one entry are looked for here
    entries: Entries
    fallbacks: Fallbacks
    tier: Tier
    quota_use: Floats  # (rows, entries): what one machine uses of each quota
    quota: Floats  # (rows,)
    store_usd_per_hour: float  # checkpoints kept in the object store
    quota_names: tuple[str, ...] = ()  # of the rows, for people

    def only(self, rows: Ints) -> "Site":
        """This site with some of its entries."""
        return replace(self, entries=self.entries.take(rows), quota_use=self.quota_use[:, rows])


@dataclass(frozen=True, slots=True)
class SingleClusters:
    """Clusters of one kind of machine, 1 to `most` of them, and their steps, kind by kind."""

    fleet: Clusters
    steps: Steps
    most: int

    @property
    def step_s(self) -> Floats:
        """Step seconds by kind and number of machines; (kinds, most)."""
        return self.steps.step_s.reshape(-1, self.most)

    @property
    def likely_step_s(self) -> Floats:
        """Step seconds where the memory is likely to be enough, else inf."""
        likely = np.where(self.steps.fits >= MIN_FITS, self.steps.step_s, np.inf)
        return likely.reshape(-1, self.most)

    def rows_of(self, kind: Ints, counts: Ints) -> Ints | None:
        """The rows of clusters of these kinds with these `counts`; None if some are missing."""
        used, n = counts > 0, counts.sum(axis=1)
        if not len(n) or n.max() > self.most or n.min() < 1:
            return None
        first = kind[used.argmax(axis=1)]
        if (used & (kind != first[:, None])).any():
            return None
        return np.asarray(first * self.most + n - 1)


@dataclass(frozen=True, slots=True)
class Space:
    """One question: the job, the limits and every site with its entries."""

    job: Job
    limits: Limits
    columns: MachineColumns
    sites: tuple[Site, ...]
    steps_left: float  # optimiser steps still to do
    checkpoint_paths: tuple[int, ...]  # checkpoint paths allowed
    mix: bool
    trust_notice: bool = True
    # The paths on which plans are compared, and those that decide near the edge of a limit or of
    # the best goal (`pool.py`); None: the same.
    cache: OutcomeCache = field(default_factory=lambda: OutcomeCache(1024, 7), compare=False)
    printed: OutcomeCache | None = field(default=None, compare=False)
    singles: SingleClusters | None = field(default=None, compare=False)  # if they are known
    # Chances near the one that is asked for, on more paths (`chance.py`).

    @property
    def min_chance(self) -> float:
        """The smallest chance on the search paths that may still be the required one."""
        sure = self.limits.confidence
        if self.printed is None:
            return sure
        return chance_less_error(sure, self.cache.path_count, self.printed.path_count)

    def on_printed_paths(self) -> "Space":
        """This space with the deciding paths only."""
        return self if self.printed is None else replace(self, cache=self.printed, printed=None)

    @property
    def of_overhead(self) -> OutcomeCache:
        """The paths that decide whether an overhead is too high: the same for every seed."""
        return self.cache.other(SEED)

    @property
    def seed(self) -> int:
        """The seed of the paths."""
        return self.cache.seed

    def fleet(self, site: Site, counts: Ints) -> Clusters:
        """Clusters of a site as columns; `counts` has shape (plans, entries)."""
        kinds = np.flatnonzero(np.bincount(site.entries.kind))  # np.unique imports numpy.ma
        by_kind = (site.entries.kind[:, None] == kinds[None]).astype(np.int64)
        fleet = clusters_of(_take(self.columns, kinds), counts @ by_kind)
        kind = np.where(fleet.kind >= 0, kinds[np.maximum(fleet.kind, 0)], -1)
        return Clusters(kind, *(getattr(fleet, name) for name in Clusters.__slots__[1:]))

    def timed(self, site: Site, counts: Ints) -> tuple[Clusters, Steps]:
        """Clusters of a site and their steps; those of one kind are computed once."""
        rows = None if self.singles is None else self.singles.rows_of(site.entries.kind, counts)
        if self.singles is not None and rows is not None:
            return self.singles.fleet.take(rows), self.singles.steps.take(rows)
        fleet = self.fleet(site, counts)
        return fleet, steps(self.job, self.columns, fleet)


def chance_less_error(chance: float, paths: int, decide: int) -> float:
    """The smallest share of some paths that meet limits, given that enough of the deciding ones do.

    It has the variance of a proportion; for a chance of 100 %, that of one failing path.
    """
    variance = chance * (1.0 - chance) + 1.0 / decide
    return max(chance - CHANCE_ERRORS * float(np.sqrt(variance / paths)), 0.0)


def _take(columns: MachineColumns, rows: Ints) -> MachineColumns:
    """Some rows of the machine columns; names stay behind, since sums do not need them."""
    numbers: dict[str, Any] = {
        name: value[rows]
        for name in MachineColumns.__slots__
        if isinstance(value := getattr(columns, name), np.ndarray)
    }
    return replace(columns, **numbers)


def most_machines(site: Site, most: int) -> Ints:
    """The most machines of each entry alone: no more than `most`, its cap and the quotas allow."""
    allowed = np.minimum(site.entries.cap, most).astype(np.float64)
    for use, quota in zip(site.quota_use, site.quota, strict=True):
        by_quota = np.floor((quota + 1e-9) / np.maximum(use, 1e-12))
        allowed = np.minimum(allowed, np.where(use > 0.0, by_quota, np.inf))
    return np.maximum(allowed, 0.0).astype(np.int64)


def numbers_allowed(site: Site, step_s: Floats) -> Bools:
    """Which numbers of machines of each entry compute, and fit the quotas.

    `step_s` has shape (kinds, machines), the result (entries, machines).
    """
    most = step_s.shape[1]
    fits = np.arange(1, most + 1) <= most_machines(site, most)[:, None]
    return np.asarray(np.isfinite(step_s[site.entries.kind]) & fits)


def single_clusters(job: Job, c: MachineColumns, most: int) -> SingleClusters:
    """Clusters of n = 1 ... most machines of each kind."""
    kind = np.repeat(np.arange(len(c.names)), most)
    n = np.tile(np.arange(1.0, most + 1.0), len(c.names))
    fleet = Clusters(
        kind=kind,
        machines=n,
        gpus=n * c.gpus[kind],
        gpus_per_machine=c.gpus[kind],
        compute_per_s=n * c.compute_per_s[kind],
        memory_bytes=c.memory_bytes[kind],
        device_bytes_per_s=c.device_bytes_per_s[kind],
        network_bytes_per_s=c.network_bytes_per_s[kind],
        network_half_bytes=c.network_half_bytes[kind],
        network_latency_s=c.network_latency_s[kind],
        intra_bytes_per_s=c.intra_bytes_per_s[kind],
        prepare_per_s=n * c.prepare_per_s[kind],
        fetch_per_s=n * c.fetch_per_s[kind],
        host_bytes_per_s=n * c.host_bytes_per_s[kind],
        disk_bytes_per_s=c.disk_bytes_per_s[kind],
        link_gpus=c.links(kind),
    )
    return SingleClusters(fleet, steps(job, c, fleet), most)
