"""Every program has one optimum: HiGHS and CBC find it, and HiGHS with and without PuLP."""

from collections.abc import Iterator

import pytest

from recommender.optimize.linear_program import Model, solve
from recommender.optimize.program_data import hazard_bands, relaxed
from recommender.optimize.program_rows import program
from recommender.optimize.search import search
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
