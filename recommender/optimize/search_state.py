"""The state of a search, and how clusters are expanded into plans that may become incumbents."""

from dataclasses import field, replace

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.optimize.dominated import Alone, dominated, fallbacks_alone, may_be_dominated
from recommender.optimize.early_rejection import hopeless
from recommender.optimize.evaluate import (
    Plans,
    Values,
    plans_without_fallback,
    values_of,
    with_best_interval,
    with_fallbacks,
)
from recommender.optimize.fallback_bounds import bounds_with_own_fallbacks, drafts_and_bounds
from recommender.optimize.space import Space
from recommender.risk.path_inputs import PathInputs

# A site, entries of it, how many machines, the checkpoint path, and whether there is a fallback.
Shape = tuple[int, tuple[int, ...], int, int, bool]

EPSILON = 1e-4  # a plan must be better by this share to matter
OVERRUN = 2  # no batch starts beyond so many times the plans allowed
BATCH = 16  # plans simulated before the cutoff is applied again


@dataclass(frozen=True, slots=True)
class Candidate:
    """One evaluated plan: a site, counts of some of its entries, path and fallback."""

    site: int
    entries: tuple[int, ...]
    counts: tuple[int, ...]
    checkpoint_path: int
    fallback: int
    goal: float
    cost_usd: float
    time_s: float
    chance: float
    overhead: float

    def allowed_by(self, masks: tuple[Bools, ...]) -> bool:
        """Whether all its entries may be used; `masks` has one row per site."""
        return bool(masks[self.site][list(self.entries)].all())


def ranking_key(candidate: Candidate) -> tuple[float, int, int, float, tuple[int, ...]]:
    """Least goal first; ties go to fewer machines, then fewer kinds, then the cheaper.

    Where time is the goal, the same machines take as long in every region.
    """
    c = candidate
    return (c.goal, sum(c.counts), len(c.entries), c.cost_usd, c.entries)


def key_of(candidate: Candidate) -> Shape:
    """Of the plans of one shape the best is kept."""
    c = candidate
    return (c.site, c.entries, sum(c.counts), c.checkpoint_path, c.fallback >= 0)


@dataclass(slots=True)
class SearchState:
    """State of a search: the incumbents (best plan of each shape) and the work done."""

    slack: float  # keep plans up to this share above the best
    max_plans: int  # plans to simulate at most
    max_supports: int = 100_000  # sets of entries to look at, at most
    best_goal: float = np.inf
    plans_evaluated: int = 0
    supports_expanded: int = 0
    open_bound: float = np.inf  # least lower bound of what was not explored
    bound: float = 0.0  # of what is still to be explored, while the search runs
    stopped: bool = False  # by who waits for it and wants the best so far
    incumbents: dict[Shape, Candidate] = field(default_factory=dict)
    alone: dict[int, Alone] = field(default_factory=dict)  # by site, once needed

    @property
    def cutoff(self) -> float:
        """Lower bounds above this cannot matter."""
        return (
            self.best_goal * (1.0 + self.slack) if self.slack else self.best_goal * (1.0 - EPSILON)
        )

    @property
    def exhausted(self) -> bool:
        """Whether the search must end: the plans or supports allowed are used up, or stopped."""
        used_up = self.supports_expanded >= self.max_supports
        return self.stopped or used_up or self.plans_evaluated >= self.max_plans

    @property
    def gap_now(self) -> float:
        """The gap that stopping at this moment would leave."""
        return replace(self, open_bound=min(self.bound, self.open_bound)).gap()

    def best_candidate(self) -> Candidate:
        """The best plan; call it only where one was kept."""
        return min(self.incumbents.values(), key=ranking_key)

    def gap(self) -> float:
        """How much better than the best found a plan could still be, as a share."""
        if not np.isfinite(self.open_bound) or self.open_bound >= self.best_goal * (1.0 - EPSILON):
            return 0.0
        return 1.0 - self.open_bound / self.best_goal if np.isfinite(self.best_goal) else 1.0


