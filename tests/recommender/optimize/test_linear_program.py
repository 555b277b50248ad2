"""The programs: valid for every plan, equal to the search, and never believed unchecked."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recommender.optimize.linear_program import Model, rounded, solve, violated
from recommender.optimize.optimality_proof import ProgramProof, prove, write_lp
from recommender.optimize.program_data import ProgramData, hazard_bands, relaxed
from recommender.optimize.program_rows import entry_names, program
from recommender.optimize.search import search
from recommender.optimize.search_state import SearchState
from recommender.optimize.space import Space
from recommender.performance.step import steps
from recommender.plan.limits import Limits
from tests.recommender.optimize.palette import (
    evaluate,
    every_cluster,
    every_plan,
    no_fallbacks,
    space,
)

EVERY = 100_000  # plans and programs without end
BANDS = {"hazard_least", "hazard_most"}


def found_by_programs(question: Space) -> tuple[SearchState, ProgramProof]:
    """The best plan that the programs find from nothing, and their proof."""
    state = SearchState(slack=0.0, max_plans=EVERY)
    return state, prove(question, state, EVERY)


def searched(question: Space) -> SearchState:
    return search(question, most=EVERY)


def unlimited(question: Space) -> Space:
    """The same question without any limit."""
    return replace(question, limits=Limits(max_machines=question.limits.max_machines))


def agree(seeds: range, entries: int, most: int) -> None:
    """Search and programs find the same goal, and the programs prove the search's."""
    for seed in seeds:
        question = space(seed, entries, most)
        by_search = searched(question)
        by_programs, proof = found_by_programs(question)
        assert by_programs.best_goal == pytest.approx(by_search.best_goal, rel=1e-3), seed
        assert (proof.status == "infeasible") == (not by_search.incumbents), seed
        after = prove(question, by_search, EVERY)
        assert after.status in ("optimal", "infeasible") or after.gap > 0.0, seed
        if not question.job.elastic and not len(question.sites[0].fallbacks):
            assert after.status != "gap", seed


@pytest.mark.parametrize("first", range(0, 60, 6))
def test_programs_and_search_find_the_same_best_plan(first: int) -> None:
    agree(range(first, first + 6), entries=3, most=5)


@pytest.mark.parametrize("first", range(1000, 1012, 4))
def test_they_agree_where_more_machines_and_entries_mix(first: int) -> None:
    agree(range(first, first + 4), entries=4, most=6)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(2000, 3000, 20))
def test_they_agree_in_a_thousand_spaces(first: int) -> None:
    agree(range(first, first + 20), entries=3 + first % 3, most=5)


def point(r: ProgramData, model: Model, counts: np.ndarray) -> dict[str, float] | None:
    """A cluster as the values of a program; None where no level holds it."""
    e, c = r.site.entries, r.space.columns
    used = counts > 0
    gpus, network = c.gpus[e.kind][used].max(), c.network_bytes_per_s[e.kind][used].min()
    n = int(counts.sum())
    levels = [
        k
        for k in r.levels
        if k.min_machines <= n <= k.max_machines and k.gpus >= gpus and k.network <= network
    ]
    if not levels:
        return None
    level = min(levels, key=lambda k: (k.gpus, -k.network))
    values = dict.fromkeys(model.variables, 0.0)
    for name, x in zip(entry_names(r), counts, strict=True):
        values |= {f"x_{name}": float(x), f"y_{name}": float(x > 0)}
    values |= {"n": float(n), "w_spot": float((used & e.spot).any())}
    fleet = r.space.fleet(r.site, counts[None])
    step_s = float(steps(r.space.job, c, fleet).step_s[0])
    speed = r.space.job.global_batch / step_s / r.unit
    values |= {f"z_{level.name}": 1.0, f"v_{level.name}": speed}
    return values | {f"R_{level.name}": float(r.compute @ counts)}


def excluded_wrongly(question: Space) -> list[tuple[tuple[int, ...], set[str]]]:
    """Clusters that a program with a cutoff just above their own goal leaves out."""
    site, wrong = question.sites[0], []
    r = relaxed(question, site)
    plans = every_plan(question, site, every_cluster(site, question.limits.max_machines))
    goals: dict[tuple[int, ...], float] = {}
    for counts, goal in zip(plans.counts, evaluate(question, site, plans).goal, strict=True):
        goals[tuple(counts)] = min(goals.get(tuple(counts), np.inf), float(goal))
    handed_over = r.fallback_s if question.limits.goal == "time" else r.fallback_usd
    for counts, goal in goals.items():
        has_spot = bool((np.array(counts)[site.entries.spot] > 0).any())
        if not np.isfinite(goal) or (has_spot and goal > handed_over):
            continue  # the latter is what `prove` reports as the gap left by fallbacks
        reasons: set[str] = set()
        for band in hazard_bands(r):
            model = program(r, band, goal * (1.0 + 1e-6))
            values = point(r, model, np.array(counts))
            missed = {"no level"} if values is None else set(violated(model, values))
            if not missed:
                break
            reasons |= missed - BANDS
        else:
            wrong.append((counts, reasons))
    return wrong


@pytest.mark.parametrize("first", range(0, 40, 8))
def test_no_program_leaves_out_a_plan_that_beats_its_bar(first: int) -> None:
    for seed in range(first, first + 8):
        question = space(seed, entries=3, most=4)
        # Elastic jobs may train on their on-demand part alone: `prove` reports that as a gap.
        question = replace(question, job=replace(question.job, elastic=False))
        assert excluded_wrongly(question) == []


