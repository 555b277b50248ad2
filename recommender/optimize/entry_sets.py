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
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recommender.arrays import Bools, Floats, Ints
from recommender.optimize.bounds.cluster import (
    ROUNDING,
    ClusterFigures,
    cluster_lower_bounds,
    sums_of,
)
from recommender.optimize.bounds.site import SiteBounds, narrowed
from recommender.optimize.bounds.spot_time import HANDOVER_RATIO
from recommender.optimize.evaluate import elastic_share, gang_of
from recommender.optimize.price_curves import Lines, OtherMachines, least_product, reach, within
from recommender.optimize.space import Site, Space, within_quota
from recommender.performance.parameter_server import cluster_spread
from recommender.plan.limits import TOLERANCE
from recommender.risk.laws import gang_doublings

FASTEST = 1 << 30  # place of a network faster than all, or a larger memory
LISTED = 5  # entries of a set whose clusters are listed for a bound
LEAF_ROWS = 20_000  # clusters of one support looked at in one block


def first(b: SiteBounds, cutoff: float) -> tuple[SiteBounds, list[tuple[float, tuple[int, ...]]]]:
    """Every entry alone, and the site without entries and cases of no mix below the cutoff."""
    good = _support_bounds(b, (), np.arange(len(b.machines_allowed)), cutoff, later=False) < cutoff
    alive, cases = np.asarray(good.any(axis=1)), np.asarray(good.any(axis=0))
    if alive.sum() < 2 or not cases.any():
        return b, []
    b = narrowed(b, alive, cases)
    bounds = _support_bounds(b, (), np.arange(len(b.machines_allowed)), cutoff).min(axis=1)
    return b, [(float(bounds[i]), (int(i),)) for i in np.flatnonzero(bounds < cutoff)]


def grown(
    b: SiteBounds, support: tuple[int, ...], cutoff: float
) -> list[tuple[float, tuple[int, ...]]]:
    """The support extended by one entry, for each whose bound is below the cutoff."""
    more = np.arange(support[-1] + 1, len(b.machines_allowed))
    if len(support) >= b.space.limits.max_machines or not len(more):
        return []
    bounds = _support_bounds(b, support, more, cutoff).min(axis=1)
    good = np.flatnonzero(bounds < cutoff)
    return [(float(bounds[i]), (*support, int(more[i]))) for i in good]


def _support_bounds(
    b: SiteBounds, support: tuple[int, ...], more: Ints, cutoff: float, later: bool = True
) -> Floats:
    """Bounds of the support with each further entry, case by case; (more, cases)."""
    e, chosen, limits, size = b.site.entries, list(support), b.space.limits, len(support) + 1
    types = (e.spot[chosen].sum() + e.spot[more])[:, None]
    begin = more + 1 if later else np.zeros(len(more), dtype=np.int64)
    possible = _possible(b, chosen, more, types, begin, later)
    if not possible.any():
        return np.full(possible.shape, np.inf)
    least, top = (
        np.maximum(b.cases.min_machines - size, 0),
        np.maximum(b.cases.max_machines - size, 0),
    )

    def own(values: Floats) -> Floats:
        return np.asarray(values[chosen].sum() + values[more])

    whole = np.ones(possible.shape)

    def others(price: Floats, share: Floats = whole, less: int = 0) -> OtherMachines:
        """One machine of each entry, and those next to them, spot at a share of its price."""
        on_demand, spot = (own(np.where(e.spot == s, price, 0.0))[:, None] for s in (False, True))
        return OtherMachines(
            on_demand + share * spot, share, own(b.speed), least, top, missing * less, begin
        )

    missing = np.maximum(b.cases.min_types - types, 0)
    down = own(b.waits.down)[:, None] + b.waits.down_from[begin[:, None], missing]
    lines = _lines(b, chosen, more, least, top)
    most = reach(b.machines, others(np.ones(len(e))), b.cases.max_machines.astype(np.float64))
    if limits.hourly_usd is not None:
        hourly = np.full(len(top), limits.hourly_usd + TOLERANCE)
        most = np.minimum(most, reach(b.price, others(e.usd_per_hour, less=1), hourly))
    low = _least_compute(lines, b.longest_step_s(cutoff))
    # Too slow for the deadline or unaffordable, whatever the least bill of a part of it.
    possible &= (most > 0.0) & (low <= most * (1.0 + ROUNDING))
    place = _place(b, own(b.billed.first_hazard)[:, None], types, begin[:, None])
    if limits.goal == "time":
        if b.waits.kept:
            counted = others(e.usd_per_hour, b.billed.counted[place], less=1)
            most = np.minimum(most, within(b.price, counted, lines, b.max_spend))
            possible &= most > 0.0
        return np.where(possible, _least_time(b, lines, most, down), np.inf)
    fixed = np.maximum(e.fixed_usd[chosen].max(initial=0.0), e.fixed_usd[more])

    def usd(share: Floats) -> Floats:
        product = least_product(b.price, others(e.usd_per_hour, share, less=1), lines, low, most)
        return np.asarray(fixed[:, None] + product * b.seconds / 3600.0)

    alone_usd = _least_alone(b, chosen, more, begin)[:, None]
    found = _with_fallback(b, place, alone_usd, usd)
    if limits.deadline_s is not None:
        in_time = b.waits.waiting.share_of(-down, limits.deadline_s / _work_s(b, lines, most))
        found = np.maximum(found, _with_rest(b, in_time, b.billed.plain[place], alone_usd))
    return np.where(possible, found, np.inf)


