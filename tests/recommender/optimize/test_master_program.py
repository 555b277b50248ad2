"""The master program: its solutions against enumeration, its order against the exact search."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from recommender.optimize.columns import promising_clusters
from recommender.optimize.linear_program import solve
from recommender.optimize.master_program import MasterProgram, master_program
from recommender.optimize.search import search, simulate_ranked
from recommender.optimize.search_state import SearchState
from recommender.optimize.space import Space, single_steps
from recommender.plan.limits import Limits
from tests.recommender.optimize import palette


def programs(seeds: range) -> list[tuple[Space, MasterProgram]]:
    found = []
    for seed in seeds:
        space = palette.space(seed)
        step_s = single_steps(space.job, space.columns, space.limits.max_machines)
        program = master_program(space, promising_clusters(space, step_s))
        if program is not None:
            found.append((space, program))
    assert len(found) > len(seeds) // 2
    return found


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


def test_a_program_with_one_limit_is_solved_as_all_mixtures_of_two_columns_are() -> None:
    checked = 0
    for _, program in programs(range(120)):
        if len(program.model.rows) > 2:
            continue
        least = min_of_pairs(program)
        if program.solution.status == "infeasible":
            assert np.isinf(least)
        else:
            assert program.solution.objective == pytest.approx(least, rel=1e-6)
        checked += 1
    assert checked >= 15


def test_the_shares_do_all_the_work() -> None:
    for _, program in programs(range(30)):
        if program.solution.status == "optimal":
            assert program.share.sum() == pytest.approx(1.0)
            assert (program.share >= -1e-9).all()


def test_highs_and_cbc_agree() -> None:
    for _, program in programs(range(40)):
        other = solve(program.model, solver="cbc")
        assert other.status == program.solution.status
        assert other.objective == pytest.approx(program.solution.objective, rel=1e-6)


def test_a_conflict_names_rows_that_cannot_be_met_and_none_too_many() -> None:
    named = 0
    for space, _ in programs(range(30)):
        limits = Limits(deadline_s=1.0, budget_usd=1e9, max_machines=space.limits.max_machines)
        tight = replace(space, limits=limits)
        step_s = single_steps(tight.job, tight.columns, tight.limits.max_machines)
        program = master_program(tight, promising_clusters(tight, step_s))
        if program is not None:
            assert program.conflict() == ("deadline",)
            named += 1
    assert named >= 10


def test_judging_first_and_searching_the_rest_is_the_exact_search() -> None:
    """What the program puts first is as good as the exact search in most small spaces."""
    met = total = 0
    for space, program in programs(range(40)):
        exact = search(space)
        state = SearchState(slack=0.0, max_plans=10_000)
        simulate_ranked(space, program.first, state)
        assert state.best_goal >= exact.best_goal * (1.0 - 1e-9)
        if exact.incumbents:
            total += 1
            met += state.best_goal <= exact.best_goal * 1.001
    assert total >= 15
    assert met >= 0.8 * total


def test_two_quotas_of_one_name_are_two_rows() -> None:
    """Of one family by vCPU and by GPU, say."""
    checked = 0
    for space, program in programs(range(40)):
        site = space.sites[0]
        if not any(row.startswith("quota_") for row in program.model.rows):
            continue
        twice = replace(
            site,
            quota_use=np.concatenate([site.quota_use, 4.0 * site.quota_use]),
            quota=np.append(site.quota, 4.0 * site.quota),
            quota_names=("aws P spot", "aws P spot"),
        )
        step_s = single_steps(space.job, space.columns, space.limits.max_machines)
        q = replace(space, sites=(twice,))
        found = master_program(q, promising_clusters(q, step_s))
        assert found is not None
        rows = [row for row in found.model.rows if row.startswith("quota_")]
        assert rows == ["quota_aws_P_spot", "quota_aws_P_spot_0_1"]
        checked += 1
    assert checked > 5


def test_no_column_exceeds_a_quota_or_the_hourly_limit_alone() -> None:
    """Such a cluster cannot be started, whatever share of the work it would do."""
    checked = 0
    for space, _ in programs(range(40)):
        limited = replace(space, limits=replace(space.limits, hourly_usd=20.0))
        step_s = single_steps(limited.job, limited.columns, limited.limits.max_machines)
        program = master_program(limited, promising_clusters(limited, step_s))
        if program is None:
            continue
        for name, row in program.model.rows.items():
            if name == "hourly" or name.startswith("quota_"):
                assert max(row.terms.values()) <= row.limit * (1.0 + 1e-9)
                checked += 1
    assert checked > 20
