"""Figures of a market as sums over days, so that days can be drawn anew for limits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from recommender.traces.facts import Value
from recommender.traces.spells import Cells, by_block, cells, sizes_of, weights
from recommender.traces.trace import Floats, Trace

LEAST_BLOCKS = 5  # without which there are no limits
_RHOS = np.arange(0.0, 1.0001, 0.005)


@dataclass(frozen=True)
class Market:
    """The series of one market, cut into hours; gang sizes up to the smallest capacity."""

    traces: tuple[Trace, ...]
    sizes: tuple[int, ...]
    cells: tuple[Cells, ...]

    @cached_property
    def drawn(self) -> Floats:
        """How often each day is drawn; (replicates, days of all series)."""
        return weights([int(c.block.max()) + 1 for c in self.cells])

    def days(self, values: Sequence[Floats]) -> Floats:
        """One figure per cell of each series, summed over its days; (days of all series, ...)."""
        pairs = zip(values, self.cells, strict=True)
        return np.concatenate([by_block(v, c.block) for v, c in pairs])

    def limited(self, statistic: Callable[[Floats], float], sums: Floats) -> Value:
        """A statistic of summed figures with its percentile limits.

        `sums` has shape (days, figures); `statistic` takes the total of each figure.
        """
        value = statistic(sums.sum(axis=0))
        if len(sums) < LEAST_BLOCKS:
            return Value(value)
        return limits_of(value, np.array([statistic(row) for row in self.drawn @ sums]))


def market_of(traces: Sequence[Trace]) -> Market:
    """Cut series of machines into hours."""
    sizes = sizes_of(min(trace.capacity for trace in traces))
    return Market(tuple(traces), sizes, tuple(cells(trace, sizes) for trace in traces))


def limits_of(value: float, replicates: NDArray[np.float64]) -> Value:
    """Percentile limits of a bootstrap; none where a tenth of the replicates has no value."""
    good = replicates[np.isfinite(replicates)]
    if len(good) < 0.9 * len(replicates):
        return Value(value)
    low, high = np.quantile(good, (0.025, 0.975))
    return Value(value, min(float(low), value), max(float(high), value))


def ratio(sums: Floats) -> float:
    """First figure per second one; infinite where the second is zero."""
    return float(sums[0] / sums[1]) if sums[1] > 0 else float("inf")


def co_interruption(run_means: Floats, sizes: Sequence[int]) -> float:
    """ρ of u(n) = u(1)/(1 + (n - 1)(1 - ρ)), least squares of ln u over gang sizes.

    Sizes that were never interrupted say nothing; not a number where only one is left.
    """
    n = np.array(sizes, dtype=np.float64)
    known = np.isfinite(run_means) & (run_means > 0) & (n > 1)
    if not known.any() or not np.isfinite(run_means[0]):
        return float("nan")
    fall = np.log(run_means[0] / run_means[known])
    law = np.log1p((n[known][None] - 1.0) * (1.0 - _RHOS[:, None]))
    return float(_RHOS[int(((fall - law) ** 2).sum(axis=1).argmin())])


def slope(locations: Floats, sizes: Sequence[int]) -> float:
    """Logits of availability lost per doubling of the gang (least squares); (sizes,) to one."""
    doublings = np.log2(np.array(sizes, dtype=np.float64))
    centred = doublings - doublings.mean()
    return -float((centred * (locations - locations.mean())).sum() / (centred**2).sum())
