"""The state of a search: its incumbents, its open plans, and the watch that reports progress.

Other modules read the fields and report events; only the methods of `SearchState` change them.
"""

from dataclasses import field, replace

import numpy as np

from recommender.arrays import Bools
from recommender.catalogs.frozen import dataclass
from recommender.optimize.dominated import FallbackCosts
from recommender.risk.path_inputs import PathInputs

# A site, entries of it, how many machines, the checkpoint path, and whether there is a fallback.
Shape = tuple[int, tuple[int, ...], int, int, bool]

EPSILON = 1e-4  # a plan must be better by this share to matter
SEARCH_RUNS_PER_PRINTED = 8  # simulating a plan on the printed paths takes as long
# Of 70 questions under quotas the gap closed in 600 sets where it was below this after 100; what
# was simulated before, the program's mixes among it, was the best in all.
WIDE_GAP = 0.5
# 50 sets later a search goes on while its bound may reach the best plan at this multiple of its
# pace. Of 252 questions under quotas (2026-11-26) none whose gap closes in 600 sets is stopped so.
PACE_SETS, FASTER = 50, 3.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """One evaluated plan: a site, counts of some of its entries, path and fallback."""

    site: int
    entries: tuple[int, ...]
    counts: tuple[int, ...]
    checkpoint_path: int
    fallback: int
    # By the paths of a search, or those printed; 0 where no search has found it.
    goal_value: float = 0.0
    cost_usd: float = 0.0
    time_s: float = 0.0
    chance: float = 0.0
    printed: bool = False  # whether these are figures of the printed paths
    # By how much the fallback takes over before the last moment (`overhead_limit.py`).
    early_s: float = 0.0

    def allowed_by(self, masks: tuple[Bools, ...]) -> bool:
        """Whether all its entries may be used; `masks` has one row per site."""
        return bool(masks[self.site][list(self.entries)].all())


def ranking_key(candidate: Candidate) -> tuple[float, int, int, float, tuple[int, ...]]:
    """Sort key: least goal first; ties go to fewer machines, then fewer kinds, then the cheaper.

    If time is the goal, the same machines take as long in every region.
    """
    c = candidate
    return (c.goal_value, sum(c.counts), len(c.entries), c.cost_usd, c.entries)


def key_of(candidate: Candidate) -> Shape:
    """The shape of a plan; of each shape only the best plan is kept."""
    c = candidate
    return (c.site, c.entries, sum(c.counts), c.checkpoint_path, c.fallback >= 0)


@dataclass(frozen=True, slots=True)
class Screened:
    """A plan that may be the best according to the search paths."""

    candidate: Candidate
    batch: PathInputs  # of the plans simulated with it, at the last moment that the deadline allows
    row: int  # its own
    min_goal: float  # its goal less the error of these paths
    meets_limits: bool  # whether it meets the limits on them
    beaten: bool = False  # whether its own fallback beats it on them, within their error

    @property
    def last(self) -> PathInputs:
        """The simulation inputs of the plan at the last moment for its fallback: one row."""
        return self.batch.take(np.array([self.row]))

    @property
    def inputs(self) -> PathInputs:
        """Those with the fallback taking over when its candidate says."""
        return self.last.earlier(np.array([self.candidate.early_s]))


