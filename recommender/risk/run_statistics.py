"""Statistics of a plan's paths for the search: trimmed means, quantiles, and a cache of outcomes.

The chance that limits are met is counted in `optimize/evaluate.py` (`limits_met`).

A zone's mean outage is lognormal with a spread of 1.4 to 2.6 (docs/research/risk-facts.md), so a
few simulated runs in a thousand wait for months. They dominate a plain mean: over 2,048 runs its
error is a third, and it may exceed the 95 % quantile. They are no forecast either, because the
spread comes from recordings of weeks. The mean of the middle nine tenths describes the runs of the
printed span; it lies inside the span, and 2,048 paths estimate it to a few per cent.

It grows with every single path, so a bound on each path bounds it (`optimize/bounds/cluster.py`).
"""

from dataclasses import field

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.path_inputs import PathInputs, Paths
from recommender.risk.random_numbers import random_numbers

Outcome = tuple[Floats, ...]  # one value per field of `Outcomes`
# A plan, the overhead limit, how often its switch was narrowed, and whether it is met exactly.
SwitchKey = tuple[bytes, float, int, bool]

ROUNDING = 1e-9  # what sums of seconds leave of an overhead of nothing
MAX_REMEMBERED = 5000  # plans remembered: 4 kB each
ONE_IN = 20  # the fastest and the slowest of so many runs are left out: the span is 5 to 95 %


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The result of each plan on each path; shape (plans, paths) or (plans,)."""

    time_s: Floats  # (plans, paths)
    cost_usd: Floats  # (plans, paths)
    expected_usd: Floats
    usd_with_any_fallback: (
        Floats  # least expected bill if any fallback could take over after any run
    )
    overhead: Floats  # `checkpoint_overhead`
    usd_error: Floats  # standard errors of the mean bill, `mean_error`,
    overhead_error: Floats  # and of the overhead,
    covariance: Floats  # and the covariance of both

    @staticmethod
    def blank(plans: int, paths: int) -> "Outcomes":
        """Outcomes to be set, for some plans."""
        return Outcomes(*np.empty((2, plans, paths)), *np.zeros((6, plans)))

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
    # How many seconds earlier plans switch; inf if that costs at least the second figure, in USD.
    # The third is the least that the plan may cost on other paths.
    switches: dict[SwitchKey, tuple[float, float, float]] = field(default_factory=dict)
    # Bounds of gangs by their keys and an overhead limit (`relaxed_bills.py`).
    relaxed: dict[tuple[bytes, float], Outcome] = field(default_factory=dict)

    def outcomes(self, inputs: PathInputs, deadline_s: float | None) -> Outcomes:
        """The outcomes of some plans; only new ones are simulated."""
        keys = keys_of(inputs, deadline_s)
        new = [row for row, key in enumerate(keys) if key not in self.known]
        met = [row for row, key in enumerate(keys) if key in self.known]
        if not met:
            found = Outcomes(*self._simulated(inputs, deadline_s))
        else:
            found = Outcomes.blank(len(keys), self.path_count)
            for row in met:
                found.put(row, self.known[keys[row]])
            if new:
                found.put(new, self._simulated(inputs.take(np.array(new)), deadline_s))
        for row in new[: max(self.most - len(self.known), 0)]:
            self.known[keys[row]] = found.of(row)
        return found

    def _simulated(self, inputs: PathInputs, deadline_s: float | None) -> Outcome:
        return outcome_of(simulate_paths(inputs, deadline_s, self.path_count, self.seed))

    def remember(self, inputs: PathInputs, deadline_s: float | None, found: Outcomes) -> None:
        """Add plans that were simulated elsewhere."""
        for row, key in enumerate(keys_of(inputs, deadline_s)[: self.most - len(self.known)]):
            self.known[key] = found.of(row)

    def not_cached(self, inputs: PathInputs, deadline_s: float | None) -> Bools:
        """Which plans are not yet in the cache."""
        return np.array([key not in self.known for key in keys_of(inputs, deadline_s)], dtype=bool)


def outcome_of(h: Paths) -> Outcome:
    """The outcome of simulated plans."""
    work_s, usd = h.work_s.mean(axis=1), h.expected_usd.mean(axis=1)
    usd_rest = _without_work(h.expected_usd, usd, h.work_s)
    lost_rest = _without_work(h.lost_work_s, h.lost_work_s.mean(axis=1), h.work_s)
    paths, work_s = usd_rest.shape[1], np.maximum(work_s, 1.0)
    return (
        h.time_s,
        h.cost_usd,
        usd,
        h.usd_with_any_fallback.mean(axis=1),
        checkpoint_overhead(h),
        np.sqrt(_mean_product(usd_rest, usd_rest) / paths),
        np.sqrt(_mean_product(lost_rest, lost_rest) / paths) / work_s,
        _mean_product(usd_rest, lost_rest) / paths / work_s,
    )


def _mean_product(one: Floats, other: Floats) -> Floats:
    """Mean over the paths of the product of two values whose means are 0; (plans,)."""
    found: Floats = np.einsum("ij,ij->i", one, other) / one.shape[1]
    return found


def mean_error(values: Floats, work_s: Floats) -> Floats:
    """Standard error of the mean over independent paths, without the part explained by speed.

    Speeds are spread evenly over the paths, so their mean is known far more precisely. Both
    arguments have shape (plans, paths).
    """
    rest = _without_work(values, values.mean(axis=1), work_s)
    error: Floats = rest.std(axis=1) / np.sqrt(values.shape[1])
    return error


def trimmed_mean_errors(values: Floats, work_s: Floats) -> Floats:
    """Standard errors of trimmed means, without the part of speed, as in `mean_error`."""
    rest = _without_work(values, trimmed_mean(values), work_s)
    count = rest.shape[1]
    ordered = np.sort(rest, axis=1)
    low, high = ordered[:, count // ONE_IN], ordered[:, count - count // ONE_IN - 1]
    pulled = np.clip(rest, low[:, None], high[:, None])
    error: Floats = pulled.std(axis=1) / (1.0 - 2.0 / ONE_IN) / np.sqrt(count)
    return error


def difference_error(difference: Floats, seed: int) -> float:
    """Standard error of a mean difference of two plans on the same paths, shape (paths,).

    Without the part explained by speed and spot price, which are spread evenly over the paths.
    """
    sample = random_numbers(len(difference), 8, seed)
    known = np.stack([np.ones(len(difference)), sample.speed, sample.price], axis=1)
    share = np.linalg.solve(known.T @ known, known.T @ difference)
    return float((difference - known @ share).std() / np.sqrt(len(difference)))


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
    due_matters = (inputs.fallback_speed > 0.0) | np.isfinite(inputs.best_fallback_usd_per_hour)
    return inputs.keys(np.where(due_matters, due, np.inf))


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
