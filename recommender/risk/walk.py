"""Walks clusters with all their fallbacks through their paths, each until its job ends.

A lane is one cluster on one path. `STRETCH` cycles (an outage and the run behind it) are worked out
at once for all lanes that still run, as nobody interferes; then every plan reads off where its
policy leaves the cluster (`policy.py`), and one that does gets a lane of its own:

    away     the job waits for spot (the on-demand part of an elastic cluster trains), or leaves
    run      changeover, intervals and saves until the job ends, leaves or is interrupted
    rented   a job on demand ends, or goes back to the spot that is there: a run begins

Capacity comes and goes whatever the jobs do. Paths that outlast `CYCLES` go on at their own pace.
"""

from collections.abc import Callable

import numpy as np

from recommender.arrays import Bools, Floats, Ints, Table
from recommender.catalogs.frozen import dataclass
from recommender.risk.lanes import Clock, Lanes, alone
from recommender.risk.path_inputs import PathInputs, Paths
from recommender.risk.policy import SwitchPolicy, policies_of
from recommender.risk.random_numbers import STRETCH, RandomNumbers, price_factors, time_factors
from recommender.risk.spot_capacity import CLASS_CAPACITY, Capacity

CYCLES = 512  # drawn for a path at most
ROUNDED_S = 1e-3  # seconds that count as none
NEVER_S = 1e15
LEAST_PACE = 1e-4  # work per second of paths that outlast all cycles, at least
_CYCLE = np.arange(STRETCH)[:, None]
_WEIGHTS = np.arange(STRETCH, 0, -1, dtype=np.uint8)[:, None]


def _first(hit: Bools) -> tuple[Ints, Bools]:
    """The first cycle that is hit (the last if none), and whether any is.

    The weight of the first one is the largest: argmax along this axis is several times as slow.
    """
    most = (hit * _WEIGHTS).max(axis=0)
    return np.minimum(STRETCH - most.astype(np.int64), STRETCH - 1), most > 0


def _before(values: Floats, begin: Floats | float = 0.0) -> Floats:
    """Sums of the values of earlier cycles; that of all is the last row."""
    total = np.empty((STRETCH + 1, values.shape[1]))
    total[0] = begin
    for cycle in range(STRETCH):
        np.add(total[cycle], values[cycle], out=total[cycle + 1])
    return total


