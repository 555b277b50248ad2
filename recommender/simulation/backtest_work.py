"""Prepares a backtest from recorded series: split traces, prices, policies by name."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.inputs.units import parse_duration
from recommender.policies.availability_fit import zone_class
from recommender.policies.backtest import (
    Contender,
    FittedPolicy,
    FittedZones,
    FixedRule,
    Market,
    Piece,
    SingleAnchor,
    Tiering,
    pieces,
)
from recommender.policies.rules import Greedy, OnDemand, SpotOnly, UniformProgress
from recommender.policies.state import ModePrices, Policy, Task
from recommender.text import duration, shown
from recommender.traces.trace import Trace as Series

TICK_S = 300.0  # of traces whose changes are exact
_RULES: dict[str, Policy] = {
    "on-demand": OnDemand(), "spot-only": SpotOnly(), "greedy": Greedy(),
    "uniform-progress": UniformProgress(),
}  # fmt: skip
_ZONE_RULES: dict[str, Contender] = {
    "failover": FixedRule(Greedy("failover")),
    "multi-region": FittedZones(),
}


@dataclass(frozen=True, slots=True)
class BacktestSettings:
    """The settings of a backtest: jobs, policies by name, starts, extra costs."""

    tasks: Sequence[Task]
    policies: Sequence[str]
    machines: int  # that must be up together
    past_share: float  # of each trace, to learn from
    every_s: float  # between two starts of a run
    confidence: float  # of cost-optimal to be in time
    receivers_usd: float  # per hour, of tiering
    move_usd: float  # of a move to another region

    @property
    def zone_policies(self) -> list[str]:
        """Policies of one job that may move between the zones of all traces."""
        return [name for name in self.policies if name in _ZONE_RULES]


def parse_task(word: str, name: str) -> Task:
    """Read work/deadline/changeover, such as 48h/52h/6m."""
    parts = word.split("/")
    if len(parts) != 3:
        raise UsageError(f"{name} {shown(word)}: write work/deadline/changeover, as 48h/52h/6m")
    task = Task(*(parse_duration(part, name) for part in parts))
    if task.slack_s < 0.0:
        least = duration(task.work_s + task.changeover_s)
        raise UsageError(
            f"{name} {shown(word)}: work and changeover take {least}, longer than the deadline; "
            f"write a deadline of {least} or more"
        )
    return task


def check_series(series: Sequence[Series], settings: BacktestSettings) -> None:
    """Refuse series without machines, and series of one market with different starts."""
    for each in series:
        if not len(each.t_s):
            raise UsageError(f"{shown(each.name)}: only prices; a backtest needs machines up")
    starts = {each.start for each in series if each.start is not None}
    if settings.zone_policies and len(starts) > 1:
        raise UsageError(
            "failover and multi-region need traces that begin at one moment; these begin at "
            + ", ".join(start.isoformat() for start in sorted(starts))
        )


def work_of(
    series: Sequence[Series], prices: Sequence[ModePrices], settings: BacktestSettings
) -> tuple[Piece, ...]:
    """Every trace under every job setting; `prices` has one entry per series."""
    markets = cut_traces(series, prices, settings)
    contenders = _contenders(markets, settings)
    work: list[Piece] = []
    if contenders:
        work += pieces(contenders, markets, settings.tasks, settings.every_s)
    if settings.zone_policies:
        market = Market.together(markets, _move_prices(series, settings.move_usd))
        rules = [_ZONE_RULES[name] for name in settings.zone_policies]
        work += pieces(rules, (market,), settings.tasks, settings.every_s)
    return tuple(work)


def cut_traces(
    series: Sequence[Series], prices: Sequence[ModePrices], settings: BacktestSettings
) -> tuple[Market, ...]:
    """Split each series into a part to learn from and a part to evaluate on.

    Series of one market are first cut to the shortest.
    """
    machines = settings.machines
    ticks = [each.step_s or TICK_S for each in series]
    ups = [each.up(machines, tick_s) for each, tick_s in zip(series, ticks, strict=True)]
    if not any(up.any() for up in ups):
        had = int(max(each.machines.max() for each in series))
        then = f", {had} at most; write fewer" if had else "; watch another zone"
        raise UsageError(f"--machines {machines}: no trace ever has as many up{then}")
    one_clock = bool(settings.zone_policies) and len(set(ticks)) == 1
    end = min(map(len, ups)) if one_clock else None
    markets = []
    for each, up, tick_s, usd in zip(series, ups, ticks, prices, strict=True):
        cut = int(len(up[:end]) * settings.past_share)
        market = Market.of_one(each.name, tick_s, up[:cut], up[cut:end], usd)
        if machines > 1:
            market = replace(market, one_fewer=each.up(machines - 1, tick_s)[None, cut:end])
        markets.append(market)
    return tuple(markets)


def _contenders(markets: Sequence[Market], settings: BacktestSettings) -> list[Contender]:
    """Policies of one zone: rules, ours, and DeepVM's two, which pay while they wait."""
    wanted = settings.policies
    found: list[Contender] = [FixedRule(_RULES[name]) for name in wanted if name in _RULES]
    if "cost-optimal" in wanted:
        tick_s = markets[0].tick_s
        same = [each for each in markets if each.tick_s == tick_s]
        alike = [each.past[0] for each in same if each.past.shape[1] > 1]
        kind = zone_class(alike, tick_s) if alike else None
        found.append(FittedPolicy(kind, settings.confidence))
    if "single-anchor" in wanted:
        found.append(SingleAnchor(settings.machines))
    if "tiering" in wanted:
        found.append(Tiering(settings.receivers_usd))
    return found


def _move_prices(series: Sequence[Series], usd: float) -> Floats:
    """The price of a move between any two zones; none inside a region that is known."""
    regions = [each.place.region or f"trace {i}" for i, each in enumerate(series)]
    return np.array([[usd * (a != b) for b in regions] for a in regions])