def test_an_elastic_job_is_not_called_proven_where_its_steady_part_is_cheap() -> None:
    question = space(47, entries=3, most=4)
    assert question.job.elastic
    proof = prove(question, searched(question), EVERY)
    assert proof.status == "gap"
    assert proof.gap > 0.0


@pytest.mark.parametrize("seed", range(24))
def test_highs_and_cbc_agree_on_the_same_program(seed: int) -> None:
    question = space(seed, entries=4, most=6)
    r = relaxed(question, question.sites[0])
    best = searched(question).best_goal
    for cutoff in (best * 1.2, best * 0.9):
        for band in hazard_bands(r)[:2]:
            model = program(r, band, cutoff)
            one, other = solve(model), solve(model, solver="cbc")
            assert one.status == other.status
            assert one.objective == pytest.approx(other.objective, rel=1e-5, abs=1e-5)


def test_every_row_and_variable_is_named_and_in_the_file(tmp_path: Path) -> None:
    question = unlimited(space(3, entries=4, most=6))
    site, path = question.sites[0], tmp_path / "best.lp"
    write_lp(question, site, path, best=searched(question).best_goal)
    text = path.read_text(encoding="utf-8")
    r = relaxed(question, site)
    model = program(r, hazard_bands(r)[0], 1e3)
    for row in model.rows.values():
        assert f"{row.name}:" in text
    assert {"one", "count", "rate", "better", "quota_0"} <= set(model.rows)
    for name in entry_names(r):
        assert f"x_{name}" in text
        assert name.startswith("t")
    assert text.rstrip().endswith("End")


def test_names_may_not_repeat() -> None:
    model = Model("twice")
    model.whole("x", 0, 1)
    model.row("same", {"x": 1.0}, "<=", 1.0)
    with pytest.raises(ValueError, match="same"):
        model.row("same", {"x": 1.0}, "<=", 1.0)
    with pytest.raises(ValueError, match="x"):
        model.whole("x", 0, 1)


def market_split(rows: int = 5, columns: int = 40) -> Model:
    """A program that no solver finishes at once (Cornuéjols and Dawande, 1998)."""
    weights = np.random.default_rng(1).integers(1, 100, (rows, columns))
    model = Model("market_split")
    for j in range(columns):
        model.whole(f"x_{j}", 0, 1)
    for i in range(rows):
        model.real(f"more_{i}", 1e4)
        model.real(f"less_{i}", 1e4)
        terms = {f"x_{j}": float(weights[i, j]) for j in range(columns)}
        half = float(weights[i].sum() // 2)
        model.row(f"half_{i}", terms | {f"more_{i}": -1.0, f"less_{i}": 1.0}, "=", half)
        model.objective |= {f"more_{i}": 1.0, f"less_{i}": 1.0}
    return model


@pytest.mark.parametrize("solver", ["highs", "cbc"])
def test_a_solution_at_the_time_limit_is_never_called_optimal(solver: str) -> None:
    solution = solve(market_split(), seconds=0.3, solver=solver)  # type: ignore[arg-type]
    assert solution.status in ("found", "unknown")


def test_a_corrupted_solution_is_caught() -> None:
    question = space(1, entries=4, most=6)
    r = relaxed(question, question.sites[0])
    model = program(r, hazard_bands(r)[0], searched(question).best_goal * 1.5)
    solution = solve(model)
    assert solution.status == "optimal"
    assert violated(model, solution.values) == ()
    for name, value in solution.values.items():
        if name.startswith(("x_", "z_")):
            assert violated(model, {**solution.values, name: value + 1.0}) != ()
    assert violated(model, {**solution.values, "n": 1.5}) == ("n",)
    without = {k: v for k, v in solution.values.items() if k != "n"}
    assert "n" in violated(model, without)


def test_whole_numbers_are_rounded_and_others_are_not() -> None:
    model = Model("mixed")
    model.whole("x", 0, 5)
    model.real("v", 5)
    assert rounded(model, {"x": 2.9999999999, "v": 0.5}) == {"x": 3.0, "v": 0.5}


def test_an_impossible_question_is_proven_infeasible() -> None:
    question = space(0, entries=3, most=4)
    hopeless = replace(question, limits=replace(question.limits, deadline_s=60.0))
    alone = replace(hopeless.sites[0], fallbacks=no_fallbacks())
    found, proof = found_by_programs(replace(hopeless, sites=(alone,)))
    assert not found.incumbents
    assert proof.status == "infeasible"
    assert proof.programs >= 1


def test_the_last_machine_of_a_quota_can_be_used() -> None:
    question = unlimited(space(4, entries=3, most=6))
    site = question.sites[0]
    entries = replace(site.entries, cap=np.full(3, 6))
    site = replace(site, quota_use=np.ones((1, 3)), quota=np.array([3.0]), entries=entries)
    model = program(relaxed(question, site), hazard_bands(relaxed(question, site))[0], np.inf)
    model.objective = {"n": -1.0}
    most = solve(model)
    assert most.status == "optimal"
    assert most.values["n"] == 3.0


def test_without_programs_the_proof_is_a_gap() -> None:
    question = unlimited(space(5, entries=3, most=4))
    state = SearchState(slack=0.0, max_plans=EVERY)
    assert prove(question, state, 0) == ProgramProof("gap", 1.0, 0)


def test_the_same_question_gets_the_same_proof() -> None:
    first = [found_by_programs(space(seed, 4, 6)) for seed in (8, 9)]
    again = [found_by_programs(space(seed, 4, 6)) for seed in (8, 9)]
    assert [p for _, p in first] == [p for _, p in again]
    assert [f.best_goal for f, _ in first] == [f.best_goal for f, _ in again]
