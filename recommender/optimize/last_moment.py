"""The last moments at which fallbacks can take over under an overhead limit.

With earlier switches the overhead first falls, until so many paths are handed over that their
restarts dominate; of 2,500 plans of three questions one met a limit, broke it earlier and met it
again (November 2026). So the switch is bracketed between a moment at which the limit is broken and
an earlier one at which it is met, and the bracket refined. Plans are tried first where they would
cost as much as the best: most exceed the limit even there, and what the rest of it costs is
estimated. On the printed paths the bracket is sought about the moment that a search found; which
search that was may decide where a plan has several.
"""

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.optimize.evaluate import COST_ERRORS, OVERHEAD_ERRORS, goal_error
from recommender.optimize.space import Space
from recommender.risk.monte_carlo import DrawnPlans, draw_plans
from recommender.risk.path_inputs import PathInputs
from recommender.risk.run_statistics import Outcomes, outcome_of

# Moments are shares of the time until which a fallback could take over if nothing were done before.
# Three are tried; where none meets the limit, or all that do cost too much, two more.
TRIES, MOST_TRIES = 3, 5
STEPS = (0.02, 0.06, 0.18, 0.54)  # distances of others that are tried next to that of a search
# Where plans cost as much as they may: about so many times the time that is left when usual runs
# begin to be handed over (1.1 to 2.9 of 14 plans), then so far beyond a line through two moments,
# as costs bend.
AT_COST, BEND = 1.5, 0.3
TOLERANCE = 0.002  # below the limit, as a share of it: near enough
SAME_COST, WIDE = 1e-4, 0.1  # shares of a cost: two moments are one, or too far from each other
# Share of a price of overhead at which more of it is saved: of 10,000 costs extrapolated so in four
# questions one in a hundred was more than 2 % above the one found (November 2026).
PRICE = 0.5
ROUGHLY, CLOSELY = 2, 8  # how often a bracket is refined at most


@dataclass(slots=True)
class _Search:
    """Brackets of moments at which plans begin to meet the limit; (plans,), shares of the slack."""

    space: Space
    drawn: DrawnPlans
    slack_s: Floats  # until a fallback could take over if nothing were done before
    first: Floats  # where usual runs begin to be handed over,
    last: Floats  # where all of the work is,
    whole_usd: Floats  # and the bill there
    below: Floats  # what a goal has to be less than, on the paths of a search with its error
    cutoff: float  # the same without an error
    late: Floats  # a moment at which the limit is broken,
    late_excess: Floats  # by how much,
    late_usd: Floats  # and the bill and the overhead there,
    late_overhead: Floats
    early: Floats  # and an earlier one at which it is met; inf if none was found
    early_excess: Floats
    outcomes: Outcomes  # there
    least_usd: Floats  # what the plan may cost there on other paths, at least
    too_expensive: Bools  # given up

    def evaluate(self, rows: Ints, shares: Floats) -> None:
        """Try a moment between the two of each plan: whether it meets the limit, and the bill.

        Plans that cost too much and still exceed it are given up: earlier moments cost more.
        """
        paths = self.drawn.earlier(rows, self.slack_s[rows] * shares)
        found = Outcomes(*outcome_of(paths))
        excess, least = self.excess(found), self.min_usd_within(rows, found)
        met = excess <= 0.0
        yes, no = rows[met], rows[~met]
        self.early[yes], self.early_excess[yes] = shares[met], excess[met]
        self.least_usd[yes] = least[met]
        self.late[no], self.late_excess[no] = shares[~met], excess[~met]
        self.late_usd[no], self.late_overhead[no] = found.expected_usd[~met], found.overhead[~met]
        self.outcomes.put(yes, found.of(met))
        hopeless = (found.overhead > self.limit) & (least >= self.cutoff)
        over = rows[hopeless | (~met & (found.expected_usd >= self.below[rows]))]
        self.early[over], self.too_expensive[over] = np.inf, True

    def min_usd_within(self, rows: Ints, found: Outcomes) -> Floats:
        """What plans over the limit cost at least if they meet it, less the error of these paths.

        The overhead still to be saved costs `PRICE` of what was paid for as much since the later
        moment. The error is that of the bill and of overhead at this price.
        """
        if self.space.printed is None:
            return np.full(len(rows), -np.inf)
        more_usd = found.expected_usd - self.late_usd[rows]
        less = self.late_overhead[rows] - found.overhead
        over = np.clip(found.overhead - self.limit, 0.0, np.maximum(less, 0.0))
        rises = (more_usd > 0.0) & (over > 0.0)
        price = np.where(rises, PRICE * more_usd / np.where(rises, less, 1.0), 0.0)
        variance = found.usd_error**2 + price**2 * found.overhead_error**2
        variance += 2.0 * price * found.covariance
        error = COST_ERRORS * np.sqrt(np.maximum(variance, 0.0))
        return np.asarray(found.expected_usd + price * over - error)

    def excess(self, found: Outcomes) -> Floats:
        """By how much overheads exceed the limit; on the paths of a search beyond their error."""
        errors = 0.0 if self.space.printed is None else OVERHEAD_ERRORS
        return found.overhead - errors * found.overhead_error - self.limit

    def remember(self) -> None:
        """Let the plans as they switch be known: they are evaluated next."""
        rows = np.flatnonzero(np.isfinite(self.early) & (self.early > 0.0))
        plans = self.drawn.plans.take(rows).earlier(self.slack_s[rows] * self.early[rows])
        found = Outcomes(*self.outcomes.of(rows))
        self.space.cache.remember(plans, self.drawn.deadline_s, found)

    @property
    def early_usd(self) -> Floats:
        """The bill at the earlier moment, where one was tried."""
        return self.outcomes.expected_usd

    @property
    def limit(self) -> float:
        """The overhead allowed."""
        return self.space.limits.max_overhead or 0.0


