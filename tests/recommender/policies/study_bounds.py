"""How near to the optimum any policy can come.

    python -P tests/run.py tests.recommender.policies.study_bounds

The omniscient optimum knows which run will last; nobody else does. Three bounds say how much of
the gap is left to be closed, on the zones, settings and windows of `study.py`:

    drawn         series drawn from the law of each judged half (one regime, true ages), and the
                  policy that knows that law: nothing is left to learn, no policy can do much better
    in hindsight  the recorded judged halves, the policy fitted on these same halves
    refitted      the recorded judged halves, the law fitted again at each quarter of them to all
                  that was seen by then: what a policy that goes on learning may do

and forecasts from the nearest past windows are compared with those of the policy's filter, on
first halves cut in two. Needs RECOMMEND_REFERENCE_DATA; five minutes of one core.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from recommender.arrays import Bools, Floats
from recommender.policies.availability import Availability, belief_after_look, chain
from recommender.policies.availability_fit import ages, of_zone, zone_class
from recommender.policies.backtest import (
    BacktestRow,
    Bounds,
    Market,
    bounds,
    closed_by_sums,
    judge,
)
from recommender.policies.optimal import SemiMarkov
from recommender.policies.replay import RecordedZones
from recommender.policies.state import Policy, Task
from tests.recommender.policies.markets import simulated
from tests.recommender.policies.study import SETS, TASKS, traces

SEEDS = (1, 2, 3)
REFITS = 4
NEIGHBOURS = 60
HORIZONS_H = (0.5, 1.0, 3.0, 8.0)


@dataclass(frozen=True)
class Knows:
    """The cost-optimal policy under a law that it knows."""

    law: Availability
    name: str

    def enter(self, market: Market) -> tuple[Policy, RecordedZones]:
        """No fit."""
        return SemiMarkov(self.law), market.judged


def one_regime(series: Bools, tick_s: float) -> Availability:
    """The law of a series alone, its first regime."""
    law = of_zone(series, tick_s, zone_class([series], tick_s), own_share=1.0)
    return Availability(law.edges_h, law.exits_per_hour[:1], np.zeros((1, 1)))


def settings(trace: Market) -> Iterator[tuple[Task, Bounds]]:
    """The settings that a trace is long enough for, and their yardsticks."""
    for task in TASKS:
        if len(trace.judged.windows(task, 4 * 3600.0)):
            yield task, bounds(trace, task)


def drawn(name: str, seed: int) -> list[BacktestRow]:
    """Series of known law in the place of the judged halves."""
    rows = []
    for index, trace in enumerate(traces(name)):
        law = one_regime(trace.judged.available[0], trace.tick_s)
        series = simulated(law, trace.tick_s, trace.judged.ticks, 1000 * seed + index)
        made = replace(trace, judged=replace(trace.judged, available=series[None]))
        reported = Knows(law, f"drawn, law known, seed {seed}")
        rows += [judge(reported, made, task, within) for task, within in settings(made)]
    return rows


def recorded(name: str) -> list[BacktestRow]:
    """In hindsight, and fitted again as the judged halves unfold."""
    of_set, rows = traces(name), []
    kind = zone_class([trace.judged.available[0] for trace in of_set], of_set[0].tick_s)
    for index, trace in enumerate(of_set):
        known = Knows(of_zone(trace.judged.available[0], trace.tick_s, kind), "in hindsight")
        learnt = [Knows(refitted(of_set, index, part), "refitted") for part in range(REFITS)]
        for task, within in settings(trace):
            rows.append(judge(known, trace, task, within))
            part = within.starts * REFITS // trace.judged.ticks
            for number in np.unique(part):
                only = part_of(within, part == number)
                rows.append(judge(learnt[int(number)], trace, task, only))
    return rows


def refitted(of_set: Sequence[Market], index: int, part: int) -> Availability:
    """The law of a zone from all that was seen of its set before a part of the judged halves."""
    pasts = [
        np.append(each.past[0], each.judged.available[0, : each.judged.ticks * part // REFITS])
        for each in of_set
    ]
    tick_s = of_set[index].tick_s
    return of_zone(pasts[index], tick_s, zone_class(pasts, tick_s))


def part_of(within: Bounds, chosen: Bools) -> Bounds:
    """Some of the windows."""
    return Bounds(within.starts[chosen], within.greedy_usd[chosen], within.optimum_usd[chosen])


def share_ahead(series: Bools, ticks: int) -> Floats:
    """Share of the coming ticks with spot, for each tick that has as many after it."""
    total = np.concatenate([[0], np.cumsum(series)])
    return np.asarray((total[ticks + 1 :] - total[1:-ticks]) / ticks)


def filtered(past: Bools, judged: Bools, kind_of: Sequence[Bools], tick_s: float) -> list[Floats]:
    """Forecast shares by the policy's own filter, per horizon."""
    law = chain(of_zone(past, tick_s, zone_class(kind_of, tick_s)), tick_s)
    belief, beliefs = law.usual[None], []
    for up in judged:
        here = belief_after_look(law, belief, np.array([up]))
        beliefs.append(here[0])
        belief = here @ law.step
    found, ahead, total = [], law.up.astype(np.float64), np.zeros(len(law.up))
    for tick in range(1, horizon(HORIZONS_H[-1], tick_s) + 1):
        ahead = law.step @ ahead
        total = total + ahead
        if tick in {horizon(hours, tick_s) for hours in HORIZONS_H}:
            found.append(np.array(beliefs) @ (total / tick))
    return found


