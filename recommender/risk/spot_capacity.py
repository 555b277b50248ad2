"""Spot capacity over time: laws of runs and outages, or given ones, a stretch of cycles at a time.

A cycle is an outage and the run behind it. A *lane* is one cluster on one path. Capacity comes and
goes whatever a job does, so a market answers for any lanes that still need it.
"""

from typing import Protocol

import numpy as np

from recommender.arrays import Bools, Floats, Ints, Singles
from recommender.catalogs.frozen import dataclass
from recommender.risk.laws import OUTAGE_FAMILY, RUN_FAMILY, RunLaw, logistic
from recommender.risk.on_demand_wait import wait_s
from recommender.risk.path_inputs import PathInputs
from recommender.risk.random_numbers import MAX_LISTED_ZONES, STRETCH, RandomNumbers


class Market(Protocol):
    """When spot is there."""

    def cycles(self, first: int, cluster: Ints, path: Ints) -> tuple[Floats, Floats]:
        """Runs of the next `STRETCH` cycles, and the wait before each, seconds; (cycles, lanes)."""


class Capacity(Protocol):
    """A model of when a plan's spot capacity is available."""

    def market(self, p: PathInputs, sample: RandomNumbers) -> Market:
        """The capacity of some clusters on some paths."""


@dataclass(frozen=True, slots=True)
class ClassCapacity:
    """Runs and outages of the shipped families, with each plan's means and shapes.

    With a `law` its runs instead. Where machines `train` at the request, the first run is the
    remainder of a run plus a start-up that happened before the clock.
    """

    law: RunLaw | None = None
    train: bool = False

    def market(self, p: PathInputs, sample: RandomNumbers) -> Market:
        """The capacity of some clusters on some paths."""
        return _ClassMarket(self, p, sample)


CLASS_CAPACITY = ClassCapacity()


class _ClassMarket:
    def __init__(self, capacity: ClassCapacity, p: PathInputs, sample: RandomNumbers) -> None:
        self._law, self._p, self._sample = capacity.law, p, sample
        self._paths = sample.paths
        self._zones = zones_of(p, sample)
        self._shape_of: dict[str, Ints] = {}
        self._shapes: dict[str, list[float]] = {}
        for which, column in (("run", p.run_sigma), ("outage", p.outage_sigma)):
            values = sorted(set(column.tolist()))
            self._shapes[which] = values
            self._shape_of[which] = np.searchsorted(values, column)
        self._first_run_s, self._first_wait_s = self._first(capacity.train)

    def cycles(self, first: int, cluster: Ints, path: Ints) -> tuple[Floats, Floats]:
        """Runs of the next cycles, and the wait before each."""
        p, z, place = self._p, self._zones, cluster * self._paths + path
        lengths = self._factors("run", first, cluster, path) * p.run_mean_s[cluster]
        outages = self._factors("outage", first, cluster, path) * z.outage_s.take(place)
        others = self._sample.uniforms("moved", first).take(path, axis=1)
        waits = outages * (others < z.others_down.take(place))
        if np.any(p.move_after_s > 0.0):
            own = outages * p.zone_count[cluster]
            waits = np.maximum(waits, np.minimum(p.move_after_s[cluster], own))
        if np.any(p.replaced_wait_s > 0.0):
            law = p.replaced_at_once[cluster], p.replaced_wait_s[cluster]
            waits += wait_s(*law, self._sample.uniforms("replaced", first).take(path, axis=1))
        if not first:
            lengths[0], waits[0] = self._first_run_s.take(place), self._first_wait_s.take(place)
        return lengths, waits

    def _first(self, train: bool) -> tuple[Floats, Floats]:
        """The first run and wait of all lanes: machines are requested at a random moment."""
        p, z, residue = self._p, self._zones, self._sample.residue[None]
        clusters, paths = np.divmod(np.arange(len(p) * self._paths), self._paths)
        shape = z.is_down.shape
        whole = (self._factors("run", 0, clusters, paths)[0] * p.run_mean_s[clusters]).reshape(
            shape
        )
        if self._law is None:
            left = whole * RUN_FAMILY.residual_factors(whole, p.run_sigma[:, None], residue)
        else:
            left = p.run_mean_s[:, None] * self._law.residues(residue)
        if train:
            return left + p.changeover_s[:, None], np.zeros(shape)
        outages = self._factors("outage", 0, clusters, paths)[0].reshape(shape)
        rest = OUTAGE_FAMILY.residual_factors(outages, p.outage_sigma[:, None], residue)
        runs = np.where(z.is_down | p.runs_from_start[:, None], whole, left)
        return runs, np.where(z.is_down, z.outage_s * outages * rest, 0.0)

    def _factors(self, which: str, first: int, cluster: Ints, path: Ints) -> Singles:
        """Lengths of mean one of some lanes."""
        if which == "run" and self._law is not None:
            lengths = self._law.lengths(self._sample.uniforms("run", first))
            return lengths.astype(np.float32).take(path, axis=1)
        shapes = [self._sample.factors(which, shape, first) for shape in self._shapes[which]]
        if len(shapes) == 1:
            return shapes[0].take(path, axis=1)
        place = self._shape_of[which][cluster] * self._paths + path
        return np.concatenate(shapes, axis=1).take(place, axis=1)


def drawn_cycles(
    p: PathInputs, sample: RandomNumbers, stretches: int = 1, capacity: Capacity = CLASS_CAPACITY
) -> tuple[Floats, Floats]:
    """Runs and waits of all clusters on all paths; (cycles, clusters, paths)."""
    shape = (-1, len(p), sample.paths)
    cluster, path = np.divmod(np.arange(shape[1] * shape[2]), shape[2])
    market = capacity.market(p, sample)
    drawn = [market.cycles(STRETCH * n, cluster, path) for n in range(stretches)]
    lengths, waits = (np.concatenate(each).reshape(shape) for each in zip(*drawn, strict=True))
    return lengths, waits


@dataclass(frozen=True, slots=True)
class Zones:
    """Availability of the listed zones; shape (plans, paths)."""

    run_s: Floats  # mean run
    outage_s: Floats  # mean outage of one zone, shared by those listed
    others_down: Floats  # chance that no other listed zone is up when the first is not
    is_down: Bools  # nothing is there at the request


def zones_of(p: PathInputs, sample: RandomNumbers) -> Zones:
    """The zones' availability levels: runs are alike everywhere, bad zones have longer outages."""
    up = logistic(p.availability_logit[:, None] + p.zone_sd[:, None] * sample.zone_at(0))
    nowhere = _others_down(p, sample)
    run_s = p.run_mean_s[:, None] * np.ones_like(up)
    outage_s = run_s * (1.0 - up) / up / p.zone_count[:, None]
    return Zones(run_s, outage_s, nowhere, sample.start[None] < (1.0 - up) * nowhere)


def _others_down(p: PathInputs, sample: RandomNumbers) -> Floats:
    """Chance that no other listed zone is up when this one is not.

    For two zones of equal availability a and correlation c, P(up | other down) = a(1 - c).
    """
    share = np.ones((len(p), sample.paths))
    for site in range(1, min(MAX_LISTED_ZONES, int(p.zone_count.max()))):
        level = p.availability_logit[:, None] + p.zone_sd[:, None] * sample.zone_at(site)
        down = 1.0 - logistic(level) * (1.0 - p.correlation[:, None])
        share = np.where(p.zone_count[:, None] > site, share * down, share)
    return share
