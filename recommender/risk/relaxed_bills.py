"""What spot gangs cost at least if work that they hand over or lose has a price.

A gang that loses more than an overhead limit allows may do a part of the work only, and a fallback
has to do the rest. With u and m the prices of work handed over and of work lost, W the work of a
path and L the limit, a handover at t costs

    B(t) + m·lost(t) + fee - m·L·W      B(t) = fixed + base·t + spot·billed(t) + u·(W - P(t))

and by the Lagrangian relaxation of the limit the mean over the paths of the least of these is a
lower bound of the cost of every rule by which a fallback takes over. It is concave in u and the
fee. So it is computed once for each gang at a few prices and fees, and interpolated for whatever
fallbacks it may have.

With S and F the cost of the work on the gang and on the fallback and r the gang's overhead, the
fallback pays from m = (F - S)/r on; the larger the part of the work that the gang may do, L/r, the
lower the best price.
"""

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.risk.fallback import HandoverMoments, handover_moments
from recommender.risk.monte_carlo import account_with_any, batches, path_ends, surely_outlast
from recommender.risk.path_inputs import PathInputs, Paths
from recommender.risk.random_numbers import random_numbers
from recommender.risk.run_statistics import (
    OutcomeCache,
    Outcomes,
    keys_of,
    mean_error,
    outcome_of,
)
from recommender.risk.spot_capacity import simulate_runs

PRICE = 0.8  # of (1 - L/r)·(F - S)/r: the best price was 0.6 to 1 of it for nearly all gangs
STEP, PIECES = 1.3, 2  # prices of work handed over: pieces of this ratio from the lowest on
# Work lost in a restart on the fallback, in changeovers of the gang: what the fees stand for.
RESTARTS = np.array([0.0, 0.4, 1.2, 4.0])


@dataclass(frozen=True, slots=True)
class RelaxedBills:
    """Bounds of gangs at some prices and fees, USD; -inf for gangs that keep the limit."""

    knots: Floats  # prices of an hour of the gang's work; (gangs, PIECES + 1)
    usd_per_lost_hour: Floats  # of each piece between them; (gangs, PIECES)
    fee_usd: Floats  # (gangs, PIECES, fees)
    least_usd: Floats  # at the ends of each piece; (gangs, PIECES, 2, fees)
    error_usd: Floats  # its standard error; (gangs, PIECES, 2)

    @staticmethod
    def blank(gangs: int) -> "RelaxedBills":
        """Bounds of gangs that keep the limit."""
        pieces = gangs, PIECES
        return RelaxedBills(
            np.tile(STEP ** np.arange(PIECES + 1), (gangs, 1)),
            np.zeros(pieces),
            np.zeros((*pieces, len(RESTARTS))),
            np.full((*pieces, 2, len(RESTARTS)), -np.inf),
            np.zeros((*pieces, 2)),
        )

    def of(self, row: int | Ints | slice) -> tuple[Floats, ...]:
        """The bounds of one gang or of some."""
        return tuple(getattr(self, name)[row] for name in self.__slots__)

    def put(self, rows: int | Ints, bounds: tuple[Floats, ...]) -> None:
        """Set the bounds of some gangs."""
        for name, values in zip(self.__slots__, bounds, strict=True):
            getattr(self, name)[rows] = values

    def of_plans(self, of: Ints, helped: PathInputs, errors: float) -> Floats:
        """Bounds of plans with fallbacks, each of a gang, less so many standard errors; (plans,).

        Beyond the last knot and fee their bounds hold, as dearer work costs more.
        """
        bounds = np.full(len(of), -np.inf)
        rows = np.flatnonzero(np.isfinite(self.least_usd[of, 0, 0, 0]))
        if len(rows):
            usd = self.least_usd - errors * self.error_usd[..., None]
            bounds[rows] = self._interpolated(usd, of[rows], helped.take(rows))
        return bounds

    def _interpolated(self, usd: Floats, of: Ints, helped: PathInputs) -> Floats:
        """Bounds between the prices and fees of their gangs; `usd` as `least_usd`."""
        speed, each = np.maximum(helped.fallback_speed, 1e-12), np.arange(len(of))
        per_hour = helped.fallback_usd_per_hour + helped.base_usd_per_hour
        price, start_h = per_hour / speed, helped.fallback_start_s / 3600.0
        ratio = np.log(np.maximum(price, 1e-9) / self.knots[of, 0]) / np.log(STEP)
        piece = np.clip(np.floor(ratio).astype(np.int64), 0, PIECES - 1)
        fee = (per_hour + self.usd_per_lost_hour[of, piece] * speed) * start_h
        fees = self.fee_usd[of, piece]
        at = np.clip((fees <= fee[:, None]).sum(axis=1) - 1, 0, len(RESTARTS) - 2)
        by_price = _share(price, self.knots[of, piece], self.knots[of, piece + 1])
        by_fee = _share(fee, fees[each, at], fees[each, at + 1])
        low, high = (
            (1.0 - by_fee) * usd[of, piece, end, at] + by_fee * usd[of, piece, end, at + 1]
            for end in range(2)
        )
        return np.asarray((1.0 - by_price) * low + by_price * high)


