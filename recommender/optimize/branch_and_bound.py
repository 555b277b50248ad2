"""Branch and bound for large clusters of many entries: boxes of counts, split until pruned.

`entry_sets.py` lists every cluster of a set of entries, which is too many for tens of machines of
several entries (seven entries of ten machines: 19 million clusters). Here a *box* low <= x <= high
represents all its clusters. With P(R) the lowest price of a fractional cluster of the box that
computes R (entries filled in the order of price per compute) and step >= t + a/R
(`performance/step_bounds.py`),

    cost >= fixed + P·(d + step·steps)   step·P >= t·P(R0) + a·min P(R)/R over R >= R0
    time >= d + step(R1)·steps           R0: what the deadline needs, R1: what the price buys

The box with the lowest bound is split where the filling is fractional; its rounding is tried as a
cluster. Remaining single clusters get their lower bound, and the best are evaluated with the full
model until no lower bound is below the cutoff, so the result is exact.
"""

from dataclasses import field

import numpy as np

from recommender.arrays import Bools, Floats, Ints, distinct
from recommender.catalogs.frozen import dataclass
from recommender.optimize.bounds.cluster import (
    ROUNDING,
    min_speed_factor,
    paid_share,
    speed_quantile,
)
from recommender.optimize.bounds.site import may_train_in_part
from recommender.optimize.entry_sets import counts_lower_bounds
from recommender.optimize.evaluate import RENDEZVOUS_S
from recommender.optimize.expand import SiteClusters, expand_clusters
from recommender.optimize.search_state import EPSILON, SearchState
from recommender.optimize.space import Site, Space, within_quota
from recommender.performance.clusters import spreads_of
from recommender.performance.step_bounds import Shortest, shortest
from recommender.risk.laws import gang_hazard

Lines = tuple[tuple[Floats, Floats], ...]  # (seconds, samples): step >= seconds + samples/compute

ROUND = 512  # boxes split at once
GUESSES = 8  # roundings tried per round
EVALUATED_AT_ONCE = 4  # clusters evaluated at once
MAX_BOXES = 200_000  # then the search stops with the gap that is left
PER_SUPPORT = 500  # boxes that take as long as one set of entries of `entry_sets.py`
LISTED_MACHINES = 16  # machines up to which the clusters of a set of entries are soon listed
ENUMERATED = 500_000  # clusters of a site up to which boxes are not worth it


@dataclass(frozen=True, slots=True)
class Boxes:
    """Boxes of counts; shape (boxes, entries) or (boxes,)."""

    low: Ints
    high: Ints
    bound: Floats  # least goal inside
    split: Ints  # entry to split at
    at: Ints  # most of it in the lower half
    guess: Ints  # a cluster worth trying

    def __len__(self) -> int:
        return len(self.bound)

    def take(self, rows: Ints | Bools) -> "Boxes":
        """Some of the boxes."""
        return Boxes(*(getattr(self, name)[rows] for name in self.__slots__))

    def __add__(self, other: "Boxes") -> "Boxes":
        pairs = ((getattr(self, name), getattr(other, name)) for name in self.__slots__)
        return Boxes(*(np.concatenate(pair) for pair in pairs))


@dataclass(frozen=True, slots=True)
class BoxSite:
    """A site prepared for bounds; arrays have shape (entries,)."""

    space: Space
    index: int
    site: Site
    bill: Floats  # least USD per hour of work
    compute: Floats  # samples/s
    steps: Shortest
    seconds: float  # true over predicted seconds of a step, at least, times the steps
    longest_s: float  # step that still meets the deadline; inf without one
    fixed_usd: float
    min_changeover_s: float  # least changeover
    changeover_is_paid: bool  # whether it is always charged


@dataclass(slots=True)
class OpenClusters:
    """Single clusters waiting for the full model, their lower bounds, and all seen so far."""

    counts: list[tuple[int, ...]] = field(default_factory=list)
    bounds: list[float] = field(default_factory=list)
    seen: set[tuple[int, ...]] = field(default_factory=set)