def _place(b: SiteBounds, own_hazard: Floats, types: Ints, begin: Ints) -> Ints:
    """Where shares of spot time stand for the most interruptions of each case."""
    further = np.maximum(b.cases.max_types - types, 0)
    extra = b.cases.max_machines - np.maximum(np.maximum(b.cases.min_types, types), 1)
    hazard = b.billed.max_hazard(own_hazard, begin, further, extra)
    return b.billed.place(hazard + b.cases.max_machines * b.billed.fault_hazard)


def _possible(
    b: SiteBounds, chosen: list[int], more: Ints, types: Ints, begin: Ints, later: bool
) -> Bools:
    """Which supports have clusters within the quotas in each case; (more, cases)."""
    spot, size = b.site.entries.spot, len(chosen) + 1
    fits = np.ones(len(more), dtype=bool)
    for use, quota in zip(b.site.quota_use, b.site.quota, strict=True):
        fits &= use[chosen].sum() + use[more] <= quota + 1e-9
    left = np.append(np.cumsum(spot[::-1])[::-1], 0)[begin][:, None]
    possible = fits[:, None] & (b.cases.max_machines >= size) & (types <= b.cases.max_types)
    lowest = more if later and not chosen else np.full(len(more), chosen[0] if later else 0)
    most_others = b.groups.machines(chosen, more, lowest, b.space.limits.max_machines)[:, None]
    possible &= b.cases.min_types <= types + np.minimum(left, most_others)
    return possible & (b.cases.min_machines <= size + most_others)


def _least_alone(b: SiteBounds, chosen: list[int], more: Ints, begin: Ints) -> Floats:
    """Least bill of on-demand machines alone of what a support may become; inf for gangs."""
    last = np.minimum.accumulate(np.append(b.alone_usd, np.inf)[::-1])[::-1]
    least = np.minimum(
        np.minimum(b.alone_usd[more], last[begin]), b.alone_usd[chosen].min(initial=np.inf)
    )
    spot = b.site.entries.spot
    left = np.append(np.cumsum(spot[::-1])[::-1], 0)[begin] + spot[more] + spot[chosen].sum()
    return np.where(left > 0, least, np.inf)


def _with_fallback(
    b: SiteBounds, place: Ints, alone_usd: Floats, usd: Callable[[Floats], Floats]
) -> Floats:
    """Least cost where others may do any part φ of the work; `usd` is that of none, by share.

    Others are a fallback or, of an elastic cluster, its on-demand machines alone. Spot is billed
    for max(paid·(1 - φ), S - κ·φ) of the work: two lines, so the least is at an end or their bend
    (`lower_bounds._least_in_part`).
    """
    share, paid = b.billed.share[place], b.billed.plain[place]
    others = np.broadcast_to(np.minimum(alone_usd, b.fallback_usd), share.shape)
    full = usd(share)
    least = np.minimum(full, others)
    if (others < full).any() or (np.isfinite(others) & (share > paid)).any():
        bend = np.clip((share - paid) / (HANDOVER_RATIO - paid), 0.0, 1.0)
        part = np.where(bend < 1.0, usd(paid), 0.0) * (1.0 - bend)
        part += bend * np.where(np.isfinite(others), others, 0.0)
        least = np.where(np.isfinite(others), np.minimum(least, part), full)
    return least if b.fallback_in_time else np.where(np.isinf(full), np.inf, least)


def _with_rest(b: SiteBounds, in_time: Floats, paid: Floats, alone_usd: Floats) -> Floats:
    """Least cost where spot does a part of the work by the deadline, and others must do the rest.

    Others are a fallback, or on-demand machines of the cluster in paths that may be late as well.
    Without any, as large a share of the paths must be in time.
    """
    sure = b.space.limits.confidence
    elastic = np.isfinite(alone_usd)
    others = np.minimum(alone_usd, b.fallback_usd)
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


