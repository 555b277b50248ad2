"""What clusters have done on their paths so far, and when spot is there: the state of a walk."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.risk.path_inputs import PathInputs
from recommender.risk.random_numbers import STRETCH
from recommender.risk.spot_capacity import Market


class _Row:
    """One figure of all lanes: a row of their matrix, which is taken and joined as a whole."""

    def __set_name__(self, owner: "type[Lanes]", name: str) -> None:
        self.row = owner.rows
        owner.rows += 1

    def __get__(self, lanes: Any, owner: Any = None) -> Floats:
        found: Floats = lanes.figures[self.row]
        return found

    def __set__(self, lanes: Any, values: Floats | float) -> None:
        lanes.figures[self.row] = values


class Lanes:
    """Some lanes: a lane is one cluster on one path. Each figure has shape (lanes,)."""

    rows = 0
    edge_s = _Row()  # end of the market's last run
    entry_s = _Row()  # since when the job is on spot again, after a time on demand
    rented_s = _Row()  # when its on-demand machines were asked for
    work = _Row()  # of the job, on this path
    done = _Row()  # durable work
    rescued = _Row()  # of it, on demand
    alone = _Row()  # and by the on-demand part of an elastic cluster
    part_from_s = _Row()  # from when that trains
    capacity = _Row()  # work that an elastic cluster could have done since its first start
    known = _Row()  # whether a step was timed
    time_s = _Row()  # when the job ended
    billed_s = _Row()
    up_s = _Row()  # on spot
    uncounted_s = _Row()  # the first changeover, which is no restart; nan: not over
    waited_s = _Row()
    part_restarts_s = _Row()
    fallback_s = _Row()
    fallback_queued_s = _Row()
    restarts_lost = _Row()  # what could have been done while fallbacks started
    interruptions = _Row()
    moves = _Row()
    returns = _Row()

    def __init__(self, number: Ints, cluster: Ints, path: Ints, figures: Floats) -> None:
        self.number, self.cluster, self.path, self.figures = number, cluster, path, figures

    @staticmethod
    def at_request(work: Floats, changeover_s: Floats) -> "Lanes":
        """The lanes of clusters before anything happens; `work` is (clusters, paths)."""
        paths, count = work.shape[1], work.size
        every = np.arange(count)
        made = Lanes(every, every // paths, every % paths, np.zeros((Lanes.rows, count)))
        made.work, made.part_from_s = work.ravel(), np.repeat(changeover_s, paths)
        made.uncounted_s = np.nan
        return made

    def __len__(self) -> int:
        return len(self.number)

    def take(self, lanes: Ints | Bools) -> "Lanes":
        """Some of them, to be changed."""
        number, cluster, path = self.number[lanes], self.cluster[lanes], self.path[lanes]
        return Lanes(number, cluster, path, self.figures[:, lanes])

    @staticmethod
    def joined(parts: "Sequence[Lanes]") -> "Lanes":
        """Several tables as one."""
        if len(parts) == 1:
            return parts[0]
        return Lanes(
            np.concatenate([each.number for each in parts]),
            np.concatenate([each.cluster for each in parts]),
            np.concatenate([each.path for each in parts]),
            np.concatenate([each.figures for each in parts], axis=1),
        )

    def start_up_over(self, changeover_s: Floats) -> None:
        """What comes from now on is a restart."""
        first = np.minimum(changeover_s, self.up_s)
        self.uncounted_s = np.where(np.isnan(self.uncounted_s), first, self.uncounted_s)

    def repeated(self, times: Floats) -> "Lanes":
        """Lanes that meet what they met so many times more."""
        for name in (
            "waited_s", "up_s", "billed_s", "interruptions", "moves", "alone", "capacity",
            "part_restarts_s", "done", "edge_s",
        ):  # fmt: skip
            setattr(self, name, getattr(self, name) * (1.0 + times))
        return self


@dataclass(frozen=True, slots=True)
class Clock:
    """The next cycles of the market on some lanes: moments, (cycles, lanes)."""

    first: int  # number of the first of these cycles
    starts: Floats  # of the runs
    edges: Floats  # ends of the runs, and of the one before in the first row

    @staticmethod
    def of(market: Market, first: int, lanes: Lanes) -> "Clock":
        """The cycles from `first` on."""
        lengths, waits = market.cycles(first, lanes.cluster, lanes.path)
        starts, edges = np.empty(waits.shape), np.empty((STRETCH + 1, len(lanes)))
        edges[0] = lanes.edge_s
        for cycle in range(STRETCH):
            np.add(edges[cycle], waits[cycle], out=starts[cycle])
            np.add(starts[cycle], lengths[cycle], out=edges[cycle + 1])
        return Clock(first, starts, edges)

    @property
    def ends(self) -> Floats:
        """Ends of the runs."""
        return self.edges[1:]

    def take(self, lanes: Ints) -> "Clock":
        """Those of some lanes."""
        return Clock(self.first, self.starts[:, lanes], self.edges[:, lanes])

    @staticmethod
    def joined(parts: "Sequence[Clock]") -> "Clock":
        """Those of several tables of lanes."""
        if len(parts) == 1:
            return parts[0]
        each = ([getattr(part, name) for part in parts] for name in ("starts", "edges"))
        return Clock(parts[0].first, *(np.concatenate(both, axis=1) for both in each))


def alone(
    p: PathInputs, lanes: Lanes, clock: Clock, ready: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """When the on-demand part of elastic clusters trains alone: from, to, capacity, restarts.

    It restarts on fewer machines when spot leaves (`resize_s`), and trains while the new machines
    boot (`boot_s`); then it saves, and the whole cluster restarts. Spot machines reclaimed before
    they have booted never join. At the request both parts start together. `capacity` is the work
    that either part could have done in each cycle, `restarts` the seconds in which one restarted.
    """
    c, starts, ends = lanes.cluster, clock.starts, clock.ends
    share, boot_s, first = p.elastic_share[c], p.boot_s[c], p.changeover_s[c]
    elastic = share > 0.0
    back = np.where(elastic, np.minimum(starts + boot_s, ends), starts)
    joined = elastic & (ends > starts + boot_s)
    begins, trains_s = np.empty_like(back), lanes.part_from_s
    for cycle in range(STRETCH):
        begins[cycle] = np.maximum(trains_s, clock.edges[cycle])
        again = np.maximum(trains_s, ends[cycle] + p.resize_s[c])
        trains_s = np.where(joined[cycle], again, trains_s)
    lanes.part_from_s = trains_s
    whole = np.maximum(ends - np.maximum(back, first), 0.0)
    part = np.maximum(back - np.maximum(clock.edges[:-1], first), 0.0)
    restarts = np.maximum(ready - np.maximum(back, first), 0.0) + joined * p.resize_s[c]
    return np.where(elastic, np.minimum(begins, back), starts), back, whole + share * part, restarts
