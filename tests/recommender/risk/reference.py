"""A slow reference of the simulation: one plan, one path, event by event, in plain floats.

Shares nothing with `plan.py` but the random numbers and the names of the columns.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from recommender.arrays import Floats
from recommender.risk.path_inputs import PathInputs
from recommender.risk.random_numbers import STRETCH, random_numbers

DRAWN = 512  # runs that a path may take before the reference gives up


class Numbers:
    """The random numbers of some paths, with so many cycles each."""

    def __init__(self, paths: int, cycles: int = DRAWN, seed: int = 7) -> None:
        self.sample = random_numbers(paths, seed)
        stretches = range(0, cycles, STRETCH)
        # A length of mean one is exp(z - 1/2) where the shape is 1.
        self.run, self.outage = (
            np.log(np.concatenate([self.sample.factors(which, 1.0, n) for n in stretches]).T) + 0.5
            for which in ("run", "outage")
        )
        self.moved, self.notice, self.replaced = (
            np.concatenate([self.sample.uniforms(which, n) for n in stretches]).T
            for which in ("moved", "notice", "replaced")
        )

    def zone_at(self, site: int) -> Floats:
        """Level of one zone of the list on each path."""
        return self.sample.zone_at(site)

    def __getattr__(self, name: str) -> Floats:
        found: Floats = getattr(self.sample, name)
        return found


@dataclass
class PathOutcome:
    """What one plan did in one path."""

    time_s: float = 0.0
    cost_usd: float = 0.0
    expected_usd: float = 0.0
    spot_s: float = 0.0
    fallback_s: float = 0.0
    waiting_s: float = 0.0
    running_s: float = 0.0
    interruptions: float = 0.0
    moves: float = 0.0
    work_s: float = 0.0
    lost_work_s: float = 0.0
    alone_s: float = 0.0


class Plan:
    """One row of the columns, as numbers."""

    def __init__(self, plans: PathInputs, row: int) -> None:
        for name in PathInputs.__slots__:
            setattr(self, name, float(getattr(plans, name)[row]))

    def __getattr__(self, name: str) -> float:
        raise AttributeError(name)


def up_share(logit: float) -> float:
    """Share of the time that capacity is there."""
    return 1.0 / (1.0 + math.exp(-logit))


def mean_one(sigma: float, z: float) -> float:
    """A lognormal factor of mean one."""
    return math.exp(sigma * z - sigma * sigma / 2.0)


def queue(at_once: float, median: float, supply: float) -> float:
    """The wait for on-demand machines: a Lomax law of tail 1.1 behind the chance of none."""
    if supply >= 1.0 - at_once:
        return 0.0
    longer = supply / (1.0 - at_once)  # of those that wait, the share that waits longer
    return median * (longer ** (-1 / 1.1) - 1.0) / (2.0 ** (1 / 1.1) - 1.0)


def capacity(p: Plan, numbers: Numbers, path: int) -> Iterator[tuple[float, float, bool]]:
    """The wait before each run, the run's length, and whether the checkpoint moved before it."""
    up = up_share(p.availability_logit + p.zone_sd * numbers.zone_at(0)[path])
    nowhere = 1.0
    for place in range(1, int(p.zone_count)):
        other = up_share(p.availability_logit + p.zone_sd * numbers.zone_at(place)[path])
        nowhere *= 1.0 - other * (1.0 - p.correlation)
    outage = p.run_mean_s * (1.0 - up) / up / p.zone_count
    for k in range(numbers.run.shape[1]):
        run = p.run_mean_s * mean_one(p.run_sigma, numbers.run[path, k])
        wait = outage * mean_one(p.outage_sigma, numbers.outage[path, k])
        if k == 0:
            down = numbers.start[path] < (1.0 - up) * nowhere
            wait *= math.exp(p.outage_sigma**2) * numbers.residue[path] if down else 0.0
            if not down and not p.runs_from_start:
                run *= math.exp(p.run_sigma**2) * numbers.residue[path]
        away, moved = p.zone_count * wait, k > 0
        if k > 0 and numbers.moved[path, k] >= nowhere:
            wait = 0.0
        if k > 0 and p.move_after_s:  # the place left is asked alone, for so long at most
            wait = max(wait, min(p.move_after_s, away))
            moved = away >= p.move_after_s
        if k > 0 and p.replaced_wait_s:
            wait += queue(p.replaced_at_once, p.replaced_wait_s, numbers.replaced[path, k])
        yield wait, run, moved


