"""Common random numbers: all plans use the same paths, bit for bit on every machine.

So plans differ by what they are and not by chance, and a longer deadline never looks riskier.
Uniforms come from the raw output of PCG64DXSM, whose stream numpy guarantees. Every distribution is
our own inverse function of them, because numpy does not guarantee the streams of its distributions
across versions. The variates that matter most (initial availability, the zone's level, the first
outages, the job's speed) are spread evenly over all paths by Sobol' points (`sobol.py`): half the
error at the same work.
"""

from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from recommender.arrays import Floats, Ints, Singles
from recommender.catalogs.frozen import dataclass
from recommender.risk.laws import OUTAGE_FAMILY, RUN_FAMILY, IntervalFamily
from recommender.risk.normal_law import normal_quantile
from recommender.risk.on_demand_wait import supply_of
from recommender.risk.sobol import BITS, sobol_points

PATH_COUNT = 1024
SEED = 7
FEWEST = 16  # cycles drawn at least
MAX_LISTED_ZONES = 4  # zones of a failover list that are simulated at most
_RUN, _OUTAGE, _MOVED, _NOTICE = 1, 2, 3, 4  # streams: one variate per cycle
_START, _RESIDUE, _SPEED, _PRICE, _ON_DEMAND, _ZONE = 5, 6, 7, 8, 9, 20  # one per path
_REPLACED = 10  # one per cycle
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
    """Random variates of some paths with up to `cycles` runs each, generated on demand."""

    key: tuple[int, int, int]  # paths, cycles, seed

    @cached_property
    def run(self) -> Floats:
        """(paths, cycles) scores of the family of runs: length of each run."""
        return self.scores("run")

    @cached_property
    def outage(self) -> Floats:
        """(paths, cycles) scores of the family of outages: length of the outage before it."""
        return self.scores("outage")

    @cached_property
    def moved(self) -> Singles:
        """(paths, cycles) uniform: is another listed zone up?"""
        return self.matrix(_MOVED).astype(np.float32)

    @cached_property
    def notice(self) -> Singles:
        """(paths, cycles) uniform: did the save beat the notice?"""
        return self.matrix(_NOTICE).astype(np.float32)

    def zone_at(self, site: int) -> Floats:
        """(paths,) normal: availability level of one zone of the list, shared by plans."""
        paths, _, seed = self.key
        return _zone_at(paths, seed, site)

    @cached_property
    def start(self) -> Floats:
        """(paths,) uniform: is capacity available at the request?"""
        return self._once(_START)

    @cached_property
    def residue(self) -> Floats:
        """(paths,) uniform: how much of the current run or outage remains."""
        return self._once(_RESIDUE)

    @cached_property
    def speed(self) -> Floats:
        """(paths,) normal: true speed relative to predicted."""
        return normal_quantile(self._once(_SPEED))

    @cached_property
    def price(self) -> Floats:
        """(paths,) normal: spot price then relative to now."""
        return normal_quantile(self._once(_PRICE))

    @cached_property
    def on_demand(self) -> Floats:
        """(paths,) uniform: the part of supply that is independent of spot."""
        return self._once(_ON_DEMAND)

    @cached_property
    def supply(self) -> Floats:
        """(paths,) uniform: on-demand supply, low if scarce, correlated with spot."""
        return supply_of(self.zone_at(0), self.on_demand)

    @cached_property
    def replaced(self) -> Floats:
        """(paths, cycles) uniform: the supply when a failed machine is replaced."""
        return supply_of(self.zone_at(0)[:, None], self.matrix(_REPLACED))

    def scores(self, which: str) -> Floats:
        """(paths, cycles) scores of "run" or "outage", drawn again at every call."""
        stream = _RUN if which == "run" else _OUTAGE
        return _family(which).scores(self.matrix(stream))

    def matrix(self, stream: int) -> Floats:
        """(paths, cycles) uniforms of a stream, drawn eight cycles at a time."""
        paths, cycles, seed = self.key
        values = np.empty((paths, cycles))
        for block, begin in enumerate(range(0, cycles, 8)):
            drawn = uniforms(seed, stream + 100 * block, paths * 8).reshape(paths, 8)
            values[:, begin : begin + 8] = drawn[:, : cycles - begin]
        for cycle in _even_cycles(stream, cycles):
            values[:, cycle] = self.even(stream, cycle)
        return values

    def even(self, stream: int, cycle: int) -> Floats:
        """(paths,) uniforms of one cycle that are spread evenly."""
        paths, _, seed = self.key
        return stratified(seed, 1000 * stream + cycle, paths, _EVEN[stream, cycle])

    def factors(self, which: str, shape: float) -> Singles:
        """Lengths of mean one, "run" or "outage", (cycles, paths); shared by plans."""
        paths, cycles, seed = self.key
        return _factors(paths, _drawn(cycles), seed, which, shape)[:cycles]

    def by_cycle(self, which: str) -> Singles:
        """Uniforms with the cycles first, shape (cycles, paths), shared by plans."""
        paths, cycles, seed = self.key
        return _by_cycle(paths, _drawn(cycles), seed, which)[:cycles]

    def _once(self, stream: int) -> Floats:
        paths, _, seed = self.key
        return stratified(seed, stream, paths, _EVEN[stream, 0])


