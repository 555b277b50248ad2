"""Printed chances of leading plans against 102,400 fresh runs: by hand, some minutes.

    python -P tests/run.py tests.research.fresh_runs

Every preset within 24 h, for 200 USD, and under a tight deadline: 2 % above what 95 % of the runs
of the quickest of its three plans need. The sensible plan and the cheapest are simulated again
with other seeds.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass

import numpy as np

from recommender.job.jobfile import find_job
from recommender.job.preset_files import presets
from recommender.plan.limits import Choice, Limits
from recommender.planner.plan_builder import Evaluated
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import planning_problem
from recommender.planner.ranking import ranked_plans
from recommender.planner.trio import TrioPlans, choose_trio
from recommender.planner.trio_candidates import TrioCandidates
from recommender.risk.monte_carlo import simulate_paths
from tests.research.leads import NEW, NOW, SEED, words
from tests.shipped import snapshot

DAY_S = 86400.0
RUNS = 20480  # of each seed: five times as many are 102,400
SEEDS = range(1000, 1005)
ABOVE = 1.02  # of what 95 % of the runs of a plan need: a tight deadline
SHORT = 0.99  # of the deadline: plans whose 95 % time is below it end before their fallback must


@dataclass(frozen=True, slots=True)
class Row:
    """A plan, and the chance that it meets its limits."""

    question: str
    plan: str
    printed: float
    fresh: float


def fresh_chance(search: PlanPool, plan: Evaluated) -> float:
    """The share of fresh runs that meet the limits."""
    limits, one = search.problem.limits, plan.inputs
    kept = []
    for seed in SEEDS:
        paths = simulate_paths(one, limits.deadline_s, RUNS, seed)
        late = paths.time_s[0] > (limits.deadline_s or np.inf)
        dear = paths.cost_usd[0] > (limits.budget_usd or np.inf)
        kept.append(1.0 - float(np.mean(late | dear)))
    return float(np.mean(kept))


def rows_of(name: str) -> Iterator[Row]:
    """The plans of a preset."""
    day = yield from _asked(name, "24 h", Limits(deadline_s=DAY_S))
    yield from _asked(name, "200 USD", Limits(budget_usd=200.0))
    times = [] if day is None else [e.plan.estimate.time.p95 for e in _three(day)]
    early = [each for each in times if each < SHORT * DAY_S]
    if early:
        yield from _asked(name, "tight", Limits(deadline_s=ABOVE * min(early)))


def _three(found: TrioPlans) -> tuple[Evaluated, ...]:
    return found.sensible, found.cheapest, found.third


def _asked(name: str, question: str, limits: Limits) -> Generator[Row, None, TrioPlans | None]:
    problem = planning_problem(find_job(name), limits, Choice(), snapshot(), NEW, NOW, SEED)
    search = PlanPool(problem)
    ranked = ranked_plans(search, 3)
    found = choose_trio(TrioCandidates(search), ranked) if ranked.plans else None
    both = () if found is None else (found.sensible, found.cheapest)
    for each in {plan.candidate: plan for plan in both}.values():
        chance = each.plan.estimate.chance
        yield Row(f"{name}, {question}", words(each.plan), chance, fresh_chance(search, each))
    return found


def main() -> None:
    """Print all rows and what they miss by."""
    found = []
    for name in presets():
        for row in rows_of(name):
            found.append(row)
            print(
                f"| {row.question} | {row.plan} | {row.printed:.2%} | {row.fresh:.2%} |", flush=True
            )
    missed = np.array([100.0 * (row.printed - row.fresh) for row in found])
    print(
        f"{len(missed)} plans: {missed.min():+.2f} to {missed.max():+.2f} points, "
        f"mean {missed.mean():+.2f}; {(np.abs(missed) <= 0.5).sum()} within 0.5"
    )


if __name__ == "__main__":
    main()