def boxes_apply(space: Space, site: Site) -> bool:
    """Whether a site has too many clusters to list, and box bounds are valid and useful.

    They are not valid if a fallback may rescue a slow cluster or on-demand machines work alone, and
    they ignore budgets.
    """
    limits = space.limits
    has_fallback = len(site.fallbacks) > 0 and limits.deadline_s is not None
    if (
        has_fallback
        or may_train_in_part(space, site)
        or limits.goal == "frontier"
        or limits.budget_usd is not None
    ):
        return False
    caps = np.minimum(site.entries.cap, limits.max_machines) + 1.0
    return limits.max_machines > LISTED_MACHINES and bool(np.prod(caps) > ENUMERATED)


def search_boxes(space: Space, index: int, state: SearchState) -> None:
    """Find the best cluster of any entries of one site; leaves a gap if there are too many."""
    ready = _box_site(space, index)
    first = np.zeros((1, len(ready.bill)), dtype=np.int64)
    caps = np.minimum(ready.site.entries.cap, space.limits.max_machines)
    boxes = _bounded_boxes(ready, first, caps[None].astype(np.int64), _cutoff(state))
    clusters, seen = OpenClusters(), 0
    most = min(MAX_BOXES, PER_SUPPORT * state.max_supports)
    while True:
        boxes = boxes.take(boxes.bound < _cutoff(state))
        if not len(boxes) or seen >= most or state.exhausted:
            break
        order = np.argsort(boxes.bound, kind="stable")
        now, boxes = boxes.take(order[:ROUND]), boxes.take(order[ROUND:])
        seen += len(now)
        _add_clusters(ready, clusters, now.guess[:GUESSES], state)
        _evaluate_clusters(ready, clusters, state, EVALUATED_AT_ONCE)
        halves = _halves(ready, now, _cutoff(state))
        single = (halves.low == halves.high).all(axis=1) & (halves.bound < _cutoff(state))
        _add_clusters(ready, clusters, halves.low[single], state)
        boxes += halves.take(~single)
    _evaluate_clusters(ready, clusters, state, state.max_plans)
    if len(boxes):
        state.leave_open(float(boxes.bound.min()))


def _cutoff(state: SearchState) -> float:
    """Bounds above this cannot matter; near-ties are not looked for among so many clusters."""
    return state.best_goal * (1.0 - EPSILON)


def _box_site(space: Space, index: int) -> BoxSite:
    site, c, limits = space.sites[index], space.columns, space.limits
    e = site.entries
    sigma = distinct(spreads_of(c, e.kind))
    away, longest = float(e.boot_s.min()) + RENDEZVOUS_S, np.inf
    if limits.deadline_s is not None:
        key = (space.path_count, space.seed, limits.confidence)
        factor = min(speed_quantile(*key, float(value)) for value in sigma)
        longest = (limits.deadline_s - away) / max(factor * space.steps_left, 1e-30)
    most = min(int(e.cap.sum()), limits.max_machines)
    return BoxSite(
        space=space,
        index=index,
        site=site,
        bill=_min_bill(space, site),
        compute=np.maximum(c.compute_per_s[e.kind], 1e-30),
        steps=shortest(space.job, c, e.kind, most),
        seconds=float(min_speed_factor(space, sigma).min()) * space.steps_left,
        longest_s=longest * (1.0 + ROUNDING),
        fixed_usd=float(e.fixed_usd.min()),
        min_changeover_s=away,
        changeover_is_paid=bool((e.free_s <= 60.0).all()),
    )


def _min_bill(space: Space, site: Site) -> Floats:
    """Least USD per hour of work of each entry, in any cluster of the site.

    A free first hour helps most where runs are shortest: with every machine in use.
    """
    e, one = site.entries, np.ones(len(site.entries))
    hazard = np.where(e.spot, gang_hazard(e.cap + 1, e.co_interruption) / e.run_mean_s, 0.0)
    faults = space.job.fault_rate_per_hour / 3600.0 * space.limits.max_machines
    run, free = one / max(float(hazard.sum()) + faults, 1e-12), one * float(e.free_s.max())
    share = np.min([paid_share(run, one * sigma, free) for sigma in distinct(e.run_sigma)], axis=0)
    return np.where(e.spot, e.usd_per_hour * share, e.usd_per_hour)


