"""Eight GCP zones with H100s against the multi-region optimum.

    python -P tests/run.py tests.recommender.policies.study_zones

SkyNomad's setting (43.2 h of work, 51.8 h, 0.2 h changeover, 50 GB checkpoint), fitted on the
first halves of the traces and judged on the second, starts every 8 h. Prices: a3-highgpu-1g by
region on 2026-07-30 (Cyclenerd/google-cloud-pricing-cost-calculator); egress 0.08 USD per GB
between regions, the upper end of Google's list. Needs RECOMMEND_REFERENCE_DATA.
"""

import numpy as np

from recommender.policies.backtest import BacktestRow, FittedZones, FixedRule, Market, pieces
from recommender.policies.replay import RecordedZones
from recommender.policies.rules import Greedy
from recommender.policies.state import Offers
from tests.recommender.policies.markets import hours, nodes_up

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


def market(nodes: int, without: tuple[str, ...] = ()) -> Market:
    """The traces cut in the middle; prices of the whole gang."""
    names = [name for name in USD if name not in without]
    past, judged, tick_s = [], [], 0.0
    for name in names:
        found, tick_s = nodes_up(f"skynomad-h100-{name}")
        past.append(found[: len(found) // 2] >= nodes)
        judged.append(found[len(found) // 2 :] >= nodes)
    spot, on_demand = nodes * np.array([USD[name] for name in names]).T
    move = np.array([[EGRESS_USD * (a[:-2] != b[:-2]) for b in names] for a in names])
    zones = RecordedZones(np.array(judged), Offers(spot, on_demand, move, tick_s))
    return Market(f"{nodes} x H100, {len(names)} zones", np.array(past), zones)


def rows(of: Market) -> tuple[BacktestRow, ...]:
    """Failover and the cost-optimal policy on one market."""
    contenders = (FixedRule(Greedy("failover")), FittedZones())
    (piece,) = pieces(contenders, (of,), (TASK,), every_s=8 * 3600.0)
    return piece.rows()


def dearer(row: BacktestRow) -> float:
    """By how much a policy is more expensive than the optimum."""
    return row.mean_usd / row.optimum_usd - 1.0


def main() -> None:
    """Print the gap with all zones, and without the one that is nearly always up."""
    for nodes in (8, 16):
        for without in ((), ("asia-south2-b",)):
            for row in rows(market(nodes, without)):
                print(
                    f"{row.trace:24} optimum {row.optimum_usd:6.0f} USD  {row.policy:12} "
                    f"{dearer(row):+6.1%}  late {row.late_share:.3f}"
                )


if __name__ == "__main__":
    main()
