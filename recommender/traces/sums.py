"""Figures of a market as sums over days, so that days can be drawn anew for limits."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from catalogs.schema import GANG_KNEE
from recommender.traces.facts import Value
from recommender.traces.laws import Z95
from recommender.traces.spells import Cells, by_block, cells, sizes_of, weights
from recommender.traces.trace import Floats, Trace

Statistic = Callable[[Floats], Floats]  # totals (n, figures) to values (n,)

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

    def limited(self, statistic: Statistic, sums: Floats) -> Value:
        """A statistic of summed figures with its limits; `sums` has shape (days, figures)."""
        return limited(statistic, sums, self.drawn)


def limited(statistic: Statistic, sums: Floats, drawn: Floats) -> Value:
    """A statistic of figures summed over days, and its limits from days that were drawn anew."""
    value = float(statistic(sums.sum(axis=0)[None])[0])
    if len(sums) < LEAST_BLOCKS:
        return Value(value)
    return limits_of(value, statistic(drawn @ sums), len(sums))


def market_of(traces: Sequence[Trace]) -> Market:
    """Cut series of machines into hours."""
    sizes = sizes_of(min(trace.capacity for trace in traces))
    return Market(tuple(traces), sizes, tuple(cells(trace, sizes) for trace in traces))


def limits_of(value: float, replicates: Floats, units: int) -> Value:
    """Limits of a bootstrap over so many units; none where a tenth of it has no value.

    Quantiles of the replicates, further out where units are few: as far as Student's t is
    beyond the normal law, times √(n/(n-1)) (expanded percentile interval; Hesterberg, The
    American Statistician 69, 2015).
    """
    good = replicates[np.isfinite(replicates)]
    if len(good) < 0.9 * len(replicates) or units < 2:
        return Value(value)
    reach = math.sqrt(units / (units - 1.0)) * student(units - 1)
    tail = 0.5 * math.erfc(reach / math.sqrt(2.0))
    low, high = np.quantile(good, (tail, 1.0 - tail))
    return Value(value, min(float(low), value), max(float(high), value))


def student(freedom: int) -> float:
    """The 97.5 % quantile of Student's t (expansion in 1/ν; Abramowitz and Stegun 26.7.5)."""
    z, v = Z95, float(freedom)
    return (
        z
        + (z**3 + z) / (4 * v)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
    )


def ratio(sums: Floats) -> Floats:
    """First figure per second one, infinite where the second is zero; (n, 2) to (n,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sums[:, 1] > 0, sums[:, 0] / sums[:, 1], np.inf)


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
    """Logits of availability lost per log2(1 + (n-1)/GANG_KNEE), least squares; (sizes,) to one.

    The unit of the classes (`SpotClass.availability_slope`), in whose place it is put.
    """
    doublings = np.log2(1.0 + (np.array(sizes, dtype=np.float64) - 1.0) / GANG_KNEE)
    centred = doublings - doublings.mean()
    return float((centred * (locations[0] - locations)).sum() / (centred**2).sum())