@dataclass(frozen=True, slots=True)
class _Sums:
    """Of elastic clusters in earlier cycles; (cycles + 1, lanes)."""

    part: Floats  # work of the on-demand part alone
    capacity: Floats  # that could have been done
    restarts: Floats  # seconds in which a part restarted


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some lanes on spot through the next cycles as nobody interferes; (cycles, lanes).

    Sums of earlier cycles have one row more.
    """

    lanes: Lanes
    clock: Clock
    cut: Ints  # (lanes,) cycles before the job takes part
    starts: Floats  # of the job's runs
    begins: Floats  # from when the on-demand part of an elastic cluster trains alone; of gangs
    back: Floats  # until when                                          both are the run's start
    ready: Floats
    durable: Floats  # work when the run trains; in the last row, after all cycles
    part: Floats  # of it, what the on-demand part did before this run
    sums: "_Sums | None"  # None: no cluster is elastic
    up: Floats  # time of earlier runs
    billed: Floats
    known: Bools  # whether a step was timed in earlier cycles; in the last row, after all
    last: Ints  # (lanes,) cycle in which the job would end,
    ends: Bools  # if it does,
    finish_s: Floats  # and when; inf


def _stretch(p: PathInputs, sample: RandomNumbers, lanes: Lanes, clock: Clock) -> Stretch:
    """All that happens to lanes on spot in the next cycles if nobody interferes."""
    c, starts, ends = lanes.cluster, clock.starts, clock.ends
    interval, cycle_s = p.interval_s[c], p.interval_s[c] + p.stall_s[c]
    cut = np.zeros(len(lanes), dtype=np.int64)
    if again := bool((lanes.entry_s > lanes.edge_s).any()):
        # On demand for a part of these cycles: their runs are none of the job's.
        starts = np.minimum(np.maximum(starts, lanes.entry_s), ends)
        cut = (ends <= lanes.entry_s).sum(axis=0)
    up = ends - starts
    ready = np.minimum(starts + p.changeover_s[c], ends)
    usable = ends - ready
    kept = np.floor(usable / cycle_s)
    most = np.minimum(usable - kept * cycle_s, interval)
    kept *= interval
    most += kept
    if np.any(p.notice_saves > 0.0):
        drawn = sample.uniforms("notice", clock.first).take(lanes.path, axis=1)
        notified = drawn < p.notice_saves[c]
        kept = np.where(notified, usable * (interval / cycle_s), kept)
    durable, trains = _before(kept, lanes.done), usable > 0.0
    begins = back = starts
    part, sums = np.zeros((1, 1)), None
    rate = p.elastic_share[c] * (interval / cycle_s)
    if np.any(p.elastic_share > 0.0):
        begins, back, capacity, restarts = alone(p, lanes, clock, ready)
        part = rate * (back - begins)
        sums = _Sums(_before(part), _before(capacity), _before(restarts))
        durable += sums.part
        durable[:-1] += part
        trains |= part > 0.0
    last, finished = _first(durable[:-1] + most >= lanes.work)
    at = last, np.arange(len(lanes))
    left = lanes.work - durable[at]
    saves = np.floor(np.maximum(left - ROUNDED_S, 0.0) / interval)
    finish = ready[at] + left + p.stall_s[c] * saves
    # Done while the spot part is away.
    finish = np.where((left < 0.0) & (rate > 0.0), back[at] + left / np.maximum(rate, 1e-9), finish)
    bill = np.maximum(up, p.minimum_s[c])
    bill *= (up >= p.free_s[c]) & (up > 0.0) if again else up >= p.free_s[c]
    known = np.concatenate([lanes.known[None] > 0.0, trains])
    return Stretch(
        lanes, clock, cut, starts, begins, back, ready, durable,
        np.broadcast_to(part, starts.shape), sums, _before(up), _before(bill),
        np.logical_or.accumulate(known, axis=0), last, finished,
        np.where(finished, finish, np.inf),
    )  # fmt: skip


def _until(p: PathInputs, s: Stretch, cycle: Ints, lane: Ints, stop: Floats) -> Lanes:
    """Some lanes until they stop at a moment in a cycle."""
    new, at = s.lanes.take(lane), (cycle, lane)
    c, entry = new.cluster, np.maximum(new.entry_s, new.edge_s)
    since = np.maximum(s.clock.edges[at], entry)
    up = np.maximum(stop - s.starts[at], 0.0)
    waited = np.maximum(np.minimum(stop, s.starts[at]) - since, 0.0) + (since - entry) - s.up[at]
    new.waited_s += np.where(p.elastic_share[c] > 0.0, 0.0, waited)
    new.up_s += s.up[at] + up
    new.billed_s += s.billed[at] + np.maximum(up, p.minimum_s[c]) * (up > 0.0)
    new.interruptions += cycle - s.cut[lane]
    new.moves += _moves(p, s, cycle, lane)
    if s.sums is not None:
        back, first, share = s.back[at], p.changeover_s[c], p.elastic_share[c]
        rate = share * p.interval_s[c] / (p.interval_s[c] + p.stall_s[c])
        here = np.maximum(np.minimum(stop, back) - s.begins[at], 0.0)
        new.alone += s.sums.part[at] + rate * here
        part = np.maximum(np.minimum(stop, back) - np.maximum(s.clock.edges[at], first), 0.0)
        whole = np.maximum(stop - np.maximum(back, first), 0.0)
        new.capacity += s.sums.capacity[at] + share * part + whole
        new.part_restarts_s += s.sums.restarts[at]
        new.part_restarts_s += np.maximum(
            np.minimum(stop, s.ready[at]) - np.maximum(back, first), 0.0
        )
    return new


def _moves(p: PathInputs, s: Stretch, cycle: Ints, lane: Ints) -> Floats:
    """Moves of checkpoints before the runs up to a cycle; that of a return is counted there."""
    again = s.lanes.entry_s[lane] > s.lanes.edge_s[lane]
    if not np.any(p.move_after_s > 0.0):
        return np.asarray(cycle - s.cut[lane] + ((s.clock.first > 0) & ~again), dtype=np.float64)
    after = p.move_after_s[s.lanes.cluster[lane]]
    waits = s.clock.starts[:, lane] - s.clock.edges[:-1, lane]
    moved = (after == 0.0) | (waits >= after - ROUNDED_S)
    moved[0] &= s.clock.first > 0
    moved &= (cycle >= _CYCLE) & (s.cut[lane] + again <= _CYCLE)
    return np.asarray(moved.sum(axis=0), dtype=np.float64)


def _after_all(p: PathInputs, s: Stretch, lane: Ints) -> Lanes:
    """Some lanes after all cycles of a stretch, the last of which is interrupted too."""
    last, end = np.full(len(lane), STRETCH - 1), s.clock.edges[-1, lane]
    new = _until(p, s, last, lane, end)
    new.billed_s = s.lanes.billed_s[lane] + s.billed[-1, lane]
    if s.sums is not None:
        new.part_restarts_s = s.lanes.part_restarts_s[lane] + s.sums.restarts[-1, lane]
    new.interruptions += 1.0
    new.known = s.known[-1, lane]
    new.done, new.edge_s, new.entry_s = s.durable[-1, lane], end, 0.0
    return new


@dataclass(frozen=True, slots=True)
class _Rules:
    """The policies of all plans with a fallback on all paths; (plans × paths,)."""

    policy: SwitchPolicy
    predicted: Floats
    cautious: Floats
    delay_s: Floats  # until on-demand machines are there
    start_s: Floats
    soonest_s: Floats  # nobody leaves before this moment, and `gain` later for each second done
    gain: Floats
    timed_s: Floats  # and by so much later once a step was timed
    most_away_s: float  # that spot may be away, whatever the time

    @staticmethod
    def of(
        p: PathInputs, due_s: Floats, work: Floats, sample: RandomNumbers, most_away_s: float | None
    ) -> "_Rules":
        """`due_s` (deadlines) and `work` are (plans, paths)."""
        delay, paths = sample.queue_s(p.fallback_at_once, p.fallback_wait_s), sample.paths
        policy = policies_of(p, due_s if most_away_s is None else np.full_like(due_s, np.inf))
        columns = (np.broadcast_to(getattr(policy, n), work.shape) for n in policy.__slots__)
        spread = SwitchPolicy(*(each.ravel() for each in columns))
        most = np.maximum(work, np.maximum(p.work_s, p.cautious_work_s)[:, None]).ravel()
        gain = (1.0 + spread.wait_above) / np.maximum(spread.speed, 1e-9)
        each = (np.repeat(v, paths) for v in (p.work_s, p.cautious_work_s, p.fallback_start_s))
        predicted, cautious, start = each
        soonest = spread.due_s - gain * most
        return _Rules(
            spread, predicted, cautious, delay.ravel(), start,
            soonest if most_away_s is None else np.full_like(soonest, -np.inf), gain,
            gain * (most - work.ravel()), np.inf if most_away_s is None else most_away_s,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Leaves(Table):
    """Plans that leave their cluster; (those plans,)."""

    who: Ints  # plan × paths + path
    lane: Ints
    cycle: Ints
    moment_s: Floats
    done: Floats
    known: Bools


def _leaves(p: PathInputs, s: Stretch, rules: _Rules, who: Ints, lane: Ints) -> _Leaves:
    """Which plans leave in a stretch: in the first cycle in which their policies say so."""
    reach = np.where(s.ends, s.finish_s, s.clock.edges[-1])[lane]
    near = rules.soonest_s[who] + rules.gain[who] * s.lanes.done[lane] < reach
    who, lane = who[near], lane[near]
    soonest = rules.soonest_s[who] + rules.gain[who] * (s.durable[:-1] - s.part)[:, lane]
    soonest += rules.timed_s[who] * s.known[:-1, lane]
    may = soonest < s.clock.ends[:, lane]
    may &= np.where(s.ends, s.last, STRETCH)[lane] >= _CYCLE
    may &= s.cut[lane] <= _CYCLE
    at, cycle = np.nonzero(may.T)
    # Most that leave do so in the first cycle in which they may.
    first, gone, parts = _of_each(at), np.zeros(len(rules.gain), dtype=bool), list[_Leaves]()
    for some in (first, ~first):
        some &= ~gone[who[at]]
        found = _looked(p, s, rules, who[at[some]], lane[at[some]], cycle[some])
        parts.append(found.take(_of_each(found.who)))
        gone[parts[-1].who] = True
    return _Leaves.joined(parts)


def _of_each(who: Ints) -> Bools:
    """The first place of each value among equal neighbours."""
    first = np.ones(len(who), dtype=bool)
    first[1:] = who[1:] != who[:-1]
    return first


def _looked(
    p: PathInputs, s: Stretch, rules: _Rules, who: Ints, lane: Ints, cycle: Ints
) -> _Leaves:
    """Those that leave in these cycles: away, while a part trains alone, in a changeover, later.

    Slack falls by a second per second but for what trains: alone, all at once; in a run, once a
    save is over.
    """
    at, policy, c = (cycle, lane), rules.policy.take(who), s.lanes.cluster[lane]
    work, durable, begins, back = s.lanes.work[lane], s.durable[at], s.begins[at], s.back[at]
    ready, end, safe = s.ready[at], s.clock.ends[at], durable - s.part[at]
    known, part = s.known[at], back > begins
    since = np.maximum(s.clock.edges[at], np.maximum(s.lanes.entry_s, s.lanes.edge_s)[lane])
    told = np.where(begins <= s.starts[at], rules.cautious[who], rules.predicted[who])
    patience = policy.patience_ends_s(np.where(known, work, told) - safe)
    away = np.minimum(np.maximum(patience, since), since + rules.most_away_s)
    pace = p.interval_s[c] / (p.interval_s[c] + p.stall_s[c])
    rate = p.elastic_share[c] * pace
    slack = np.maximum(policy.last_moment_s(work - safe) - begins, 0.0)
    alone = begins + _until_short(slack, policy.speed, rate, 0.0)
    told = np.where(known | part, work, rules.predicted[who])
    early = np.maximum(policy.last_moment_s(told - durable), back)
    left = work - durable
    slack = np.maximum(policy.last_moment_s(left) - ready, 0.0)
    late = ready + _until_short(slack, policy.speed, pace, p.interval_s[c] + p.stall_s[c])
    late = np.where(end > ready, late, NEVER_S)
    in_run = np.minimum((late - ready) * pace, left)
    moment, done = late, durable + in_run
    sooner = early < ready
    timed = known | part | ~sooner
    moment, done = np.where(sooner, early, moment), np.where(sooner, durable, done)
    if np.any(p.elastic_share > 0.0):
        sooner = part & (alone < back)
        moment = np.where(sooner, alone, moment)
        done = np.where(sooner, safe + rate * (alone - begins), done)
    sooner = away < begins
    moment, done = np.where(sooner, away, moment), np.where(sooner, safe, done)
    timed = np.where(sooner, known, timed)
    ending = np.where(s.ends[lane] & (cycle == s.last[lane]), s.finish_s[lane], np.inf)
    leaves = np.flatnonzero(moment < np.minimum(end, ending))
    return _Leaves(who, lane, cycle, moment, done, timed).take(leaves)


def _until_short(slack: Floats, speed: Floats, gains: Floats, held: Floats | float) -> Floats:
    """Seconds until slack is used up, if safe work grows at a rate once `held` seconds are over."""
    later = held + (slack - held) * speed / np.maximum(speed - gains, 1e-12)
    found = np.where(slack <= held, slack, later)
    return np.where((slack > held) & (speed <= gains), NEVER_S, np.minimum(found, NEVER_S))


class Walk:
    """Plans on their way through the cycles."""

    def __init__(
        self,
        p: PathInputs,
        deadline_s: float | None,
        sample: RandomNumbers,
        capacity: Capacity = CLASS_CAPACITY,
        most_away_s: float | None = None,
    ) -> None:
        rows, self.cluster = p.clusters()
        self.clusters = c = p if len(rows) == len(p) else p.take(rows)
        self.sample, self.market = sample, capacity.market(c, sample)
        work = c.work_s[:, None] * time_factors(c.speed_sigma[:, None], sample.speed)
        self.queued_s = sample.queue_s(c.at_once, c.wait_s)[self.cluster]
        self.spot = Lanes.at_request(work, c.changeover_s)
        self.hired: Lanes | None = None  # on demand
        self.lane_of = (self.cluster[:, None] * sample.paths + np.arange(sample.paths)).ravel()
        self.shared = len(self.spot)
        self.rules: _Rules | None = None
        self.who = np.flatnonzero(np.repeat(p.fallback_speed > 0.0, sample.paths))
        if deadline_s is None or not len(self.who):
            self.who = self.who[:0]
        else:
            due_s = deadline_s - self.queued_s
            self.rules = _Rules.of(p, due_s, work[self.cluster], sample, most_away_s)
        self.place = np.full(self.shared + len(self.lane_of), -1)  # of lanes, in a table
        self.needed = np.bincount(self.lane_of, minlength=len(self.place))  # by how many plans
        self.ended: list[Lanes] = []
        # Told of what lanes did on spot until a moment, and on demand.
        self.seen: Callable[[Stretch, Ints, Ints, Floats, bool], None] | None = None
        self.paid: Callable[[Lanes, Floats, Floats], None] | None = None

    def run(self) -> Lanes:
        """All lanes to their ends; of each plan on each path its own."""
        for first in range(0, CYCLES, STRETCH):
            if len(self.spot) or self.hired is not None:
                self._stretch(first)
        self._coast()
        every = Lanes.joined(self.ended)
        self.place[every.number] = np.arange(len(every))
        return every.take(self.place[self.lane_of])

    def _stretch(self, first: int) -> None:
        """All lanes through the next cycles."""
        spot, stay = self.spot, [self.spot.take(np.arange(0))]
        moving: list[tuple[Lanes, Clock]] = []
        rest: list[Lanes] = []
        if self.hired is not None:
            moving.append((self.hired, Clock.of(self.market, first, self.hired)))
        if len(spot):
            moving += self._on_spot(spot, Clock.of(self.market, first, spot), stay)
        while moving:
            tables, clocks = zip(*moving, strict=True)
            moving = self._on_demand(Lanes.joined(tables), Clock.joined(clocks), stay, rest)
        self.spot = Lanes.joined(stay[1:] or stay)
        self.hired = Lanes.joined(rest) if rest else None

    def _on_spot(self, lanes: Lanes, clock: Clock, stay: list[Lanes]) -> list[tuple[Lanes, Clock]]:
        """Lanes on spot through a stretch: they end or stay; plans that leave them are returned."""
        p = self.clusters
        s = _stretch(p, self.sample, lanes, clock)
        left, gone = np.zeros(len(lanes), dtype=np.int64), []
        if len(self.who):
            gone = self._leave(s, left)
        needed = self.needed[lanes.number] > left
        self.needed[lanes.number] -= np.where(lanes.number < self.shared, left, 0)
        ends, stays = np.flatnonzero(s.ends & needed), np.flatnonzero(~s.ends & needed)
        if len(ends):
            done = _until(p, s, s.last[ends], ends, s.finish_s[ends])
            done.done, done.time_s = done.work, s.finish_s[ends]
            self.ended.append(done)
        if len(stays):
            stay.append(_after_all(p, s, stays))
        if self.seen is not None:
            self.seen(s, s.last[ends], ends, s.finish_s[ends], False)
            self.seen(s, np.full(len(stays), STRETCH - 1), stays, clock.edges[-1, stays], True)
        if len(self.who):
            over = np.zeros(len(self.place), dtype=bool)
            over[lanes.number[ends]] = True
            self.who = self.who[~over[self.lane_of[self.who]]]
        return gone

    def _watching(self, lanes: Lanes) -> tuple[Ints, Ints]:
        """Who may leave these lanes, and the place of each one's lane."""
        self.place[lanes.number] = np.arange(len(lanes))
        place = self.place[self.lane_of[self.who]]
        self.place[lanes.number] = -1
        return self.who[place >= 0], place[place >= 0]

    def _leave(self, s: Stretch, left: Ints) -> list[tuple[Lanes, Clock]]:
        """Plans that leave a cluster get lanes of their own, on demand; `left`: how many do."""
        assert self.rules is not None
        found = _leaves(self.clusters, s, self.rules, *self._watching(s.lanes))
        if not len(found.who):
            return []
        new = _until(self.clusters, s, found.cycle, found.lane, found.moment_s)
        if self.seen is not None:
            self.seen(s, found.cycle, found.lane, found.moment_s, False)
        left += np.bincount(found.lane, minlength=len(left))
        new.rented_s, new.done, new.known = found.moment_s, found.done, found.known.astype(float)
        self._own(new, found.who)
        return [(new, s.clock.take(found.lane))]

    def _own(self, new: Lanes, who: Ints) -> None:
        """Lanes of plans that left another."""
        new.number = self.lane_of[who] = self.shared + who
        self.needed[new.number] = 1
        new.start_up_over(self.clusters.changeover_s[new.cluster])
        gone = np.zeros(len(self.lane_of), dtype=bool)
        gone[who] = True
        self.who = self.who[~gone[self.who]]

    def _on_demand(
        self, lanes: Lanes, clock: Clock, stay: list[Lanes], rest: list[Lanes]
    ) -> list[tuple[Lanes, Clock]]:
        """Lanes on demand through a stretch: they end, stay (`rest`), or go back in it."""
        assert self.rules is not None
        who, rules = lanes.number - self.shared, self.rules
        policy, trains = rules.policy.take(who), lanes.rented_s + rules.delay_s[who]
        trains = trains + rules.start_s[who]
        left, ends = lanes.work - lanes.done, clock.ends
        done_s, wanted = trains + policy.need_s(left), policy.back_from_s(trains, left)
        cycle, here = _first((ends > wanted) | (ends >= done_s))
        at = cycle, np.arange(len(lanes))
        back = np.maximum(wanted, clock.starts[at])
        returns = here & np.isfinite(wanted) & (back < np.minimum(ends[at], done_s))
        over = ~returns & (here | np.isinf(wanted))
        for some, stop in ((np.flatnonzero(over), done_s), (np.flatnonzero(returns), back)):
            if not len(some):
                continue
            mine, until = lanes.take(some), stop[some]
            self._book(mine, until, (until - trains[some]) * policy.speed[some])
            if stop is done_s:
                self.ended.append(mine)
                continue
            mine.moves += 1.0
            mine.returns += 1.0
            mine.entry_s = np.asarray(until)
            self.who = np.concatenate([self.who, who[some]])
            again = mine, clock.take(some)
        waits = np.flatnonzero(~over & ~returns)
        if len(waits):
            rest.append(lanes.take(waits))
            rest[-1].edge_s = clock.edges[-1, waits]
        return self._on_spot(*again, stay) if returns.any() else []

    def _book(self, lanes: Lanes, until: Floats, gained: Floats) -> None:
        """Lanes have been on demand until a moment."""
        assert self.rules is not None
        who, rules = lanes.number - self.shared, self.rules
        if self.paid is not None:
            self.paid(lanes, rules.delay_s[who], until)
        began = (lanes.up_s > ROUNDED_S) | (lanes.fallback_s > 0.0)
        began |= (self.clusters.elastic_share[lanes.cluster] > 0.0) & (lanes.rented_s > 0.0)
        lanes.fallback_s += until - lanes.rented_s - rules.delay_s[who]
        lanes.fallback_queued_s += rules.delay_s[who]
        lanes.restarts_lost += began * rules.start_s[who] * rules.policy.speed[who]
        lanes.rescued += gained
        lanes.done += gained
        lanes.known, lanes.time_s = 1.0, until

    def _coast(self) -> None:
        """What outlasts the cycles goes on at its own pace, and on demand for good when short."""
        lanes, hired = self.spot, [] if self.hired is None else [self.hired]
        if not len(lanes) and not hired:
            return
        pace = np.maximum(lanes.done, LEAST_PACE * lanes.edge_s)
        times = np.maximum(lanes.work - lanes.done, 0.0) / np.maximum(pace, 1e-9)
        alone = lanes.take(np.arange(len(lanes))).repeated(times)
        alone.done, alone.time_s = alone.work, alone.edge_s
        self.ended.append(alone)
        if self.rules is None:
            return
        who, lane = self._watching(lanes)
        policy = self.rules.policy.take(who)
        # due - t·(1 + a) = (work - done·(1 + a)) / speed
        shrinks = np.maximum(lanes.edge_s[lane] - policy.need_s(lanes.done[lane]), 1e-9)
        more = np.maximum(policy.last_moment_s(lanes.work[lane]) / shrinks - 1.0, 0.0)
        leaves = np.flatnonzero(more < times[lane])
        new = lanes.take(lane[leaves]).repeated(more[leaves])
        new.rented_s = new.edge_s
        self._own(new, who[leaves])
        for each in (*hired, new):
            who = each.number - self.shared
            trains = each.rented_s + self.rules.delay_s[who] + self.rules.start_s[who]
            left = each.work - each.done
            self._book(each, trains + self.rules.policy.take(who).need_s(left), left)
            self.ended.append(each)


