"""Checkpoint paths of plans: stall, restore, and their cost."""

from typing import Any

import numpy as np

from recommender.arrays import Bools, Floats, Ints, Table
from recommender.catalogs.frozen import dataclass
from recommender.optimize.space import ANCHOR, MEMORY_TIER, NONE, OBJECT_STORE, Site, Space
from recommender.performance import checkpoint
from recommender.performance.checkpoint import Receiver, SavePaths, transfer_of
from recommender.performance.clusters import Clusters

# What a checkpoint path says of a plan's saves: fields of `SavePaths` and of `Saves`.
_OF_PATH = (
    "stall_s", "transfer_s", "lag_s", "interval_min_s", "restore_s", "notice_saves",
)  # fmt: skip
MAX_TIER_MACHINES = 4  # CPU machines of a memory tier; DeepVM saw no gain beyond 3 to 4 (2024)


@dataclass(frozen=True, slots=True)
class Saves(Table):
    """Stalls, restores and cost of saving for each plan; (plans,), seconds and USD per hour."""

    stall_s: Floats
    transfer_s: Floats  # until a checkpoint is written
    lag_s: Floats  # from the end of the stall until it is safe
    interval_min_s: Floats
    restore_s: Floats
    notice_saves: Floats
    usd_per_hour: Floats  # CPU machines of a memory tier
    tier_type: Ints  # row of the site's tier, -1 without
    tier_count: Ints
    possible: Bools


def saves_of(
    space: Space, site: Site, fleet: Clusters, counts: Ints, path: Ints, notice_s: Floats
) -> Saves:
    """Compute how each plan saves, with the cheapest tier that can take its checkpoints."""
    entries = site.entries
    has_spot = np.asarray((counts[:, entries.spot] > 0).any(axis=1))
    has_on_demand = np.asarray((counts[:, ~entries.spot] > 0).any(axis=1))
    none = np.zeros(len(path), dtype=np.int64)
    blank: list[Any] = [*np.zeros((7, len(path))), none - 1, none, none.astype(bool)]
    result = Saves(*blank)
    _put(result, path == NONE, checkpoint.none(fleet), ~has_spot)
    stored = checkpoint.object_store(space.job, fleet, notice_s, transfer_of(site.provider))
    _put(result, path == OBJECT_STORE, stored)
    both = has_spot & has_on_demand
    _put(result, path == ANCHOR, checkpoint.anchor(space.job, fleet, notice_s), both)
    if (path == MEMORY_TIER).any():
        region = np.where(counts > 0, entries.region[None], -1).max(axis=1)
        _put_tier(result, space, site, fleet, (path == MEMORY_TIER) & has_spot, region, notice_s)
    result.usd_per_hour[path != NONE] += site.store_usd_per_hour
    if not space.trust_notice:
        result.notice_saves[:] = 0.0
    return result


def _put(into: Saves, rows: Bools, found: SavePaths, allowed: Bools | None = None) -> None:
    for name in _OF_PATH:
        getattr(into, name)[rows] = getattr(found, name)[rows]
    possible = found.possible if allowed is None else found.possible & allowed
    into.possible[rows] = possible[rows]


def _put_tier(
    into: Saves,
    space: Space,
    site: Site,
    fleet: Clusters,
    wanted: Bools,
    region: Ints,
    notice_s: Floats,
) -> None:
    """Choose the cheapest CPU type and count of the plan's region that takes the checkpoints."""
    tier = site.tier
    suits = wanted[:, None, None] & (region[:, None] == tier.region)[..., None]
    plan, row, count = np.nonzero(np.repeat(suits, MAX_TIER_MACHINES, axis=2))
    count += 1
    receiver = Receiver(tier.network_bytes_per_s[row], tier.memory_bytes[row])
    found = checkpoint.memory_tier(
        space.job,
        fleet.take(plan),
        notice_s[plan],
        receiver,
        count.astype(np.float64),
        transfer_of(site.provider),
    )
    price = np.where(found.possible, count * tier.usd_per_hour[row], np.inf)
    order = np.lexsort((count, price, plan))
    first = order[np.unique(plan[order], return_index=True)[1]]
    first = first[np.isfinite(price[first])]
    chosen = plan[first]
    for name in _OF_PATH:
        getattr(into, name)[chosen] = getattr(found, name)[first]
    into.usd_per_hour[chosen] = price[first]
    into.tier_type[chosen], into.tier_count[chosen] = row[first], count[first]
    into.possible[chosen] = True
