"""Patience before a cluster moves: how long it asks where its checkpoint lies, and what that saves.

Spot that goes away is mostly back soon. A cluster of k listed places whose zone is away for O waits

    wait  = max(base, min(P, O))        base: 0 where another place is up, else O/k
    moved   where O >= P                the checkpoint goes with it, and its egress is paid

for P seconds of patience; P = 0 is a move at every interruption. Moving at once where it costs
little, and waiting as long as a move is worth where it costs much, is at worst twice as dear as
knowing the outage beforehand (the ski-rental problem; Karlin et al. 1988, Algorithmica 3:79-119).
"""

import numpy as np

from recommender.arrays import Floats, Singles
from recommender.catalogs.frozen import dataclass
from recommender.risk.laws import OUTAGE_FAMILY
from recommender.risk.path_inputs import PathInputs
from recommender.risk.planes import row, until


def stays(p: PathInputs, outages: Singles, waits: Singles) -> Singles:
    """Waits of clusters that ask where they were first; `outages` of one place, in seconds.

    All of shape (cycles, plans, paths).
    """
    return np.maximum(waits, np.minimum(row(p.move_after_s), outages))


def moves_until(p: PathInputs, waits: Singles) -> Singles:
    """How often each cluster has moved by the start of each run; the first run starts anew."""
    moved = (waits >= row(p.move_after_s)).astype(np.float32)
    moved[0] = 0.0
    return until(moved)


@dataclass(frozen=True, slots=True)
class StayLaw:
    """How clusters wait and move by the law of outages; arrays that broadcast with its states."""

    move_after_s: Floats
    outage_sigma: Floats
    zone_count: Floats

    def wait_s(self, outage_s: Floats, nowhere: Floats) -> Floats:
        """Mean wait, for outages of one place of mean `outage_s`; none other is up by `nowhere`.

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
    """The patience of plans, against states; (plans, 1)."""
    return StayLaw(p.move_after_s[:, None], p.outage_sigma[:, None], p.zone_count[:, None])
