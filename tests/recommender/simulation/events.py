"""One plan, event by event, in simpy: a second model of docs/method.md that shares no code.

Processes of one path: capacity that comes and goes, a trainer that it starts and interrupts,
and a watch that rents the fallback when the slack is used up. Random numbers come from `random`,
so only the laws agree with the engine's, not the paths.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass
from random import Random
from types import SimpleNamespace
from typing import Any

import simpy

from recommender.risk.path_inputs import PathInputs

Steps = Generator[simpy.Event, Any, None]
RUNS_MET = 300  # runs among which a request meets one at random


@dataclass
class Outcome:
    """What happened in one path."""

    time_s: float = 0.0
    cost_usd: float = 0.0
    interruptions: float = 0.0
    moves: float = 0.0  # of the checkpoint
    spot_s: float = 0.0  # paid
    fallback_s: float = 0.0
    waiting_s: float = 0.0
    alone_s: float = 0.0  # the on-demand part of an elastic cluster trained


def plan_of(inputs: PathInputs, row: int = 0) -> SimpleNamespace:
    """One row of the columns, as numbers."""
    names = PathInputs.__slots__
    return SimpleNamespace(**{name: float(getattr(inputs, name)[row]) for name in names})


def mean_one(rng: Random, sigma: float) -> float:
    return math.exp(rng.gauss(-sigma * sigma / 2.0, sigma))


def share(logit: float) -> float:
    return 1.0 / (1.0 + math.exp(-logit))


class JobPath:
    """One job on one plan, from the request for machines to the last step."""

    def __init__(self, plan: SimpleNamespace, deadline_s: float | None, rng: Random) -> None:
        self.plan, self.rng, self.deadline_s = plan, rng, deadline_s
        self.env = simpy.Environment()
        self.over = self.env.event()
        self.news = self.env.event()  # progress goes another way: the watch looks again
        self.outcome = Outcome()
        self.work_s = plan.work_s * math.exp(rng.gauss(0.0, plan.speed_sigma))
        self.begun_s = 0.0  # safe work when the present run became ready
        self.tail_s = 0.0  # from the end of the first cluster to the last step
        self.safe_s = 0.0  # work that no interruption can take
        self.since_s = 0.0  # moment of `safe_s`
        self.gains = 0.0  # safe work per second from then on
        self.own_from_s = plan.changeover_s  # the on-demand part trains from here; inf: all do
        self.down_since = 0.0
        self.up_since: float | None = None
        self.ready_s: float | None = None
        self.trainer: simpy.Process | None = None
        self.zone = rng.gauss(0.0, 1.0)  # how good the first listed zone is
        self.short = self.shortage()  # one for the path, whatever is started
        self.queue_s = self.queued(plan.at_once, plan.wait_s)

    def shortage(self) -> float:
        """Share of moments at which on-demand machines are no shorter than now."""
        score = 0.5 * self.zone + math.sqrt(1.0 - 0.25) * self.rng.gauss(0.0, 1.0)
        return 0.5 * math.erfc(score / math.sqrt(2.0))

    def queued(self, at_once: float, median_s: float, short: float | None = None) -> float:
        """Nothing, or a Pareto wait of index 11/10 from zero on, its median as given."""
        short = self.short if short is None else short
        if short <= at_once:
            return 0.0
        beyond = (1.0 - short) / (1.0 - at_once)  # uniform
        return median_s * (beyond ** (-10 / 11) - 1.0) / (2 ** (10 / 11) - 1.0)

    def simulate(self) -> Outcome:
        """Run the path."""
        self.env.process(self.capacity())
        if self.plan.elastic_share > 0.0:
            self.env.process(self.own_part())
        if self.deadline_s is not None and self.plan.fallback_speed > 0.0:
            self.env.process(self.watch())
        self.env.run(until=self.over)
        queue = self.queue_s
        self.outcome.time_s = self.env.now + self.tail_s + queue
        self.outcome.waiting_s += queue
        self.outcome.cost_usd += self.bill()
        return self.outcome

    def bill(self) -> float:
        """What has to be paid at the end, next to the fallback."""
        p, outcome = self.plan, self.outcome
        price = p.spot_usd_per_hour * mean_one(self.rng, p.spot_price_sigma)
        hourly = price * outcome.spot_s + p.base_usd_per_hour * (self.env.now + self.tail_s)
        return p.fixed_usd + p.usd_per_move * outcome.moves + hourly / 3600.0

    # Capacity -----------------------------------------------------------------------------

    def capacity(self) -> Steps:
        """Outages and runs of the listed zones; a run starts the trainer, its end stops it."""
        p, rng = self.plan, self.rng
        up = share(p.availability_logit + p.zone_sd * self.zone)
        nowhere = 1.0
        for _ in range(int(p.zone_count) - 1):
            other = share(p.availability_logit + rng.gauss(0.0, p.zone_sd))
            nowhere *= 1.0 - other * (1.0 - p.correlation)
        outage = p.run_mean_s * (1.0 - up) / up / p.zone_count
        first = True
        while True:
            wait, run = 0.0, p.run_mean_s * mean_one(rng, p.run_sigma)
            if first and rng.random() < (1.0 - up) * nowhere:
                wait = self.left_of(outage, p.outage_sigma)
            elif first and not p.runs_from_start:
                run = self.left_of(p.run_mean_s, p.run_sigma)
            elif not first:
                wait = self.between(outage, nowhere)
            if not first and p.replaced_wait_s:
                wait += self.queued(p.replaced_at_once, p.replaced_wait_s, self.shortage())
            first = False
            yield self.env.timeout(wait)
            self.outcome.waiting_s += 0.0 if p.elastic_share else wait
            self.up_since = self.env.now
            self.trainer = self.env.process(self.train())
            yield self.env.timeout(run)
            self.outcome.spot_s += 0.0 if run < p.free_s else max(run, p.minimum_s)
            self.outcome.interruptions += 1.0
            self.up_since, self.down_since = None, self.env.now
            self.trainer.interrupt("taken")

    def between(self, outage: float, nowhere: float) -> float:
        """The wait between two runs; a patient cluster asks in the place it had for a while."""
        p, rng = self.plan, self.rng
        others = rng.random() >= nowhere
        if not p.move_after_s:
            self.outcome.moves += 1.0
            return 0.0 if others else outage * mean_one(rng, p.outage_sigma)
        soonest = outage * mean_one(rng, p.outage_sigma)  # of the listed places
        here = p.zone_count * soonest
        if here < p.move_after_s:
            return max(here, 0.0 if others else soonest)
        self.outcome.moves += 1.0
        return max(p.move_after_s, 0.0 if others else soonest)

    def left_of(self, mean: float, sigma: float) -> float:
        """What is left of the run that a random moment falls into."""
        runs = [mean * mean_one(self.rng, sigma) for _ in range(RUNS_MET)]
        moment = self.rng.random() * sum(runs)
        for length in runs:
            if moment < length:
                return length - moment
            moment -= length
        return runs[-1]

    # Training -----------------------------------------------------------------------------

    def train(self) -> Steps:
        """One run: the changeover, then intervals of work, each with a save behind it."""
        p = self.plan
        ready, joined = None, p.elastic_share == 0.0
        try:
            if p.elastic_share:  # the machines boot; then the on-demand part restarts with them
                yield self.env.timeout(p.boot_s)
                joined, self.own_from_s = True, math.inf
                self.settle(0.0)
                self.tell_watch()
            restart_s = p.changeover_s - (p.boot_s if p.elastic_share else 0.0)
            if restart_s:
                yield self.env.timeout(restart_s)
            self.settle(0.0)
            ready = self.ready_s = self.env.now
            done_s = self.begun_s = self.safe_s
            self.tell_watch()
            while self.work_s - done_s > p.interval_s + 1e-3:
                yield self.env.timeout(p.interval_s)
                yield self.env.timeout(p.stall_s)
                done_s += p.interval_s
                self.safe_s, self.since_s = done_s, self.env.now
            yield self.env.timeout(self.work_s - done_s)
            self.finish()
        except simpy.Interrupt as stopped:
            if ready is not None:
                self.keep(ready, str(stopped.cause))
            if joined and p.elastic_share:
                self.own_from_s = max(self.env.now + p.resize_s, p.changeover_s)
            self.ready_s = None
            self.tell_watch()

    def keep(self, ready: float, cause: str) -> None:
        """What an interrupted run leaves: whole intervals, or all where a last save was made."""
        p = self.plan
        pace = p.interval_s / (p.interval_s + p.stall_s)
        if cause == "fallback" or self.rng.random() < p.notice_saves:
            self.safe_s = self.begun_s + pace * (self.env.now - ready)
        self.since_s, self.gains = self.env.now, 0.0

    def own_part(self) -> Steps:
        """The on-demand part of an elastic cluster trains whenever it is not in a restart."""
        p = self.plan
        pace = p.elastic_share * p.interval_s / (p.interval_s + p.stall_s)
        while True:
            if math.isinf(self.own_from_s):
                yield self.news
            elif self.env.now < self.own_from_s:
                yield self.env.timeout(self.own_from_s - self.env.now) | self.news
            else:
                self.settle(pace)
                left = (self.work_s - self.safe_s) / pace
                self.tell_watch()
                done = self.env.timeout(left)
                yield done | self.news
                if done.processed and not math.isinf(self.own_from_s):
                    self.settle(0.0)
                    self.finish()
                    return

    def settle(self, gains: float) -> None:
        """Book what was gained since the last change, and go on at another rate."""
        gained = self.gains * (self.env.now - self.since_s)
        self.safe_s += gained
        self.outcome.alone_s += gained / self.plan.elastic_share if gained else 0.0
        self.since_s, self.gains = self.env.now, gains

    def finish(self) -> None:
        """The last step is done: the cluster's last run is paid to here."""
        if self.over.triggered:
            return
        if self.up_since is not None:
            self.outcome.spot_s += max(self.env.now - self.up_since, self.plan.minimum_s)
        else:
            self.outcome.waiting_s += self.waited()
        self.over.succeed()

    def waited(self) -> float:
        """Since the spot part left; an elastic cluster has its on-demand part."""
        return 0.0 if self.plan.elastic_share else self.env.now - self.down_since

    # The safety net -------------------------------------------------------------------------

    def tell_watch(self) -> None:
        """Wake the processes that wait for a change."""
        old, self.news = self.news, self.env.event()
        if not old.triggered:
            old.succeed()

    def watch(self) -> Steps:
        """Rent the fallback as soon as the time left only just covers the work left."""
        p = self.plan
        cycle = p.interval_s + p.stall_s
        while True:
            rate = self.gains
            if self.ready_s is not None:  # safe: all but the interval being trained
                trained = self.env.now - self.ready_s
                if trained >= cycle - 1e-6:
                    rate = p.interval_s / cycle
            slack = self.slack()
            if slack <= 1e-6:
                self.env.process(self.rescue())
                return
            ring = slack / (1.0 - rate / p.fallback_speed) if rate < p.fallback_speed else 1e12
            turn = 1e12
            if self.ready_s is not None and self.env.now - self.ready_s < cycle - 1e-6:
                turn = self.ready_s + cycle - self.env.now
            yield self.env.timeout(min(ring, turn)) | self.news

    def slack(self) -> float:
        """Seconds that may still pass without progress."""
        p = self.plan
        assert self.deadline_s is not None
        safe = self.safe_s + self.gains * (self.env.now - self.since_s)
        if self.ready_s is not None:
            pace = p.interval_s / (p.interval_s + p.stall_s)
            trained = max(self.env.now - self.ready_s - p.interval_s - p.stall_s, 0.0)
            safe = self.begun_s + pace * trained
        last = self.deadline_s - self.queue_s - p.reserve_s - p.fallback_start_s
        return last - self.env.now - (self.work_s - safe) / p.fallback_speed

    def rescue(self) -> Steps:
        """The fallback does the rest: its queue, its start, its training."""
        p, outcome = self.plan, self.outcome
        if self.ready_s is not None:
            assert self.trainer is not None
            self.trainer.interrupt("fallback")
            yield self.env.timeout(0.0)
        else:
            self.settle(0.0)
        if self.up_since is not None:
            outcome.spot_s += max(self.env.now - self.up_since, p.minimum_s)
        else:
            outcome.waiting_s += self.waited()
        left = max(self.work_s - self.safe_s, 0.0)
        delay = self.queued(p.fallback_at_once, p.fallback_wait_s)
        outcome.fallback_s = p.fallback_start_s + left / p.fallback_speed
        outcome.waiting_s += delay
        outcome.cost_usd += p.fallback_usd_per_hour * outcome.fallback_s / 3600.0
        self.tail_s = delay + outcome.fallback_s
        self.over.succeed()
