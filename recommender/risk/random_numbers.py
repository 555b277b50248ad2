"""Common random numbers: all plans use the same paths, bit for bit on every machine.

So plans differ by what they are and not by chance, and a longer deadline never looks riskier.
Uniforms come from the raw output of PCG64DXSM, whose stream numpy guarantees. Every distribution is
our own inverse function of them, because numpy does not guarantee the streams of its distributions
across versions. The variates that matter most (initial availability, the zone's level, the first
outages, the job's speed) are spread evenly over all paths by Sobol' points (`sobol.py`): half the
error at the same work.
"""

from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from recommender.arrays import Floats, Ints, Singles
from recommender.catalogs.frozen import dataclass
from recommender.risk.laws import OUTAGE_FAMILY, RUN_FAMILY, IntervalFamily
from recommender.risk.normal_law import normal_quantile
from recommender.risk.on_demand_wait import supply_of, wait_s
from recommender.risk.sobol import BITS, sobol_points

PATH_COUNT = 1024
SEED = 7
STRETCH = 8  # cycles that are drawn and walked at once
MAX_LISTED_ZONES = 4  # zones of a failover list that are simulated at most
_RUN, _OUTAGE, _MOVED, _NOTICE = 1, 2, 3, 4  # streams: one variate per cycle
_START, _RESIDUE, _SPEED, _PRICE, _ON_DEMAND, _ZONE = 5, 6, 7, 8, 9, 20  # one per path
_REPLACED = 10  # one per cycle
_BY_CYCLE = {
    "run": _RUN, "outage": _OUTAGE, "moved": _MOVED, "notice": _NOTICE, "replaced": _REPLACED
}  # fmt: skip
# What is spread evenly, stream and cycle, in the order of its weight: early Sobol' dimensions
# fill their planes best.
_EVEN = {
    place: dimension
    for dimension, place in enumerate(
        (
            (_ZONE, 0), (_START, 0), (_SPEED, 0), (_RESIDUE, 0), (_PRICE, 0), (_OUTAGE, 0),
            (_RUN, 0), (_MOVED, 1), (_OUTAGE, 1), (_ZONE + 1, 0), (_RUN, 1), (_ON_DEMAND, 0),
            (_MOVED, 2), (_OUTAGE, 2), (_ZONE + 2, 0), (_RUN, 2), (_ZONE + 3, 0), (_MOVED, 3),
        )
    )
}  # fmt: skip


@dataclass(frozen=True)
class RandomNumbers:
    """Random variates of some paths, generated on demand; of their cycles `STRETCH` at a time."""

    paths: int
    seed: int

    def zone_at(self, site: int) -> Floats:
        """(paths,) normal: availability level of one zone of the list, shared by plans."""
        return _zone_at(self.paths, self.seed, site)

    @cached_property
    def start(self) -> Floats:
        """(paths,) uniform: is capacity available at the request?"""
        return self.once(_START)

    @cached_property
    def residue(self) -> Floats:
        """(paths,) uniform: how much of the current run or outage remains."""
        return self.once(_RESIDUE)

    @cached_property
    def speed(self) -> Floats:
        """(paths,) normal: true speed relative to predicted."""
        return normal_quantile(self.once(_SPEED))

    @cached_property
    def price(self) -> Floats:
        """(paths,) normal: spot price then relative to now."""
        return normal_quantile(self.once(_PRICE))

    @cached_property
    def supply(self) -> Floats:
        """(paths,) uniform: on-demand supply, low if scarce, correlated with spot."""
        return supply_of(self.zone_at(0), self.once(_ON_DEMAND))

    def queue_s(self, at_once: Floats, median_s: Floats) -> Floats:
        """The wait of each path for on-demand machines at their start; (plans, paths)."""
        if np.all(at_once >= 1.0):
            return np.zeros((len(at_once), self.paths))
        return wait_s(at_once[:, None], median_s[:, None], self.supply[None])

    def factors(self, which: str, shape: float, first: int) -> Singles:
        """Lengths of mean one, "run" or "outage", of the cycles from `first` on; (cycles, paths).

        Shared by plans.
        """
        return _factors(self.paths, self.seed, which, shape, first)

    def uniforms(self, which: str, first: int) -> Floats:
        """Uniforms of the cycles from `first` on, shared by plans; (cycles, paths).

        "moved": is another listed zone up? "notice": did the save beat the notice? "replaced": the
        supply when a failed machine is replaced. "run": behind the runs, for other laws.
        """
        return _uniforms_of(self.paths, self.seed, which, first)

    def once(self, stream: int) -> Floats:
        """(paths,) uniforms of a stream with one variate per path."""
        return stratified(self.seed, stream, self.paths, _EVEN[stream, 0])


@dataclass(frozen=True, eq=False)
class SomePaths(RandomNumbers):
    """A view of some paths of a larger sample."""

    whole: RandomNumbers
    rows: Ints

    def zone_at(self, site: int) -> Floats:
        """(paths,) normal: availability level of one zone of the list."""
        return self.whole.zone_at(site)[self.rows]

    def factors(self, which: str, shape: float, first: int) -> Singles:
        """Lengths of mean one, "run" or "outage", of the cycles from `first` on."""
        return self.whole.factors(which, shape, first)[:, self.rows]

    def uniforms(self, which: str, first: int) -> Floats:
        """Uniforms of the cycles from `first` on."""
        return self.whole.uniforms(which, first)[:, self.rows]

    def once(self, stream: int) -> Floats:
        """(paths,) uniforms of a stream with one variate per path."""
        return self.whole.once(stream)[self.rows]


