"""The mixes most likely to meet a deadline if no single machine type does.

A search by cost or by time finds thousands of mixes that are cheap, or usually fast, and meet no
deadline with the required chance. Those that do use all that the quotas of a region allow: its
fastest on-demand machines, together with spot machines. Such clusters are few, and their
closed-form rates (`renewal_rates.py`) select those worth a simulation.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.optimize.columns import Cluster, Columns, columns_of
from recommender.optimize.mixed_columns import (
    as_many_as_allowed,
    cluster_of,
    shared_quotas,
)
from recommender.optimize.space import Space, most_machines, single_steps
from recommender.plan.limits import Limits

FASTEST_TYPES = 4  # of each market, the fastest of a region
COMBINED = 2  # any of them in one cluster, or all
CORE_SHARES = (1.0, 0.5)  # of the on-demand machines allowed: half where all leave no room for spot
# Estimates that miss a limit by no more seem sure enough. Of mixes under quotas that are in time by
# their estimate 8 to 58 % are when simulated, the fewer the less time is left; of those late by up
# to 5 % 0.7 %, of later ones 0.1 % (docs/research/mixes.md).
SURE = 1.05
EXTREME = 40  # of each kind, where mixes may be asked for less time or less cost
SAME_MACHINES = 2  # regions in which the same machines are tried
# Of each provider, those with the most compute, of both markets and on demand alone. With one, no
# mix is found first for two of 135 questions under quotas that have one; with five, the answers to
# the 33 questions whose first mix differs cost the same, but for two (by 0.3 %, one each way).
REGIONS = 2


@dataclass(frozen=True, slots=True)
class _Region:
    """The fastest types of a region."""

    index: int  # of its site
    most: Ints  # machines of each entry that its quotas allow
    core: Ints  # entries on demand, the fastest first
    spot: Ints
    core_speed: float  # samples per second of all these on-demand machines
    spot_speed: float


@dataclass(frozen=True)
class EstimatedMixes:
    """Mixes that use what quotas allow, and their estimates, whatever the limits."""

    space: Space
    clusters: list[Cluster]
    columns: Columns

    def in_order(self, limits: Limits) -> list[Cluster]:
        """Those that seem sure enough, the cheapest first, and the surest of all take turns."""
        found, excess = self.columns, self._excess(limits)
        orders = np.stack(
            [
                np.lexsort((found.goal_value, excess > SURE)),
                np.argsort(excess, kind="stable"),
            ],
            axis=1,
        )
        ordered = dict.fromkeys(found.cluster[orders.ravel()].tolist())
        return _in_few_places(self.space, [self.clusters[number] for number in ordered])

    def quickest_and_cheapest(self) -> list[Cluster]:
        """Those of the least time and of the least cost, at the requested chance and on average."""
        c = self.columns
        each = (c.time_quantile_s, c.usd_quantile, c.time_s, c.usd)
        rows = np.concatenate([np.argsort(values, kind="stable")[:EXTREME] for values in each])
        ordered = dict.fromkeys(c.cluster[rows].tolist())
        return _in_few_places(self.space, [self.clusters[number] for number in ordered])

    def least_excess(self, limits: Limits) -> float:
        """By which factor the surest of them misses the limit that it misses most."""
        return float(self._excess(limits).min())

    def _excess(self, limits: Limits) -> Floats:
        """By which factor each misses the limit that it misses most, at the requested chance."""
        misses = [np.zeros(len(self.columns))]
        if limits.deadline_s is not None:
            misses.append(self.columns.time_quantile_s / limits.deadline_s)
        if limits.budget_usd is not None:
            misses.append(self.columns.usd_quantile / limits.budget_usd)
        return np.asarray(np.max(misses, axis=0))


def safest_mixes(space: Space, first: int) -> list[Cluster]:
    """Mixes of the sites from `first` on, the most likely to meet the limits first."""
    found = estimated_mixes(space, first)
    return [] if found is None else found.in_order(space.limits)


def estimated_mixes(space: Space, first: int) -> EstimatedMixes | None:
    """Mixes of the sites from `first` on; None if there are none."""
    # Beyond some number of machines a global batch is too small for more.
    useful = single_steps(space.job, space.columns, space.limits.max_machines).argmin(axis=1) + 1
    regions = [_region(space, index) for index in range(first, len(space.sites))]
    clusters = [
        mix for region in _fastest_regions(space, regions) for mix in _mixes(space, useful, region)
    ]
    return EstimatedMixes(space, clusters, columns_of(space, clusters)) if clusters else None


def _in_few_places(space: Space, clusters: Iterable[Cluster]) -> list[Cluster]:
    """The first clusters of each set of machines: alike ones elsewhere are as sure."""
    seen: Counter[tuple[bytes, bytes, tuple[int, ...]]] = Counter()
    kept = []
    for cluster in clusters:
        e, rows = space.sites[cluster.site].entries, list(cluster.entries)
        alike = (e.kind[rows].tobytes(), e.spot[rows].tobytes(), cluster.counts)
        seen[alike] += 1
        if seen[alike] <= SAME_MACHINES:
            kept.append(cluster)
    return kept


def _region(space: Space, index: int) -> _Region:
    """The fastest types of a site in each market, as many machines as its quotas allow."""
    site = space.sites[index]
    most = most_machines(site, space.limits.max_machines)
    speed = space.columns.compute_per_s[site.entries.kind] * most
    order = np.argsort(-speed, kind="stable")
    order = order[speed[order] > 0.0]
    on_spot = site.entries.spot[order]
    core, spot = order[~on_spot][:FASTEST_TYPES], order[on_spot][:FASTEST_TYPES]
    return _Region(index, most, core, spot, float(speed[core].sum()), float(speed[spot].sum()))


def _fastest_regions(space: Space, regions: Sequence[_Region]) -> list[_Region]:
    """The regions with the most compute at each provider, of both markets and on demand alone."""
    chosen: dict[int, _Region] = {}
    for provider in dict.fromkeys(space.sites[each.index].provider for each in regions):
        mine = [each for each in regions if space.sites[each.index].provider == provider]
        both = sorted(mine, key=lambda each: -each.core_speed - each.spot_speed)
        sure = sorted(mine, key=lambda each: -each.core_speed)
        chosen |= {each.index: each for each in (*both[:REGIONS], *sure[:REGIONS])}
    return list(chosen.values())


def _mixes(space: Space, useful: Ints, region: _Region) -> Iterator[Cluster]:
    """On-demand machines of one or two types with spot machines of none, one or two."""
    site, most = space.sites[region.index], region.most
    useful = useful[site.entries.kind]
    shared = shared_quotas(site, np.concatenate([region.core, region.spot]))
    for core, other in product(_sets(region.core), _sets(region.spot)):
        rows = (*core, *other)
        if len(rows) < 2:
            continue
        room = int(useful[list(rows)].max())
        for share in CORE_SHARES:
            wanted = [*_part(most[list(core)], share), *most[list(other)].tolist()]
            if counts := as_many_as_allowed(rows, wanted, room, shared):
                yield cluster_of(region.index, counts)
                break


def _part(most: Ints, share: float) -> list[int]:
    """A share of so many machines, rounded up."""
    return [int(n) for n in np.ceil(share * most)]


def _sets(rows: Ints) -> Iterator[tuple[int, ...]]:
    """None, one, two or all of some entries."""
    for size in dict.fromkeys((*range(COMBINED + 1), len(rows))):
        yield from combinations(rows.tolist(), size)
