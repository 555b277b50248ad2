"""Where runs come from: a law of run lengths, or a recording of what was there.

Arrays have shape (cycles, plans, paths), as in `runs.py`.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from recommender.risk.draws import SITES, Draws, run_uniforms
from recommender.risk.plans import Journeys

if TYPE_CHECKING:
    from recommender.risk.laws import RunLaw

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]


class Capacity(Protocol):
    """Says when a plan's spot capacity is there."""

    def runs(self, p: Journeys, sample: Draws) -> tuple[Singles, Singles]:
        """Lengths of the runs and the wait before each, seconds."""


class Lognormal:
    """Lognormal runs and outages whose shapes are the plans' own: the shipped spot classes."""

    def runs(self, p: Journeys, sample: Draws) -> tuple[Singles, Singles]:
        """Lengths of the runs and the wait before each, seconds."""
        zones = zones_of(p, sample)
        lengths = zones.run_s.astype(np.float32)[None] * _factors(p.run_sigma, sample, "run")
        waits = _waits(p, sample, zones)
        # The job asks at a random moment: a run met at random is length-biased, and for a
        # lognormal that law is ln X ~ N(mu + sigma², sigma²).
        biased = np.exp(p.run_sigma[:, None] ** 2) * sample.residue[None]
        lengths[0] *= np.where(zones.is_down | p.held[:, None], 1.0, biased)
        return lengths, waits


@dataclass(frozen=True, slots=True)
class Lawful:
    """Runs of another law than the lognormal; zones and outages stay the plans' own."""

    law: "RunLaw"

    def runs(self, p: Journeys, sample: Draws) -> tuple[Singles, Singles]:
        """Lengths of the runs and the wait before each, seconds."""
        zones = zones_of(p, sample)
        shape = self.law.lengths(run_uniforms(sample)).T.astype(np.float32)
        lengths = zones.run_s.astype(np.float32)[None] * shape[:, None]
        left = zones.run_s * self.law.residues(sample.residue)[None]
        lengths[0] = np.where(zones.is_down | p.held[:, None], lengths[0], left)
        return lengths, _waits(p, sample, zones)


LOGNORMAL = Lognormal()


@dataclass(frozen=True, slots=True)
class Zones:
    """How good the listed zones are; shape (plans, paths)."""

    run_s: Floats  # mean run
    outage_s: Floats  # mean outage of one zone, shared by those listed
    nowhere: Floats  # chance that no other listed zone is up when the first is not
    is_down: NDArray[np.bool_]  # nothing is there at the request


def zones_of(p: Journeys, sample: Draws) -> Zones:
    """The zones' levels: runs are alike everywhere, bad zones have longer outages."""
    up = logistic(p.availability_logit[:, None] + p.zone_sd[:, None] * sample.zone_at(0))
    nowhere = _others_down(p, sample)
    run_s = p.run_mean_s[:, None] * np.ones_like(up)
    outage_s = run_s * (1.0 - up) / up / p.sites[:, None]
    return Zones(run_s, outage_s, nowhere, sample.start[None] < (1.0 - up) * nowhere)


def logistic(value: Floats) -> Floats:
    """Probability of a logit."""
    return 1.0 / (1.0 + np.exp(-value))


def _waits(p: Journeys, sample: Draws, zones: Zones) -> Singles:
    """An outage where no other listed zone is up; the first is what is left of one."""
    outages = _factors(p.outage_sigma, sample, "outage")
    waits = zones.outage_s.astype(np.float32)[None] * outages
    waits *= sample.by_cycle("moved")[:, None] < zones.nowhere.astype(np.float32)[None]
    biased = np.exp(p.outage_sigma[:, None] ** 2) * sample.residue[None]
    waits[0] = np.where(zones.is_down, zones.outage_s * outages[0] * biased, 0.0)
    return waits


def _factors(sigma: Floats, sample: Draws, which: str) -> Singles:
    """Lognormal factors of mean one for each plan's sigma; plans of a batch often share it."""
    if np.all(sigma == sigma[0]):
        return sample.factors(which, float(sigma[0]))[:, None]
    return np.stack([sample.factors(which, float(value)) for value in sigma], axis=1)


def _others_down(p: Journeys, sample: Draws) -> Floats:
    """Chance that no other listed zone is up when this one is not.

    For two zones of equal availability a and correlation c, P(up | other down) = a(1 - c).
    """
    share = np.ones((len(p), sample.key[0]))
    for site in range(1, min(SITES, int(p.sites.max()))):
        level = p.availability_logit[:, None] + p.zone_sd[:, None] * sample.zone_at(site)
        down = 1.0 - logistic(level) * (1.0 - p.correlation[:, None])
        share = np.where(p.sites[:, None] > site, share * down, share)
    return share
