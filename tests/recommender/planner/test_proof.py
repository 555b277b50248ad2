"""A proof says no more than was simulated."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.job.jobfile import find_job
from recommender.optimize.watch import Watch
from recommender.plan.limits import Choice, Limits, Progress
from recommender.planner.baselines import proof_of
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import planning_problem
from tests.recommender.optimize.pooled import every, pool_of
from tests.recommender.optimize.samples import thinned
from tests.recommender.optimize.test_pool import question
from tests.recommender.planning import NOW, search_of_day
from tests.shipped import snapshot

TOLERANCE = 1e-3


class Noted(Watch):
    """A watch that keeps every gap it was shown."""

    def __init__(self) -> None:
        super().__init__()
        self.gaps: list[float] = []

    def show(self, simulated: int, best_goal: float, bound: float = 0.0) -> None:
        Watch.show(self, simulated, best_goal, bound)
        self.gaps.append(self.gap)


@pytest.fixture(scope="module")
def pool() -> PlanPool:
    return search_of_day(Choice(mix="no"))


def test_without_a_proof_what_may_be_better_is_counted(pool: PlanPool) -> None:
    proof, bounds = proof_of(pool), pool.pool.bounds(pool.problem.limits)
    assert proof.rated == len(bounds)
    assert proof.open_clusters == int((bounds < pool.best.goal * (1 - 1e-4)).sum())
    assert proof.status == ("open" if proof.open_clusters else "optimal")
    assert 0.0 <= proof.gap < 1.0
    assert proof.gap == pytest.approx(max(1.0 - float(bounds.min()) / pool.best.goal, 0.0))


def test_a_proof_that_ran_to_its_end_is_optimal_and_no_worse(pool: PlanPool) -> None:
    proven = PlanPool(pool.problem, prove=True)
    proof = proof_of(proven)
    assert (proof.status, proof.gap, proof.open_clusters) == ("optimal", 0.0, 0)
    assert proven.best.goal <= pool.best.goal * (1 + 1e-9)
    assert proof.plans_simulated > proof_of(pool).plans_simulated


def test_a_proof_that_is_stopped_leaves_a_gap(pool: PlanPool) -> None:
    stopped = PlanPool(pool.problem, prove=True)
    stopped.watch.asked = True
    proof = proof_of(stopped)
    assert stopped.best.goal == pytest.approx(pool.best.goal)
    assert proof.status == "open"
    assert proof.open_clusters > 0


@pytest.mark.parametrize("seed", thinned(range(1, 40, 3), 3))
def test_what_is_proven_is_the_best_of_every_plan(seed: int) -> None:
    q = replace(question(seed), mix=False)
    goal, row = (found := every(q)).best()
    watch = Noted()
    pool = replace(pool_of(q), watch=watch)
    proven = pool.proven(q.limits)
    assert watch.gaps == sorted(watch.gaps, reverse=True)
    assert not watch.running
    assert bool(proven.plans) or row < 0, found.words(row)
    assert proven.goal <= goal * (1 + TOLERANCE) or row < 0, found.words(row)
    assert proven.open_bound >= proven.goal * (1 - TOLERANCE) or not proven.plans


@pytest.mark.parametrize("seed", range(20))
def test_no_plan_has_a_lower_goal_than_the_bound_of_its_cluster(seed: int) -> None:
    q = replace(question(seed), mix=False)
    pool, found = pool_of(q), every(q)
    bounds, rough = pool.bounds(q.limits), pool.rough
    bound_of = {
        (int(entry), int(machines)): float(bound)
        for entry, machines, bound in zip(rough.entry, rough.machines, bounds, strict=True)
    }
    for row in range(len(found.plans)):
        counts = found.plans.counts[row]
        bound = bound_of[int(counts.argmax()), int(counts.max())]
        if np.isinf(bound):  # the work alone is late
            assert found.values.chance[row] < q.limits.confidence, found.words(row)
            continue
        # A mean over speeds and prices whose medians are those of the bound, on few paths.
        assert found.goal[row] >= bound * 0.97, found.words(row)


def test_of_one_machine_no_mix_is_rated() -> None:
    job, limits = find_job("resnet50-imagenet"), Limits(deadline_s=24 * 3600.0, max_machines=1)
    alone = PlanPool(planning_problem(job, limits, Choice(), snapshot(), Progress(), NOW, 7))
    assert proof_of(alone).mixes_rated == 0


def test_without_a_plan_nothing_is_optimal_while_one_may_do() -> None:
    job, limits = find_job("resnet50-imagenet"), Limits(deadline_s=2700.0, max_machines=4)
    pool = PlanPool(planning_problem(job, limits, Choice(), snapshot(), Progress(), NOW, 7))
    assert not pool.best.plans
    assert (proof_of(pool).status, proof_of(pool).gap) == ("open", 1.0)