def _share(value: Floats, low: Floats, high: Floats) -> Floats:
    """Where values lie between two others, from 0 to 1."""
    return np.clip((value - low) / np.maximum(high - low, 1e-12), 0.0, 1.0)


def relaxed_bills(
    cache: OutcomeCache, gangs: PathInputs, max_overhead: float, deadline_s: float
) -> RelaxedBills:
    """The bounds of gangs without fallbacks; new ones are simulated, and their outcomes cached."""
    keys = [(key, max_overhead) for key in keys_of(gangs, deadline_s)]
    found = RelaxedBills.blank(len(keys))
    new = np.array([row for row, key in enumerate(keys) if key not in cache.relaxed], dtype=int)
    for row, key in enumerate(keys):
        if key in cache.relaxed:
            found.put(row, cache.relaxed[key])
    if len(new):
        some = gangs.take(new)
        outcomes, bounds = simulate_relaxed(
            some, max_overhead, deadline_s, cache.path_count, cache.seed
        )
        cache.remember(some, deadline_s, outcomes)
        found.put(new, bounds.of(np.arange(len(new))))
        for place, row in enumerate(new[: max(cache.most - len(cache.relaxed), 0)].tolist()):
            cache.relaxed[keys[row]] = bounds.of(place)
    return found


def simulate_relaxed(
    gangs: PathInputs, max_overhead: float, deadline_s: float, paths: int, seed: int
) -> tuple[Outcomes, RelaxedBills]:
    """Simulate gangs without fallbacks, as `simulate_paths` does, and bound them on their runs."""
    outcomes, bounds = Outcomes.blank(len(gangs), paths), RelaxedBills.blank(len(gangs))
    for rows, count in batches(gangs, deadline_s, paths):
        p, sample = gangs.take(rows), random_numbers(paths, count, seed)
        runs = simulate_runs(p, sample)
        ended = path_ends(p, None, sample, runs)
        moments = handover_moments(p, runs, ended.alone.last, deadline_s)
        own = account_with_any(p, ended, runs, moments, deadline_s, sample)
        found = Outcomes(*outcome_of(own))
        outcomes.put(rows, found.of(slice(None)))
        over = np.flatnonzero((found.overhead > max_overhead) & (p.elastic_share <= 0.0))
        if len(over):
            late = surely_outlast(ended, runs, deadline_s)
            relaxed = _relaxed(p, found, own, moments, late, max_overhead)
            bounds.put(rows[over], relaxed.of(over))
    return outcomes, bounds


def _relaxed(
    p: PathInputs,
    found: Outcomes,
    own: Paths,
    moments: HandoverMoments,
    late: Bools,
    max_overhead: float,
) -> RelaxedBills:
    """The bounds of gangs on their runs; paths that end `late` cannot do without a fallback."""
    bounds, hours = RelaxedBills.blank(len(p)), p.work_s / 3600.0
    lowest = p.best_fallback_usd_per_hour + p.base_usd_per_hour / p.best_fallback_speed
    bounds.knots[:] = np.maximum(lowest, 1e-9)[:, None] * STEP ** np.arange(PIECES + 1)
    middle = bounds.knots[:, :-1] * STEP**0.5
    more_usd = np.maximum(middle * hours[:, None] - found.expected_usd[:, None], 0.0)
    share = np.maximum(1.0 - max_overhead / np.maximum(found.overhead, 1e-9), 0.0)
    lost_usd = PRICE * share / np.maximum(found.overhead * hours, 1e-9)
    bounds.usd_per_lost_hour[:] = lost_usd[:, None] * more_usd
    restart_h = p.changeover_s[:, None] * RESTARTS / 3600.0
    bounds.fee_usd[:] = bounds.usd_per_lost_hour[..., None] * restart_h[:, None]
    alone = np.where(late, np.inf, own.expected_usd)
    for piece in range(PIECES):
        m = bounds.usd_per_lost_hour[:, piece]
        for end in range(2):
            u = bounds.knots[:, piece + end]
            whole = u[:, None] * own.work_s / 3600.0 + p.fixed_usd[:, None]
            later = whole + moments.least_usd(u, m)
            at_once = np.minimum(alone + m[:, None] * own.lost_work_s / 3600.0, whole)
            free = m[:, None] * max_overhead * own.work_s / 3600.0
            for fee in range(len(RESTARTS)):
                handed_over = later + bounds.fee_usd[:, piece, fee][:, None]
                least = np.minimum(at_once, handed_over) - free
                bounds.least_usd[:, piece, end, fee] = least.mean(axis=1)
                if fee == 1:
                    bounds.error_usd[:, piece, end] = mean_error(least, own.work_s)
    return bounds
