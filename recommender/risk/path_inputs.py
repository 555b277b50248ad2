"""Inputs of a simulation for each plan, and its results for each path: plain columns."""

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np

from recommender.arrays import Bools, Floats, Ints, Table
from recommender.catalogs.frozen import dataclass

# What changes nothing of the runs of a cluster: of its fallback, or of any that it may have.
OF_FALLBACKS = frozenset({
    "fallback_speed", "fallback_usd_per_hour", "fallback_start_s", "fallback_at_once",
    "fallback_wait_s", "reserve_s", "cautious_work_s", "wait_above", "back_above",
})  # fmt: skip
BY_THE_SECOND = 1.0  # such a step is nothing to round


@dataclass(frozen=True, slots=True)
class PathInputs(Table):
    """Many plans at once; every field has shape (plans,)."""

    work_s: Floats  # training time on the whole cluster, nothing lost
    speed_sigma: Floats
    fits: Floats  # chance that its GPUs' memory is enough: of a run that does not fit, nothing is
    base_usd_per_hour: Floats  # machines paid from the first to the last second,
    base_minimum_s: Floats  # for so long at least,
    base_step_s: Floats  # in whole steps of this,
    base_end_s: Floats  # of which the provider takes the end
    spot_usd_per_hour: Floats
    spot_price_sigma: Floats
    fixed_usd: Floats
    usd_per_move: Floats  # egress of a checkpoint that goes to another place of the list
    move_after_s: Floats  # patience before it goes there (`move_after.py`); 0: at once
    run_mean_s: Floats  # of the gang
    run_sigma: Floats
    outage_sigma: Floats
    availability_logit: Floats  # of the gang in a typical zone
    zone_sd: Floats
    zone_count: Floats  # length of the failover list
    correlation: Floats  # of two listed zones being down together
    runs_from_start: Bools  # runs are counted from the machine's start
    changeover_s: Floats
    interval_s: Floats
    stall_s: Floats
    notice_saves: Floats  # chance that the last save beats the notice
    elastic_share: Floats  # speed of the on-demand part alone; 0 for a gang
    boot_s: Floats  # of the changeover, until the machines are there
    resize_s: Floats  # until the on-demand part trains again when spot has left
    minimum_s: Floats  # billing minimum
    free_s: Floats  # an interruption before this age costs nothing
    fallback_speed: Floats  # relative to the cluster; 0 = no fallback
    fallback_usd_per_hour: Floats
    fallback_start_s: Floats  # boot, restore and set-up on the fallback
    fallback_at_once: Floats  # chance that its machines are there at once
    fallback_wait_s: Floats  # and the median wait otherwise (`on_demand_wait.py`)
    reserve_s: Floats  # kept beyond the time to finish on the fallback
    cautious_work_s: Floats  # that the policy counts with while it waits for its first machines
    wait_above: Floats  # slack, per second needed on it, above which a plan waits for spot
    back_above: Floats  # and above which it goes back to spot; inf: never (`policy.py`)
    at_once: Floats  # chance that the cluster's own on-demand machines are there
    wait_s: Floats  # and the median wait otherwise
    replaced_at_once: Floats  # the same of one machine, in place of one that failed
    replaced_wait_s: Floats

    def rented_s(self, time_s: Floats) -> Floats:
        """The time that base machines are charged for, of plans that need them so long."""
        found = np.maximum(time_s, self.base_minimum_s[:, None])
        if np.any(self.base_step_s > BY_THE_SECOND):
            step = np.maximum(self.base_step_s, BY_THE_SECOND)[:, None]
            steps = np.ceil((time_s + self.base_end_s[:, None]) / step)
            whole = np.maximum(steps * step, self.base_minimum_s[:, None])
            found = np.where(step > BY_THE_SECOND, whole, found)
        return np.asarray(found)

    @property
    def handover_s(self) -> Floats:
        """Time that must remain at a handover, besides the time to finish on the fallback."""
        return self.reserve_s + self.fallback_start_s

    def earlier(self, early_s: Floats) -> "PathInputs":
        """Plans whose fallbacks take over so many seconds earlier."""
        return replace(self, reserve_s=self.reserve_s + early_s)

    def clusters(self) -> tuple[Ints, Ints]:
        """A row of each cluster, and the cluster of each row; rows may differ in fallbacks only."""
        if not np.any(self.fallback_speed > 0.0):
            each = np.arange(len(self))
            return each, each
        own = [getattr(self, name) for name in self.__slots__ if name not in OF_FALLBACKS]
        keys = [row.tobytes() for row in np.stack(own, axis=1)]
        first: dict[bytes, int] = {}
        for row, key in enumerate(keys):
            first.setdefault(key, row)
        number = {row: place for place, row in enumerate(first.values())}
        return np.array(list(number)), np.array([number[first[key]] for key in keys])

    def keys(self, *others: Floats) -> list[bytes]:
        """Each row, with its values of other columns, as bytes."""
        columns = [np.asarray(column, dtype=float) for column in _columns_of(self)]
        return [row.tobytes() for row in np.stack([*columns, *others], axis=1)]


_columns_of = attrgetter(*PathInputs.__slots__)


@dataclass(frozen=True, slots=True)
class Paths:
    """The results of each plan on each path; every field has shape (plans, paths)."""

    time_s: Floats
    cost_usd: Floats
    expected_usd: Floats  # the same at the expected price: its mean is the expected cost
    spot_s: Floats  # spot time paid for
    running_s: Floats  # time with the whole cluster up, fallback included
    fallback_s: Floats
    waiting_s: Floats  # nothing is there to train on
    queued_s: Floats  # of it, before the cluster's on-demand machines were there: unpaid
    fallback_queued_s: Floats  # of it, before those of the fallback were
    interruptions: Floats
    moves: Floats  # of the checkpoint to another listed place
    restarts_s: Floats  # changeovers after the first, changes of size
    trained_s: Floats  # useful training on any machines
    alone_s: Floats  # of it, by the on-demand part of an elastic cluster
    work_s: Floats  # the job's work at this path's speed, on the whole cluster
    lost_work_s: Floats  # what could have been done while saves, lost work and restarts took place

    @staticmethod
    def blank(plans: int, paths: int) -> "Paths":
        """Empty results for some plans, of which some may be kept without the others."""
        return Paths(*(np.empty((plans, paths)) for _ in Paths.__slots__))

    @staticmethod
    def beside(parts: "Sequence[Paths]") -> "Paths":
        """The results of the same plans on several blocks of paths, one after the other."""
        if len(parts) == 1:
            return parts[0]
        columns = ([getattr(part, name) for part in parts] for name in Paths.__slots__)
        return Paths(*(np.concatenate(each, axis=1) for each in columns))

    def put(self, rows: Ints, paths: "Paths") -> None:
        """Set the results of some plans."""
        for name in self.__slots__:
            getattr(self, name)[rows] = getattr(paths, name)
