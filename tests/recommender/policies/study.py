"""The study of fallback policies on recorded markets.

    python -P tests/run.py tests.recommender.policies.study

Frozen before any error was looked at: campaigns of at least ten days in the reference tables;
each trace cut in the middle, fitted on the first half and judged on the second; windows start
every 4 h; a zone left out is fitted on the first halves of the other zones of its set. All
choices (age buckets, shrinkage, qualities, dwell, planned share) were made on first halves cut
in two again. Needs RECOMMEND_REFERENCE_DATA.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from recommender.optimize.thresholds import BACK_ABOVE, WAIT_ABOVE
from recommender.policies.availability import Availability, chain
from recommender.policies.availability_fit import ZoneClass, of_zone, zone_class
from recommender.policies.backtest import (
    BacktestRow,
    Bounds,
    Contender,
    FittedPolicy,
    FixedRule,
    Market,
    bounds,
    closed_by_sums,
    judge,
)
from recommender.policies.replay import RecordedZones
from recommender.policies.rules import OnDemand, UniformProgress
from recommender.policies.state import Decide, Offers, Policy, Task
from recommender.policies.thresholds import SAFETY_NET, TwoThresholds, rule_usd
from tests.recommender.policies.markets import PRICES, hours, nodes_up

V100 = "cbl-avail-1n-02-15-2023-{}-v100x1"
H100 = "skynomad-h100-{}"
ZONES_V100 = ("us-east-1a", "us-east-1c", "us-east-1d", "us-east-2a", "us-west-2b", "us-west-2c")
ZONES_H100 = (
    "asia-south2-b",
    "asia-southeast1-b",
    "europe-west3-c",
    "us-central1-a",
    "us-central1-c",
    "us-east4-a",
    "us-east5-a",
    "us-west1-b",
)
# Set: traces and how many nodes the gang needs.
SETS: dict[str, tuple[tuple[str, ...], int]] = {
    "1 x V100, AWS 2023": (tuple(V100.format(zone) for zone in ZONES_V100), 1),
    "16 x V100, AWS 2023": (
        tuple(f"cbl-avail-16n-08-27-2023-{z}-v100x1" for z in ("us-east-2b", "us-west-2a")),
        16,
    ),
    "4 x V100 held, AWS 2023": (
        tuple(f"cbl-preem-4n-08-03-2023-{z}-v100x1" for z in ("us-east-1f", "us-west-2c")),
        4,
    ),
    "8 x H100, GCP 2025": (tuple(H100.format(zone) for zone in ZONES_H100), 8),
    "16 x H100, GCP 2025": (tuple(H100.format(zone) for zone in ZONES_H100), 16),
}
TASKS = (hours(48, 52, 0.1), hours(48, 60, 0.1), hours(24, 36, 0.2), hours(24, 48, 0.1))
PLAN_TICK_S = 600.0


@dataclass(frozen=True)
class Thresholds:
    """The policy of a plan: the pair of the plans' grid that costs least under the fitted law."""

    kind: ZoneClass
    name: str = "plan's policy"

    def enter(self, market: Market) -> tuple[Policy, RecordedZones]:
        """Chosen when the task is known."""
        past, tick_s = market.past[0], market.tick_s
        own = of_zone(past, tick_s, self.kind) if len(past) > 1 else self.kind.unwatched
        return _Late(own, self.name), market.judged


@dataclass(frozen=True)
class _Late:
    law: Availability
    name: str = "plan's policy"

    def begin(self, task: Task, offers: Offers, count: int) -> Decide:
        process = chain(self.law, PLAN_TICK_S)
        pairs = [SAFETY_NET, *(TwoThresholds(*pair) for pair in product(WAIT_ABOVE, BACK_ABOVE))]
        usd = [rule_usd(pair, process, task, offers.prices, PLAN_TICK_S) for pair in pairs]
        return pairs[int(np.argmin(usd))].begin(task, offers, count)


def traces(name: str) -> list[Market]:
    """The traces of a set, cut in the middle."""
    ids, need = SETS[name]
    found = []
    for trace_id in ids:
        nodes, tick_s = nodes_up(trace_id)
        up = nodes >= need
        half = len(up) // 2
        found.append(Market.of_one(trace_id, tick_s, up[:half], up[half:], PRICES))
    return found


def contenders(of_set: Sequence[Market], index: int) -> list[Contender]:
    """Everything that is judged on one trace."""
    own = zone_class([trace.past[0] for trace in of_set], of_set[0].tick_s)
    return [
        FixedRule(OnDemand()),
        FixedRule(UniformProgress()),
        FittedPolicy(own),
        FittedPolicy(own, 0.95, "cost-optimal, 95 %"),
        Thresholds(own),
    ]


def left_out(of_set: Sequence[Market], index: int) -> tuple[Contender, Contender, Market]:
    """The policies of a zone without a recording, as a plan knows zones."""
    trace = of_set[index]
    others = [other.past[0] for other in of_set if other is not trace]
    blind = replace(trace, past=trace.past[:, :0])
    kind = zone_class(others, trace.tick_s)
    optimal = FittedPolicy(kind, name="cost-optimal, zone left out")
    return optimal, Thresholds(kind, "plan's policy, zone left out"), blind


def run(name: str, tasks: Sequence[Task] = TASKS) -> list[BacktestRow]:
    """All rows of one set."""
    of_set, rows = traces(name), []
    for index, trace in enumerate(of_set):
        for task in tasks:
            if len(trace.judged.windows(task, 4 * 3600.0)) == 0:
                continue
            within: Bounds = bounds(trace, task)
            for each in contenders(of_set, index):
                rows.append(judge(each, trace, task, within))
            *blind, unseen = left_out(of_set, index)
            rows += [judge(each, unseen, task, within) for each in blind]
    return rows


def dearer(rows: Sequence[BacktestRow], policy: str, uniform: str = "uniform progress") -> float:
    """By how much a policy is more expensive than the better of greedy and uniform progress."""
    ours = _sum(rows, policy)
    mine = [row for row in rows if row.policy == policy]
    greedy = sum(row.windows * row.greedy_usd for row in mine)
    return ours / min(greedy, _sum(rows, uniform)) - 1.0


def _sum(rows: Sequence[BacktestRow], policy: str) -> float:
    return sum(row.windows * row.mean_usd for row in rows if row.policy == policy)


def late_share(rows: Sequence[BacktestRow]) -> float:
    """Share of late runs over rows."""
    counts = np.array([row.windows for row in rows])
    return float(counts @ np.array([row.late_share for row in rows]) / counts.sum())


def show(title: str, rows: Sequence[BacktestRow]) -> None:
    """One block of the table."""
    for policy in dict.fromkeys(row.policy for row in rows):
        mine = [row for row in rows if row.policy == policy]
        mean = _sum(rows, policy) / sum(row.windows for row in mine)
        share = closed_by_sums(mine)
        print(
            f"{title:32} {policy:28} {mean:8.2f} USD  closed {share:6.3f}  "
            f"{dearer(rows, policy):+7.2%} against the better rule  late {late_share(mine):.3f}",
            flush=True,
        )


def main() -> None:
    """Print every set and setting, and all of them by sums."""
    everything: list[BacktestRow] = []
    for name in SETS:
        rows = run(name)
        for task in TASKS:
            setting = f"{task.work_s / 3600:.0f}/{task.deadline_s / 3600:.0f} h"
            show(f"{name}, {setting}", [row for row in rows if row.task == task])
        show(name, rows)
        everything += rows
    show("all", everything)


if __name__ == "__main__":
    main()
