"""The columns of the master program: promising clusters with closed-form rates.

A column is a whole configuration, cluster and checkpoint path, rated as if it did the whole job.
There are tens of thousands. A rough estimate of cost and time keeps the clusters that are good at
some price of time, and only these get rates (`renewal_rates.py`).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.optimize.evaluate import (
    RENDEZVOUS_S,
    RESERVE_S,
    Plans,
    Reduced,
    plans_without_fallback,
    reduced,
)
from recommender.optimize.fallback_choices import fallback_choices, slow_choice
from recommender.optimize.renewal_rates import (
    FallbackRates,
    Rates,
    rates,
    with_fallback,
    within_overhead,
)
from recommender.optimize.space import Masks, Site, Space, numbers_allowed
from recommender.plan.limits import Limits
from recommender.risk.laws import RUN_FAMILY, gang_doublings, gang_hazard, logistic

# Cost × time^θ, from cheapest to fastest; so many clusters of each market are kept by each.
EXPONENTS = (0.0, 0.15, 0.4, 1.0, 3.0, 10.0)
KEPT = 8
KEPT_BY_GOAL = 60
NOT_FAR = 3.0  # times the least: other types of which some clusters may be added
NEAR_FRONTIER = 1.25  # of the least cost of clusters that are as fast
ON_DEMAND_FIRST = 3  # configurations without spot that are simulated before the others
RESTORE_S = 60.0  # of a checkpoint, in the rough estimate
# Scenarios are few: a plan whose estimated chance is short by less than `BLUR` is simulated first
# too, and one that is short by less than `SHORT` after all that seem to meet the limits.
BLUR, SHORT = 0.03, 0.1
NONE: Ints = np.zeros(0, dtype=np.int64)
# Plans estimated over the overhead limit by up to this factor stay candidates; their goal is
# multiplied by it.
OVER = 3.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """Machines of one or several entries of a site."""

    site: int
    entries: tuple[int, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Columns:
    """Configurations and their rates; shape (columns,)."""

    cluster: Ints  # row of the clusters they are made of
    checkpoint_path: Ints
    spot: Bools
    usd: Floats  # expected bill if it does all of the job
    usd_quantile: Floats  # the same at the requested chance
    time_s: Floats  # trimmed mean
    time_quantile_s: Floats
    overhead: Floats
    goal_value: Floats  # least estimate with any of its fallbacks; inf: no limit is met
    fallback: Ints  # row of the site's fallbacks; -1: none
    fallback_share: Floats  # of the work that it does

    def __len__(self) -> int:
        return len(self.cluster)

    @staticmethod
    def joined(parts: "Sequence[Columns]") -> "Columns":
        """The columns of several tables."""
        both = ([getattr(part, name) for part in parts] for name in Columns.__slots__)
        return Columns(*map(np.concatenate, both))

    def with_more(self, more: "Columns", clusters: int) -> "Columns":
        """These columns, made of so many clusters, followed by those of other clusters."""
        return Columns.joined([self, replace(more, cluster=more.cluster + clusters)])

    def take(self, rows: Ints | Bools) -> "Columns":
        """Some of the columns."""
        return Columns(*(getattr(self, name)[rows] for name in self.__slots__))

    def with_figures(self, row: int, **figures: float) -> "Columns":
        """The columns with other figures in one row."""
        changed = {name: getattr(self, name).copy() for name in figures}
        for name, value in figures.items():
            changed[name][row] = value
        return replace(self, **changed)


def promising_clusters(
    space: Space, step_s: Floats, masks: Masks | None = None, of_each: int = 0
) -> list[Cluster]:
    """Clusters of one entry that are good at some price of time, by a rough estimate.

    `step_s` has shape (kinds, machines). `masks` restricts the entries of each site. So many
    clusters `of_each` type are added that are not worse by far.
    """
    rough = _rough(space, step_s, masks)
    if rough is None:
        return []
    index, entry, machines, spot, usd, time, within = rough
    kept = np.zeros(len(usd), dtype=bool)
    costs = (usd,) if space.limits.max_overhead is None else (usd, within)
    for cost in costs:
        goal_value = _rough_goal(space, cost, time)
        for market in (False, True):
            rows = np.flatnonzero(spot == market)
            for exponent in EXPONENTS:
                score = np.log(cost[rows]) + exponent * np.log(time[rows])
                kept[rows[_least(score, KEPT)]] = True
            kept[rows[_least(goal_value[rows], KEPT_BY_GOAL)]] = True
            if of_each:
                kind = _kinds(space, index[rows], entry[rows])
                kept[rows[_least_of_each(goal_value[rows], kind, of_each)]] = True
    variants = [
        _moving_otherwise(site, None if masks is None else masks[number])
        for number, site in enumerate(space.sites)
    ]
    return [
        Cluster(int(index[i]), (row,), (int(machines[i]),))
        for i in np.flatnonzero(kept)
        for row in (int(entry[i]), *variants[index[i]].get(int(entry[i]), ()))
    ]


def _least(values: Floats, count: int) -> Ints:
    """The places of so many smallest values, of equal ones the first; without sorting all."""
    if len(values) <= count:
        return np.arange(len(values))
    places = np.flatnonzero(values <= np.partition(values, count - 1)[count - 1])
    return places[np.argsort(values[places], kind="stable")[:count]]


def _kinds(space: Space, index: Ints, entry: Ints) -> Ints:
    """The types of some entries, each at its site."""
    kinds = [site.entries.kind for site in space.sites]
    first = np.cumsum([0, *map(len, kinds)])
    return np.asarray(np.concatenate(kinds)[first[index] + entry])


def _least_of_each(values: Floats, group: Ints, count: int) -> Ints:
    """The places of so many smallest values of each group, of those that are not far off."""
    order = np.lexsort((values, group))
    changes = np.append(True, np.diff(group[order]) != 0)
    begin = np.maximum.accumulate(np.where(changes, np.arange(len(order)), 0))
    rank = np.arange(len(order)) - begin
    near = values[order] <= NOT_FAR * values.min(initial=np.inf)
    return np.asarray(order[(rank < count) & near])


def clusters_near_frontier(space: Space, step_s: Floats) -> list[Cluster]:
    """Clusters of one entry that few others beat in cost and time, by a rough estimate.

    Those on demand, those of one place and those with a failover list each have their own frontier:
    a list costs more and waits less, which a mean time hides.
    """
    rough = _rough(space, step_s)
    if rough is None:
        return []
    index, entry, machines, spot, usd, time, _ = rough
    found: list[Cluster] = []
    zones = [site.entries.zone_count for site in space.sites]
    first = np.cumsum([0, *map(len, zones)])  # of each site's entries
    listed = np.concatenate(zones)[first[index] + entry] > 1.0
    for group in (~spot, spot & ~listed, spot & listed):
        rows = np.flatnonzero(group)
        rows = rows[np.argsort(time[rows], kind="stable")]
        min_usd = np.minimum.accumulate(usd[rows])
        rows = rows[usd[rows] <= NEAR_FRONTIER * min_usd]
        found += [Cluster(int(index[i]), (int(entry[i]),), (int(machines[i]),)) for i in rows]
    return found


def _moving_otherwise(site: Site, mask: Bools | None) -> dict[int, list[int]]:
    """For each list that moves at a price, those as long of its type that wait or stay instead.

    They wait before they move, or stay in a region.
    """
    e = site.entries
    other = e.spot & ((e.move_after_s > 0.0) | ((e.usd_per_move <= 0.0) & (e.zone_count > 1.0)))
    if mask is not None:
        other &= mask
    kind, length = e.kind.tolist(), e.zone_count.tolist()
    alike: dict[tuple[int, float], list[int]] = {}
    for row in np.flatnonzero(other).tolist():
        alike.setdefault((kind[row], length[row]), []).append(row)
    moving = np.flatnonzero(e.spot & (e.usd_per_move > 0.0)).tolist()
    return {
        entry: [row for row in alike.get((kind[entry], length[entry]), ()) if row != entry]
        for entry in moving
    }


def clusters_by_estimate(
    space: Space, step_s: Floats, masks: Masks | None = None, surest: bool = False
) -> list[list[Cluster]]:
    """Promising clusters that may meet the limits, sorted by their estimates.

    The best on-demand cluster comes first, then the most probable of those estimated to meet the
    limits, each with the variants that differ only in when and how far they move. With `surest` all
    are sorted by their chance, to find out whether any plan meets the limits.
    """
    clusters = promising_clusters(space, step_s, masks)
    if not clusters:
        return []
    found = _by_site(space, clusters)
    cluster, spot, goal_value, chance = (
        np.concatenate(each)
        for each in zip(*((f.cluster, f.spot, f.goal_value, f.chance) for f in found), strict=True)
    )
    short = np.where(np.isfinite(goal_value), 0.0, space.limits.confidence - chance)
    order = np.lexsort((goal_value, -chance if surest else short))[: (short < SHORT).sum()]
    first = order[~spot[order]][:ON_DEMAND_FIRST]
    numbers = dict.fromkeys(cluster[np.append(first, order)].tolist())
    return _alike(space, [clusters[number] for number in numbers])


def _alike(space: Space, clusters: Sequence[Cluster]) -> list[list[Cluster]]:
    """Clusters that differ in when and how far they move only, together."""
    found: dict[tuple[int, ...], list[Cluster]] = {}
    for each in clusters:
        e, row = space.sites[each.site].entries, each.entries[0]
        alike = each.site, e.kind[row], e.spot[row], e.offer[row], e.zone_count[row], *each.counts
        found.setdefault(tuple(map(int, alike)), []).append(each)
    return list(found.values())


def _rough(
    space: Space, step_s: Floats, masks: Masks | None = None
) -> tuple[NDArray[Any], ...] | None:
    """Site, entry, machines, market, cost and time of every cluster of one entry; None if none.

    The last is the cost within the overhead limit.
    """
    parts = [
        _rough_at(space, index, site, step_s, None if masks is None else masks[index])
        for index, site in enumerate(space.sites)
        if site.singles and len(site.entries)
    ]
    return tuple(np.concatenate(c) for c in zip(*parts, strict=True)) if parts else None


def _rough_at(
    space: Space, index: int, site: Site, step_s: Floats, mask: Bools | None
) -> tuple[NDArray[Any], ...]:
    """Cost and time of every cluster of one entry, the cheapest of alike entries only."""
    e = site.entries
    rows = _cheapest_of_alike(site)
    rows = rows if mask is None else rows[mask[rows]]
    at, many = np.nonzero(numbers_allowed(space, site, step_s)[rows])
    row, n, step = rows[at], many + 1, step_s[e.kind[rows[at]], many]
    run = e.run_mean_s[row] / gang_hazard(n, e.co_interruption[row])
    away = e.boot_s[row] + RENDEZVOUS_S + RESTORE_S
    useful = np.maximum(RUN_FAMILY.excess(away, run, e.run_sigma[row]) / run, 1e-3)
    up = logistic(e.availability_logit[row] - e.availability_slope[row] * gang_doublings(n))
    idle = (1.0 - up) ** e.zone_count[row] / up
    spot, work = e.spot[row], step * space.steps_left
    free = e.free_s[row]
    charged = RUN_FAMILY.min_long_share(np.maximum(free, 1.0), run, e.run_sigma[row])
    paid = np.where(spot, work / useful * np.where(free > 60.0, charged, 1.0), work) + away
    time = np.where(spot, work / useful * (1.0 + idle), work) + away
    usd = e.usd_per_hour[row] * n * paid / 3600.0 + e.fixed_usd[row]
    within = _within_overhead(space, site, usd, np.where(spot, 1.0 / useful - 1.0, 0.0))
    return np.full(len(row), index), row, n, spot, usd, time, within


def _within_overhead(space: Space, site: Site, usd: Floats, lost: Floats) -> Floats:
    """Costs with so much of the work on the cheapest fallback that the rest loses no more than the
    overhead limit allows.
    """
    fall, most = site.fallbacks, space.limits.max_overhead
    if most is None or space.limits.deadline_s is None or not len(fall):
        return usd
    whole_usd = float((fall.usd_per_hour * fall.step_s).min()) * space.steps_left / 3600.0
    kept = np.minimum(most / np.maximum(lost, 1e-9), 1.0)
    return np.where(kept < 1.0, np.maximum(kept * usd + (1.0 - kept) * whole_usd, usd), usd)


def _rough_goal(space: Space, usd: Floats, time: Floats) -> Floats:
    """What is minimised, roughly; what meets a limit badly is worse by as much."""
    limits = space.limits
    late = 1.0 if limits.deadline_s is None else np.maximum(time / limits.deadline_s, 1.0)
    expensive = 1.0 if limits.budget_usd is None else np.maximum(usd / limits.budget_usd, 1.0)
    return np.asarray((time if limits.goal == "time" else usd) * late * expensive)


def _cheapest_of_alike(site: Site) -> Ints:
    """Of each type, market and length of list the cheapest entry that waits for no move."""
    e = site.entries
    order = np.lexsort((e.usd_per_hour, e.move_after_s, e.zone_count, e.spot, e.kind))
    key = np.stack([e.kind, e.spot, e.zone_count], axis=1)[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (key[1:] != key[:-1]).any(axis=1)
    return order[first]


def columns_of(space: Space, clusters: Sequence[Cluster]) -> Columns:
    """Closed-form rates of every allowed configuration without fallbacks."""
    return _all_alone(space.limits, _by_site(space, clusters))


def rated_columns(space: Space, clusters: Sequence[Cluster]) -> tuple[Columns, Columns]:
    """Closed-form rates of every allowed configuration, alone and with its best fallback."""
    found = _by_site(space, clusters)
    alone = _all_alone(space.limits, found)
    others = [part for each in found for part in _with_best_fallback(space.limits, each)]
    return alone, Columns.joined(others) if others else alone.take(NONE)


def _all_alone(limits: Limits, found: "Sequence[Configurations]") -> Columns:
    return Columns.joined(
        [_columns(limits, each, each.alone, np.full(len(each.cluster), -1)) for each in found]
    )


def _with_best_fallback(limits: Limits, found: "Configurations") -> list[Columns]:
    """The best configurations that may have a fallback, each with the one of the least goal."""
    able = np.flatnonzero(found.fallback >= 0)
    order = np.lexsort((-found.chance[able], found.goal_value[able]))
    some = found.take(np.sort(able[order[:KEPT_BY_GOAL]]))
    if not len(some.cluster):
        return []
    last = with_fallback(some.alone, some.terms)
    early = np.zeros(len(some.cluster), dtype=bool)
    if limits.max_overhead is not None:
        early = last.mean(last.lost) > limits.max_overhead
    on_time = np.flatnonzero(~early)
    parts = [_columns(limits, some.take(on_time), last.take(on_time), some.fallback[on_time])]
    if limits.max_overhead is not None and early.any():
        over = some.take(np.flatnonzero(early))
        within = within_overhead(over.alone, over.terms, limits.max_overhead)
        parts.append(_columns(limits, over, within, over.fallback))
    return parts


def _columns(limits: Limits, found: "Configurations", rated: Rates, fallback: Ints) -> Columns:
    usd, time = rated.ordered(rated.usd), rated.ordered(rated.time_s)
    return Columns(
        cluster=found.cluster,
        checkpoint_path=found.checkpoint_path,
        spot=found.spot,
        usd=rated.mean(rated.usd),
        usd_quantile=usd.quantile(limits.confidence),
        time_s=time.trimmed(),
        time_quantile_s=time.quantile(limits.confidence),
        overhead=rated.mean(rated.lost),
        goal_value=found.goal_value,
        fallback=fallback,
        fallback_share=rated.mean(rated.fallback_share),
    )


def counts_table(clusters: Sequence[Cluster]) -> tuple[Ints, Ints]:
    """The entries that clusters of one site use, and counts of shape (clusters, entries)."""
    rows = sorted({entry for cluster in clusters for entry in cluster.entries})
    place = {entry: column for column, entry in enumerate(rows)}
    counts = np.zeros((len(clusters), len(rows)), dtype=np.int64)
    for line, cluster in enumerate(clusters):
        for entry, count in zip(cluster.entries, cluster.counts, strict=True):
            counts[line, place[entry]] = count
    return np.array(rows), counts


def cluster_of_each(plans: Plans, counts: Ints) -> Ints:
    """Which of the clusters each plan is of; some have none, for want of a checkpoint path."""
    number = {each.tobytes(): row for row, each in enumerate(counts)}
    return np.array([number[each.tobytes()] for each in plans.counts], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Configurations:
    """Clusters of one site with their checkpoint paths, and estimates; shape (configurations,)."""

    cluster: Ints
    checkpoint_path: Ints
    spot: Bools
    alone: Rates  # without fallbacks
    goal_value: Floats  # as in `Columns`
    chance: Floats  # that the limits are met, with the surest of its fallbacks
    fallback: Ints  # of the least goal, else the surest; -1 where it may have none
    terms: FallbackRates  # of this fallback

    def take(self, rows: Ints) -> "Configurations":
        """Some of the configurations."""
        columns: dict[str, Any] = {
            name: value[rows]
            if isinstance(value := getattr(self, name), np.ndarray)
            else value.take(rows)
            for name in self.__slots__
        }
        return Configurations(**columns)


def _by_site(space: Space, clusters: Sequence[Cluster]) -> list[Configurations]:
    """The allowed configurations of each site, those of clusters of several entries apart."""
    by_entries: dict[tuple[int, bool], list[int]] = {}
    for number, cluster in enumerate(clusters):
        by_entries.setdefault((cluster.site, len(cluster.entries) > 1), []).append(number)
    return [_of_site(space, clusters, np.array(mine)) for mine in by_entries.values()]


def _of_site(space: Space, clusters: Sequence[Cluster], numbers: Ints) -> Configurations:
    mine = [clusters[number] for number in numbers.tolist()]
    rows, counts = counts_table(mine)
    site = space.sites[mine[0].site].only(rows)
    plans = plans_without_fallback(space, site, counts)
    line = cluster_of_each(plans, counts)
    found = reduced(space, site, plans)
    ok = np.flatnonzero(found.allowed)
    alone = rates(found.inputs.take(ok))
    own, best = _goal(space.limits, alone), _best_fallbacks(space, site, found, ok, alone)
    return Configurations(
        cluster=numbers[line[ok]],
        checkpoint_path=plans.checkpoint_path[ok],
        spot=found.gang.has_spot[ok],
        alone=alone,
        goal_value=np.minimum(own[0], best.goal_value),
        chance=np.maximum(own[1], best.chance),
        fallback=best.fallback,
        terms=best.terms,
    )


def _goal(limits: Limits, found: Rates) -> tuple[Floats, Floats]:
    """What is minimised, inf where the limits are not met often enough, and how often they are."""
    kept = np.ones(found.usd.shape, dtype=bool)
    if limits.deadline_s is not None:
        kept &= found.time_s <= limits.deadline_s
    if limits.budget_usd is not None:
        kept &= found.usd <= limits.budget_usd
    chance = found.mean(kept)
    by_time = limits.goal == "time"
    aim = found.ordered(found.time_s).trimmed() if by_time else found.mean(found.usd)
    if limits.max_overhead is not None:
        over = np.maximum(found.mean(found.lost) / np.maximum(limits.max_overhead, 1e-9), 1.0)
        chance, aim = np.where(over <= OVER, chance, 0.0), aim * over
    return np.where(chance >= limits.confidence - BLUR, aim, np.inf), chance


def _goal_in_time(limits: Limits, alone: Rates, fall: FallbackRates) -> tuple[Floats, Floats]:
    """The goal and the chance with a fallback that takes over as the limits require."""
    last = with_fallback(alone, fall)
    least, sure = _goal(limits, last)
    if limits.max_overhead is not None:
        over = np.flatnonzero(last.mean(last.lost) > limits.max_overhead)
        if len(over):
            early = within_overhead(alone.take(over), fall.take(over), limits.max_overhead)
            least[over], sure[over] = _goal(limits, early)
    return least, sure


@dataclass(frozen=True, slots=True)
class _BestFallbacks:
    """Configurations with the fallbacks that they may have; shape (configurations,)."""

    goal_value: Floats  # the least with any
    chance: Floats  # the most with any
    fallback: Ints
    terms: FallbackRates


def _best_fallbacks(
    space: Space, site: Site, found: Reduced, ok: Ints, alone: Rates
) -> _BestFallbacks:
    """The least goal with a fallback that a plan of the site may have, and the most chance."""
    fall, count = site.fallbacks, len(ok)
    best = np.full(count, -1)
    goal_value, chance, at_best = np.full(count, np.inf), np.zeros(count), np.full(count, -1.0)
    if space.limits.deadline_s is None or not len(fall):
        return _BestFallbacks(goal_value, chance, best, _no_terms(count))
    step = found.inputs.work_s[ok] / space.steps_left
    choices = fallback_choices(fall, step, space.steps_left)[:, 1:]
    if space.limits.max_overhead is not None:
        choices = np.concatenate([choices, slow_choice(fall, step)[:, None]], axis=1)
    for choice in choices.T:
        mine = np.flatnonzero((choice >= 0) & found.gang.has_spot[ok])
        terms = fallback_rates(space, site, found, ok[mine], choice[mine])
        least, sure = _goal_in_time(space.limits, alone.take(mine), terms)
        surer = np.isinf(least) & np.isinf(goal_value[mine]) & (sure > at_best[mine])
        better = (least < goal_value[mine]) | surer
        best[mine] = np.where(better, choice[mine], best[mine])
        at_best[mine] = np.where(better, sure, at_best[mine])
        goal_value[mine] = np.minimum(goal_value[mine], least)
        chance[mine] = np.maximum(chance[mine], sure)
    return _BestFallbacks(goal_value, chance, best, fallback_rates(space, site, found, ok, best))


def _no_terms(count: int) -> FallbackRates:
    return FallbackRates(*(np.zeros(count) for _ in FallbackRates.__slots__))


def fallback_rates(
    space: Space, site: Site, found: Reduced, which: Ints, row: Ints
) -> FallbackRates:
    """What plans need to know of their fallbacks; rows of the site's, which = rows of `found`."""
    fall, due_s = site.fallbacks, space.limits.deadline_s or 0.0
    step = found.inputs.work_s[which] / space.steps_left
    reserved_s = fall.law.reserve_s(space.limits.confidence)[row]
    reserve = RESERVE_S + found.saves.stall_s[which] + reserved_s
    return FallbackRates(
        start_s=fall.boot_s[row] + RENDEZVOUS_S + found.saves.restore_s[which],
        step_ratio=fall.step_s[row] / step,
        usd_per_hour=fall.usd_per_hour[row],
        latest_s=due_s - reserve,
        wait_s=np.where(reserved_s > 0.0, reserve, 0.0),
    )
