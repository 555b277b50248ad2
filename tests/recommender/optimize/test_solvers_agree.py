"""Every program has one optimum: HiGHS and CBC find it, and HiGHS with and without PuLP."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from recommender.optimize.columns import promising_clusters
from recommender.optimize.linear_program import Model, solve
from recommender.optimize.master_program import master_program
from recommender.optimize.program_data import hazard_bands, relaxed
from recommender.optimize.program_rows import program
from recommender.optimize.search import search
from recommender.optimize.space import single_steps
from tests.recommender.optimize.direct_highs import least
from tests.recommender.optimize.palette import space


def proof_programs(seed: int) -> Iterator[Model]:
    """Those that a proof solves: with room below the best plan, and with none."""
    question = space(seed, entries=4, most=6)
    r = relaxed(question, question.sites[0])
    best = search(question, most=100_000).best_goal
    for cutoff in (best * 1.2, best * 0.9):
        for band in hazard_bands(r)[:2]:
            yield program(r, band, cutoff)


@pytest.mark.parametrize("seed", range(24))
def test_pulp_and_a_direct_solve_agree_on_proof_programs(seed: int) -> None:
    for model in proof_programs(seed):
        by_pulp, directly = solve(model, gap=0.0), least(model)
        if by_pulp.status == "infeasible":
            assert directly is None
        else:
            assert by_pulp.status == "optimal"
            assert by_pulp.objective == pytest.approx(directly, rel=1e-9, abs=1e-9)


def master_programs(seed: int) -> Iterator[Model]:
    """That of a random question, and of the same under every limit at once."""
    question = space(seed, entries=4, most=6)
    step_s = single_steps(question.job, question.columns, question.limits.max_machines)
    tight = replace(question.limits, deadline_s=7200.0, budget_usd=50.0, max_overhead=0.05)
    for limits in (question.limits, tight):
        asked = replace(question, limits=limits)
        found = master_program(asked, promising_clusters(asked, step_s))
        if found is not None:
            yield found.model


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_all_solvers_agree_on_master_programs(first: int) -> None:
    solved = 0
    for seed in range(first, first + 20):
        for model in master_programs(seed):
            by_pulp, by_cbc, directly = solve(model), solve(model, solver="cbc"), least(model)
            assert by_pulp.status == by_cbc.status
            if directly is None:
                assert by_pulp.status == "infeasible"
                continue
            solved += 1
            assert by_pulp.objective == pytest.approx(directly, rel=1e-9, abs=1e-9)
            assert by_cbc.objective == pytest.approx(directly, rel=1e-6, abs=1e-9)
    assert solved > 5