@dataclass(frozen=True, eq=False)
class FirstPaths(RandomNumbers):
    """A view of the first paths of a larger sample."""

    whole: RandomNumbers

    def zone_at(self, site: int) -> Floats:
        """(paths,) normal: availability level of one zone of the list."""
        return self.whole.zone_at(site)[: self.key[0]]

    def even(self, stream: int, cycle: int) -> Floats:
        """(paths,) uniforms of one cycle that are spread evenly."""
        return self.whole.even(stream, cycle)[: self.key[0]]

    def factors(self, which: str, shape: float) -> Singles:
        """Lengths of mean one, "run" or "outage", (cycles, paths)."""
        return _lengths(which, getattr(self, which), shape)

    def by_cycle(self, which: str) -> Singles:
        """Uniforms with the cycles first, shape (cycles, paths)."""
        return _turned(getattr(self, which))

    def _once(self, stream: int) -> Floats:
        return self.whole._once(stream)[: self.key[0]]


@dataclass(frozen=True, eq=False)
class PathBlock(RandomNumbers):
    """A view of some paths of a larger sample, from `begin` on."""

    whole: RandomNumbers
    begin: int

    def zone_at(self, site: int) -> Floats:
        """(paths,) normal: availability level of one zone of the list."""
        return self.whole.zone_at(site)[self._rows]

    def matrix(self, stream: int) -> Floats:
        """(paths, cycles) uniforms of a stream."""
        return self.whole.matrix(stream)[self._rows]

    def factors(self, which: str, shape: float) -> Singles:
        """Lengths of mean one, "run" or "outage", (cycles, paths)."""
        return self.whole.factors(which, shape)[:, self._rows]

    def by_cycle(self, which: str) -> Singles:
        """Uniforms with the cycles first, shape (cycles, paths)."""
        return self.whole.by_cycle(which)[:, self._rows]

    @property
    def replaced(self) -> Floats:
        """(paths, cycles) uniform: the supply when a failed machine is replaced."""
        return self.whole.replaced[self._rows]

    @property
    def _rows(self) -> slice:
        return slice(self.begin, self.begin + self.key[0])

    def _once(self, stream: int) -> Floats:
        return self.whole._once(stream)[self._rows]


