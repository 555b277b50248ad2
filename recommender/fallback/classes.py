"""The availability model of a shipped spot class, whose runs and outages are lognormal."""

import numpy as np

from recommender.fallback.availability import EDGES_H, Availability
from recommender.fallback.fit import POINTS, WEIGHTS, mixture
from recommender.lognormal import lognormal_excess, lognormal_survival
from recommender.replay.state import Floats


def of_class(
    run_mean_s: float,
    run_sigma: float,
    outage_sigma: float,
    availability: float,
    zone_sd: float,
    sites: float = 1.0,
) -> Availability:
    """Poor, usual and good zones of a class: logit availability ± √3 sd with weights 1, 4, 1.

    Runs have the class's mean everywhere; outages are as long as a zone's availability asks, or
    as much shorter as there are `sites` to wait for.
    """
    level = np.log(availability / (1.0 - availability)) + zone_sd * POINTS
    outage_mean_s = run_mean_s * np.exp(-level) / sites
    up = lognormal_rates(run_mean_s / 3600.0, run_sigma)
    laws = [
        Availability(
            EDGES_H,
            np.stack([lognormal_rates(mean_s / 3600.0, outage_sigma), up])[None],
            np.zeros((1, 1)),
        )
        for mean_s in outage_mean_s
    ]
    return mixture(laws, WEIGHTS)


def lognormal_rates(mean_h: float, sigma: float) -> Floats:
    """Exits per hour by age bucket: exits in the bucket over hours lived in it, exactly."""
    edges = np.array((0.0, *EDGES_H))
    mean, spread = np.array(mean_h), np.array(sigma)
    alive = np.append(lognormal_survival(edges, mean, spread), 0.0)
    beyond = np.append(lognormal_excess(edges, mean, spread), 0.0)  # hours lived after each edge
    lived = np.maximum(beyond[:-1] - beyond[1:], 1e-12)
    return np.asarray((alive[:-1] - alive[1:]) / lived)
