"""Elastic clusters: what the on-demand part does while the spot part is away.

    spot leaves        the on-demand part restarts from the last checkpoint on fewer machines:
                       `resize_s` without training; then it trains at `elastic_share`
    spot is back       it trains while the new machines boot (`boot_s`), then saves, and the
                       whole cluster restarts: the rest of the changeover
    short runs         spot machines reclaimed before they have booted never join

Saves stop it as often as they stop the whole cluster. At the request both parts start together.
"""

import numpy as np

from recommender.arrays import Floats, Ints, Singles
from recommender.catalogs.frozen import dataclass
from recommender.risk.path_inputs import PathInputs
from recommender.risk.planes import at, before, row


@dataclass(frozen=True, slots=True)
class OnDemandPart:
    """The on-demand part alone before each run trains; shape (cycles, plans, paths)."""

    left: Singles  # moment at which the spot part left
    starts: Singles  # and at which the next run starts
    begins: Singles  # moment from which it trains
    back: Singles  # moment until which: the spot part has booted, or has left again
    work: Singles  # that it does in between
    capacity: Singles  # work of earlier cycles had nothing been lost, by either part
    restarts: Singles  # seconds of earlier cycles in which one of them restarted


def pace(p: PathInputs) -> Floats:
    """Work per second of the on-demand part, including saves; (plans,)."""
    return p.elastic_share * p.interval_s / (p.interval_s + p.stall_s)


def on_demand_part_of(
    p: PathInputs, starts: Singles, lengths: Singles, waits: Singles
) -> OnDemandPart:
    """Compute what the on-demand part does around every run."""
    ends, left = starts + lengths, starts - waits
    back = starts + np.minimum(lengths, row(p.boot_s))
    ready = np.empty_like(starts)
    ready[0] = p.changeover_s[:, None]
    joined = lengths > row(p.boot_s)
    restarted = np.where(joined, ends + row(p.resize_s), np.float32(0.0))
    for cycle in range(1, len(ready)):
        np.maximum(ready[cycle - 1], restarted[cycle - 1], out=ready[cycle])
    begins = np.maximum(ready, left)
    work = row(pace(p)) * np.maximum(back - begins, np.float32(0.0))
    first = row(p.changeover_s)
    whole = np.maximum(ends - np.maximum(starts + row(p.boot_s), first), np.float32(0.0))
    part = np.maximum(back - np.maximum(left, first), np.float32(0.0))
    restarts = np.minimum(ends, starts + first) - np.maximum(starts + row(p.boot_s), first)
    np.maximum(restarts, np.float32(0.0), out=restarts)
    restarts += joined * row(p.resize_s)
    capacity = whole + row(p.elastic_share) * part
    return OnDemandPart(left, starts, begins, back, work, before(capacity), before(restarts))


@dataclass(frozen=True, slots=True)
class Share:
    """What an elastic cluster did until it stopped; shape (plans, paths)."""

    work: Floats  # by the on-demand part alone
    capacity: Floats  # work that either part could have done since the first start
    restarts_s: Floats


def share_until(
    p: PathInputs, part: OnDemandPart, run: Ints, stop_s: Floats, repeats: Floats
) -> Share:
    """The work until a moment in a run or in the wait before it, with repeats of the drawn runs.

    `run` are the places of the runs (`Runs.places`).
    """
    first, drawn = p.changeover_s[:, None], 1.0 + repeats
    begins, back, start = at(part.begins, run), at(part.back, run), at(part.starts, run)
    until_s = np.where(repeats > 0.0, back, np.minimum(stop_s, back))
    work = at(before(part.work), run) + pace(p)[:, None] * np.maximum(until_s - begins, 0.0)
    left = np.maximum(at(part.left, run), first)
    capacity = at(part.capacity, run) + p.elastic_share[:, None] * np.maximum(until_s - left, 0.0)
    whole = np.maximum(stop_s - np.maximum(start + p.boot_s[:, None], first), 0.0)
    whole = np.where(repeats > 0.0, 0.0, whole)
    restarts = at(part.restarts, run) + np.minimum(whole, (p.changeover_s - p.boot_s)[:, None])
    return Share(work * drawn, (capacity + whole) * drawn, restarts * drawn)


def end_on_demand(p: PathInputs, part: OnDemandPart, last: Ints, left: Floats) -> Floats:
    """When the on-demand part finishes the last work; `left` is at most 0 at `back`.

    `last` are the places of the last runs.
    """
    return at(part.back, last) + left / np.maximum(pace(p)[:, None], 1e-9)


@dataclass(frozen=True, slots=True)
class HandOver:
    """When a fallback takes over, and the durable work at that time; shape (plans, paths)."""

    stop_s: Floats
    durable: Floats


def hand_over_from_on_demand(
    p: PathInputs, part: OnDemandPart, run: Ints, mark: Floats, durable: Floats
) -> HandOver:
    """When f·t - P(t) reaches its threshold before a run trains; `durable` is P at that time.

    `run` are the places of the runs. P is constant until the on-demand part trains, rises until the
    spot part has booted, and is constant while the whole cluster restarts.
    """
    speed, rate = p.fallback_speed[:, None], pace(p)[:, None]
    back, work = at(part.back, run), at(part.work, run)
    late = (mark + durable) / np.maximum(speed, 1e-9)
    early = (mark + durable - work) / np.maximum(speed, 1e-9)
    between = back + speed * (late - back) / np.maximum(speed - rate, 1e-9)
    before = early <= at(part.begins, run)
    rising = ~before & (work > 0.0) & (late < back)
    stop = np.where(before, early, np.where(rising, between, late))
    safe = np.where(rising, durable + rate * (between - back), durable)
    return HandOver(np.maximum(stop, 0.0), np.where(before, durable - work, safe))


def height_before_training(p: PathInputs, part: OnDemandPart, durable: Singles) -> Singles:
    """f·t - P(t) when the on-demand part begins to train; it falls then if a fallback is slower.

    `durable` is P when the run trains; (cycles, plans, paths), -inf where the part does not train.
    """
    height = row(p.fallback_speed) * part.begins - (durable - part.work)
    return np.where(part.work > 0.0, height, np.float32(-np.inf))
