"""Back-tests: policies × traces × job settings on recorded markets, against two yardsticks.

Every row is made by one pure function of plain data (`judge`), so that callers may spread rows
over processes or machines. The yardsticks of a trace and setting are the greedy rule and the
optimum with the trace known; gap closed = (greedy - policy) / (greedy - optimum), by sums.

A piece of work holds plain data and judges itself by nothing else, so the rows do not depend on
where or in which order they are made.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.errors import RecommendError, UsageError
from recommender.inputs.workers import Workers
from recommender.policies.availability_fit import ZoneClass, of_zone, of_zones, zone_class
from recommender.policies.hindsight import optimum
from recommender.policies.optimal import MultiZone, SemiMarkov
from recommender.policies.replay import RecordedZones, replay
from recommender.policies.rules import Greedy, SpotOnly
from recommender.policies.state import ModePrices, Offers, Policy, Task

EVERY_S = 4 * 3600.0  # between start moments


@dataclass(frozen=True, slots=True)
class Market:
    """Zones that one job may use: the part to learn from, and the part to evaluate on."""

    name: str
    past: Bools  # (zones, ticks) before the judged part; may be empty for rules that learn nothing
    judged: RecordedZones
    one_fewer: Bools | None = None  # (zones, ticks) judged, for a gang of one spot machine fewer

    @staticmethod
    def of_one(
        name: str, tick_s: float, past: Bools, judged: Bools, prices: ModePrices
    ) -> "Market":
        """One zone; (ticks,)."""
        return Market(name, past[None], RecordedZones.of_one(judged, tick_s, prices))

    @staticmethod
    def together(markets: "Sequence[Market]", move_usd: Floats) -> "Market":
        """Zones that begin and end together and have one tick, between which a job may move.

        `move_usd` (zones, zones) from row to column.
        """
        shapes = {(m.tick_s, m.past.shape[1], m.judged.ticks) for m in markets}
        if len(shapes) > 1:
            ticks = (f"{tick:g} s x {past + judged}" for tick, past, judged in sorted(shapes))
            raise UsageError(
                "several zones need traces of one tick and one length; these have "
                + ", ".join(ticks)
            )
        offers = [each.judged.offers for each in markets]
        spot = np.concatenate([each.spot_usd_per_hour for each in offers])
        rent = np.concatenate([each.on_demand_usd_per_hour for each in offers])
        judged = np.concatenate([each.judged.available for each in markets])
        return Market(
            f"{len(markets)} zones together",
            np.concatenate([each.past for each in markets]),
            RecordedZones(judged, Offers(spot, rent, move_usd, offers[0].tick_s)),
        )

    @property
    def tick_s(self) -> float:
        """Length of a tick."""
        return self.judged.offers.tick_s

    def kept_rented(self, idle_usd: float, spot_usd: float) -> RecordedZones:
        """The judged part where something is paid all the time, and spot costs so much in all."""
        offers = replace(
            self.judged.offers, idle_usd_per_hour=idle_usd, spot_usd_per_hour=np.array([spot_usd])
        )
        return replace(self.judged, offers=offers)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The yardsticks of one market and setting; USD per window."""

    starts: Ints
    greedy_usd: Floats
    optimum_usd: Floats


@dataclass(frozen=True, slots=True)
class BacktestRow:
    """One line of the table: a policy on all windows of one trace and setting.

    A run that does not end within the series is late, at what it cost until then.
    """

    policy: str
    trace: str
    task: Task
    windows: int
    mean_usd: float
    p50_usd: float
    p90_usd: float
    late_share: float
    greedy_usd: float  # mean
    optimum_usd: float  # mean

    @property
    def gap_closed(self) -> float | None:
        """Share of the way from greedy to the optimum; None where greedy is optimal."""
        return closed(self.greedy_usd, self.mean_usd, self.optimum_usd)


class Contender(Protocol):
    """A policy that takes part in a backtest."""

    @property
    def name(self) -> str:
        """Name in the table."""

    def enter(self, market: Market) -> tuple[Policy, RecordedZones]:
        """The policy for a market, and what it meets there, at the prices of its machines."""


@dataclass(frozen=True, slots=True)
class FixedRule:
    """A rule that learns nothing from the past."""

    policy: Policy

    @property
    def name(self) -> str:
        """The rule's own name."""
        return self.policy.name

    def enter(self, market: Market) -> tuple[Policy, RecordedZones]:
        """The rule at the market's prices."""
        return self.policy, market.judged


@dataclass(frozen=True, slots=True)
class FittedPolicy:
    """The cost-optimal policy, fitted to the trace's past; without one, to its class."""

    kind: ZoneClass | None = None  # zones like it; None: only the trace's own past
    confidence: float = 1.0
    name: str = "cost-optimal"

    def enter(self, market: Market) -> tuple[Policy, RecordedZones]:
        """Fit to the past only: the evaluated part is not looked at."""
        past, tick_s = market.past[0], market.tick_s
        if len(past) > 1:
            law = of_zone(past, tick_s, self.kind or zone_class([past], tick_s))
        elif self.kind is not None:
            law = self.kind.unwatched
        else:
            raise UsageError(f"trace {market.name} has no past and no class to stand for it")
        return SemiMarkov(law, self.confidence, self.name), market.judged


@dataclass(frozen=True, slots=True)
class FittedZones:
    """The cost-optimal policy over several zones, fitted to their pasts."""

    name: str = "multi-region"

    def enter(self, market: Market) -> tuple[Policy, RecordedZones]:
        """Fit to the past only: the judged part is not looked at."""
        if market.past.shape[1] < 2:
            raise UsageError(f"{market.name}: no past to fit; raise --past above 0")
        laws = of_zones(list(market.past), market.tick_s)
        return MultiZone(laws, self.name), market.judged


