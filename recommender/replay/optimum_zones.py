"""The cheapest plan over several zones when all traces are known.

The dynamic programme of `optimum`, with the place of the checkpoint as one more part of the
state: tick × {idle, spot, on-demand} × zone × time lost.
"""

from math import gcd

import numpy as np

from recommender.errors import UsageError
from recommender.replay.engine import Ints
from recommender.replay.state import Bools, Floats, Task
from recommender.replay.zones import Zones


def optimum_zones(zones: Zones, starts: Ints, task: Task) -> Floats:
    """Least cost in USD with all traces known, per start tick; inf where nothing is in time.

    Work counts as minus one changeover at each start, ticks are paid in full, waiting is free.
    """
    ticks = int(np.floor(task.deadline_s / zones.tick_s + 1e-9))
    if len(starts) and int(starts.max()) + ticks > zones.available.shape[1]:
        raise UsageError(f"the window at tick {int(starts.max())} ends after the series")
    tick, changeover = round(zones.tick_s * 1000), round(task.changeover_s * 1000)
    unit = gcd(tick, changeover)
    most = (ticks * tick - round(task.work_s * 1000)) // unit
    if most < changeover // unit:
        return np.full(len(starts), np.inf)
    seen = [zones.available[:, start : start + ticks] for start in starts]
    costs = [_cheapest(each, zones, tick // unit, changeover // unit, most) for each in seen]
    return np.array(costs)


def _cheapest(seen: Bools, zones: Zones, tick: int, changeover: int, most: int) -> float:
    count, ticks = seen.shape
    hours = zones.tick_s / 3600.0
    spot_usd = zones.spot_usd_per_hour[:, None] * hours
    on_demand_usd = zones.on_demand_usd_per_hour[:, None] * hours
    idle, spot, on_demand = np.full((3, count, most + 1), np.inf)
    idle[:, 0] = 0.0  # the first start is free of moves
    for now in range(ticks):
        waited = np.full_like(idle, np.inf)
        stopped = np.minimum(np.minimum(idle, spot), on_demand)
        waited[:, tick:] = stopped[:, : most + 1 - tick]
        to_spot = np.minimum(spot, _begun(stopped, zones.move_usd, changeover)) + spot_usd
        from_other = _begun(stopped, zones.move_usd, changeover)
        on_demand = np.minimum(on_demand, from_other) + on_demand_usd
        spot = np.where(seen[:, now, None], to_spot, np.inf)
        idle = waited
    return float(min(idle.min(), spot.min(), on_demand.min()))


def _begun(stopped: Floats, move_usd: Floats, changeover: int) -> Floats:
    """Least cost of having the checkpoint anywhere and starting in each zone."""
    begun = np.full_like(stopped, np.inf)
    size = stopped.shape[1] - changeover
    begun[:, changeover:] = (stopped[:, None, :size] + move_usd[:, :, None]).min(axis=0)
    return begun
