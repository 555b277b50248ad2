"""Spot capacity over time: laws or recordings of runs and outages, and a job's progress on it.

Arrays have shape (cycles, plans, paths), where a cycle is an outage and a run. Sums along the
cycles are then sums of whole planes, ten times as fast as along the last axis. Single precision
halves the memory traffic.
"""

from dataclasses import replace
from typing import Protocol

import numpy as np

from recommender.arrays import Bools, Floats, Ints, Singles
from recommender.catalogs.frozen import dataclass
from recommender.risk.elastic import OnDemandPart, on_demand_part_of
from recommender.risk.laws import OUTAGE_FAMILY, RUN_FAMILY, RunLaw, logistic
from recommender.risk.move_after import moves_until, stays
from recommender.risk.on_demand_wait import wait_s
from recommender.risk.path_inputs import PathInputs
from recommender.risk.planes import at, before, choose, places, row, until
from recommender.risk.random_numbers import MAX_LISTED_ZONES, RandomNumbers, run_uniforms


class Capacity(Protocol):
    """A model of when a plan's spot capacity is available."""

    def runs(self, p: PathInputs, sample: RandomNumbers) -> tuple[Singles, Singles]:
        """Lengths of the runs and the wait before each, seconds."""


class ClassCapacity:
    """Runs and outages of the shipped families, with each plan's means and shapes."""

    def runs(self, p: PathInputs, sample: RandomNumbers) -> tuple[Singles, Singles]:
        """Lengths of the runs and the wait before each, seconds."""
        zones = zones_of(p, sample)
        lengths = zones.run_s.astype(np.float32)[None] * _factors(p.run_sigma, sample, "run")
        waits = _waits(p, sample, zones)
        # The job requests machines at a random moment, when part of a run is over.
        left = RUN_FAMILY.residual_factors(lengths[0], p.run_sigma[:, None], sample.residue[None])
        lengths[0] *= np.where(zones.is_down | p.runs_from_start[:, None], 1.0, left)
        return lengths, waits


@dataclass(frozen=True, slots=True)
class RunningCapacity:
    """Capacity of a class from a moment at which the machines already train.

    The first run is the remainder of a run plus a start-up that happened before the clock.
    """

    def runs(self, p: PathInputs, sample: RandomNumbers) -> tuple[Singles, Singles]:
        """Lengths of the runs and the wait before each, seconds."""
        lengths, waits = CLASS_CAPACITY.runs(p, sample)
        whole = zones_of(p, sample).run_s * _factors(p.run_sigma, sample, "run")[0]
        left = RUN_FAMILY.residual_factors(whole, p.run_sigma[:, None], sample.residue[None])
        lengths[0] = whole * left + p.changeover_s[:, None]
        waits[0] = 0.0
        return lengths, waits


@dataclass(frozen=True, slots=True)
class OtherRunLaw:
    """Runs of another law than the shipped one; zones and outages are the plans' own."""

    law: RunLaw

    def runs(self, p: PathInputs, sample: RandomNumbers) -> tuple[Singles, Singles]:
        """Lengths of the runs and the wait before each, seconds."""
        zones = zones_of(p, sample)
        shape = self.law.lengths(run_uniforms(sample)).T.astype(np.float32)
        lengths = zones.run_s.astype(np.float32)[None] * shape[:, None]
        left = zones.run_s * self.law.residues(sample.residue)[None]
        lengths[0] = np.where(zones.is_down | p.runs_from_start[:, None], lengths[0], left)
        return lengths, _waits(p, sample, zones)


CLASS_CAPACITY = ClassCapacity()


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


def _waits(p: PathInputs, sample: RandomNumbers, zones: Zones) -> Singles:
    """An outage where no other listed zone is up, or patience; the first is what is left of one."""
    outages = _factors(p.outage_sigma, sample, "outage")
    waits = zones.outage_s.astype(np.float32)[None] * outages
    away = waits * row(p.zone_count) if np.any(p.move_after_s > 0.0) else None
    waits *= sample.by_cycle("moved")[:, None] < zones.others_down.astype(np.float32)[None]
    if away is not None:
        waits = stays(p, away, waits)
    left = OUTAGE_FAMILY.residual_factors(outages[0], p.outage_sigma[:, None], sample.residue[None])
    waits[0] = np.where(zones.is_down, zones.outage_s * outages[0] * left, 0.0)
    if np.any(p.replaced_wait_s > 0.0):
        waits[1:] += _replacements(p, sample)[1:]
    return waits


def _replacements(p: PathInputs, sample: RandomNumbers) -> Singles:
    """How long an on-demand cluster waits for a machine in place of one that failed."""
    law = (p.replaced_at_once[None, :, None], p.replaced_wait_s[None, :, None])
    return wait_s(*law, sample.replaced.T[:, None]).astype(np.float32)


def _factors(shape: Floats, sample: RandomNumbers, which: str) -> Singles:
    """Lengths of mean one for each plan's shape; plans of a batch often share it."""
    if np.all(shape == shape[0]):
        return sample.factors(which, float(shape[0]))[:, None]
    return np.stack([sample.factors(which, float(value)) for value in shape], axis=1)


