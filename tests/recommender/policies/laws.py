"""Availability laws for tests: heavy-tailed, as measured, and simple ones."""

import numpy as np

from recommender.policies.availability import EDGES_H, Availability

# Exits per hour by age for a zone like p3.2xlarge us-east-1c in February 2023 (half of the runs
# end within half an hour, a few last days), in round figures.
DOWN = (2.2, 1.2, 0.6, 0.3, 0.15, 0.06)
UP = (2.5, 1.5, 0.8, 0.35, 0.12, 0.05)


def law(down: tuple[float, ...], up: tuple[float, ...]) -> Availability:
    """One regime with these exits per hour."""
    return Availability(EDGES_H, np.array([[down, up]]), np.zeros((1, 1)))


HEAVY = law(DOWN, UP)
STEADY = law((0.5,) * 6, (0.25,) * 6)
ALWAYS = law((50.0,) * 6, (1e-9,) * 6)
NEVER_UP = law((1e-9,) * 6, (50.0,) * 6)


def memoryless(law: Availability, share_up: float, mean_run_h: float) -> Availability:
    """The exponential model of the same availability and mean run: what most tools assume."""
    rates = np.array([share_up / (1.0 - share_up), 1.0]) / mean_run_h
    exits = np.repeat(rates[None, :, None], len(law.edges_h) + 1, axis=2)
    return Availability(law.edges_h, exits, np.zeros((1, 1)))