def _lines(b: SiteBounds, chosen: list[int], more: Ints, least: Ints, top: Ints) -> Lines:
    """The lines of each support and case; (supports, cases)."""
    lines, shape = b.lines, (len(more), len(least))

    def spread(found: NDArray[Any]) -> NDArray[Any]:
        return np.broadcast_to(found[:, None], shape)

    gpus = (lines.gpus[chosen].sum() + lines.gpus[more])[:, None]
    return lines.of(
        spread(np.minimum(lines.network[more], lines.network[chosen].min(initial=FASTEST))),
        spread(np.maximum(lines.start[more], lines.start[chosen].max(initial=0))),
        spread(np.maximum(lines.inside_s[more], lines.inside_s[chosen].max(initial=0.0))),
        spread(np.minimum(lines.memory[more], lines.memory[chosen].min(initial=FASTEST))),
        np.broadcast_to(least + len(chosen) + 1, shape),
        gpus + least * int(lines.gpus.min()),
        gpus + top * int(lines.gpus.max()),
    )


def _least_time(b: SiteBounds, lines: Lines, most: Floats, down: Floats) -> Floats:
    """Least time with as much compute as the limits allow; (supports, cases)."""
    return np.where(most > 0.0, _time_of(b, _work_s(b, lines, most), down), b.fallback_s)


def _time_of(b: SiteBounds, work_s: Floats, down: Floats) -> Floats:
    """Least time of so much work as predicted, on machines of which spot is so often away."""
    least = b.away_s + b.seconds / b.space.steps_left * work_s
    if b.waits.bound_time:
        least = np.maximum(least, work_s * b.waits.waiting.time_of(-down))
    return np.asarray(np.minimum(least, b.fallback_s))


def _least_compute(lines: Lines, longest_s: float) -> Floats:
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
    for counts in _compositions(b.space.limits.max_machines, len(support)):
        counts = counts[within_quota(sub, counts)]
        looked_at += len(counts)
        counts = counts[_quick(b, rows, counts, cutoff) < cutoff]
        if not len(counts):
            continue
        counts = counts[counts_lower_bounds(b.space, sub, counts) < cutoff]
        if not len(counts):
            continue
        lower_bounds = counts_lower_bounds(b.space, sub, counts, tight=True)
        order = np.argsort(lower_bounds, kind="stable")
        blocks.append(counts[order[lower_bounds[order] < cutoff]])
    return [block for block in blocks if len(block)], looked_at


def least_of_set(b: SiteBounds, support: tuple[int, ...], cutoff: float) -> float:
    """Lower bound of the clusters of exactly this support; 0 if they are too many to list."""
    if len(support) > LISTED:
        return 0.0
    rows, sub = np.array(support), b.site.only(np.array(support))
    least = np.inf
    for counts in _compositions(b.space.limits.max_machines, len(support)):
        counts = counts[within_quota(sub, counts)]
        if len(counts):
            least = min(least, float(_quick(b, rows, counts, cutoff).min()))
    return least


def _quick(b: SiteBounds, rows: Ints, counts: Ints, cutoff: float) -> Floats:
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
        dear = b.waits.kept & (spent * (1.0 - ROUNDING) > b.max_spend)
        return np.where(dear, np.inf, _time_of(b, step * b.space.steps_left, down))
    late = step > b.longest_step_s(cutoff)

    def usd(share: Floats) -> Floats:
        price = np.where(e.spot[rows], share[:, None], 1.0) * e.usd_per_hour[rows]
        paid = (counts * price).sum(axis=1) * step * b.seconds / 3600.0 + e.fixed_usd[rows].max()
        return np.where(late, np.inf, paid)

    alone_usd = np.full(len(counts), b.alone_usd[rows].min() if e.spot[rows].any() else np.inf)
    found = _with_fallback(b, c.place(hazard), alone_usd, usd)
    if limits.deadline_s is None:
        return found
    in_time = b.waits.waiting.share_of(-down, limits.deadline_s / (step * b.space.steps_left))
    return np.maximum(found, _with_rest(b, in_time, c.plain[c.place(hazard)], alone_usd))


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


@lru_cache(maxsize=32)
def _compositions(most: int, parts: int) -> tuple[Ints, ...]:
    """All positive counts of `parts` entries that sum to at most `most`, in blocks.

    Choosing `parts` cut points among 1 ... most gives each exactly once.
    """
    blocks, block = [], []
    for cuts in combinations(range(1, most + 1), parts):
        block.append(cuts)
        if len(block) == LEAF_ROWS:
            blocks.append(_parts(block))
            block = []
    if block:
        blocks.append(_parts(block))
    return tuple(blocks)


def _parts(cuts: list[tuple[int, ...]]) -> Ints:
    """Differences of neighbouring cut points, the first counted from 0."""
    ends = np.array(cuts, dtype=np.int64)
    starts = np.concatenate([np.zeros((len(ends), 1), dtype=np.int64), ends[:, :-1]], axis=1)
    parts: Ints = ends - starts
    return parts