class FallbackRule:
    """Says how long a job may still wait before the fallback must be rented.

    It knows what has been seen: the predicted work until the first step (a cautious prediction
    while no spot is there), then the true one.
    """

    def __init__(self, p: Plan, deadline_s: float | None, queued: float) -> None:
        self.there = deadline_s is not None and p.fallback_speed > 0.0
        self.speed = p.fallback_speed
        self.work = p.cautious_work_s
        self.trained = False
        self.last = (deadline_s or 0.0) - queued - p.reserve_s - p.fallback_start_s

    def starts_at(self, at: float, durable: float, gains: float) -> float:
        """First moment from `at` on without slack, if safe work grows at the rate `gains`."""
        if not self.there:
            return math.inf
        slack = self.last - at - (self.work - durable) / self.speed
        if slack <= 0.0:
            return at
        shrinks = 1.0 - gains / self.speed
        return at + slack / shrinks if shrinks > 0.0 else math.inf


def simulate_path(
    p: Plan, numbers: Numbers, path: int, deadline_s: float | None
) -> PathOutcome | None:
    """Simulate one plan through one path; None if the random numbers do not reach to its end."""
    work = p.work_s * math.exp(p.speed_sigma * numbers.speed[path])
    queued = queue(p.at_once, p.wait_s, numbers.supply[path])
    rule = FallbackRule(p, deadline_s, queued)
    outcome = PathOutcome(work_s=work)
    clock = durable = 0.0
    begun = p.changeover_s  # when the on-demand part of an elastic cluster can train
    for wait, run, moved in capacity(p, numbers, path):
        outcome.moves += moved
        began, end = clock + wait, clock + wait + run
        ready = min(began + p.changeover_s, end)
        since = clock
        # Until the whole cluster trains: seconds from `clock` on, gains, and what could be gained.
        for until, gains, could in _before_training(p, clock, began, begun, ready, end):
            if until <= clock:
                continue
            if gains or rule.trained:
                rule.work, rule.trained = work, True
            else:
                rule.work = p.cautious_work_s if until <= began else p.work_s
            done = clock + (work - durable) / gains if gains else math.inf
            switch_s = rule.starts_at(clock, durable, gains)
            stop = min(done, switch_s, until)
            # The first start-up is not lost: by the clock, of gangs by the time they are up.
            up = 0.0 if p.elastic_share else outcome.running_s - began
            counted = max(up + stop, p.changeover_s) - max(up + clock, p.changeover_s)
            outcome.lost_work_s += could * counted - gains * (stop - clock)
            outcome.alone_s += gains * (stop - clock) / (p.elastic_share or 1.0)
            if stop < until:
                _at_work(p, outcome, since, began, stop)
                if done <= switch_s:
                    return _closed(p, numbers, path, outcome, done)
                left = work - durable - gains * (switch_s - clock)
                return _on_fallback(p, numbers, path, outcome, switch_s, left)
            durable += gains * (until - clock)
            clock = until
        # Everything trains: intervals of work and saves.
        cycle = p.interval_s + p.stall_s
        pace = p.interval_s / cycle
        done = _finish(p, ready, end, work - durable)
        if end > ready:
            rule.work, rule.trained = work, True
        switch_s = rule.starts_at(ready, durable, 0.0)
        if switch_s >= ready + cycle:  # what is safe: all but the interval being trained
            switch_s = rule.starts_at(ready + cycle, durable, pace)
        if min(done, switch_s) <= end:
            _at_work(p, outcome, since, began, min(done, switch_s))
            if done <= switch_s:
                outcome.lost_work_s += done - ready - (work - durable)
                return _closed(p, numbers, path, outcome, done)
            outcome.lost_work_s += (1.0 - pace) * max(switch_s - ready, 0.0)
            left = work - durable - pace * (switch_s - ready)  # a planned stop saves first
            return _on_fallback(p, numbers, path, outcome, switch_s, max(left, 0.0))
        # Taken back.
        outcome.waiting_s += 0.0 if p.elastic_share else wait
        outcome.running_s += run
        outcome.spot_s += 0.0 if run < p.free_s else max(run, p.minimum_s)
        notified = numbers.notice[path, int(outcome.interruptions)] < p.notice_saves
        kept = pace * (end - ready) if notified else _saved(p, end - ready)
        outcome.lost_work_s += end - ready - kept
        durable += kept
        outcome.interruptions += 1.0
        clock = end
        if run > p.boot_s:
            begun = max(end + p.resize_s, p.changeover_s)
    return None


