"""A second simulator: one plan on one path, event by event, written from docs/method.md alone.

It shares nothing with `recommender.risk`: own random numbers, own code. The page's sections are
"The process, event by event", "The wait for on-demand machines", "Elastic clusters" and
"Checkpoint overhead". A path is a chain of phases; each advances the clock to the next event and
names the phase that follows. Progress is linear within a phase, so the moment at which the rule
asks for on-demand machines is computed and not searched for in steps of time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, erf, exp, floor, inf, log, sqrt
from random import Random
from types import SimpleNamespace
from typing import Any

HOUR = 3600.0
SUPPLY_CORRELATION = 0.5  # rho of "The wait for on-demand machines"
WAIT_TAIL = 1.1  # alpha of the same
WAIT_SCALE = 2.0 ** (1.0 / WAIT_TAIL) - 1.0

Phase = Callable[[], "Phase | None"]


def plan_of(inputs: Any, row: int = 0) -> SimpleNamespace:
    """One row of the inputs of a simulation."""
    named = {name: float(getattr(inputs, name)[row]) for name in type(inputs).__slots__}
    return SimpleNamespace(**named)


@dataclass
class Outcome:
    """What became of one path."""

    time_s: float = 0.0
    cost_usd: float = 0.0
    expected_usd: float = 0.0
    interruptions: float = 0.0
    moves: float = 0.0
    spot_s: float = 0.0
    fallback_s: float = 0.0
    waiting_s: float = 0.0
    work_s: float = 0.0
    lost_work_s: float = 0.0


class Lognormal:
    """Lengths of runs or of outages."""

    def __init__(self, mean: float, sigma: float, rng: Random) -> None:
        self.sigma, self.rng = sigma, rng
        self.location = log(mean) - sigma**2 / 2.0 if mean > 0.0 else -inf

    def draw(self) -> float:
        return exp(self.location + self.sigma * self.rng.gauss(0.0, 1.0))

    def remainder(self) -> float:
        """What is left of one at a random moment: long ones are met more often."""
        longer = self.location + self.sigma**2
        return exp(longer + self.sigma * self.rng.gauss(0.0, 1.0)) * self.rng.random()


class Market:
    """Where spot is there until when: waits and runs in turn, whatever the job does."""

    def __init__(self, plan: SimpleNamespace, levels: list[float], rng: Random) -> None:
        shares = [
            1.0 / (1.0 + exp(-(plan.availability_logit + plan.zone_sd * level))) for level in levels
        ]
        outage = plan.run_mean_s * (1.0 - shares[0]) / shares[0] / plan.zone_count
        self.plan, self.rng = plan, rng
        self.runs = Lognormal(plan.run_mean_s, plan.run_sigma, rng)
        self.outages = Lognormal(outage, plan.outage_sigma, rng)
        self.none_else = 1.0
        for share in shares[1:]:
            self.none_else *= 1.0 - share * (1.0 - plan.correlation)
        self.level = levels[0]
        self.moved = False  # whether the run after the present or last wait is elsewhere
        self.up = rng.random() >= (1.0 - shares[0]) * self.none_else
        if not self.up:
            self.until = self.outages.remainder()
        elif plan.runs_from_start:
            self.until = self.runs.draw()
        else:
            self.until = self.runs.remainder()

    def at(self, now: float) -> None:
        """Let what is over by now pass."""
        while self.until <= now:
            self.up = not self.up
            self.until += self.runs.draw() if self.up else self._wait()

    def _wait(self) -> float:
        plan = self.plan
        outage = self.outages.draw()
        wait = outage if self.rng.random() < self.none_else else 0.0
        self.moved = True
        if plan.move_after_s > 0.0:
            own = plan.zone_count * outage
            self.moved = own >= plan.move_after_s
            wait = max(wait, min(plan.move_after_s, own))
        if plan.replaced_wait_s > 0.0:
            supply = supply_of(self.level, self.rng)
            wait += wait_for_machines(supply, plan.replaced_at_once, plan.replaced_wait_s)
        return wait


def supply_of(level: float, rng: Random) -> float:
    """Supply of on-demand machines, uniform, correlated with the level of spot."""
    rho = SUPPLY_CORRELATION
    score = rho * level + sqrt(1.0 - rho**2) * rng.gauss(0.0, 1.0)
    return (1.0 + erf(score / sqrt(2.0))) / 2.0


def wait_for_machines(supply: float, at_once: float, median_s: float) -> float:
    short = (1.0 - at_once) / supply if supply > 0.0 else inf
    if short <= 1.0:
        return 0.0
    return median_s / WAIT_SCALE * (short ** (1.0 / WAIT_TAIL) - 1.0)


class JobPath:
    """A job on one path. The clock starts when the cluster's own on-demand machines are there."""

    def __init__(self, plan: SimpleNamespace, deadline_s: float | None, rng: Random) -> None:
        levels = [rng.gauss(0.0, 1.0) for _ in range(round(plan.zone_count))]
        supply = supply_of(levels[0], rng)
        sigma = plan.spot_price_sigma
        self.plan, self.rng, self.out = plan, rng, Outcome()
        self.market = Market(plan, levels, rng)
        self.work = plan.work_s * exp(plan.speed_sigma * rng.gauss(0.0, 1.0))
        self.price = exp(sigma * rng.gauss(0.0, 1.0) - sigma**2 / 2.0)
        self.queue = wait_for_machines(supply, plan.at_once, plan.wait_s)
        self.fallback_wait = wait_for_machines(supply, plan.fallback_at_once, plan.fallback_wait_s)
        self.elastic = plan.elastic_share > 0.0
        self.pace = plan.interval_s / (plan.interval_s + plan.stall_s)
        self.now = 0.0
        self.done = 0.0  # durable work
        self.known_work = plan.work_s  # the predicted work, until the first step
        self.stepped = False
        self.core_from = plan.changeover_s  # when the on-demand part of an elastic cluster trains
        self.first_start_s = plan.changeover_s  # the job has to start once: no overhead
        self.rented = False  # whether it has had machines
        self.latest = inf  # to go on demand, if nothing were left to do there
        if plan.fallback_speed > 0.0 and deadline_s is not None:
            self.latest = deadline_s - self.queue - plan.reserve_s - plan.fallback_start_s

    def simulate(self) -> Outcome:
        phase: Phase | None = self.see_market
        while phase is not None:
            phase = phase()
        return self._billed()

    # The policy

    def goes(self, until: float, pace: float = 0.0, wait: float = 0.0) -> bool:
        """Advance to `until`, or to the moment before at which the policy goes on demand.

        What it sees of the progress grows by `pace` per second from `self.done`.
        """
        moment = inf
        if self.latest < inf:
            weight = (1.0 + wait) / self.plan.fallback_speed
            margin = self.latest - self.now - weight * (self.known_work - self.done)
            falls = 1.0 - weight * pace
            if margin <= 0.0:
                moment = self.now
            elif falls > 0.0:
                moment = self.now + margin / falls
        self.now = min(moment, until)
        return moment < until

    def returns(self, end: float) -> float:
        """When the policy leaves on-demand machines, which would finish at `end`."""
        plan, need = self.plan, end - self.now
        spare = self.latest - end - plan.changeover_s
        if spare <= 0.0 or plan.back_above == inf:
            return inf
        little = spare / plan.back_above if plan.back_above > 0.0 else inf
        market = self.market
        market.at(self.now + max(need - little, 0.0))
        if market.up:
            return self.now + max(need - little, 0.0)
        return market.until

    # Spot

    def see_market(self) -> "Phase | None":
        self.market.at(self.now)
        if self.market.up:
            return self.join if self.elastic else self.run
        return self.core if self.elastic else self.wait

    def wait(self) -> "Phase | None":
        began = self.now
        if not self.stepped:
            self.known_work = self.plan.cautious_work_s
        goes = self.goes(self.market.until, wait=self.plan.wait_above)
        self.out.waiting_s += self.now - began
        return self.on_demand if goes else self.see_market

    def run(self) -> "Phase | None":
        return self.start(self.now, self.plan.changeover_s)

    def start(self, rented: float, changeover_s: float) -> "Phase | None":
        """A run of all machines, rented at this moment: they start, then train."""
        goes = self._starts(min(self.now + changeover_s, self.market.until), 1.0)
        if goes:
            return self._leave(rented, self.on_demand)
        if self.now >= self.market.until:
            return self._interrupted(rented)
        return self.train(rented)

    def _starts(self, until: float, share: float) -> bool:
        """Machines of that share of the speed start until then, unless the policy stops them."""
        began = self.now
        if not self.stepped:
            self.known_work = self.plan.work_s
        goes = self.goes(until)
        self._no_work(self.now - began, share)
        return goes

    def _no_work(self, seconds: float, share: float) -> None:
        """Overhead of a start: all but the first changeover of the job."""
        self.rented |= seconds > 0.0
        first = min(seconds, self.first_start_s)
        self.first_start_s -= first
        self.out.lost_work_s += (seconds - first) * share

    def _step(self) -> None:
        """From its first step on the job's true speed is known."""
        self.stepped, self.known_work = True, self.work

    def train(self, rented: float) -> "Phase | None":
        """Intervals with a save after each, to the end of the run or of the job."""
        plan, first, before = self.plan, self.now, self.done
        self._step()
        left, cycle = self.work - before, plan.interval_s + plan.stall_s
        finish = first + left + max(ceil(left / plan.interval_s) - 1, 0) * plan.stall_s
        ends = min(self.market.until, finish)
        goes = self.goes(min(first + cycle, ends)) or (
            self.now < ends and self.goes(ends, self.pace)
        )
        trained = self.pace * (self.now - first)
        if goes:
            gained = trained
        elif self.now >= finish:
            gained = left
        elif plan.notice_saves > 0.0 and self.rng.random() < plan.notice_saves:
            gained = trained
        else:
            gained = floor((self.now - first) / cycle) * plan.interval_s
        self.done = before + gained
        self.out.lost_work_s += self.now - first - gained
        if goes:
            return self._leave(rented, self.on_demand)
        if self.now >= finish:
            return self._leave(rented, self.finished)
        return self._interrupted(rented)

    def _interrupted(self, rented: float) -> "Phase | None":
        plan, length = self.plan, self.now - rented
        if length >= plan.free_s:
            self.out.spot_s += max(length, plan.minimum_s)
        self.out.interruptions += 1.0
        self.market.at(self.now)
        self.out.moves += self.market.moved
        if self.now - rented > plan.boot_s:
            self.core_from = max(self.core_from, self.now + plan.resize_s)
        return self.see_market

    def _leave(self, rented: float, phase: Phase) -> Phase:
        """The job ends or goes on demand: the run is paid to this moment."""
        if self.now > rented:
            self.out.spot_s += max(self.now - rented, self.plan.minimum_s)
        return phase

    # Elastic clusters: the on-demand part while spot is away, or boots

    def core(self) -> "Phase | None":
        return self.alone(self.market.until) or self.see_market

    def join(self) -> "Phase | None":
        """New spot machines boot beside the on-demand part; then all restart."""
        plan, rented, ends = self.plan, self.now, self.market.until
        then = self.alone(min(rented + plan.boot_s, ends))
        if then:
            return self._leave(rented, then)
        if self.now >= ends:
            return self._interrupted(rented)
        return self.start(rented, plan.changeover_s - plan.boot_s)

    def alone(self, until: float) -> "Phase | None":
        """The on-demand part to that moment; else what follows before."""
        share = self.plan.elastic_share
        if self._starts(min(max(self.core_from, self.now), until), share):
            return self.on_demand
        if self.now >= until:
            return None
        self._step()
        began, pace = self.now, share * self.pace
        finish = began + (self.work - self.done) / pace
        goes = self.goes(min(finish, until), pace)
        self.done += pace * (self.now - began)
        self.out.lost_work_s += (share - pace) * (self.now - began)
        if goes:
            return self.on_demand
        return self.finished if self.now >= finish else None

    def finished(self) -> None:
        return None

    # On demand

    def on_demand(self) -> "Phase | None":
        plan, out = self.plan, self.out
        out.waiting_s += self.fallback_wait
        arrived = self.now + self.fallback_wait
        self.now = arrived + plan.fallback_start_s
        if self.rented:
            out.lost_work_s += plan.fallback_start_s * plan.fallback_speed
        self.rented, self.first_start_s = True, 0.0
        self._step()
        end = self.now + (self.work - self.done) / plan.fallback_speed
        back = self.returns(end)
        if back < end:
            self.done += (back - self.now) * plan.fallback_speed
            out.moves += 1.0
        self.now = min(back, end)
        out.fallback_s += self.now - arrived
        return self.see_market if back < end else None

    def _rented_s(self) -> float:
        """Blocks are bought until one is not over, before its end is taken, when the job is."""
        plan, bought = self.plan, self.now
        if plan.base_step_s > 1.0:
            bought = 0.0
            while bought - plan.base_end_s < self.now:
                bought += plan.base_step_s
        return max(bought, plan.base_minimum_s)

    def _billed(self) -> Outcome:
        plan, out = self.plan, self.out
        out.time_s = self.queue + self.now
        out.waiting_s += self.queue
        out.work_s = self.work
        other = (
            plan.base_usd_per_hour * self._rented_s() / HOUR
            + plan.fallback_usd_per_hour * out.fallback_s / HOUR
            + plan.fixed_usd
            + plan.usd_per_move * out.moves
        )
        spot = plan.spot_usd_per_hour * out.spot_s / HOUR
        out.expected_usd = other + spot
        out.cost_usd = other + spot * self.price
        return out