def path_blocks(sample: RandomNumbers, cells: int) -> list[RandomNumbers]:
    """A sample in blocks of so many cells (paths × cycles) at most, but whole paths."""
    paths, cycles, seed = sample.key
    most = max(1, cells // cycles)
    if most >= paths:
        return [sample]
    return [
        PathBlock((min(most, paths - begin), cycles, seed), sample, begin)
        for begin in range(0, paths, most)
    ]


@dataclass(frozen=True, eq=False)
class ExtendedNumbers(RandomNumbers):
    """Some paths of other samples with more runs each, for jobs that need them.

    A path's first runs do not depend on how many are drawn, so they stay the same.
    """

    parts: tuple[tuple[RandomNumbers, Ints], ...]  # samples and the rows taken of each, in order

    def zone_at(self, site: int) -> Floats:
        """(paths,) normal: availability level of one zone of the list."""
        return np.concatenate([sample.zone_at(site)[rows] for sample, rows in self.parts])

    def factors(self, which: str, shape: float) -> Singles:
        """Lengths of mean one, "run" or "outage", (cycles, paths)."""
        return _lengths(which, getattr(self, which), shape)

    def by_cycle(self, which: str) -> Singles:
        """Uniforms with the cycles first, shape (cycles, paths)."""
        return _turned(getattr(self, which))

    def matrix(self, stream: int) -> Floats:
        """(paths, cycles) uniforms of a stream."""
        blocks = range(-(-self.key[1] // 8))
        drawn = [
            [_picked(sample.key[2], stream + 100 * block, rows) for block in blocks]
            for sample, rows in self.parts
        ]
        values = np.block(drawn)[:, : self.key[1]]
        for cycle in _even_cycles(stream, self.key[1]):
            values[:, cycle] = self.even(stream, cycle)
        return values

    def even(self, stream: int, cycle: int) -> Floats:
        """(paths,) uniforms of one cycle that are spread evenly."""
        return np.concatenate([sample.even(stream, cycle)[rows] for sample, rows in self.parts])

    @cached_property
    def start(self) -> Floats:
        """(paths,) uniform: is capacity available at the request?"""
        return self._taken("start")

    @cached_property
    def residue(self) -> Floats:
        """(paths,) uniform: how much of the current run or outage remains."""
        return self._taken("residue")

    @cached_property
    def speed(self) -> Floats:
        """(paths,) normal: true speed relative to predicted."""
        return self._taken("speed")

    @cached_property
    def price(self) -> Floats:
        """(paths,) normal: spot price then relative to now."""
        return self._taken("price")

    @cached_property
    def on_demand(self) -> Floats:
        """(paths,) uniform: the part of supply that is independent of spot."""
        return self._taken("on_demand")

    def _taken(self, which: str) -> Floats:
        return np.concatenate([getattr(sample, which)[rows] for sample, rows in self.parts])


def _even_cycles(stream: int, cycles: int) -> list[int]:
    return [cycle for of, cycle in _EVEN if of == stream and cycle < cycles]


def extended(parts: Sequence[tuple[RandomNumbers, Ints]], cycles: int) -> ExtendedNumbers:
    """Rows of some samples as one sample with more cycles."""
    return ExtendedNumbers((sum(len(rows) for _, rows in parts), cycles, -1), tuple(parts))


def _picked(seed: int, stream: int, rows: Ints) -> Floats:
    """Eight uniforms of each row of a stream, the same as in a whole matrix; (rows, 8)."""
    source = np.random.PCG64DXSM(np.random.SeedSequence([seed, stream]))
    raw, passed = np.empty((len(rows), 8), dtype=np.uint64), 0
    for place, row in enumerate(rows.tolist()):
        source.advance(8 * row - passed)
        raw[place] = source.random_raw(8)
        passed = 8 * row + 8
    return _unit(raw)


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
def random_numbers(paths: int = PATH_COUNT, cycles: int = 32, seed: int = SEED) -> RandomNumbers:
    """The paths of one seed; more cycles extend a path without changing its start."""
    return RandomNumbers((paths, cycles, seed))


@lru_cache(maxsize=32)
def first_paths(whole: RandomNumbers, count: int) -> FirstPaths:
    """The first paths of a sample."""
    return FirstPaths((count, *whole.key[1:]), whole)


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


def run_uniforms(sample: RandomNumbers) -> Floats:
    """The uniforms behind `run`, for other laws than the shipped one; (paths, cycles)."""
    return sample.matrix(_RUN)


def clear_caches() -> None:
    """Free the memory of past paths, which a long simulation uses only once."""
    for kept in (random_numbers, first_paths, stratified, _factors, _scores, _by_cycle, _zone_at):
        kept.cache_clear()


def _drawn(cycles: int) -> int:
    """How many cycles are drawn and kept where so many are asked for: fewer are their beginning."""
    return max(FEWEST, 1 << (cycles - 1).bit_length())


@lru_cache(maxsize=64)
def _factors(paths: int, cycles: int, seed: int, which: str, shape: float) -> Singles:
    return _lengths(which, _scores(paths, cycles, seed, which), shape)


@lru_cache(maxsize=4)  # for other shapes that follow
def _scores(paths: int, cycles: int, seed: int, which: str) -> Floats:
    return random_numbers(paths, cycles, seed).scores(which)


def _lengths(which: str, scores: Floats, shape: float) -> Singles:
    return _family(which).lengths(scores.T, shape).astype(np.float32)


def _family(which: str) -> IntervalFamily:
    return RUN_FAMILY if which == "run" else OUTAGE_FAMILY


@lru_cache(maxsize=64)
def _by_cycle(paths: int, cycles: int, seed: int, which: str) -> Singles:
    stream = _MOVED if which == "moved" else _NOTICE
    return _turned(random_numbers(paths, cycles, seed).matrix(stream).astype(np.float32))


def _turned(values: Singles) -> Singles:
    return np.ascontiguousarray(values.T)
