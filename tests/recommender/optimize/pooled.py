"""The pool of a random question, and what looking at every plan finds instead.

The oracle is written for the tests alone: every cluster, checkpoint path and fallback, no order, no
rating, no few paths. It shares with the pool what a plan is simulated with and the simulation.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from recommender.optimize.candidate import Candidate, Cluster
from recommender.optimize.evaluate import Plans, Values, path_inputs_of, values_of
from recommender.optimize.mixes import TYPES, best_mixes, mixes_of
from recommender.optimize.pool import Pool, Selection
from recommender.optimize.space import Space, single_clusters
from recommender.plan.limits import Limits
from recommender.planner.plan_pool import LIKELY, MIXES
from recommender.risk.path_inputs import PathInputs
from recommender.risk.run_statistics import OutcomeCache
from tests.recommender.optimize.palette import every_cluster, every_plan

SEARCHED, PRINTED = 256, 512  # paths
SAMPLES, OTHER = 8, 1_000_003  # of the chances near the one asked for, and their seeds
STEPS = 64  # of the moments at which a fallback may take over
LAST_SHARE = 0.97  # of the room that is tried
TOLERANCE = 1e-3  # by this share a plan may be worse


def on_product_paths(q: Space, seed: int = 7) -> Space:
    """The question with few paths that compare plans and more that decide, as in the planner."""
    return replace(q, cache=OutcomeCache(SEARCHED, seed), printed=OutcomeCache(PRINTED, seed))


def pool_of(q: Space) -> Pool:
    """The pool of clusters of one entry."""
    return Pool(q, single_clusters(q.job, q.columns, q.limits.max_machines).step_s)


def mixes_in(q: Space, kinds: tuple[int, ...] = ()) -> Pool:
    """The pool of clusters of several entries."""
    step_s = single_clusters(q.job, q.columns, q.limits.max_machines).step_s

    def listed(limits: Limits) -> list[Cluster]:
        under = replace(q, limits=limits)
        return best_mixes(mixes_of(under, range(len(q.sites)), step_s, TYPES, kinds), limits)

    return Pool(q, step_s, source=listed)


def selected(q: Space) -> Selection:
    """What the planner selects: clusters of one entry, and the mixes that may be better."""
    found = pool_of(q).select(q.limits)
    if not q.mix or q.limits.max_machines < 2:
        return found
    kinds = dict.fromkeys(
        int(q.sites[plan.site].entries.kind[plan.entries[0]])
        for plan in found.plans
        if q.sites[plan.site].entries.spot[plan.entries[0]]
    )
    mixes = mixes_in(q, tuple(kinds)[:LIKELY])
    return found.with_others(mixes.select(q.limits, first=MIXES, below=found.goal))


def best_of(q: Space) -> Candidate | None:
    """The best plan of a question."""
    found = selected(q)
    return found.best if found.plans else None


@dataclass(frozen=True)
class Every:
    """Every plan of the only site that is allowed, on the paths that decide."""

    space: Space
    plans: Plans
    inputs: PathInputs  # under an overhead limit with the moment of the switch
    values: Values

    @property
    def goal(self) -> np.ndarray:
        """What is minimised, whether the limits are met or not."""
        by_time = self.space.limits.goal == "time"
        return self.values.time_s if by_time else self.values.cost_usd

    def best(self) -> tuple[float, int]:
        """The least goal of a plan that meets the limits, and its row; inf and -1 without one."""
        limits, paths = self.space.limits, self.space.cache.path_count
        near = 2.0 * _error(limits.confidence, paths)
        some = self.values.chance >= limits.confidence - near
        if limits.max_overhead is not None:
            some &= self.values.overhead <= limits.max_overhead
        rows = np.flatnonzero(some)
        for row in rows[np.argsort(self.goal[rows], kind="stable")].tolist():
            sure = self.values.chance[row] > limits.confidence + near
            if sure or self.chance(row) >= limits.confidence - _error(
                limits.confidence, SAMPLES * paths
            ):
                return float(self.goal[row]), row
        return np.inf, -1

    def chance(self, row: int) -> float:
        """How often a plan meets the limits, on eight times as many paths."""
        cache, one = self.space.cache, self.inputs.take(np.array([row]))
        found = [float(self.values.chance[row])]
        for number in range(1, SAMPLES):
            other = OutcomeCache(cache.path_count, cache.seed + number * OTHER)
            found.append(float(values_of(replace(self.space, cache=other), one).chance[0]))
        return float(np.mean(found))

    def words(self, row: int) -> str:
        """A plan in words."""
        if row < 0:
            return "none"
        return (
            f"{self.plans.counts[row].tolist()} path {self.plans.checkpoint_path[row]} "
            f"fallback {self.plans.fallback[row]}"
        )


def _error(share: float, paths: int) -> float:
    return float(np.sqrt(max(share * (1.0 - share), 0.0) / paths)) + 1e-12


def every(q: Space, keep: Callable[[np.ndarray], np.ndarray] | None = None) -> Every:
    """Every plan of at most three types a cluster; of the counts to `keep` only."""
    site, q = q.sites[0], q.on_printed_paths()
    counts = every_cluster(site, q.limits.max_machines)
    types = (counts > 0).sum(axis=1)
    counts = counts[types <= (TYPES if q.mix else 1)]
    counts = counts if keep is None else counts[keep(counts)]
    plans = every_plan(q, site, counts)
    inputs, allowed = path_inputs_of(q, site, plans)
    rows = np.flatnonzero(allowed)
    plans, inputs = plans.take(rows), inputs.take(rows)
    return at_the_last_moment(Every(q, plans, inputs, values_of(q, inputs)))


def at_the_last_moment(found: Every) -> Every:
    """Plans that but for their overhead are possible switch ever earlier until it is met."""
    q, inputs, values = found.space, found.inputs, found.values
    most = q.limits.max_overhead
    if most is None or q.limits.deadline_s is None:
        return found
    room_s = np.maximum(q.limits.deadline_s - inputs.handover_s, 0.0)
    over = (inputs.fallback_speed > 0.0) & (values.overhead > most)
    over &= values.chance >= q.limits.confidence - 1e-12
    early_s = np.zeros(len(inputs))
    for share in np.arange(1, LAST_SHARE * STEPS) / STEPS:
        rows = np.flatnonzero(over)
        if not len(rows):
            break
        new = values_of(q, inputs.take(rows).earlier(share * room_s[rows]))
        met = new.overhead <= most
        values = values.with_rows(rows[met], new.take(np.flatnonzero(met)))
        early_s[rows[met]] = share * room_s[rows[met]]
        over[rows[met]] = False
    return replace(found, inputs=inputs.earlier(early_s), values=values)


def problem(q: Space, worse: float = 0.0) -> str:
    """What is wrong with the pool's answer to a question, if anything.

    It may have a policy, or a moment of a switch, that the oracle does not try: a plan that is
    better is the pool's gain. It may be `worse` by a known share.
    """
    goal, row = (found := every(q)).best()
    best = best_of(q)
    if best is None:
        return "" if row < 0 else f"no plan, but {goal:.6g}: {found.words(row)}"
    if best.goal_value > goal * (1.0 + worse + TOLERANCE):
        return f"{best.goal_value / goal - 1:.2%} worse: {best} for {goal:.6g}, {found.words(row)}"
    return ""
