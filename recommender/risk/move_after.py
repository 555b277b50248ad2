"""Patience before a cluster moves: how long it waits where its checkpoint is, and what that saves.

Most spot outages are short. If the zone of a cluster with k listed locations is away for O, it
waits

    wait  = max(base, min(P, O))        base: 0 if another location is up, otherwise O/k
    moved   if O >= P                   the checkpoint moves too, and its egress is paid

where P is the patience in seconds; P = 0 moves at every interruption. Moving at once if it is
cheap, and waiting as long as a move is worth if it is expensive, costs at worst twice as much as
knowing the outage in advance (the ski-rental problem; Karlin et al. 1988, Algorithmica 3:79-119).
"""

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.frozen import dataclass
from recommender.risk.laws import OUTAGE_FAMILY
from recommender.risk.path_inputs import PathInputs


def stays(move_after_s: Floats, outages: Floats, waits: Floats) -> Floats:
    """Waits of clusters that first try their current location; `outages` of one location."""
    return np.maximum(waits, np.minimum(move_after_s, outages))


@dataclass(frozen=True, slots=True)
class StayLaw:
    """Waits and moves of clusters under the law of outages; arrays broadcast with its states."""

    move_after_s: Floats
    outage_sigma: Floats
    zone_count: Floats

    def wait_s(self, outage_s: Floats, nowhere: Floats) -> Floats:
        """Mean wait for outages of one location with mean `outage_s`; `nowhere`: chance that none
        is up.

        E[min(P, O)] + nowhere·E[(O/k - P)+].
        """
        outage_s = np.maximum(outage_s, 1e-9)
        here = OUTAGE_FAMILY.excess(self.move_after_s, outage_s, self.outage_sigma)
        beyond = OUTAGE_FAMILY.excess(
            self.zone_count * self.move_after_s, outage_s, self.outage_sigma
        )
        return np.asarray(outage_s - here + nowhere * beyond / self.zone_count)

    def moved(self, outage_s: Floats) -> Floats:
        """Share of the interruptions after which the checkpoint moves."""
        outage_s = np.maximum(outage_s, 1e-9)
        long = OUTAGE_FAMILY.survival(self.move_after_s, outage_s, self.outage_sigma)
        return np.where(self.move_after_s > 0.0, long, 1.0)


def stay_law(p: PathInputs) -> StayLaw:
    """The patience of plans, to broadcast with states; (plans, 1)."""
    return StayLaw(p.move_after_s[:, None], p.outage_sigma[:, None], p.zone_count[:, None])
