"""The wait for on-demand machines: zero if they are available at once, otherwise heavy-tailed.

    P(W > t) = (1 - p)·(1 + k·t/m)^-α        k = 2^(1/α) - 1

p is the probability that all machines of the cluster are available at once, m the median wait
otherwise. Like a gang on spot, a larger cluster is available less often and has a longer wait: with
g = exp(slope·log2(1 + (n-1)/8)), the odds against it and m are g times those of one machine.

A path has one variate, `supply`: uniform, low if machines are scarce. It is correlated with the
spot availability of the zone, because spot machines are reclaimed mostly for on-demand customers of
the same hardware. All plans and all starts of a path share it, so

    W = (m/k)·max(((1 - p)/supply)^(1/α) - 1, 0)

falls with p and grows with m on every path.

A failover list tries regions in turn and uses the first that has machines, so its wait is the
shortest of theirs. With equally correlated normal scores of supply,

    P(all of L regions short) = E[Φ((q - √c·κ)/√(1 - c))^L]      Φ(q) = 1 - p of one, κ normal

and a list is represented by the p and the m of that shortest wait. Beyond its median the tail is
that of one region, which is longer than the true one: a conservative choice for global shortages.
"""

from functools import lru_cache

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.risk.laws import gang_doublings
from recommender.risk.normal_law import normal_cdf, normal_quantile

# α: the shape of waits for V100 spot capacity met away at a random moment, six AWS zones, 45 days
# from 2023-02-15 (quartiles 0.8, 2.7, 7.8 h, 95 % 40 h; docs/research/on-demand.md). That on demand
# has the same tail is assumed; nobody has published waits for it.
TAIL = 1.1
# Correlation of the normal scores of supply and of the zone's level; assumed.
SHARED_WITH_SPOT = 0.5
# Correlation of the normal scores of supply of two regions of a provider; assumed. 0.07 between the
# spot states of regions (AWS and GCP traces 2022-2025) is 0.11 between scores, and a level that
# nobody measured may lie elsewhere in all regions alike, by the 1.1 logits (0.65 of a score) of
# spot laws that are carried over: (0.11 + 0.65²)/(1 + 0.65²) = 0.37.
SHARED_BY_REGIONS = 0.4
_AT_MEDIAN = 2.0 ** (1.0 / TAIL) - 1.0
# Of the runs a plan may miss its limits in, a fallback's reserve leaves four times as many requests
# waiting: few runs need it. On eight questions about scarce GPUs (2026-11-23) the best plan cost
# up to 134 and 27 % more with 1 and 2 than with 5; with 8 one lost its spot plans.
RESERVE_MISSES = 4.0


@dataclass(frozen=True, slots=True)
class OnDemandLaw:
    """How soon on-demand machines are available; any one shape."""

    at_once: Floats  # chance
    wait_s: Floats  # median, where they are not

    def of_gang(self, machines: Ints | Floats, slope: Floats | float) -> "OnDemandLaw":
        """The law of so many machines, from that of one."""
        harder = np.exp(slope * gang_doublings(machines))
        return OnDemandLaw(harder_at_once(self.at_once, harder), self.wait_s * harder)

    def of_list(self, regions: Floats) -> "OnDemandLaw":
        """The law of the shortest wait over so many regions, each with this law."""
        at_once, wait = (np.array(part, dtype=np.float64) for part in (self.at_once, self.wait_s))
        for count in range(2, int(regions.max(initial=1.0)) + 1):
            rows = (regions == count) & (at_once < 1.0)
            if rows.any():
                law = _min_of(count, at_once[rows], wait[rows])
                at_once[rows], wait[rows] = law.at_once, law.wait_s
        return OnDemandLaw(at_once, wait)

    def reserve_s(self, confidence: float) -> Floats:
        """How much earlier a fallback must start, for a plan of this confidence."""
        return quantile_s(self.at_once, self.wait_s, 1.0 - RESERVE_MISSES * (1.0 - confidence))


def _min_of(regions: int, at_once: Floats, median_s: Floats) -> OnDemandLaw:
    """The least of the waits in so many regions: its chance of none, and its median otherwise.

    The median is that of one region on a path whose supply half of such shortages lie below.
    """
    one, every = _shortages(regions)
    short = np.interp(1.0 - at_once, one, every)
    supply = np.interp(0.5 * short, every, one)
    return OnDemandLaw(1.0 - short, wait_s(at_once, median_s, supply))


@lru_cache(maxsize=4)
def _shortages(regions: int) -> tuple[Floats, Floats]:
    """Chances that one region is short, and that so many are all short; both rise from 0 to 1."""
    score, common = np.linspace(-6.0, 6.0, 241), np.linspace(-6.0, 6.0, 61)
    own = score[:, None] - np.sqrt(SHARED_BY_REGIONS) * common
    every = normal_cdf(own / np.sqrt(1.0 - SHARED_BY_REGIONS)) ** regions
    weight = np.exp(-0.5 * common**2)
    of_all = every @ (weight / weight.sum())
    ends = ([0.0], [1.0])
    one = np.concatenate([ends[0], normal_cdf(score), ends[1]])
    return one, np.concatenate([ends[0], of_all, ends[1]])


def harder_at_once(at_once: Floats, harder: Floats | float) -> Floats:
    """The chance of immediate availability if the odds against it are multiplied."""
    return np.asarray(at_once / (at_once + (1.0 - at_once) * harder))


def wait_s(at_once: Floats, median_s: Floats, supply: Floats) -> Floats:
    """Seconds until on-demand machines are available; arguments broadcast."""
    short: Floats = supply ** (-1.0 / TAIL)
    times = (1.0 - at_once) ** (1.0 / TAIL) * short
    times -= 1.0
    np.maximum(times, 0.0, out=times)
    times *= median_s / _AT_MEDIAN
    return times


def quantile_s(at_once: Floats, median_s: Floats, share: float) -> Floats:
    """The wait that this share of requests does not exceed."""
    return wait_s(at_once, median_s, np.full(1, max(1.0 - share, 1e-12)))


def supply_of(zone: Floats, uniform: Floats) -> Floats:
    """Supply of paths from the zone's availability (normal, high: good) and a uniform; uniform."""
    own = np.sqrt(1.0 - SHARED_WITH_SPOT**2)
    return normal_cdf(SHARED_WITH_SPOT * zone - own * normal_quantile(uniform))
