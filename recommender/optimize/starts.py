"""The least that anything takes before it trains, and the most that a plan keeps in hand."""

from dataclasses import dataclass

import numpy as np

from recommender.bucket import object_store_rate
from recommender.checkpoint import CHIEF_STREAM, write_s
from recommender.optimize.evaluate import HAND_S, RENDEZVOUS_S
from recommender.optimize.space import Site, Space


@dataclass(frozen=True, slots=True)
class Start:
    """The least that any fallback takes before it trains."""

    s: float
    usd: float  # times 3,600 s


def least_start(sites: tuple[Site, ...]) -> Start:
    """Boot and rendezvous of the quickest fallback, and of the one that starts for the least."""
    start_s, usd = [np.inf], [np.inf]
    for site in sites:
        seconds = site.fallbacks.boot_s + RENDEZVOUS_S
        start_s.append(float(seconds.min(initial=np.inf)))
        usd.append(float((seconds * site.fallbacks.usd_per_hour).min(initial=np.inf)))
    return Start(min(start_s), min(usd))


def most_reserve_s(space: Space) -> float:
    """More than any plan keeps in hand beside the time to finish on its fallback.

    A save stops training for its copy and its transfer at most; each is quicker than this.
    """
    columns = space.columns
    rates = np.append(object_store_rate(columns.network_bytes_per_s), columns.disk_bytes_per_s)
    slowest = min(float(rates[rates > 0].min(initial=np.inf)), CHIEF_STREAM.bytes_per_s)
    tensors = space.job.gradient_tensors
    save = float(write_s(CHIEF_STREAM, 2.0 * space.job.checkpoint_bytes, tensors, slowest))
    waits = [float(site.fallbacks.wait_s.max(initial=0.0)) for site in space.sites]
    return HAND_S + save + max(waits, default=0.0)
