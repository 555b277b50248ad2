"""Statistics of a plan's paths for the search: trimmed means, quantiles, and a cache of outcomes.

The chance that limits are met is counted in `optimize/evaluate.py` (`limits_met`).

A zone's mean outage is lognormal with a spread of 1.4 to 2.6 (docs/research/risk-facts.md), so a
few simulated runs in a thousand wait for months. They dominate a plain mean: over 2,048 runs its
error is a third, and it may exceed the 95 % quantile. They are no forecast either, because the
spread comes from recordings of weeks. The mean of the middle nine tenths describes the runs of the
printed span; it lies inside the span, and 2,048 paths estimate it to a few per cent.
"""

from dataclasses import field

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.path_inputs import PathInputs, Paths

Outcome = tuple[Floats, ...]  # one value per field of `Outcomes`

ROUNDING = 1e-9  # what sums of seconds leave of an overhead of nothing
MAX_REMEMBERED = 5000  # plans remembered: 4 kB each
MAX_OF_OTHERS = 64  # on the paths of each seed besides: 33 kB each
ONE_IN = 20  # the fastest and the slowest of so many runs are left out: the span is 5 to 95 %


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The result of each plan on each path; shape (plans, paths) or (plans,)."""

    time_s: Floats  # (plans, paths)
    cost_usd: Floats  # (plans, paths)
    expected_usd: Floats
    overhead: Floats  # `checkpoint_overhead`
    overhead_error: Floats  # its standard error, the part that grows with the work left out

    @staticmethod
    def blank(plans: int, paths: int) -> "Outcomes":
        """Outcomes to be set, for some plans."""
        return Outcomes(*np.empty((2, plans, paths)), *np.zeros((3, plans)))

    def of(self, row: int | Ints | Bools | slice) -> Outcome:
        """The outcome of one plan or of some."""
        return tuple(getattr(self, name)[row] for name in self.__slots__)

    def put(self, rows: int | list[int] | Ints, ends: Outcome) -> None:
        """Set the outcome of some plans."""
        for name, values in zip(self.__slots__, ends, strict=True):
            getattr(self, name)[rows] = values


@dataclass(frozen=True, slots=True)
class OutcomeCache:
    """Outcomes of the plans simulated so far, keyed by the inputs of their simulation.

    Searches under other limits evaluate the same plans again. A plan without a fallback has the
    same outcome under every deadline.
    """

    path_count: int
    seed: int
    most: int = MAX_REMEMBERED
    known: dict[bytes, Outcome] = field(default_factory=dict)
    # How many seconds earlier plans switch under an overhead limit; inf: nothing meets it.
    switches: dict[tuple[bytes, float], float] = field(default_factory=dict)
    others: dict[tuple[int, int], "OutcomeCache"] = field(default_factory=dict)
    first: int | None = None  # so many of the paths only

    def other(self, seed: int, first: int | None = None) -> "OutcomeCache":
        """Outcomes on as many paths of another seed, or on the first of them."""
        if seed == self.seed and first is None:
            return self
        made = OutcomeCache(self.path_count, seed, MAX_OF_OTHERS, first=first)
        return self.others.setdefault((seed, first or self.path_count), made)

    def outcomes(self, inputs: PathInputs, deadline_s: float | None) -> Outcomes:
        """The outcomes of some plans; only new ones are simulated."""
        keys = keys_of(inputs, deadline_s)
        new = [row for row, key in enumerate(keys) if key not in self.known]
        met = [row for row, key in enumerate(keys) if key in self.known]
        if not met:
            found = Outcomes(*self._simulated(inputs, deadline_s))
        else:
            found = Outcomes.blank(len(keys), self.first or self.path_count)
            for row in met:
                found.put(row, self.known[keys[row]])
            if new:
                found.put(new, self._simulated(inputs.take(np.array(new)), deadline_s))
        for row in new[: max(self.most - len(self.known), 0)]:
            self.known[keys[row]] = found.of(row)
        return found

    def _simulated(self, inputs: PathInputs, deadline_s: float | None) -> Outcome:
        return outcome_of(
            simulate_paths(inputs, deadline_s, self.path_count, self.seed, first=self.first)
        )

    def remember(self, inputs: PathInputs, deadline_s: float | None, found: Outcomes) -> None:
        """Add plans that were simulated elsewhere."""
        for row, key in enumerate(keys_of(inputs, deadline_s)[: self.most - len(self.known)]):
            self.known[key] = found.of(row)


def outcome_of(h: Paths) -> Outcome:
    """The outcome of simulated plans."""
    lost = _without_work(h.lost_work_s, h.lost_work_s.mean(axis=1), h.work_s)
    error = np.sqrt(np.einsum("ij,ij->i", lost, lost)) / lost.shape[1]
    return (
        h.time_s,
        h.cost_usd,
        h.expected_usd.mean(axis=1),
        checkpoint_overhead(h),
        error / np.maximum(h.work_s.mean(axis=1), 1.0),
    )


def _without_work(values: Floats, mean: Floats, work_s: Floats) -> Floats:
    """What is left of values without the part that grows with the work."""
    ratio = mean / np.maximum(work_s.mean(axis=1), 1e-12)
    rest: Floats = values - ratio[:, None] * work_s
    return rest


def checkpoint_overhead(h: Paths) -> Floats:
    """Time for saves, repeated work and restarts, relative to the work of the job; (plans,).

    Both are on one scale: a second on the spot cluster counts once, one on a fallback by its
    relative speed. The work of the job is the same in every plan of a cluster, so slow hours and
    waits for capacity do not dilute it. The first start-up and waiting are not counted.
    """
    lost: Floats = h.lost_work_s.mean(axis=1) / np.maximum(h.work_s.mean(axis=1), 1.0)
    return np.where(lost < ROUNDING, 0.0, lost)


def keys_of(inputs: PathInputs, deadline_s: float | None) -> list[bytes]:
    """Everything that decides how a plan goes, as bytes."""
    due = np.inf if deadline_s is None else deadline_s
    return inputs.keys(np.where(inputs.fallback_speed > 0.0, due, np.inf))


def trimmed_mean(values: Floats) -> Floats:
    """Mean of the middle nine tenths along the last axis."""
    count = values.shape[-1]
    out = count // ONE_IN
    means: Floats = np.sort(values, axis=-1)[..., out : count - out].mean(axis=-1)
    return means


def quantiles(values: Floats, *shares: float) -> tuple[float, ...]:
    """The smallest values that at least these shares of the paths do not exceed.

    So a limit at a plan's 95 % figure is met with a chance of 95 %; interpolating between two
    paths would be one path short. `np.quantile(method="inverted_cdf")` gives the same but imports
    `numpy.ma`.
    """
    enough = np.ceil(np.array(shares) * len(values) - 1e-9).astype(np.int64)  # paths
    return tuple(np.sort(values)[np.maximum(enough, 1) - 1].tolist())


def middle_rows(values: Floats) -> Ints:
    """The tenth of the paths, shape (paths,), around the median: usual runs."""
    out = 9 * len(values) // 20
    return np.argsort(values, kind="stable")[out : len(values) - out]


def median_error(values: Floats) -> float:
    """Standard error of the median of independent paths, shape (paths,).

    Half the distance between the order statistics one standard error of the count below and
    above the middle (H. A. David and H. N. Nagaraja, Order Statistics, 2003, section 7.1).
    """
    count = len(values)
    middle, off = (count - 1) / 2.0, np.sqrt(count) / 2.0
    ranks = np.clip([middle - off, middle + off], 0, count - 1)
    low, high = np.interp(ranks, np.arange(count), np.sort(values))
    return float(high - low) / 2.0