def _bounded_boxes(r: BoxSite, low: Ints, high: Ints, cutoff: float) -> Boxes:
    """The bound of each box, where to split it, and a cluster to try."""
    limits, listed = r.space.limits, r.site.entries.max_usd_per_hour
    lines, need = _needed(r, low, high, cutoff)
    possible = (low.sum(axis=1) <= limits.max_machines) & (high @ r.compute >= need)
    bought = high.astype(np.float64)
    if limits.hourly_usd is not None:
        cap = np.full(len(low), limits.hourly_usd + 1e-9)
        bought = _filled(low, high, listed / r.compute, listed, cap)
        possible &= (low @ listed <= cap) & (bought @ r.compute >= need * (1.0 - 1e-12))
    if limits.goal == "time":
        bound, filled = _min_time(r, lines, bought), bought
        guess = np.floor(filled + 1e-9)
    else:
        target = np.minimum(need, high @ r.compute)
        filled = _filled(low, high, r.bill / r.compute, r.compute, target)
        bound = _min_cost(r, lines, high, filled)
        guess = np.ceil(filled - 1e-9)
    split, at = _split(r, low, high, filled)
    return Boxes(low, high, np.where(possible, bound, np.inf), split, at, guess.astype(np.int64))


def _needed(r: BoxSite, low: Ints, high: Ints, cutoff: float) -> tuple[Lines, Floats]:
    """The lines of each box, and the least compute that meets the deadline or the cutoff."""
    longest = r.longest_s
    if r.space.limits.goal == "time":
        longest = min(longest, (cutoff - r.min_changeover_s) / r.seconds)
    lines = r.steps.lines(low, high, np.ones(len(low), dtype=np.int64))
    need = _compute_for(lines, longest)
    reachable = np.minimum(need, high @ r.compute)
    fewest = _filled(low, high, -r.compute, r.compute, reachable).sum(axis=1)
    lines = r.steps.lines(low, high, np.ceil(fewest - 1e-6).astype(np.int64))
    return lines, np.maximum(need, _compute_for(lines, longest))


def _compute_for(lines: Lines, longest_s: float) -> Floats:
    """Least compute with which a step is no longer than this."""
    need = np.zeros(len(lines[0][0]))
    for seconds, samples in lines:
        room = longest_s - seconds
        need = np.maximum(need, np.where(room > 0, samples / np.maximum(room, 1e-30), np.inf))
    return need


def _filled(low: Ints, high: Ints, rank: Floats, size: Floats, target: Floats) -> Floats:
    """Counts from `low` on, filled in the order of `rank` until their sizes reach `target`."""
    order = np.argsort(rank, kind="stable")
    width, size_of = (high - low)[:, order], size[order]
    before = np.cumsum(width * size_of, axis=1) - width * size_of + (low @ size)[:, None]
    taken = np.clip((target[:, None] - before) / np.maximum(size_of, 1e-30), 0.0, width)
    filled = low.astype(np.float64)
    filled[:, order] += taken
    return filled


def _min_time(r: BoxSite, lines: Lines, bought: Floats) -> Floats:
    """Least time with as much compute as can be had."""
    compute = np.maximum(bought @ r.compute, 1e-30)
    step = np.max([seconds + samples / compute for seconds, samples in lines], axis=0)
    return np.asarray(r.min_changeover_s + r.seconds * step)


