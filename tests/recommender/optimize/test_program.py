"""The linear program: its order decides, and its solutions are those of enumeration."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from recommender.arrays import Ints
from recommender.job.jobfile import find_job
from recommender.optimize import pool as pool_room
from recommender.optimize.fallback_choices import choices_of
from recommender.optimize.linear_program import solve
from recommender.optimize.pool import Pool, Selection, shape_of
from recommender.optimize.program import MasterProgram, better, master_program, order, surest
from recommender.optimize.rating import RatedPlans
from recommender.optimize.space import Space
from recommender.plan.limits import Choice, Limits, Progress
from recommender.planner.problem import planning_problem
from tests.recommender.optimize.pooled import pool_of
from tests.recommender.optimize.test_pool import question
from tests.recommender.planning import HOUR, NOW
from tests.shipped import snapshot

Order = Callable[[Limits, RatedPlans], Ints]
FEW = 12  # clusters simulated: what the order puts first decides


def reversed_order(limits: Limits, plans: RatedPlans) -> Ints:
    return order(limits, plans)[::-1]


def shuffled(limits: Limits, plans: RatedPlans) -> Ints:
    return np.random.default_rng(7).permutation(len(plans))


def by_price(limits: Limits, plans: RatedPlans) -> Ints:
    """By expected cost alone, whether the limits are met or not."""
    return np.argsort(plans.usd, kind="stable")


ASKED = (
    ("resnet50-imagenet", Limits(deadline_s=24 * HOUR)),
    ("llama3-8b-sft", Limits(deadline_s=24 * HOUR)),
    ("gpt2-xl", Limits(budget_usd=1500.0)),
)


@pytest.fixture(scope="module")
def pools() -> list[Pool]:
    """Rated once; what is selected depends on the order alone."""
    found = []
    for name, limits in ASKED:
        choice = Choice(mix="no")
        problem = planning_problem(find_job(name), limits, choice, snapshot(), Progress(), NOW, 7)
        found.append(Pool(problem.space(problem.single_type_sites), problem.step_s))
    return found


def goals(pools: list[Pool], monkeypatch: pytest.MonkeyPatch, by: Order) -> np.ndarray:
    monkeypatch.setattr(pool_room, "order", by)
    found = []
    for pool in pools:
        pool.selections.clear()
        found.append(pool.select(pool.space.limits, first=FEW).goal)
    pool.selections.clear()
    return np.array(found)


@pytest.mark.parametrize("other", [reversed_order, shuffled, by_price])
def test_without_the_order_of_the_program_plans_are_worse(
    pools: list[Pool], monkeypatch: pytest.MonkeyPatch, other: Order
) -> None:
    ours, theirs = goals(pools, monkeypatch, order), goals(pools, monkeypatch, other)
    assert np.isfinite(ours).all()
    assert (theirs >= ours * (1 - 1e-3)).all()
    assert (theirs > ours * 1.01).sum() >= 2


def test_what_comes_first_is_chosen_by_both_programs_in_turn() -> None:
    for seed in range(12):
        q = question(seed)
        plans = pool_of(q).plans(q.limits)
        rows = order(q.limits, plans)
        sure = plans.chance >= q.limits.confidence
        best = np.where(sure, plans.goal_value, np.inf)
        if np.isfinite(best).any():
            assert best[rows[0]] <= best.min() * 1.001 or not sure[rows[0]]
        if q.limits.deadline_s is not None and q.limits.goal != "time":
            assert plans.planned_usd[rows[:2]].min() == plans.planned_usd.min()
        chances = plans.chance[surest(q.limits, plans)]
        assert (np.diff(chances) <= 0.01).all()
        for row in better(q.limits, plans, 100.0).tolist():
            assert plans.goal_value[row] < 100.0


def programs(seeds: range) -> list[tuple[Space, MasterProgram]]:
    found = []
    for seed in seeds:
        q = replace(question(seed), mix=False)
        program = program_of(q)
        if program is not None:
            found.append((q, program))
    assert len(found) > len(seeds) // 2
    return found


def program_of(q: Space) -> MasterProgram | None:
    pool = pool_of(q)
    selection = pool.select(q.limits)
    columns = pool.columns(q.limits, selection)
    if not len(columns):
        return None
    own = None
    if selection.plans and (plan := shape_of(selection.best)) in columns.plans:
        own = columns.take(np.array([columns.plans.index(plan)]))
    return master_program(q, columns, own)


def min_of_pairs(program: MasterProgram) -> float:
    """Least objective over all mixtures of two columns: enough for the work and one limit."""
    model, names = program.model, program.names
    cost = np.array([model.objective[name] for name in names])
    rows = [row for key, row in model.rows.items() if key != "work"]
    assert len(rows) <= 1
    if not rows:
        return float(cost.min())
    use = np.array([rows[0].terms.get(name, 0.0) for name in names])
    fits = use <= rows[0].limit
    best = float(cost[fits].min(initial=np.inf))
    for a, b in combinations(range(len(names)), 2):
        if fits[a] != fits[b]:
            y = (rows[0].limit - use[b]) / (use[a] - use[b])
            best = min(best, float(y * cost[a] + (1.0 - y) * cost[b]))
    return best


def test_a_program_is_solved_as_enumeration_and_another_solver_do() -> None:
    checked = 0
    for _, program in programs(range(24)):
        other = solve(program.model, solver="cbc")
        assert other.status == program.solution.status
        if program.solution.status == "optimal":
            assert other.objective == pytest.approx(program.solution.objective, rel=1e-6)
            assert program.share.sum() == pytest.approx(1.0)
            assert (program.share >= -1e-9).all()
        if len(program.model.rows) > 2:
            continue
        least = min_of_pairs(program)
        if program.solution.status == "infeasible":
            assert np.isinf(least)
        else:
            assert program.solution.objective == pytest.approx(least, rel=1e-6)
            checked += 1
    assert checked >= 5


def test_a_conflict_names_rows_that_cannot_be_met_and_none_too_many() -> None:
    named = 0
    for seed in range(8):
        q = replace(question(seed), mix=False)
        limits = Limits(deadline_s=1.0, budget_usd=1e9, max_machines=4)
        q = replace(q, limits=limits)
        pool = pool_of(q)
        pool.plans(limits)  # rates them
        keys = pool.rows_of(limits, list(pool.known)[:20])
        if keys:
            tried = pool.simulate(limits, keys, choices_of)
            program = master_program(q, pool.columns(limits, Selection((), tried)), None)
            assert program.conflict() == ("deadline",)
            named += 1
    assert named >= 3


def test_no_column_exceeds_a_quota_or_the_hourly_limit_alone() -> None:
    """Such a cluster cannot be started, whatever share of the work it would do."""
    checked = 0
    for seed in range(12):
        q = replace(question(seed), mix=False)
        program = program_of(replace(q, limits=replace(q.limits, hourly_usd=20.0)))
        if program is None:
            continue
        for name, row in program.model.rows.items():
            if name == "hourly" or name.startswith("quota_"):
                assert max(row.terms.values()) <= row.limit * (1.0 + 1e-9)
                checked += 1
    assert checked > 5


def test_two_quotas_of_one_name_are_two_rows() -> None:
    """Of one family by vCPU and by GPU, say."""
    checked = 0
    for seed in range(12):
        q = replace(question(seed), mix=False)
        site = q.sites[0]
        twice = replace(
            site,
            quota_use=np.concatenate([site.quota_use, 4.0 * site.quota_use]),
            quota=np.append(site.quota, 4.0 * site.quota),
            quota_names=("aws P spot", "aws P spot"),
        )
        program = program_of(replace(q, sites=(twice,)))
        if program is not None:
            rows = [row for row in program.model.rows if row.startswith("quota_")]
            assert rows == ["quota_aws_P_spot", "quota_aws_P_spot_0_1"]
            checked += 1
    assert checked > 3