@dataclass(slots=True)
class Watch:
    """The search that runs now, for who waits for it, and their wish to end it.

    The search writes `state`, and reads `stopped` there: whoever watches reads the one and calls
    `stop`, so neither calls the other.
    """

    state: SearchState | None = None
    may_stop: bool = False  # whether the search can end early, with the gap that is left
    asked: bool = False  # to end

    def show(self, state: SearchState, may_stop: bool = False) -> None:
        """A search begins; one that follows a search that was stopped ends at once."""
        self.state, self.may_stop = state, may_stop
        state.stopped = may_stop and self.asked

    def close(self) -> None:
        """The search is over."""
        self.state, self.may_stop = None, False

    def stop(self) -> bool:
        """Ask for the best plan so far; tell whether the search that runs can still be asked."""
        if self.state is None or not self.may_stop or self.asked:
            return False
        self.asked = self.state.stopped = True
        return True


def expand_clusters(space: Space, index: int, rows: Ints, counts: Ints, state: SearchState) -> None:
    """Expand clusters into plans and simulate every one that could still be the best.

    Plans without a fallback come first: they also bound what any fallback can save, so only few
    of the plans with one have to be simulated.
    """
    site = space.sites[index].only(rows)
    alone = plans_without_fallback(space, site, counts)
    drafts, lower_bounds = drafts_and_bounds(space, site, alone)
    has_fallback = space.limits.deadline_s is not None and len(site.fallbacks) > 0
    if has_fallback:
        lower_bounds = bounds_with_own_fallbacks(
            space, site, alone, drafts, lower_bounds, state.cutoff
        )
    bounds = _simulate_by_bound(space, index, rows, alone, drafts, lower_bounds, state)
    promising = bounds < state.cutoff
    if has_fallback and promising.any():
        plans = with_fallbacks(space, site, alone.take(promising))[0]
        drafts, lower_bounds = drafts_and_bounds(space, site, plans)
        without = np.full(len(plans), np.inf)  # what another fallback would save is not needed
        _simulate_by_bound(
            space,
            index,
            rows,
            plans,
            replace(drafts, best_fallback_usd_per_hour=without),
            lower_bounds,
            state,
        )


def _simulate_by_bound(
    space: Space,
    index: int,
    rows: Ints,
    plans: Plans,
    drafts: PathInputs,
    lower_bounds: Floats,
    state: SearchState,
) -> Floats:
    """Simulate plans, least bound first; returns the least cost of each with any fallback."""
    bounds = np.full(len(plans), np.inf)
    if not len(plans):
        return bounds
    for batch in np.array_split(np.argsort(lower_bounds, kind="stable"), -(-len(plans) // BATCH)):
        keep = batch[lower_bounds[batch] < state.cutoff]
        if not len(keep):
            break
        if (
            state.stopped or state.plans_evaluated >= OVERRUN * state.max_plans
        ):  # many clusters at once, none of them better
            state.open_bound = min(state.open_bound, float(lower_bounds[keep].min()))
            break
        inputs = with_best_interval(drafts.take(keep))
        values = values_of(space, inputs, ~hopeless(space, inputs))
        state.plans_evaluated += len(keep)
        bounds[keep] = (
            values.usd_with_any_fallback if space.limits.goal != "time" else lower_bounds[keep]
        )
        _update_incumbents(space, index, rows, plans.take(keep), values, state)
    return bounds


def _update_incumbents(
    space: Space, index: int, rows: Ints, plans: Plans, values: Values, state: SearchState
) -> None:
    """Update the best plan of each shape that keeps the limits."""
    keeps = np.isfinite(values.goal)
    if (keeps & may_be_dominated(space, space.sites[index], plans, values)).any():
        if index not in state.alone:
            state.alone[index] = fallbacks_alone(space, space.sites[index])
        keeps &= ~dominated(plans, values, state.alone[index])
    for i in np.flatnonzero(keeps):
        used = np.flatnonzero(plans.counts[i])
        candidate = Candidate(
            site=index,
            entries=tuple(int(rows[k]) for k in used),
            counts=tuple(int(plans.counts[i, k]) for k in used),
            checkpoint_path=int(plans.checkpoint_path[i]),
            fallback=int(plans.fallback[i]),
            goal=float(values.goal[i]),
            cost_usd=float(values.cost_usd[i]),
            time_s=float(values.time_s[i]),
            chance=float(values.chance[i]),
            overhead=float(values.overhead[i]),
        )
        key = key_of(candidate)
        if key not in state.incumbents or candidate.goal < state.incumbents[key].goal:
            state.incumbents[key] = candidate
        state.best_goal = min(state.best_goal, candidate.goal)
