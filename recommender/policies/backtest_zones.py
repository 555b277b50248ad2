"""Back-tests of one job over several zones: the traces are one market, and the job may move.

The yardsticks are failover to the cheapest zone that is up, and the optimum with all traces
known; the rows are those of `backtest.py`.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from recommender.arrays import Bools, Floats
from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.policies.availability_fit import of_zones
from recommender.policies.backtest import EVERY_S, BacktestRow, BacktestTrace, too_short
from recommender.policies.optimal import MultiZone
from recommender.policies.replay import DONE_S, windows
from recommender.policies.replay_zones import (
    Failover,
    RecordedZones,
    ZonePolicy,
    optimum_zones,
    replay_zones,
)
from recommender.policies.state import ModePrices, Task


@dataclass(frozen=True, slots=True)
class ZonesTrace:
    """Zones that one job may use: what may be learnt from, and what is judged."""

    name: str
    past: Bools  # (zones, ticks)
    judged: RecordedZones


class ZoneContender(Protocol):
    """What enters a back-test over several zones."""

    @property
    def name(self) -> str:
        """Name in the table."""

    def enter(self, market: ZonesTrace) -> ZonePolicy:
        """The policy for a market."""


@dataclass(frozen=True, slots=True)
class ZoneRule:
    """A rule that learns nothing from the past."""

    policy: ZonePolicy

    @property
    def name(self) -> str:
        """The rule's own name."""
        return self.policy.name

    def enter(self, market: ZonesTrace) -> ZonePolicy:
        """The rule itself."""
        return self.policy


@dataclass(frozen=True, slots=True)
class FittedZones:
    """The cost-optimal policy over several zones, fitted to their pasts."""

    name: str = "multi-region"

    def enter(self, market: ZonesTrace) -> ZonePolicy:
        """Fit to the past only: the judged part is not looked at."""
        if market.past.shape[1] < 2:
            raise UsageError(f"{market.name}: no past to fit; raise --past above 0")
        return MultiZone(of_zones(list(market.past), market.judged.tick_s), self.name)


@dataclass(frozen=True, slots=True)
class ZonesPiece:
    """One market under one setting, with everything that is judged on it."""

    contenders: tuple[ZoneContender, ...]
    market: ZonesTrace
    task: Task
    every_s: float = EVERY_S

    def rows(self) -> tuple[BacktestRow, ...]:
        """The rows of this piece of work: a pure function of plain data."""
        zones = self.market.judged
        starts = windows(zones.available.shape[1], zones.tick_s, self.task, self.every_s)
        best = float(optimum_zones(zones, starts, self.task).mean())
        greedy = float(replay_zones(Failover(), zones, starts, self.task).cost_usd.mean())
        rows = []
        for each in self.contenders:
            found = replay_zones(each.enter(self.market), zones, starts, self.task)
            late = found.finish_s > self.task.deadline_s + DONE_S
            rows.append(self._row(each.name, found.cost_usd, float(late.mean()), greedy, best))
        return tuple(rows)

    def _row(self, name: str, usd: Floats, late: float, greedy: float, best: float) -> BacktestRow:
        return BacktestRow(
            policy=name,
            trace=self.market.name,
            task=self.task,
            windows=len(usd),
            mean_usd=float(usd.mean()),
            p50_usd=float(np.quantile(usd, 0.5)),
            p90_usd=float(np.quantile(usd, 0.9)),
            late_share=late,
            greedy_usd=greedy,
            optimum_usd=best,
        )


def market_of(traces: Sequence[BacktestTrace], prices: ModePrices, move_usd: Floats) -> ZonesTrace:
    """Traces that begin and end together and have one tick, as zones of one market.

    `move_usd` (zones, zones) from row to column.
    """
    shapes = {(trace.tick_s, len(trace.past), len(trace.judged)) for trace in traces}
    if len(shapes) > 1:
        raise UsageError(
            "several zones need traces of one tick and one length; these have "
            + ", ".join(f"{tick:g} s x {past + judged}" for tick, past, judged in sorted(shapes))
        )
    own = [trace.prices or prices for trace in traces]
    zones = RecordedZones(
        available=np.stack([trace.judged for trace in traces]),
        spot_usd_per_hour=np.array([each.spot for each in own]),
        on_demand_usd_per_hour=np.array([each.on_demand for each in own]),
        move_usd=move_usd,
        tick_s=traces[0].tick_s,
    )
    past = np.stack([trace.past for trace in traces])
    return ZonesTrace(f"{len(traces)} zones together", past, zones)


def zones_pieces(
    contenders: Sequence[ZoneContender],
    market: ZonesTrace,
    tasks: Sequence[Task],
    every_s: float = EVERY_S,
) -> tuple[ZonesPiece, ...]:
    """The work of such a back-test; raises `UsageError` where the traces are too short."""
    ticks, tick_s = market.judged.available.shape[1], market.judged.tick_s
    found = tuple(
        ZonesPiece(tuple(contenders), market, task, every_s)
        for task in tasks
        if len(windows(ticks, tick_s, task, every_s))
    )
    if not found:
        raise too_short(ticks * tick_s)
    return found