def horizon(hours: float, tick_s: float) -> int:
    """In ticks."""
    return max(1, round(hours * 3600.0 / tick_s))


def features(series: Bools, tick_s: float) -> Floats:
    """What neighbours share: age, share up in the last 1, 6 and 24 h, hour of the day."""
    hours = np.arange(len(series)) * tick_s / 3600.0
    total = np.concatenate([[0], np.cumsum(series)])
    now = np.arange(1, len(series) + 1)
    lately = [np.maximum(now - horizon(back, tick_s), 0) for back in (1.0, 6.0, 24.0)]
    shares = [2.0 * (total[now] - total[low]) / (now - low) for low in lately]
    clock = 0.7 * np.array([np.sin(np.pi * hours / 12.0), np.cos(np.pi * hours / 12.0)])
    return np.stack([np.log(ages(series) * tick_s / 3600.0) / 1.5, *shares, *clock], axis=1)


def nearest(past: Bools, judged: Bools, ahead: Floats, tick_s: float, otherwise: Floats) -> Floats:
    """Mean of what came after the nearest past moments of the same side.

    `otherwise` stands where fewer than half as many moments of a side are known.
    """
    count = len(otherwise)
    of_past, of_judged = features(past, tick_s)[: len(ahead)], features(judged, tick_s)
    found = otherwise.copy()
    for side in (False, True):
        known = np.flatnonzero(past[: len(ahead)] == side)
        asked = np.flatnonzero(judged[:count] == side)
        if 2 * len(known) < NEIGHBOURS:
            continue
        most = min(NEIGHBOURS, len(known) // 2)
        for some in np.array_split(asked, len(asked) // 500 + 1):
            far = ((of_judged[some][:, None] - of_past[known][None]) ** 2).sum(axis=2)
            near = np.argpartition(far, most, axis=1)[:, :most]
            found[some] = ahead[known][near].mean(axis=1)
    return found


def forecasts(name: str) -> Floats:
    """Sums of squared errors per horizon: filter, neighbours, seven to three of both; count."""
    sums = np.zeros((len(HORIZONS_H), 4))
    cut = [np.array_split(trace.past, 2) for trace in traces(name)]
    tick_s = traces(name)[0].tick_s
    for ways in ((0, 1), (1, 0)):
        for halves in cut:
            past, judged = halves[ways[0]], halves[ways[1]]
            by_filter = filtered(past, judged, [each[ways[0]] for each in cut], tick_s)
            for row, hours in enumerate(HORIZONS_H):
                ticks = horizon(hours, tick_s)
                truth = share_ahead(judged, ticks)
                ours = by_filter[row][: len(truth)]
                theirs = nearest(past, judged, share_ahead(past, ticks), tick_s, ours)
                tries = np.stack([ours, theirs, 0.7 * ours + 0.3 * theirs])
                sums[row] += [*((tries - truth) ** 2).sum(axis=1), len(truth)]
    return sums


def show(title: str, rows: Sequence[BacktestRow]) -> None:
    """Share of the gap closed, by sums."""
    for policy in dict.fromkeys(row.policy for row in rows):
        share = closed_by_sums(row for row in rows if row.policy == policy)
        print(f"{title:32} {policy:28} closed {share:6.3f}", flush=True)


def main() -> None:
    """Print every bound by set and over all of them, then the forecasts."""
    everything: list[BacktestRow] = []
    for name in SETS:
        rows = recorded(name)
        for seed in SEEDS:
            rows += drawn(name, seed)
        show(name, rows)
        everything += rows
        for hours, row in zip(HORIZONS_H, forecasts(name), strict=True):
            ours, theirs, both = row[:3] / row[3]
            print(f"{name:32} {hours:4} h ahead, mean squared error: filter {ours:.4f}, "
                  f"nearest windows {theirs:.4f}, both {both:.4f}", flush=True)  # fmt: skip
    show("all", everything)


if __name__ == "__main__":
    main()
