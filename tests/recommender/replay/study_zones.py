"""Eight GCP zones with H100s against the multi-region optimum.

    python -m tests.recommender.replay.study_zones

SkyNomad's setting (43.2 h of work, 51.8 h, 0.2 h changeover, 50 GB checkpoint), on the second
halves of the traces, starts every 8 h. Prices: a3-highgpu-1g by region on 2026-07-30
(Cyclenerd/google-cloud-pricing-cost-calculator); egress 0.08 USD per GB between regions, the
upper end of Google's list. Needs RECOMMEND_REFERENCE_DATA.
"""

import numpy as np

from recommender.replay.engine import windows
from recommender.replay.optimum_zones import optimum_zones
from recommender.replay.zones import Failover, Zones, replay_zones
from tests.recommender.replay.markets import hours, nodes_up

USD = {  # zone: spot, on-demand
    "asia-south2-b": (3.890, 13.286),
    "asia-southeast1-b": (6.402, 14.285),
    "europe-west3-c": (5.352, 13.054),
    "us-central1-a": (6.326, 11.061),
    "us-central1-c": (6.326, 11.061),
    "us-east4-a": (4.540, 11.069),
    "us-east5-a": (4.660, 12.448),
    "us-west1-b": (6.326, 11.061),
}
TASK = hours(43.2, 51.8, 0.2)
EGRESS_USD = 50.0 * 0.08


def market(nodes: int, without: tuple[str, ...] = ()) -> Zones:
    """Second halves of the traces; prices of the whole gang."""
    names = [name for name in USD if name not in without]
    up, tick_s = [], 0.0
    for name in names:
        found, tick_s = nodes_up(f"skynomad-h100-{name}")
        up.append(found[len(found) // 2 :] >= nodes)
    spot, on_demand = nodes * np.array([USD[name] for name in names]).T
    move = [[EGRESS_USD * (a[:-2] != b[:-2]) for b in names] for a in names]
    return Zones(np.array(up), spot, on_demand, np.array(move), tick_s)


def dearer(zones: Zones) -> tuple[float, float, float]:
    """Mean optimum in USD, by how much failover is dearer, and its late share."""
    starts = windows(zones.available.shape[1], zones.tick_s, TASK, 8 * 3600.0)
    best = optimum_zones(zones, starts, TASK)
    found = replay_zones(Failover(), zones, starts, TASK)
    late = found.finish_s > TASK.deadline_s + 1e-3
    return float(best.mean()), float(found.cost_usd.mean() / best.mean() - 1.0), float(late.mean())


def main() -> None:
    """Print the gap with all zones, and without the one that is nearly always up."""
    for nodes in (8, 16):
        for without in ((), ("asia-south2-b",)):
            best, more, late = dearer(market(nodes, without))
            name = f"{nodes} x H100, {8 - len(without)} zones"
            print(f"{name:24} optimum {best:8.0f} USD  failover {more:+6.1%}  late {late:.3f}")


if __name__ == "__main__":
    main()