@dataclass(slots=True)
class SearchState:
    """State of a search: the incumbents (best plan of each shape) and the work done."""

    slack: float  # keep plans up to this share above the best
    max_plans: int  # plans to simulate at most
    max_supports: int = 100_000  # sets of entries to look at, at most
    patience: int = 10**9  # and where the gap would not close (`WIDE_GAP`, `FASTER`)
    best_goal: float = np.inf
    lead: Screened | None = None  # the same plan on the paths of the search
    plans_evaluated: int = 0
    supports_expanded: int = 0
    open_bound: float = np.inf  # least lower bound of what was not explored
    bound: float = 0.0  # of what is still to be explored, while the search runs
    marks: list[float] = field(default_factory=list)  # this bound after every `PACE_SETS` sets
    stopped: bool = False  # by the user, who wants the best plan so far
    incumbents: dict[Shape, Candidate] = field(default_factory=dict)
    printed_plans: int = 0  # on the printed paths
    waiting: list[Screened] = field(default_factory=list)  # to be simulated on the printed paths
    fallback_costs: dict[int, FallbackCosts] = field(default_factory=dict)  # by site, once needed

    @property
    def cutoff(self) -> float:
        """Plans with lower bounds above this cannot matter."""
        return (
            self.best_goal * (1.0 + self.slack) if self.slack else self.best_goal * (1.0 - EPSILON)
        )

    @property
    def open_below(self) -> float:
        """Plans whose goal may be below this may be better than the best."""
        return max(self.best_goal, self.screened_goal) * (1.0 - EPSILON)

    @property
    def screened_goal(self) -> float:
        """The goal of the best plan on the search paths."""
        return self.best_goal if self.lead is None else self.lead.candidate.goal_value

    @property
    def exhausted(self) -> bool:
        """Whether the search must end: its plans or supports are used up, or it was stopped."""
        sets = self.supports_expanded
        far = self.bound < self.best_goal * (1.0 - WIDE_GAP)
        hopeless = far or (sets >= self.patience + PACE_SETS and not self._may_close)
        used_up = sets >= self.max_supports or (sets >= self.patience and hopeless)
        return self.stopped or used_up or self.plans_evaluated >= self.max_plans

    @property
    def _may_close(self) -> bool:
        """Whether nothing may be left open, at the pace since the first or the last marks."""
        if self.open_bound <= self.bound:
            return False
        since = [
            (FASTER * (self.bound - self.marks[mark]), self.supports_expanded - PACE_SETS * mark)
            for mark in (1, len(self.marks) - 2)
            if 0 < mark < len(self.marks)
        ]
        return not since or any(self._closes(*each, self.supports_left) for each in since)

    def _closes(self, gained: float, done: int, left: int) -> bool:
        """Whether the bound reaches what matters in the work that is left, at the pace so far."""
        return (self.cutoff - self.bound) * done <= gained * left

    @property
    def supports_left(self) -> int:
        """How many sets of entries may still be looked at."""
        return max(self.max_supports - self.supports_expanded, 0)

    @property
    def may_simulate_printed(self) -> bool:
        """Whether the search may simulate more on the printed paths: as much as on its own."""
        return not self.stopped and SEARCH_RUNS_PER_PRINTED * self.printed_plans < self.max_plans

    @property
    def gap_now(self) -> float:
        """The gap if the search stopped now."""
        return replace(self, open_bound=min(self.bound, self.open_bound)).gap()

    def explore_from(self, bound: float) -> None:
        """Nothing that is still to be explored has a lower bound below this."""
        self.bound = bound
        while len(self.marks) * PACE_SETS <= self.supports_expanded:
            self.marks.append(bound)

    def leave_open(self, bound: float) -> None:
        """Plans with this lower bound will not be explored: they are part of the gap."""
        self.open_bound = min(self.open_bound, bound)

    def count_plans(self, plans: int) -> None:
        """So many plans were simulated."""
        self.plans_evaluated += plans

    def count_supports(self, supports: int) -> None:
        """So many sets of entries were looked at."""
        self.supports_expanded += supports

    def count_printed(self, plans: int) -> None:
        """So many plans were simulated on the printed paths."""
        self.printed_plans += plans

    def postpone(self, screened: Screened) -> None:
        """A plan that may be the best waits until the search has ended."""
        self.waiting.append(screened)

    def take_postponed(self) -> list[Screened]:
        """Return the plans that wait, and let none wait any longer."""
        waiting, self.waiting = self.waiting, []
        return waiting

    def keep(self, candidate: Candidate) -> None:
        """Of the plans of one shape keep the best, of those on printed paths if there are any."""
        known = self.incumbents.get(key_of(candidate))
        if known is None or _order(candidate) < _order(known):
            self.incumbents[key_of(candidate)] = candidate

    def keep_decisive(self, candidate: Candidate, screened: Screened) -> None:
        """Keep a plan that meets the limits on the paths that decide: it prunes worse ones."""
        self.keep(candidate)
        if candidate.goal_value < self.best_goal:
            self.best_goal, self.lead = candidate.goal_value, screened

    def adopt_all(self, found: "SearchState", by_time: bool) -> None:
        """Take over the plans of a search by another goal, and allow as many more as it used."""
        self.plans_evaluated += found.plans_evaluated
        self.max_plans += found.plans_evaluated
        for candidate in found.incumbents.values():
            goal_value = candidate.time_s if by_time else candidate.cost_usd
            self.incumbents[key_of(candidate)] = replace(candidate, goal_value=goal_value)
            self.best_goal = min(self.best_goal, goal_value)

    def begin_with(self, first: "SearchState") -> None:
        """Begin with the plans of a search among fewer plans by this goal."""
        self.best_goal, self.lead = min(self.best_goal, first.best_goal), first.lead
        self.incumbents = dict(first.incumbents)

    def allow_more_plans(self, plans: int) -> None:
        """Raise the number of plans that may be simulated."""
        self.max_plans += plans

    def going_on(self, plans: int, supports: int, patience: int) -> "SearchState":
        """A copy that goes on among more plans: so many more, and so many sets of entries."""
        return replace(
            self,
            incumbents=dict(self.incumbents),
            waiting=[],
            marks=[],
            max_plans=self.plans_evaluated + plans,
            max_supports=supports,
            patience=patience,
        )

    def best_candidate(self) -> Candidate:
        """The best plan; only valid if one was found."""
        return min(self.incumbents.values(), key=ranking_key)

    def gap(self) -> float:
        """How much better than the best found a plan could still be, as a share."""
        if not np.isfinite(self.open_bound) or self.open_bound >= self.best_goal * (1.0 - EPSILON):
            return 0.0
        return 1.0 - self.open_bound / self.best_goal if np.isfinite(self.best_goal) else 1.0


def _order(candidate: Candidate) -> tuple[bool, float]:
    return not candidate.printed, candidate.goal_value


@dataclass(slots=True)
class Watch:
    """The running search, for a display of its progress or a request to stop it.

    The search writes `state` and reads `stopped`; the user interface reads `state` and calls
    `stop`, so neither calls the other.
    """

    state: SearchState | None = None
    may_stop: bool = False  # whether the search can end early, with the gap that is left
    asked: bool = False  # to end

    def show(self, state: SearchState, may_stop: bool = False) -> None:
        """Register a search; after a stop, later searches end at once."""
        self.state, self.may_stop = state, may_stop
        state.stopped = may_stop and self.asked

    def close(self) -> None:
        """Unregister the search when it is over."""
        self.state, self.may_stop = None, False

    def stop(self) -> bool:
        """Ask for the best plan so far; return whether a running search can still stop."""
        if self.state is None or not self.may_stop or self.asked:
            return False
        self.asked = self.state.stopped = True
        return True
