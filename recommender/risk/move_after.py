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
from recommender.risk.laws import OUTAGE_FAMILY
from recommender.risk.path_inputs import PathInputs


def patient_wait_s(p: PathInputs, outage_s: Floats, nowhere: Floats) -> Floats:
    """Mean wait of plans for outages of one location with mean `outage_s`; (plans, states).

    E[min(P, O)] + nowhere·E[(O/k - P)+], if none is up with the chance `nowhere`.
    """
    outage_s, sigma = np.maximum(outage_s, 1e-9), p.outage_sigma[:, None]
    patience, zones = p.move_after_s[:, None], p.zone_count[:, None]
    here = OUTAGE_FAMILY.excess(patience, outage_s, sigma)
    beyond = OUTAGE_FAMILY.excess(zones * patience, outage_s, sigma)
    return np.asarray(outage_s - here + nowhere * beyond / zones)


def share_moved(p: PathInputs, outage_s: Floats) -> Floats:
    """Share of the interruptions after which the checkpoints of plans move; (plans, states)."""
    patience = p.move_after_s[:, None]
    long = OUTAGE_FAMILY.survival(patience, np.maximum(outage_s, 1e-9), p.outage_sigma[:, None])
    return np.where(patience > 0.0, long, 1.0)