def _before_training(
    p: Plan, clock: float, began: float, begun: float, ready: float, end: float
) -> list[tuple[float, float, float]]:
    """What happens until a run trains: until when, safe work per second, and what could be."""
    if not p.elastic_share:
        return [(began, 0.0, 0.0), (ready, 0.0, 1.0)]
    gains = p.elastic_share * p.interval_s / (p.interval_s + p.stall_s)
    back = min(began + p.boot_s, end)
    return [
        (min(max(begun, clock), back), 0.0, p.elastic_share),
        (back, gains, p.elastic_share),
        (ready, 0.0, 1.0),
    ]


def _at_work(p: Plan, outcome: PathOutcome, since: float, began: float, stop: float) -> None:
    """Count the last wait and the last run, which the job itself ends."""
    outcome.waiting_s += 0.0 if p.elastic_share else min(stop, began) - since
    if stop > began:
        outcome.running_s += stop - began
        outcome.spot_s += max(stop - began, p.minimum_s)


def _finish(p: Plan, ready: float, end: float, left: float) -> float:
    """When the last work of a run is done; no save after it. inf if the run ends before."""
    clock = ready
    while left > p.interval_s + 1e-3:
        clock += p.interval_s + p.stall_s
        left -= p.interval_s
        if clock > end:
            return math.inf
    return clock + left


def _saved(p: Plan, trained_for: float) -> float:
    """Work of the complete intervals of an interrupted run."""
    saved = 0.0
    while trained_for >= p.interval_s + p.stall_s:
        trained_for -= p.interval_s + p.stall_s
        saved += p.interval_s
    return saved


def _on_fallback(
    p: Plan, numbers: Numbers, path: int, outcome: PathOutcome, switch_s: float, left: float
) -> PathOutcome:
    """The fallback does the rest."""
    delay = queue(p.fallback_at_once, p.fallback_wait_s, numbers.supply[path])
    outcome.waiting_s += delay
    outcome.fallback_s = p.fallback_start_s + left / p.fallback_speed
    began = outcome.running_s > 0.0 or (p.elastic_share and switch_s > 0.0)
    outcome.lost_work_s += p.fallback_start_s * p.fallback_speed if began else 0.0
    outcome.running_s += outcome.fallback_s
    return _closed(p, numbers, path, outcome, switch_s + delay + outcome.fallback_s)


def _rented_s(p: Plan, used_s: float) -> float:
    """What is charged of machines that run so long: block after block is bought, whole."""
    paid = used_s
    if p.base_step_s > 1.0:
        paid = 0.0
        while paid - p.base_end_s < used_s:
            paid += p.base_step_s
    return max(paid, p.base_minimum_s)


def _closed(p: Plan, numbers: Numbers, path: int, outcome: PathOutcome, end: float) -> PathOutcome:
    """Add up the bill; nothing is charged before the cluster's own machines are there."""
    queued = queue(p.at_once, p.wait_s, numbers.supply[path])
    outcome.time_s = end + queued
    outcome.waiting_s += queued
    bill = p.fixed_usd + p.usd_per_move * outcome.moves
    bill += p.base_usd_per_hour * _rented_s(p, end) / 3600.0
    bill += p.fallback_usd_per_hour * outcome.fallback_s / 3600.0
    spot = p.spot_usd_per_hour * outcome.spot_s / 3600.0
    outcome.expected_usd = bill + spot
    outcome.cost_usd = bill + spot * mean_one(p.spot_price_sigma, numbers.price[path])
    return outcome