def last_moments(
    space: Space, plans: PathInputs, below: float, rounds: int, near_s: float
) -> tuple[Floats, Floats]:
    """By how many seconds fallbacks have to take over earlier, at least; inf if none tried will do.

    The moment is bracketed, then the bracket refined. And what plans may cost then at least.
    """
    s = _initial_search(space, plans, below)
    if near_s > 0.0:
        _bracket_near(s, near_s / np.maximum(s.slack_s, 1.0))
    _bracket(s)
    _refine(s, rounds)
    s.remember()
    return s.slack_s * s.early, s.least_usd


def _initial_search(space: Space, plans: PathInputs, below: float) -> _Search:
    """What is known of the last moment that the deadline allows."""
    limits, cache, none = space.limits, space.cache, np.zeros(len(plans))
    deadline_s = limits.deadline_s or 0.0
    found = cache.outcomes(plans, limits.deadline_s)
    slack_s = np.maximum(deadline_s - plans.handover_s, 0.0)
    alone_s = plans.work_s / np.maximum(plans.fallback_speed, 1e-9)
    hours = (alone_s + plans.fallback_start_s) / 3600.0
    usual_s = np.sort(found.time_s, axis=1)[:, found.time_s.shape[1] // 2]
    first, last = (
        np.clip(1.0 - time_s / np.maximum(slack_s, 1.0), 0.0, 1.0) for time_s in (usual_s, alone_s)
    )
    s = _Search(
        space=space,
        drawn=draw_plans(plans, deadline_s, cache.path_count, cache.seed),
        slack_s=slack_s,
        first=first,
        last=last,
        whole_usd=plans.fixed_usd + plans.fallback_usd_per_hour * hours,
        below=np.inf + none if limits.goal == "time" else below + goal_error(space, plans, found),
        cutoff=np.inf if limits.goal == "time" else below,
        late=none,
        late_excess=none.copy(),
        late_usd=found.expected_usd,
        late_overhead=found.overhead,
        early=np.full(len(plans), np.inf),
        early_excess=none.copy(),
        outcomes=Outcomes.blank(len(plans), cache.path_count),
        least_usd=np.full(len(plans), -np.inf),
        too_expensive=np.zeros(len(plans), dtype=bool),
    )
    s.late_excess = s.excess(found)
    s.early[s.late_excess <= 0.0] = 0.0
    return s


def _bracket_near(s: _Search, near: Floats) -> None:
    """Find a moment that meets the limit and a later one that does not, next to a known one."""
    rows, share = np.flatnonzero(np.isinf(s.early)), near
    for step in (0.0, *STEPS):
        share = np.where(np.isinf(s.early), near + step, near - step)[rows]
        rows, share = rows[share > 0.0], np.minimum(share[share > 0.0], 1.0)  # 0 is known
        s.evaluate(rows, share)
        none_meets = np.isinf(s.early[rows]) & (share < 1.0)
        rows = rows[(none_meets | (s.late[rows] <= 0.0)) & ~s.too_expensive[rows]]
        if not len(rows):
            break


def _bracket(s: _Search) -> None:
    """Bracket the moments at which plans begin to meet the limit, if they are not yet."""
    open_ = np.isinf(s.early)
    for done in range(MOST_TRIES):
        undecided = np.isinf(s.early) | (s.early_usd >= s.below)
        rows = np.flatnonzero(open_ & ~s.too_expensive & ((done < TRIES) | undecided))
        if not len(rows):
            break
        s.evaluate(rows, _between(s)[rows])


def _between(s: _Search) -> Floats:
    """A moment in the bracket of each plan; (plans,).

    Its middle, but about where they cost as much as they may if that has yet to be seen.
    """
    none_meets = np.isinf(s.early)
    early = np.where(none_meets, np.maximum(s.last, 0.5 * (s.late + 1.0)), s.early)
    rise = np.where(none_meets, s.whole_usd, s.early_usd) - s.late_usd
    part = BEND + (s.below - s.late_usd) / np.maximum(rise, 1e-9)
    aimed = s.late + (early - s.late) * np.clip(part, 0.1, 0.9)
    longer = np.where(none_meets, AT_COST * (1.0 - s.first), 2.0 * (1.0 - early))
    aimed = np.where(s.late > 0.0, aimed, np.maximum(1.0 - longer, 0.5 * early))
    unknown = none_meets | (s.early_usd >= s.below)
    return np.where(
        unknown & np.isfinite(s.below), aimed, 0.5 * (s.late + np.minimum(s.early, 1.0))
    )


def _refine(s: _Search, rounds: int) -> None:
    """Bring the moments that meet the limit near to it, by false position.

    More often where that decides whether a plan costs too much, or much of its cost.
    """
    for done in range(CLOSELY):
        close = s.early_excess >= -TOLERANCE * s.limit
        close |= (s.late > 0.0) & (s.early_usd - s.late_usd < SAME_COST * s.early_usd)
        decides = (s.late_usd < s.below) & (s.early_usd >= s.below)
        decides |= s.early_usd - s.late_usd > WIDE * s.early_usd
        going = np.isfinite(s.early) & (s.early > 0.0) & ~close & ((done < rounds) | decides)
        rows = np.flatnonzero(going)
        if not len(rows):
            break
        late, early = s.late[rows], s.early[rows]
        aim = s.late_excess[rows] + 0.5 * TOLERANCE * s.limit
        share = late + (early - late) * aim / (s.late_excess[rows] - s.early_excess[rows])
        s.evaluate(rows, np.clip(share, 0.9 * late + 0.1 * early, 0.1 * late + 0.9 * early))
