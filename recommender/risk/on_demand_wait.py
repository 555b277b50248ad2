"""The wait for on-demand machines: none where they are there at once, else heavy-tailed.

    P(W > t) = (1 - p)·(1 + k·t/m)^-α        k = 2^(1/α) - 1

p is the chance that all the machines are there at once, m the median wait where they are not, both
of the whole cluster. A larger one is there less often and waited for longer, as a gang on spot is:
with g = exp(slope·log2(1 + (n-1)/8)) the odds against it and m are g times those of one machine.

A path has one variate for the whole of it, `supply`: uniform, low where machines are short. It
leans on how good the zone's spot capacity is, since what takes spot machines back is mostly
demand for the same hardware on demand. All plans and all starts of a path share it, so

    W = (m/k)·max(((1 - p)/supply)^(1/α) - 1, 0)

falls with p and grows with m in every single path.
"""

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
_AT_MEDIAN = 2.0 ** (1.0 / TAIL) - 1.0
# Of the runs a plan may miss its limits in, a fallback's reserve leaves four times as many requests
# waiting: few runs need it. On eight questions about scarce GPUs (2026-11-23) the best plan cost
# up to 134 and 27 % more with 1 and 2 than with 5; with 8 one lost its spot plans.
RESERVE_MISSES = 4.0


@dataclass(frozen=True, slots=True)
class OnDemandLaw:
    """How soon on-demand machines are there; any one shape."""

    at_once: Floats  # chance
    wait_s: Floats  # median, where they are not

    def of_gang(self, machines: Ints | Floats, slope: Floats | float) -> "OnDemandLaw":
        """The law of so many machines from that of one."""
        harder = np.exp(slope * gang_doublings(machines))
        return OnDemandLaw(harder_at_once(self.at_once, harder), self.wait_s * harder)

    def reserve_s(self, confidence: float) -> Floats:
        """What a fallback's start is brought forward by, for a plan of this confidence."""
        return quantile_s(self.at_once, self.wait_s, 1.0 - RESERVE_MISSES * (1.0 - confidence))


def harder_at_once(at_once: Floats, harder: Floats | float) -> Floats:
    """The chance to be there at once where the odds against it are so many times as high."""
    return np.asarray(at_once / (at_once + (1.0 - at_once) * harder))


def wait_s(at_once: Floats, median_s: Floats, supply: Floats) -> Floats:
    """Seconds until on-demand machines are there; arguments broadcast."""
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
    """Supply of paths from the level of the zone (normal, high: good) and a uniform; uniform."""
    own = np.sqrt(1.0 - SHARED_WITH_SPOT**2)
    return normal_cdf(SHARED_WITH_SPOT * zone - own * normal_quantile(uniform))
