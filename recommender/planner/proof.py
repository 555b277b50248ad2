"""How certain the first place is: proven optimal, or what was not looked at."""

import numpy as np

from recommender.optimize.pool import EPSILON
from recommender.plan.answer import Proof
from recommender.planner.plan_pool import PlanPool


def proof_of(pool: PlanPool) -> Proof:
    """How much was rated and simulated, and how many clusters might still be better.

    Clusters of one machine type whose work alone, nothing lost, would cost less than the best plan.
    """
    best, limits, rated = pool.best, pool.problem.limits, pool.pool
    bounds = rated.bounds(limits)
    under = rated.rough.allowed(limits) & (bounds < best.goal * (1.0 - EPSILON))
    proven = pool.prove and best.open_bound >= best.goal * (1.0 - EPSILON)
    least = float(bounds[under].min(initial=np.inf))
    least = max(least, best.open_bound) if pool.prove else least
    open_ = 0 if proven else int(under.sum())
    return Proof(
        status="optimal" if proven or not open_ else "open",
        gap=0.0 if proven or not open_ else _gap(least, best.goal),
        rated=len(rated.rough),
        plans_simulated=best.simulated,
        open_clusters=open_,
        mixes_rated=len(pool.mixes.known),
    )


def _gap(bound: float, goal: float) -> float:
    """By which share a plan that was left out may be better at most; 1 where none was found."""
    return max(1.0 - bound / goal, 0.0) if np.isfinite(goal) else 1.0
