"""A recorded spot market as arrays: machines up, prices and node events of one place over time."""

from collections.abc import Sequence
from dataclasses import field
from datetime import datetime
from typing import Literal

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass

HOUR = 3600.0
Kind = Literal["", "probe", "hold"]
ADDED, TAKEN, GIVEN_BACK = 1, -1, 0


@dataclass(frozen=True, slots=True)
class Place:
    """The owner and location of watched machines; empty values are unknown."""

    provider: str = ""  # "aws", "gcp", "azure", "own"
    region: str = ""
    zone: str = ""
    instance_type: str = ""
    gpu: str = ""
    gpus: int = 0  # of one machine; 0 = not known


@dataclass(frozen=True, slots=True)
class NodeEvents:
    """Named machines that came and went; arrays of shape (events,), times ascending."""

    t_s: Floats = field(default_factory=lambda: np.empty(0))
    change: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # ADDED, TAKEN, ...
    node: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # row of `names`
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.t_s)


@dataclass(frozen=True, slots=True)
class Trace:
    """A recorded spot market, from 0 to `end_s` seconds after `start`.

    `machines[i]` machines were up from `t_s[i]` to the next change; the same for prices. A
    market of which only prices are known has no changes of machines, and the other way round.
    """

    name: str
    end_s: float
    place: Place = Place()
    capacity: int = 0  # machines requested: the most that could be seen; 0 = only prices
    kind: Kind = ""  # probe: requested and released at once; hold: kept until reclaimed
    start: datetime | None = None  # with its time zone; None = not known
    step_s: float = 0.0  # how often was looked; 0 = changes are exact
    source: str = ""
    t_s: Floats = field(default_factory=lambda: np.empty(0))  # (changes,), begins at 0
    machines: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # (changes,)
    price_t_s: Floats = field(default_factory=lambda: np.empty(0))  # (prices,)
    usd_per_hour: Floats = field(default_factory=lambda: np.empty(0))  # (prices,), one machine
    events: NodeEvents = field(default_factory=NodeEvents)

    def machines_at(self, t_s: Floats) -> Ints:
        """Machines up at some times; any shape. Needs a series of machines."""
        return self.machines[np.searchsorted(self.t_s, t_s, side="right") - 1]

    def up(self, machines: int, step_s: float | None = None) -> Bools:
        """Whether so many machines were up at each tick of a regular grid; (ticks,)."""
        step = step_s or self.step_s
        if not step:
            raise ValueError(f"trace {self.name} has no sampling step; name one")
        return np.asarray(self.machines_at(np.arange(0.0, self.end_s - 1e-6, step)) >= machines)


def changes(t_s: Floats, values: Floats | Ints) -> Bools:
    """Which rows of a series differ from the previous one; the first always does."""
    new = np.ones(len(t_s), dtype=np.bool_)
    new[1:] = values[1:] != values[:-1]
    return new


def counted(events: NodeEvents) -> tuple[Floats, Ints]:
    """Change points of the number of named machines: times (from 0) and machines up."""
    step = np.where(events.change == ADDED, 1, -1)
    times, first = np.unique(np.concatenate([[0.0], events.t_s]), return_inverse=True)
    total = np.zeros(len(times), dtype=np.int64)
    np.add.at(total, first[1:], step)
    machines = np.cumsum(total)
    new = changes(times, machines)
    return times[new], machines[new]


def named_events(rows: Sequence[tuple[float, int, str]]) -> NodeEvents:
    """Events in order of time from (seconds, change, name of the machine)."""
    ordered = sorted(rows, key=lambda row: row[0])  # stable: a second keeps its order
    names = tuple(dict.fromkeys(name for *_, name in ordered))
    number = {name: i for i, name in enumerate(names)}
    return NodeEvents(
        t_s=np.array([t for t, *_ in ordered], dtype=np.float64),
        change=np.array([change for _, change, _ in ordered], dtype=np.int64),
        node=np.array([number[name] for *_, name in ordered], dtype=np.int64),
        names=names,
    )