@dataclass(frozen=True, slots=True)
class SingleAnchor:
    """DeepVM's Single Anchor: n - 1 spot machines and one on-demand machine that is always kept.

    As a policy (Kim et al., CCGrid 2024; their code names no rule for lost spot): wait until
    spot is back; the anchor with the checkpoint is paid all the time. Prices are those of the
    whole cluster of `machines`; availability is that of n - 1 machines (`Trace.one_fewer`).
    """

    machines: int
    name: str = "DeepVM single anchor"

    def enter(self, market: Market) -> tuple[Policy, RecordedZones]:
        """Spot or wait, with the anchor on the bill."""
        prices = market.judged.offers.prices
        anchor = prices.on_demand / self.machines
        spot = prices.spot * (self.machines - 1) / self.machines + anchor
        seen = market.kept_rented(prices.idle + anchor, spot)
        if market.one_fewer is not None:
            seen = replace(seen, available=market.one_fewer)
        return SpotOnly(self.name), seen


@dataclass(frozen=True, slots=True)
class Tiering:
    """DeepVM's Tiering: all machines spot, checkpoints on on-demand CPU machines always kept."""

    receivers_usd_per_hour: float
    name: str = "DeepVM tiering"

    def enter(self, market: Market) -> tuple[Policy, RecordedZones]:
        """Spot or wait, with the receivers on the bill."""
        more, prices = self.receivers_usd_per_hour, market.judged.offers.prices
        return SpotOnly(self.name), market.kept_rented(prices.idle + more, prices.spot + more)


def bounds(market: Market, task: Task, every_s: float = EVERY_S) -> Bounds:
    """Greedy and optimum of every window whose deadline lies inside the judged part."""
    judged = market.judged
    starts = judged.windows(task, every_s)
    if len(starts) == 0:
        raise UsageError(
            f"trace {market.name}: the evaluated part is "
            f"{judged.ticks * market.tick_s / 3600:.0f} "
            f"h long, shorter than the deadline of {task.deadline_s / 3600:.0f} h"
        )
    greedy = replay(Greedy(), judged, starts, task).cost_usd
    return Bounds(starts, greedy, optimum(judged, starts, task))


def judge(contender: Contender, market: Market, task: Task, within: Bounds) -> BacktestRow:
    """Replay one contender on one market and setting."""
    policy, seen = contender.enter(market)
    result = replay(policy, seen, within.starts, task)
    return BacktestRow(
        policy=contender.name,
        trace=market.name,
        task=task,
        windows=len(within.starts),
        mean_usd=float(result.cost_usd.mean()),
        p50_usd=float(np.quantile(result.cost_usd, 0.5)),
        p90_usd=float(np.quantile(result.cost_usd, 0.9)),
        late_share=float(result.late(task.deadline_s).mean()),
        greedy_usd=float(within.greedy_usd.mean()),
        optimum_usd=float(within.optimum_usd.mean()),
    )


@dataclass(frozen=True, slots=True)
class Piece:
    """One market under one setting, with every policy that is evaluated on it."""

    contenders: tuple[Contender, ...]
    market: Market
    task: Task
    every_s: float = EVERY_S

    def rows(self) -> tuple[BacktestRow, ...]:
        """The rows of this piece of work: a pure function of plain data."""
        within = bounds(self.market, self.task, self.every_s)
        return tuple(judge(each, self.market, self.task, within) for each in self.contenders)


def pieces(
    contenders: Sequence[Contender],
    markets: Sequence[Market],
    tasks: Sequence[Task],
    every_s: float = EVERY_S,
) -> tuple[Piece, ...]:
    """The work of a back-test; raises `UsageError` where no trace is as long as a deadline."""
    found = tuple(
        Piece(tuple(contenders), market, task, every_s)
        for market in markets
        for task in tasks
        if len(market.judged.windows(task, every_s))
    )
    if not found:
        lengths = (each.judged.ticks * each.tick_s for each in markets)
        raise UsageError(
            "no trace is as long as a deadline: the longest evaluated part has "
            f"{max(lengths, default=0.0) / 3600.0:.3g} "
            "h; give longer traces, a shorter --job, or a smaller --past"
        )
    return found


def closed(greedy_usd: float, policy_usd: float, optimum_usd: float) -> float | None:
    """Share of the gap between greedy and optimum that a policy closes; None without a gap."""
    gap = greedy_usd - optimum_usd
    return (greedy_usd - policy_usd) / gap if gap > 1e-9 else None


def closed_by_sums(rows: Iterable[BacktestRow]) -> float | None:
    """Share of the gap that one policy closes over many rows, every window counting alike."""
    sums = np.zeros(3)
    for row in rows:
        sums += row.windows * np.array([row.greedy_usd, row.mean_usd, row.optimum_usd])
    return closed(*(float(value) for value in sums))


def run(
    work: Sequence[Piece], workers: Workers, tick: Callable[[int, int], None] | None = None
) -> tuple[BacktestRow, ...]:
    """All rows, in the order of the work; `tick` hears how many pieces are done."""
    found: dict[int, tuple[BacktestRow, ...]] = {}
    for number, rows in workers.results(_rows, None, work):
        if rows is None:
            raise RecommendError(f"workers died of piece {number + 1} again and again")
        found[number] = rows
        if tick is not None:
            tick(len(found), len(work))
    return tuple(row for number in range(len(work)) for row in found[number])


def _rows(_: None, piece: Piece) -> tuple[BacktestRow, ...]:
    return piece.rows()