def some_paths(whole: RandomNumbers, rows: Ints) -> SomePaths:
    """Some paths of a sample."""
    return SomePaths(len(rows), whole.seed, whole, rows)


def uniforms(seed: int, stream: int, count: int) -> Floats:
    """Uniforms in (0, 1), bit-stable across numpy versions and machines."""
    raw = np.random.PCG64DXSM(np.random.SeedSequence([seed, stream])).random_raw(count)
    return _unit(np.asarray(raw, dtype=np.uint64))


def _unit(bits: NDArray[np.uint64]) -> Floats:
    """Uniforms in (0, 1) from raw bits, which are overwritten."""
    bits >>= np.uint64(11)
    found = bits.view(np.int64).astype(np.float64)  # 53 bits: signed is the same, and faster
    found += 0.5
    found *= 2.0**-53
    return found


@lru_cache(maxsize=64)
def stratified(seed: int, stream: int, count: int, dimension: int) -> Floats:
    """One uniform per stratum, in the order of Sobol' points, which fill the unit cube together.

    The points are scrambled by the seed and stay spread; their ranks make the strata exact also for
    counts that are not a power of two.
    """
    base = uniforms(seed, stream, count + BITS + 1)
    shift, *rows = (base[count:] * 2.0**BITS).astype(np.uint32).tolist()
    spread = sobol_points(dimension, count, tuple(rows)) ^ np.uint32(shift)
    found: Floats = (_ranks(spread) + base[:count]) / count
    found.flags.writeable = False  # kept between paths of other lengths
    return found


def _ranks(points: NDArray[np.uint32]) -> Ints:
    """The place of each point among all; of 2^m points that is what their first m bits say."""
    count = len(points)
    bits = count.bit_length() - 1
    if count == 1 << bits > 1:
        return (points >> np.uint32(BITS - bits)).astype(np.int64)
    rank = np.empty(count, dtype=np.int64)
    rank[np.argsort(points)] = np.arange(count)
    return rank


@lru_cache(maxsize=32)
def random_numbers(paths: int = PATH_COUNT, seed: int = SEED) -> RandomNumbers:
    """The paths of one seed."""
    return RandomNumbers(paths, seed)


@lru_cache(maxsize=256)
def _zone_at(paths: int, seed: int, site: int) -> Floats:
    return normal_quantile(stratified(seed, _ZONE + site, paths, _EVEN[_ZONE + site, 0]))


def time_factors(sigma: Floats | float, normals: Floats) -> Floats:
    """True over predicted training time; both arguments broadcast.

    Its median is one, because the constants of the speed model are medians of ln(true / predicted
    speed) and its spreads were fitted and scored around them (docs/research/accuracy.md, "Spans").
    Its mean is exp(sigma²/2), so a plan with a less certain speed costs more on average.
    """
    return np.asarray(np.exp(sigma * normals))


def price_factors(sigma: Floats, normals: Floats) -> Floats:
    """Spot price of the day over the expected one: mean one, the same move in all plans."""
    return np.asarray(np.exp(sigma * normals - 0.5 * sigma**2))


def clear_caches() -> None:
    """Free the memory of past paths, which a long simulation uses only once."""
    for kept in (random_numbers, stratified, _factors, _scores, _uniforms_of, _zone_at):
        kept.cache_clear()


def _cycles_of(stream: int, paths: int, seed: int, first: int) -> Floats:
    """Uniforms of the cycles from `first` on; (paths, cycles)."""
    block = first // STRETCH
    drawn = uniforms(seed, stream + 100 * block, paths * STRETCH).reshape(paths, STRETCH)
    for (of, cycle), dimension in _EVEN.items():
        if of == stream and first <= cycle < first + STRETCH:
            drawn[:, cycle - first] = stratified(seed, 1000 * stream + cycle, paths, dimension)
    return drawn


@lru_cache(maxsize=512)
def _factors(paths: int, seed: int, which: str, shape: float, first: int) -> Singles:
    scores = _scores(paths, seed, which, first)
    return _family(which).lengths(scores.T, shape).astype(np.float32)


@lru_cache(maxsize=64)  # for other shapes that follow
def _scores(paths: int, seed: int, which: str, first: int) -> Floats:
    return _family(which).scores(_cycles_of(_BY_CYCLE[which], paths, seed, first))


def _family(which: str) -> IntervalFamily:
    return RUN_FAMILY if which == "run" else OUTAGE_FAMILY


@lru_cache(maxsize=256)
def _uniforms_of(paths: int, seed: int, which: str, first: int) -> Floats:
    drawn = _cycles_of(_BY_CYCLE[which], paths, seed, first)
    if which == "replaced":
        drawn = supply_of(_zone_at(paths, seed, 0)[:, None], drawn)
    return np.ascontiguousarray(drawn.T)