def walk(
    p: PathInputs,
    deadline_s: float | None,
    sample: RandomNumbers,
    capacity: Capacity = CLASS_CAPACITY,
    most_away_s: float | None = None,
) -> Paths:
    """Time and bill of plans on every path.

    With `most_away_s` fallbacks take over once spot has been away that long, whatever the time.
    """
    made = Walk(p, deadline_s, sample, capacity, most_away_s)
    return _paths(p, made.run(), made.queued_s, sample)


def _paths(p: PathInputs, lanes: Lanes, queued: Floats, sample: RandomNumbers) -> Paths:
    """The figures of each plan on each path."""
    lanes.start_up_over(np.repeat(p.changeover_s, sample.paths))
    figures = lanes.figures.reshape(-1, *queued.shape)
    of = Lanes(lanes.number, lanes.cluster, lanes.path, figures)
    share, changeover = p.elastic_share[:, None], p.changeover_s[:, None]
    alone_s, elastic = of.alone / np.maximum(share, 1e-9), share > 0.0
    on_spot = of.work - of.rescued - of.alone
    lost = np.where(elastic, of.capacity - of.alone, of.up_s - of.uncounted_s) - on_spot
    changed = np.minimum((of.interruptions + of.returns) * changeover, of.up_s)
    first_s = of.time_s - of.fallback_s - of.fallback_queued_s  # on the first cluster
    resized = np.clip(first_s - alone_s, 0.0, of.part_restarts_s)
    other = (
        p.fixed_usd[:, None]
        + p.base_usd_per_hour[:, None] * p.rented_s(of.time_s) / 3600.0
        + p.fallback_usd_per_hour[:, None] * of.fallback_s / 3600.0
        + p.usd_per_move[:, None] * of.moves
    )
    spot = p.spot_usd_per_hour[:, None] * of.billed_s / 3600.0
    return Paths(
        time_s=of.time_s + queued,
        cost_usd=other + spot * price_factors(p.spot_price_sigma[:, None], sample.price),
        expected_usd=other + spot,
        spot_s=of.billed_s,
        running_s=of.up_s + of.fallback_s,
        fallback_s=of.fallback_s,
        waiting_s=of.waited_s + of.fallback_queued_s + queued,
        queued_s=queued,
        fallback_queued_s=of.fallback_queued_s,
        interruptions=of.interruptions,
        moves=of.moves,
        restarts_s=np.where(elastic, resized, changed),
        trained_s=on_spot + alone_s + of.rescued / np.maximum(p.fallback_speed[:, None], 1e-9),
        alone_s=alone_s,
        work_s=of.work,
        lost_work_s=np.maximum(lost, 0.0) + of.restarts_lost,
    )
