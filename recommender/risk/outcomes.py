"""What a search needs of a plan's histories, and a memory of the plans followed so far."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from recommender.risk.journey import Histories, follow
from recommender.risk.plans import Journeys

Floats = NDArray[np.float64]
Ends = tuple[Floats, ...]  # one value per field of `Outcomes`

MOST = 5000  # plans remembered: 4 kB each


@dataclass(frozen=True, slots=True)
class Outcomes:
    """How each plan ends in each history; shape (plans, paths) or (plans,)."""

    time_s: Floats  # (plans, paths)
    cost_usd: Floats  # (plans, paths)
    expected_usd: Floats
    net_usd: Floats  # least expected bill if any fallback could take over after any run
    overhead: Floats  # share of the running time that trains nothing

    @staticmethod
    def blank(plans: int, paths: int) -> "Outcomes":
        """Room for the outcomes of some plans."""
        return Outcomes(*np.empty((2, plans, paths)), *np.empty((3, plans)))

    def of(self, row: int) -> Ends:
        """One plan's outcome."""
        return tuple(getattr(self, name)[row] for name in self.__slots__)

    def put(self, rows: int | list[int], ends: Ends) -> None:
        """Set the outcome of some plans."""
        for name, values in zip(self.__slots__, ends, strict=True):
            getattr(self, name)[rows] = values


@dataclass(frozen=True, slots=True)
class Memory:
    """Outcomes of the plans followed so far, by their journeys.

    Searches under other limits meet the same plans again. A journey without a fallback goes
    the same way under every deadline.
    """

    paths: int
    seed: int
    known: dict[bytes, Ends] = field(default_factory=dict)

    def outcomes(self, journeys: Journeys, deadline_s: float | None) -> Outcomes:
        """The outcomes of some plans; only those not met before are followed."""
        keys = _keys(journeys, deadline_s)
        new = [row for row, key in enumerate(keys) if key not in self.known]
        met = [row for row, key in enumerate(keys) if key in self.known]
        found = Outcomes.blank(len(keys), self.paths)
        for row in met:
            found.put(row, self.known[keys[row]])
        if new:
            h = follow(journeys.take(np.array(new)), deadline_s, self.paths, self.seed)
            found.put(new, _ends(h))
        for row in new[: max(MOST - len(self.known), 0)]:
            self.known[keys[row]] = found.of(row)
        return found


def _ends(h: Histories) -> Ends:
    running = np.maximum(h.running_s.mean(axis=1), 1.0)
    overhead = 1.0 - h.trained_s.mean(axis=1) / running
    return h.time_s, h.cost_usd, h.expected_usd.mean(axis=1), h.net_usd.mean(axis=1), overhead


def _keys(journeys: Journeys, deadline_s: float | None) -> list[bytes]:
    """Everything that decides how a plan goes, as bytes."""
    due = np.inf if deadline_s is None else deadline_s
    due_s = np.where(journeys.fallback_speed > 0.0, due, np.inf)
    columns = [np.asarray(getattr(journeys, name), dtype=float) for name in journeys.__slots__]
    return [row.tobytes() for row in np.stack([*columns, due_s], axis=1)]
