"""Sets of entries used together: their bound, how they grow, and the clusters they allow.

A cluster of a support U has one machine of each of its entries at least, and k others. With
R_U, P_U the speed and price of the first, price(R) the least price of others (`price_curves.py`),
step >= t + a/R (`performance/step_bounds.py`, by the number of machines and the slowest in U),

    cost >= fixed + steps·min over R of (P_U + price(R - R_U))·(t + a/R)     R >= R0
    time >= d + steps·(t + a/R1)

R0 is what the deadline needs, and R1 what limits of price, machines and quotas allow. A fallback
of bill F may do what a cluster is too slow for: it does a share of at least 1 - D/W, so that
W > D/(1 - cutoff/F) costs more than the cutoff. On every piece of a curve the price is a line
p + b·R, and (p + b·R)·(t + a/R) is least at R = √(p·a/(b·t)) or an end. Spot prices count by the
least share billed under any run law that a cluster of the site can have (`bounds/spot_time.py`);
what a fallback, or the on-demand machines of an elastic cluster, do of the work is handed over at
κ = HANDOVER_RATIO per second of it, and costs at least F, or the least bill of these machines.

The bound never falls when U grows, so only surviving sets are grown.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.optimize.bounds.cluster import (
    ROUNDING,
    ClusterFigures,
    cluster_lower_bounds,
    sums_of,
)
from recommender.optimize.bounds.site import SiteBounds, narrowed
from recommender.optimize.bounds.spot_time import HANDOVER_RATIO
from recommender.optimize.compositions import compositions, count_compositions
from recommender.optimize.evaluate import elastic_share, gang_of
from recommender.optimize.price_curves import Lines, OtherMachines, min_product, reach, within
from recommender.optimize.space import Site, Space
from recommender.performance.parameter_server import cluster_spread
from recommender.plan.limits import TOLERANCE
from recommender.risk.laws import gang_doublings

FASTEST = 1 << 30  # place of a network faster than all, or a larger memory
LISTED = 5  # entries of a set whose clusters are listed for a bound
MAX_LISTED = 5_000  # clusters of it: all of five entries on 16 machines, of two on 64


def bounds_with_each(b: SiteBounds, cutoff: float) -> Floats:
    """Bounds of the clusters that have machines of an entry, case by case; (entries, cases)."""
    return _support_bounds(b, (), np.arange(len(b.machines_allowed)), cutoff, later=False)


def first(
    b: SiteBounds, cutoff: float, bounds: Floats | None = None
) -> tuple[SiteBounds, list[tuple[float, tuple[int, ...]]]]:
    """Every entry alone, and the site without entries and cases of no mix below the cutoff.

    `bounds` are those with each entry, if known.
    """
    good = (bounds_with_each(b, cutoff) if bounds is None else bounds) < cutoff
    alive, cases = np.asarray(good.any(axis=1)), np.asarray(good.any(axis=0))
    if alive.sum() < 2 or not cases.any():
        return b, []
    b = narrowed(b, alive, cases)
    bounds = _support_bounds(b, (), np.arange(len(b.machines_allowed)), cutoff).min(axis=1)
    return b, [(float(bounds[i]), (int(i),)) for i in np.flatnonzero(bounds < cutoff)]


def extended(
    b: SiteBounds, support: tuple[int, ...], cutoff: float
) -> list[tuple[float, tuple[int, ...]]]:
    """The support extended by one entry, for each whose bound is below the cutoff."""
    more = np.arange(support[-1] + 1, len(b.machines_allowed))
    if len(support) >= b.space.limits.max_machines or not len(more):
        return []
    bounds = _support_bounds(b, support, more, cutoff).min(axis=1)
    good = np.flatnonzero(bounds < cutoff)
    return [(float(bounds[i]), (*support, int(more[i]))) for i in good]


@dataclass(frozen=True, slots=True)
class _Supports:
    """A support and each entry that may be added to it: what bounds of their clusters share.

    With U the support and one added entry, a cluster has one machine of each entry of U and a
    number of further machines: of U, or of entries from `begin` on. Arrays have shape (more,), or
    (more, cases) and what broadcasts to it.
    """

    b: SiteBounds
    chosen: list[int]  # the entries of the support
    more: Ints  # the added entry
    begin: Ints  # the first entry that clusters may have besides those of U
    lowest: Ints  # the first entry that they may have at all
    types: Ints  # (more, 1): spot types in U
    missing_types: Ints  # spot types that the case has at least, besides those of U
    fewest_others: Ints  # (cases,): further machines
    most_others: Ints

    @property
    def size(self) -> int:
        """Entries in U, so machines besides the further ones."""
        return len(self.chosen) + 1

    def total(self, values: Floats) -> Floats:
        """The sum of a value over the entries of U; (more,)."""
        return np.asarray(values[self.chosen].sum() + values[self.more])

    def machines(
        self, price: Floats, share: Floats | None = None, types_needed: bool = True
    ) -> OtherMachines:
        """U and its further machines at these prices, of spot only a `share` of them."""
        spot = self.b.site.entries.spot
        share = np.ones(self.missing_types.shape) if share is None else share
        on_demand_price = self.total(np.where(spot, 0.0, price))[:, None]
        spot_price = self.total(np.where(spot, price, 0.0))[:, None]
        return OtherMachines(
            on_demand_price + share * spot_price,
            share,
            self.total(self.b.speed),
            self.fewest_others,
            self.most_others,
            self.missing_types if types_needed else np.zeros_like(self.missing_types),
            self.begin,
        )

    def spot_down(self) -> Floats:
        """Least -log of the availability of the spot machines together; (more, cases)."""
        waits = self.b.waits
        return (
            self.total(waits.down)[:, None]
            + waits.down_from[self.begin[:, None], self.missing_types]
        )


def _supports_of(b: SiteBounds, support: tuple[int, ...], more: Ints, later: bool) -> _Supports:
    """The support with each further entry; `later`: clusters have no entries before the last."""
    chosen, size = list(support), len(support) + 1
    any_entry = np.zeros(len(more), dtype=np.int64)
    first_chosen = np.full(len(more), chosen[0]) if chosen else more
    types = (b.site.entries.spot[chosen].sum() + b.site.entries.spot[more])[:, None]
    return _Supports(
        b=b,
        chosen=chosen,
        more=more,
        begin=more + 1 if later else any_entry,
        lowest=first_chosen if later else any_entry,
        types=types,
        missing_types=np.maximum(b.cases.min_types - types, 0),
        fewest_others=np.maximum(b.cases.min_machines - size, 0),
        most_others=np.maximum(b.cases.max_machines - size, 0),
    )


def _support_bounds(
    b: SiteBounds, support: tuple[int, ...], more: Ints, cutoff: float, later: bool = True
) -> Floats:
    """Bounds of the support with each further entry, case by case; (more, cases).

    Least goal with a compute R between R0, what the deadline needs, and R1, what limits of price,
    machines and quotas allow; inf where there is none.
    """
    s = _supports_of(b, support, more, later)
    possible = _possible(s)
    if not possible.any():
        return np.full(possible.shape, np.inf)
    lines = _lines(s)
    r0, r1 = _min_compute(lines, b.longest_step_s(cutoff)), _most_compute(s)
    # Too slow for the deadline or unaffordable, whatever the least bill of a part of it.
    possible &= (r1 > 0.0) & (r0 <= r1 * (1.0 + ROUNDING))
    place = _place(s)
    if b.space.limits.goal != "time":
        return np.where(possible, _min_cost(s, lines, (r0, r1), place, possible), np.inf)
    if b.waits.kept:
        counted = s.machines(b.site.entries.usd_per_hour, b.billed.counted[place])
        r1 = np.minimum(r1, within(b.price, counted, lines, b.max_spend))
        possible &= r1 > 0.0
    return np.where(possible, _min_time(b, lines, r1, s.spot_down()), np.inf)


def _most_compute(s: _Supports) -> Floats:
    """R1: the most compute that machines, quotas and the hourly limit allow; (more, cases)."""
    b, hourly_usd = s.b, s.b.space.limits.hourly_usd
    each = s.machines(np.ones(len(b.site.entries)), types_needed=False)
    most = reach(b.machines, each, b.cases.max_machines.astype(np.float64))
    if hourly_usd is None:
        return most
    most_usd = np.full(len(b.cases.max_machines), hourly_usd + TOLERANCE)
    return np.minimum(most, reach(b.price, s.machines(b.site.entries.usd_per_hour), most_usd))


def _min_cost(
    s: _Supports, lines: Lines, compute: tuple[Floats, Floats], place: Ints, possible: Bools
) -> Floats:
    """Least cost with a compute between R0 and R1 where it is possible at all; (more, cases).

    `place` is that of the shares of spot time that are charged. Under a deadline others have to do
    what spot machines, which are away for a part of the time, cannot do by then.
    """
    b, e = s.b, s.b.site.entries
    fixed_usd = np.maximum(e.fixed_usd[s.chosen].max(initial=0.0), e.fixed_usd[s.more])
    pairs = np.nonzero(possible)
    some = tuple((t[pairs][:, None], a[pairs][:, None]) for t, a in lines)
    least, most = (each[pairs][:, None] for each in compute)

    def usd(share: Floats) -> Floats:
        product = np.zeros(possible.shape)
        machines = s.machines(e.usd_per_hour, share).pairs(*pairs)
        product[pairs] = min_product(b.price, machines, some, least, most)[:, 0]
        return np.asarray(fixed_usd[:, None] + product * b.seconds / 3600.0)

    on_demand_only_usd = _min_on_demand_only(s)[:, None]
    found = _with_fallback(b, place, on_demand_only_usd, usd)
    deadline_s = b.space.limits.deadline_s
    if deadline_s is None:
        return found
    by_deadline = b.waits.waiting.share_of(
        -s.spot_down(), deadline_s / _work_s(b, lines, compute[1])
    )
    return np.maximum(found, _with_rest(b, by_deadline, b.billed.plain[place], on_demand_only_usd))


def _place(s: _Supports) -> Ints:
    """Where the table has shares of spot time for the most interruptions; (more, cases)."""
    b = s.b
    further = np.maximum(b.cases.max_types - s.types, 0)
    extra = b.cases.max_machines - np.maximum(np.maximum(b.cases.min_types, s.types), 1)
    own_hazard = s.total(b.billed.first_hazard)[:, None]
    hazard = b.billed.max_hazard(own_hazard, s.begin[:, None], further, extra)
    return b.billed.place(hazard + b.cases.max_machines * b.billed.fault_hazard)


def _possible(s: _Supports) -> Bools:
    """Which supports have clusters within the quotas in each case; (more, cases)."""
    b, cases = s.b, s.b.cases
    fits = np.ones(len(s.more), dtype=bool)
    for use, quota in zip(b.site.quota_use, b.site.quota, strict=True):
        fits &= use[s.chosen].sum() + use[s.more] <= quota + 1e-9
    possible = fits[:, None] & (cases.max_machines >= s.size) & (s.types <= cases.max_types)
    most = b.space.limits.max_machines
    others = b.groups.machines(s.chosen, s.more, s.lowest, most)[:, None]
    possible &= cases.min_types <= s.types + np.minimum(_spot_from(s)[:, None], others)
    return possible & (cases.min_machines <= s.size + others)


def _spot_from(s: _Supports) -> Ints:
    """Spot types among the entries from `begin` on; (more,)."""
    spot = s.b.site.entries.spot
    return np.asarray(np.append(np.cumsum(spot[::-1])[::-1], 0)[s.begin])


def _min_on_demand_only(s: _Supports) -> Floats:
    """Least bill of on-demand machines alone of what a support may become; inf for gangs."""
    alone, spot = s.b.on_demand_only_usd, s.b.site.entries.spot
    from_each = np.minimum.accumulate(np.append(alone, np.inf)[::-1])[::-1]
    least = np.minimum(
        np.minimum(alone[s.more], from_each[s.begin]), alone[s.chosen].min(initial=np.inf)
    )
    has_spot = _spot_from(s) + spot[s.more] + spot[s.chosen].sum() > 0
    return np.where(has_spot, least, np.inf)


def _with_fallback(
    b: SiteBounds, place: Ints, on_demand_only_usd: Floats, usd: Callable[[Floats], Floats]
) -> Floats:
    """Least cost where others may do any part φ of the work; `usd` is that of none, by share.

    Others are a fallback or, of an elastic cluster, its on-demand machines alone. Spot is billed
    for max(paid·(1 - φ), S - κ·φ) of the work: two lines, so the least is at an end or their bend
    (`_min_in_part` of `bounds/cluster.py`).
    """
    share, paid = b.billed.share[place], b.billed.plain[place]
    others = np.broadcast_to(np.minimum(on_demand_only_usd, b.fallback_usd), share.shape)
    full = usd(share)
    least = np.minimum(full, others)
    if (others < full).any() or (np.isfinite(others) & (share > paid)).any():
        bend = np.clip((share - paid) / (HANDOVER_RATIO - paid), 0.0, 1.0)
        part = np.where(bend < 1.0, usd(paid), 0.0) * (1.0 - bend)
        part += bend * np.where(np.isfinite(others), others, 0.0)
        least = np.where(np.isfinite(others), np.minimum(least, part), full)
    return least if b.fallback_in_time else np.where(np.isinf(full), np.inf, least)


def _with_rest(b: SiteBounds, in_time: Floats, paid: Floats, on_demand_only_usd: Floats) -> Floats:
    """Least cost where spot does a part of the work by the deadline, and others must do the rest.

    Others are a fallback, or on-demand machines of the cluster in paths that may be late as well.
    Without any, as large a share of the paths must be in time.
    """
    sure = b.space.limits.confidence
    elastic = np.isfinite(on_demand_only_usd)
    others = np.minimum(on_demand_only_usd, b.fallback_usd)
    rest = np.clip(1.0 - in_time - np.where(elastic, 1.0 - sure, 0.0), 0.0, 1.0)
    finite = np.where(np.isfinite(others), others, 0.0)
    part = rest * finite + (1.0 - rest) * np.minimum(paid * b.spot_usd, finite)
    late = np.where(in_time < sure - 1e-9, np.inf, 0.0)
    return np.where(np.isfinite(others), part, late)


def _work_s(b: SiteBounds, lines: Lines, most: Floats) -> Floats:
    """Least seconds of all steps at the predicted speed; (supports, cases)."""
    compute = np.maximum(most, 1e-30)
    step = np.max([seconds + samples / compute for seconds, samples in lines], axis=0)
    return np.asarray(np.maximum(step * b.space.steps_left, 1e-9))


def _lines(s: _Supports) -> Lines:
    """The lines of the step of each support and case; (supports, cases)."""
    lines, chosen, more = s.b.lines, s.chosen, s.more
    shape = s.missing_types.shape

    def spread(found: NDArray[Any]) -> NDArray[Any]:
        return np.broadcast_to(found[:, None], shape)

    gpus = (lines.gpus[chosen].sum() + lines.gpus[more])[:, None]
    return lines.of(
        spread(np.minimum(lines.network[more], lines.network[chosen].min(initial=FASTEST))),
        spread(np.maximum(lines.start[more], lines.start[chosen].max(initial=0))),
        spread(np.maximum(lines.inside_s[more], lines.inside_s[chosen].max(initial=0.0))),
        spread(np.minimum(lines.memory[more], lines.memory[chosen].min(initial=FASTEST))),
        np.broadcast_to(s.fewest_others + s.size, shape),
        gpus + s.fewest_others * int(lines.gpus.min()),
        gpus + s.most_others * int(lines.gpus.max()),
    )


def _min_time(b: SiteBounds, lines: Lines, most: Floats, down: Floats) -> Floats:
    """Least time with as much compute as the limits allow; (supports, cases)."""
    return np.where(most > 0.0, _time_of(b, _work_s(b, lines, most), down), b.fallback_s)


def _time_of(b: SiteBounds, work_s: Floats, down: Floats) -> Floats:
    """Least time of so much work as predicted, on machines of which spot is so often away."""
    least = b.min_changeover_s + b.seconds / b.space.steps_left * work_s
    if b.waits.bound_time:
        least = np.maximum(least, work_s * b.waits.waiting.time_of(-down))
    return np.asarray(np.minimum(least, b.fallback_s))


def _min_compute(lines: Lines, longest_s: float) -> Floats:
    """Least compute with which a step is no longer than this; inf where it always is."""
    if np.isinf(longest_s):
        return np.zeros(lines[0][0].shape)
    need = [np.where(longest_s > t, a / np.maximum(longest_s - t, 1e-30), np.inf) for t, a in lines]
    return np.asarray(np.max(need, axis=0))


def leaves(b: SiteBounds, support: tuple[int, ...], cutoff: float) -> tuple[list[Ints], int]:
    """Clusters of exactly this support that may beat the cutoff, best bound first, in blocks.

    Also returns how many clusters within the quotas were examined.
    """
    rows = np.array(support)
    sub = b.site.only(rows)
    blocks, looked_at = [], 0
    for counts in compositions(sub, b.space.limits.max_machines):
        looked_at += len(counts)
        counts = counts[_linear_bound(b, rows, counts, cutoff) < cutoff]
        if not len(counts):
            continue
        counts = counts[counts_lower_bounds(b.space, sub, counts) < cutoff]
        if not len(counts):
            continue
        lower_bounds = counts_lower_bounds(b.space, sub, counts, tight=True)
        order = np.argsort(lower_bounds, kind="stable")
        blocks.append(counts[order[lower_bounds[order] < cutoff]])
    return [block for block in blocks if len(block)], looked_at


def min_of_set(b: SiteBounds, support: tuple[int, ...], cutoff: float) -> float:
    """Lower bound of the clusters of exactly this support; 0 if they are too many to list."""
    most, rows = b.space.limits.max_machines, np.array(support)
    if len(support) > LISTED or count_compositions(b.site.only(rows), most) > MAX_LISTED:
        return 0.0
    least = np.inf
    for counts in compositions(b.site.only(rows), most):
        least = min(least, float(_linear_bound(b, rows, counts, cutoff).min()))
    return least


def clusters_of_set(b: SiteBounds, support: tuple[int, ...]) -> int:
    """How many counts `leaves` has to look at."""
    return count_compositions(b.site.only(np.array(support)), b.space.limits.max_machines)


def _linear_bound(b: SiteBounds, rows: Ints, counts: Ints, cutoff: float) -> Floats:
    """Least goal of clusters of these entries, by the lines of their step; (clusters,)."""
    many, lines = counts.sum(axis=1), b.lines
    gpus, speed = counts @ lines.gpus[rows], counts @ b.speed[rows]
    both = lines.of(
        np.full(len(counts), lines.network[rows].min()),
        np.full(len(counts), lines.start[rows].max()),
        np.full(len(counts), lines.inside_s[rows].max()),
        np.full(len(counts), lines.memory[rows].min()),
        *(many, gpus, gpus),
    )
    step = np.max([seconds + samples / speed for seconds, samples in both], axis=0)
    limits, down = b.space.limits, _down(b, rows, counts)
    e, c = b.site.entries, b.billed
    hazard = c.first_hazard[rows].sum() + (counts - 1) @ c.next_hazard[rows] + many * c.fault_hazard
    if limits.goal == "time":
        counted = np.where(e.spot[rows], c.counted[c.place(hazard)][:, None], 1.0)
        spent = (counts * counted * e.usd_per_hour[rows]).sum(axis=1) * step
        expensive = b.waits.kept & (spent * (1.0 - ROUNDING) > b.max_spend)
        return np.where(expensive, np.inf, _time_of(b, step * b.space.steps_left, down))
    late = step > b.longest_step_s(cutoff)

    def usd(share: Floats) -> Floats:
        price = np.where(e.spot[rows], share[:, None], 1.0) * e.usd_per_hour[rows]
        paid = (counts * price).sum(axis=1) * step * b.seconds / 3600.0 + e.fixed_usd[rows].max()
        return np.where(late, np.inf, paid)

    on_demand_only_usd = np.full(
        len(counts), b.on_demand_only_usd[rows].min() if e.spot[rows].any() else np.inf
    )
    found = _with_fallback(b, c.place(hazard), on_demand_only_usd, usd)
    if limits.deadline_s is None:
        return found
    in_time = b.waits.waiting.share_of(-down, limits.deadline_s / (step * b.space.steps_left))
    return np.maximum(found, _with_rest(b, in_time, c.plain[c.place(hazard)], on_demand_only_usd))


def _down(b: SiteBounds, rows: Ints, counts: Ints) -> Floats:
    """-log of the availability of so many machines of some entries together; (clusters,)."""
    e = b.site.entries
    lost = e.availability_slope[rows] * gang_doublings(counts)
    down: Floats = np.log1p(np.exp(lost - e.availability_logit[rows]))
    return np.asarray((down * e.spot[rows]).sum(axis=1))


def counts_lower_bounds(space: Space, site: Site, counts: Ints, tight: bool = False) -> Floats:
    """Lower bound of every plan made of each cluster of a site; (clusters,)."""
    e = site.entries
    fleet, found = space.timed(site, counts)
    step = found.step_s
    runs = np.isfinite(step)
    used = counts > 0
    gang = gang_of(space, e, counts)
    figures = ClusterFigures(
        step_s=np.where(runs, step, 1.0),
        speed_sigma=cluster_spread(space.job, space.columns, fleet, found, e.kind, counts),
        base_usd_per_hour=counts[:, ~e.spot] @ e.usd_per_hour[~e.spot],
        spot_usd_per_hour=counts[:, e.spot] @ e.usd_per_hour[e.spot],
        spot_price_sigma=gang.price_sigma,
        fixed_usd=np.where(used, e.fixed_usd[None], 0.0).max(axis=1),
        boot_s=np.where(used, e.boot_s[None], 0.0).max(axis=1),
        run_mean_s=gang.run_mean_s,
        run_sigma=gang.run_sigma,
        free_s=gang.free_s,
        elastic_share=elastic_share(space, site, counts, step, gang),
        at_once=np.ones(len(counts)),  # queues of mixes are not counted
        wait_s=np.zeros(len(counts)),
    )
    sums = sums_of(space, site, figures)
    return np.where(runs, cluster_lower_bounds(space, sums, tight), np.inf)
