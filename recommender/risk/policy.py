"""The policy of a plan: when it goes on demand, and when it goes back to spot.

It knows only what has been seen: time, durable work, the measured speed and whether spot is there.
The simulation and exported scripts follow it with the same numbers.

    need  = (work - done) / speed          seconds to finish on demand
    slack = deadline - now - reserve - need

    on the cluster, or waiting for it      on demand when slack <= 0
    no spot is there                       on demand when slack <= wait_above · need
    on demand, and spot is there           back when slack - changeover > back_above · need

Until the first step has been timed, the work is the predicted one, and while no spot is there a
cautious prediction, exceeded as often as the deadline may be missed. With `wait_above` 0 and
`back_above` infinite the plan waits for spot as long as the deadline allows and never goes back.
Borders in proportion to what is left are nearly those of the optimal policy (docs/policies.md).
"""

import numpy as np

from recommender.arrays import Bools, Floats, Table
from recommender.catalogs.frozen import dataclass
from recommender.risk.path_inputs import PathInputs

# A round over the listed places until none has given machines: about a minute for each request
# that fails, and one for the plan to be made again (assumed).
ROUND_S_PER_PLACE = 60.0


@dataclass(frozen=True, slots=True)
class SwitchPolicy(Table):
    """The numbers of some plans' policies, to broadcast with paths; (plans, 1)."""

    due_s: Floats  # deadline less the reserve and the start of the fallback
    speed: Floats  # of the fallback, relative to the cluster
    wait_above: Floats
    back_above: Floats
    changeover_s: Floats  # of the cluster

    def need_s(self, left: Floats) -> Floats:
        """Seconds to do the work that is left on demand."""
        return left / self.speed

    def last_moment_s(self, left: Floats) -> Floats:
        """When slack is used up, if nothing more is done."""
        return self.due_s - self.need_s(left)

    def patience_ends_s(self, left: Floats) -> Floats:
        """When a plan without spot goes on demand."""
        return self.due_s - (1.0 + self.wait_above) * self.need_s(left)

    def back_from_s(self, on_demand_s: Floats, left: Floats) -> Floats:
        """From when on a plan that trains on demand since a moment takes spot again; inf: never.

        On demand the slack stays as it is while the need falls.
        """
        need = self.need_s(left)
        spare = self.due_s - on_demand_s - need - self.changeover_s
        with np.errstate(divide="ignore", invalid="ignore"):
            at = on_demand_s + np.maximum(need - spare / self.back_above, 0.0)
        return np.where((spare > 0.0) & np.isfinite(self.back_above), at, np.inf)


def policies_of(p: PathInputs, deadline_s: float | Floats) -> SwitchPolicy:
    """The policies of plans with a fallback under a deadline, one for all or of each path."""
    return SwitchPolicy(
        due_s=deadline_s - p.handover_s[:, None],
        speed=p.fallback_speed[:, None],
        wait_above=p.wait_above[:, None],
        back_above=p.back_above[:, None],
        changeover_s=p.changeover_s[:, None],
    )


def failover_round_s(places: int) -> float:
    """Seconds until a scheduler has found that none of its locations has spot."""
    return ROUND_S_PER_PLACE * (places + 1)


def has_thresholds(p: PathInputs) -> Bools:
    """Which plans do more than to wait for spot to the last moment; (plans,)."""
    return (p.fallback_speed > 0.0) & ((p.wait_above > 0.0) | np.isfinite(p.back_above))
