"""Linear programs: named, solved alike by every solver, and never believed unchecked."""

import os
from concurrent.futures import Future
from pathlib import Path
from threading import Thread

import highspy
import numpy as np
import pytest

from recommender.optimize.linear_program import Model, solve, violated, write
from tests.recommender.optimize.direct_highs import least


def cover(seed: int, rows: int = 4, columns: int = 9) -> Model:
    """Shares of machines that compute enough of several things for the least."""
    rng = np.random.default_rng(seed)
    model = Model("cover")
    for j in range(columns):
        model.variable(f"x_{j}", 6.0)
    model.variable("more", 10.0)
    for i in range(rows):
        speed = {f"x_{j}": float(v) for j, v in enumerate(rng.uniform(0.0, 2.0, columns))}
        model.row(f"enough_{i}", speed | {"more": 1.0}, ">=", float(rng.uniform(5.0, 20.0)))
    model.row("machines", {f"x_{j}": 1.0 for j in range(columns)}, "<=", 16.0)
    price = rng.uniform(1.0, 9.0, columns)
    model.objective = {f"x_{j}": float(p) for j, p in enumerate(price)} | {"more": 30.0}
    return model


@pytest.mark.parametrize("seed", range(24))
def test_highs_with_and_without_pulp_and_cbc_find_the_same_least(seed: int) -> None:
    model = cover(seed)
    one, other = (solve(model, 60.0, solver) for solver in ("highs", "cbc"))
    alone = least(model)
    assert one.status == other.status == "optimal"
    # CBC writes ten digits of each value into the file that PuLP reads.
    assert one.objective == pytest.approx(other.objective, rel=1e-8)
    assert one.objective == pytest.approx(alone, rel=1e-9)


def test_a_solver_that_greets_on_the_standard_output_is_not_heard(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    quiet = highspy.Highs

    def greeting() -> highspy.Highs:
        os.write(1, b"Running HiGHS\n")
        return quiet()

    monkeypatch.setattr(highspy, "Highs", greeting)
    assert solve(cover(0)).status == "optimal"
    os.write(1, b"an answer\n")
    assert capfd.readouterr().out == "an answer\n"


def test_a_program_without_a_solution_is_infeasible() -> None:
    model = cover(0)
    model.row("none", {"more": 1.0}, ">=", 11.0)
    assert solve(model).status == "infeasible"


def test_every_row_and_variable_is_named_and_in_the_file(tmp_path: Path) -> None:
    model, path = cover(3), tmp_path / "cover.lp"
    write(model, path)
    text = path.read_text(encoding="utf-8")
    assert all(f"{name}:" in text for name in model.rows)
    assert all(name in text for name in model.variables)
    assert text.rstrip().endswith("End")


def test_a_program_goes_through_a_pipe_with_the_rows_in_conflict_at_its_top(
    tmp_path: Path,
) -> None:
    pipe, taken = tmp_path / "program.lp", Future[str]()
    os.mkfifo(pipe)
    Thread(target=lambda: taken.set_result(pipe.read_text()), daemon=True).start()
    write(cover(3), pipe, ["time", "money"])
    assert taken.result(timeout=60).startswith("\\ These rows cannot be met together: time, money")


def test_names_may_not_repeat() -> None:
    model = Model("twice")
    model.variable("x", 1.0)
    model.row("same", {"x": 1.0}, "<=", 1.0)
    with pytest.raises(ValueError, match="same"):
        model.row("same", {"x": 1.0}, "<=", 1.0)
    with pytest.raises(ValueError, match="x"):
        model.variable("x", 1.0)


def test_a_corrupted_solution_is_caught() -> None:
    model = cover(1)
    solution = solve(model)
    assert solution.status == "optimal"
    assert violated(model, solution.values) == ()
    used = [name for name, value in solution.values.items() if name != "more" and value >= 1.0]
    for name in used:
        assert violated(model, {**solution.values, name: solution.values[name] - 1.0}) != ()
    assert violated(model, {**solution.values, "x_0": 6.5}) == ("x_0",)
    without = {k: v for k, v in solution.values.items() if k != "x_0"}
    assert "x_0" in violated(model, without)