def _others_down(p: PathInputs, sample: RandomNumbers) -> Floats:
    """Chance that no other listed zone is up when this one is not.

    For two zones of equal availability a and correlation c, P(up | other down) = a(1 - c).
    """
    share = np.ones((len(p), sample.key[0]))
    for site in range(1, min(MAX_LISTED_ZONES, int(p.zone_count.max()))):
        level = p.availability_logit[:, None] + p.zone_sd[:, None] * sample.zone_at(site)
        down = 1.0 - logistic(level) * (1.0 - p.correlation[:, None])
        share = np.where(p.zone_count[:, None] > site, share * down, share)
    return share


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of a batch; shape (cycles, clusters, paths), seconds.

    Plans that differ only in their fallback share one cluster and its runs.
    """

    cluster: Ints  # of each plan
    inputs: PathInputs  # of each cluster, with the fallback of one of its plans
    starts: Singles
    lengths: Singles
    usable: Singles
    durable: Singles  # progress when the run begins to train
    most_work: Singles  # most work that the run can do, saved or not
    waits: Singles
    waited: Singles  # before the run and all earlier ones
    moves: Singles | None  # to other places until then; None: at every interruption
    on_demand_part: OnDemandPart | None  # None: no cluster of the batch is elastic
    billed_before: Singles  # spot time charged for the runs before it
    of_class: bool  # drawn from the plans' own laws

    def places(self, index: Ints) -> Ints:
        """The place of each path's own run; `index` has shape (plans, paths)."""
        return places(index, self.cluster, len(self.inputs))

    def of_plans(self, values: Singles) -> Singles:
        """Expand values of clusters to plans."""
        each = np.array_equal(self.cluster, np.arange(len(self.inputs)))
        return values if each else values[:, self.cluster]

    @property
    def plans(self) -> Ints:
        """A plan of each cluster (any, where a cluster has none)."""
        found = np.zeros(len(self.inputs), dtype=np.int64)
        found[self.cluster] = np.arange(len(self.cluster))
        return found

    def of(self, plans: Ints) -> "Runs":
        """The runs of some of the plans."""
        return replace(self, cluster=self.cluster[plans])


def simulate_runs(
    plans: PathInputs, sample: RandomNumbers, capacity: Capacity = CLASS_CAPACITY
) -> Runs:
    """Runs, waits and progress of every plan on every path."""
    plan, cluster = plans.clusters()
    p = plans if len(plan) == len(plans) else plans.take(plan)
    lengths, waits = capacity.runs(p, sample)
    waited = until(waits)
    starts = before(lengths)
    starts += waited
    usable = np.maximum(lengths - row(p.changeover_s), np.float32(0.0))
    kept, live = _progress(p, usable, sample)
    durable = before(kept)
    on_demand_part = None
    if np.any(p.elastic_share > 0.0):
        on_demand_part = on_demand_part_of(p, starts, lengths, waits)
        durable += until(on_demand_part.work)
    return Runs(
        cluster, p, starts, lengths, usable, durable, live, waits, waited,
        moves_until(p, waits) if np.any(p.move_after_s > 0.0) else None,
        on_demand_part, before(_bill(p, lengths)), capacity is CLASS_CAPACITY,
    )  # fmt: skip


def work_of_a_run(p: PathInputs) -> Floats:
    """Its mean, saved: `progress` of performance/checkpoint.py by the midpoint rule; (plans,)."""
    interval = np.minimum(p.interval_s, p.work_s)
    late = p.changeover_s + 0.5 * (1.0 - p.notice_saves) * (interval + p.stall_s)
    kept = RUN_FAMILY.excess(late, p.run_mean_s, p.run_sigma)
    return np.asarray(kept * (interval / (interval + p.stall_s)))


@dataclass(frozen=True, slots=True)
class DrawnRuns:
    """As many runs as were drawn for a path, which a longer job repeats; shape (plans, paths).

    They are as long as the law's mean: paths that their drawn runs do not finish met short ones,
    which say nothing of those to come. Waits are those of the path, whose zones stay its own, and
    so are the runs of recordings and of elastic clusters, which work in between.
    """

    elapsed_s: Floats
    done: Floats
    longer: Floats  # times the length of those drawn


def drawn_runs(p: PathInputs, runs: Runs, place: Ints) -> DrawnRuns:
    """Those before the last, whose place is given."""
    waited, durable = at(runs.waited, place), at(runs.durable, place)
    up = np.maximum(at(runs.starts, place) - waited, 1.0)
    drawn, of_law = len(runs.lengths) - 1, (p.elastic_share == 0.0)[:, None] & runs.of_class
    usual = np.where(of_law, drawn * p.run_mean_s[:, None], up)
    done = np.where(of_law, drawn * work_of_a_run(p)[:, None], durable)
    elapsed = waited + usual
    return DrawnRuns(elapsed, np.maximum(done, 1e-4 * elapsed), usual / up)


def _bill(p: PathInputs, lengths: Singles) -> Singles:
    """Spot seconds charged for each run that is interrupted."""
    bill = np.maximum(lengths, row(p.minimum_s))
    if np.any(p.free_s > 0.0):
        bill *= lengths >= row(p.free_s)  # a masked copy takes several times as long
    return bill


def _progress(p: PathInputs, usable: Singles, sample: RandomNumbers) -> tuple[Singles, Singles]:
    """Durable progress of each interrupted run, and the most it can do until its end."""
    cycle = row(p.interval_s + p.stall_s)
    interval = row(p.interval_s)
    whole = np.floor(usable / cycle)
    live = whole * cycle
    np.subtract(usable, live, out=live)
    whole *= interval
    np.minimum(live, interval, out=live)
    live += whole
    if np.any(p.notice_saves > 0.0):
        saves = sample.by_cycle("notice")[:, None] < row(p.notice_saves)
        whole = choose(saves, usable * (interval / cycle), whole)
    return whole, live