def _min_cost(r: BoxSite, lines: Lines, high: Ints, filled: Floats) -> Floats:
    """Least cost with at least as much compute as the filling has."""
    order = np.argsort(r.bill / r.compute, kind="stable")
    price, rate = filled @ r.bill, np.maximum(filled @ r.compute, 1e-30)
    rest = (high - filled)[:, order]
    prices = price[:, None] + np.cumsum(rest * r.bill[order], axis=1)
    rates = rate[:, None] + np.cumsum(rest * r.compute[order], axis=1)
    ratio = np.minimum((prices / rates).min(axis=1), price / rate)
    each = np.max([seconds * price + samples * ratio for seconds, samples in lines], axis=0)
    away = r.min_changeover_s * price if r.changeover_is_paid else 0.0
    return np.asarray(r.fixed_usd + (each * r.seconds + away) / 3600.0)


def _split(r: BoxSite, low: Ints, high: Ints, filled: Floats) -> tuple[Ints, Ints]:
    """Where each box is cut: use of a slow network, else the fraction, else the widest entry."""
    rows, width = np.arange(len(low)), high - low
    whole = np.floor(filled + 1e-9)
    part = np.where(width > 0, filled - whole, 0.0)
    part = np.where(part > 1e-6, part, 0.0)
    split = np.where(part.max(axis=1) > 0, part.argmax(axis=1), (width * r.compute).argmax(axis=1))
    at = np.where(part.max(axis=1) > 0, whole[rows, split], (low + high)[rows, split] // 2)
    worse = np.where(filled > 1e-6, r.steps.worse(low, high), 0)
    uses = worse.any(axis=1)
    split = np.where(uses, worse.argmax(axis=1), split)
    at = np.where(uses, 0, at)
    return split, np.clip(at, low[rows, split], high[rows, split] - 1).astype(np.int64)


def _halves(r: BoxSite, boxes: Boxes, cutoff: float) -> Boxes:
    """Both parts of each box."""
    rows = np.arange(len(boxes))
    lower, upper = boxes.high.copy(), boxes.low.copy()
    lower[rows, boxes.split] = boxes.at
    upper[rows, boxes.split] = boxes.at + 1
    low = np.concatenate([boxes.low, upper])
    return _bounded_boxes(r, low, np.concatenate([lower, boxes.high]), cutoff)


def _add_clusters(r: BoxSite, clusters: OpenClusters, counts: Ints, state: SearchState) -> None:
    """Add clusters whose lower bound is below the cutoff."""
    limits = r.space.limits
    total = counts.sum(axis=1)
    good = (total >= 1) & (total <= limits.max_machines) & within_quota(r.site, counts)
    if limits.hourly_usd is not None:
        good &= counts @ r.site.entries.max_usd_per_hour <= limits.hourly_usd + 1e-9
    counts = np.unique(counts[good], axis=0)
    if not len(counts):
        return
    lower_bounds = counts_lower_bounds(r.space, r.site, counts)
    for row in np.flatnonzero(lower_bounds < _cutoff(state)):
        cluster = tuple(int(n) for n in counts[row])
        if cluster not in clusters.seen:
            clusters.seen.add(cluster)
            clusters.counts.append(cluster)
            clusters.bounds.append(float(lower_bounds[row]))


def _evaluate_clusters(r: BoxSite, clusters: OpenClusters, state: SearchState, most: int) -> None:
    """Evaluate up to `most` of the clusters with the full model, least bound first."""
    rows, done = np.arange(len(r.bill)), 0
    while clusters.counts and done < most and not state.exhausted:
        order = np.argsort(clusters.bounds, kind="stable")
        first = [int(i) for i in order[:EVALUATED_AT_ONCE] if clusters.bounds[i] < _cutoff(state)]
        if not first:
            break
        counts = np.array([clusters.counts[i] for i in first], dtype=np.int64)
        expand_clusters(r.space, [SiteClusters(r.index, rows, counts)], state)
        done += len(first)
        left = [
            int(i) for i in order if int(i) not in first and clusters.bounds[i] < _cutoff(state)
        ]
        clusters.counts = [clusters.counts[i] for i in left]
        clusters.bounds = [clusters.bounds[i] for i in left]
    if clusters.counts and state.exhausted:
        state.leave_open(min(clusters.bounds))
