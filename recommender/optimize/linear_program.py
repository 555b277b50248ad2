"""Linear programs: named variables and rows, solver, files; the only module that uses PuLP.

HiGHS runs with one thread and a fixed seed. Its answer counts as a proof only with `sol_status` 1
(under a time limit `LpStatus` says "Optimal" as well) or as infeasible, and only after `violated`
has recomputed every row of the solution in rational arithmetic.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pulp as untyped

from recommender.catalogs.files import replace_file
from recommender.catalogs.frozen import dataclass

Sense = Literal["<=", ">=", "="]
Status = Literal["optimal", "infeasible", "unknown"]

ROW_TOLERANCE = 1e-6  # solvers meet rows to 1e-7 of their scaled size
SECONDS = 2.0  # for one program
SEED = 7


@dataclass(frozen=True, slots=True)
class Row:
    """One limit: the sum of coefficient times variable against a number."""

    name: str
    terms: Mapping[str, float]
    sense: Sense
    limit: float


@dataclass(slots=True)
class Model:
    """A minimisation: objective, variables and rows, all named."""

    name: str
    objective: dict[str, float] = field(default_factory=dict)
    variables: dict[str, float] = field(default_factory=dict)  # the most of each; the least is 0
    rows: dict[str, Row] = field(default_factory=dict)
    whole: bool = False  # whether its variables are whole numbers

    def variable(self, name: str, high: float) -> None:
        """Add a variable from 0 to `high`."""
        if name in self.variables:
            raise ValueError(f"two variables are called {name}")
        self.variables[name] = high

    def row(self, name: str, terms: Mapping[str, float], sense: Sense, limit: float) -> None:
        """Add a row; terms of coefficient 0 are left out."""
        if name in self.rows:
            raise ValueError(f"two rows are called {name}")
        kept = {key: value for key, value in terms.items() if value != 0.0}
        self.rows[name] = Row(name, kept, sense, limit)


@dataclass(frozen=True, slots=True)
class Solution:
    """The result of a solver; only "optimal" and "infeasible" are proofs.

    An "unknown" one of whole numbers has the best values that were found in time, if any.
    """

    status: Status
    values: Mapping[str, float]
    objective: float = 0.0
    duals: Mapping[str, float] = field(default_factory=dict)  # by row


def violated(model: Model, values: Mapping[str, float]) -> tuple[str, ...]:
    """Names of the rows and ranges that a solution breaks, in rational arithmetic."""
    exact = {name: Fraction(value) for name, value in values.items()}
    ranges = model.variables.items()
    not_kept = [name for name, high in ranges if not _in_range(high, exact.get(name))]
    known = not not_kept
    if known:
        not_kept += [row.name for row in model.rows.values() if not _satisfied(row, exact)]
    return tuple(not_kept)


def _in_range(high: float, value: Fraction | None) -> bool:
    slack = Fraction(ROW_TOLERANCE * max(1.0, abs(high)))
    return value is not None and -slack <= value <= Fraction(high) + slack


def _satisfied(row: Row, values: Mapping[str, Fraction]) -> bool:
    parts = [Fraction(f) * values[name] for name, f in row.terms.items() if values[name]]
    limit = Fraction(row.limit)
    size = max([abs(part) for part in parts] + [abs(limit), Fraction(1)])
    excess = sum(parts, Fraction(0)) - limit
    slack = Fraction(ROW_TOLERANCE) * size
    above, below = excess <= slack, excess >= -slack
    return {"<=": above, ">=": below, "=": above and below}[row.sense]


Solver = Literal["highs", "cbc"]
pulp: Any = untyped  # half of its functions have no types
_SOLVERS = {"highs": "HiGHS", "cbc": "PULP_CBC_CMD"}


def solve(
    model: Model, seconds: float = SECONDS, solver: Solver = "highs", gap: float = 0.0
) -> Solution:
    """Minimise a program; a solution that breaks a row is rejected.

    One of whole numbers is optimal up to the share `gap`.
    """
    problem, rows = _problem(model)
    options = {"msg": False, "timeLimit": seconds, "threads": 1}
    if solver == "highs":
        options["random_seed"] = SEED
    if model.whole:
        options["gapRel"] = gap
    try:
        with _nothing_printed():
            problem.solve(getattr(pulp, _SOLVERS[solver])(**options))
    except pulp.PulpError:
        return Solution("unknown", {})
    if problem.status == pulp.LpStatusInfeasible:
        return Solution("infeasible", {})
    values = {v.name: v.varValue for v in problem.variables()}
    ended = problem.sol_status == pulp.LpSolutionOptimal
    if any(value is None for value in values.values()) or not (ended or model.whole):
        return Solution("unknown", {})
    if model.whole:
        values = {name: float(round(value)) for name, value in values.items()}
    found = {name: values.get(name, 0.0) for name in model.variables}
    if violated(model, found):
        return Solution("unknown", {} if model.whole else found)
    objective = sum(factor * found[name] for name, factor in model.objective.items())
    return Solution(
        "optimal" if ended else "unknown",
        found,
        objective,
        {name: row.pi for name, row in rows.items()},
    )


@contextmanager
def _nothing_printed() -> Iterator[None]:
    """Keep a solver off the standard output: HiGHS 1.16 greets there whatever its options say."""
    try:
        kept = os.dup(1)
    except OSError:  # a program without standard output
        yield
        return
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def write(model: Model, path: Path, conflict: Sequence[str] = ()) -> None:
    """Save a program as an .lp file with its names; conflicting rows are listed at its top."""
    head = f"\\ These rows cannot be met together: {', '.join(conflict)}\n" if conflict else ""
    with TemporaryDirectory() as folder:  # PuLP writes files only, and half of one on a full disk
        path_here = Path(folder, "program.lp")
        _problem(model)[0].writeLP(str(path_here))
        replace_file(path, head.encode() + path_here.read_bytes())


def _problem(model: Model) -> tuple[Any, dict[str, Any]]:
    """The program for PuLP, and its rows by name: they carry the duals."""
    problem = pulp.LpProblem(model.name, pulp.LpMinimize)
    kind = pulp.LpInteger if model.whole else pulp.LpContinuous
    unknowns = {
        name: problem.add_variable(name, 0.0, high, kind) for name, high in model.variables.items()
    }
    problem += pulp.LpAffineExpression({unknowns[n]: f for n, f in model.objective.items()}), "goal"
    senses = {"<=": pulp.LpConstraintLE, ">=": pulp.LpConstraintGE, "=": pulp.LpConstraintEQ}
    rows = {}
    for row in model.rows.values():
        total = pulp.LpAffineExpression({unknowns[n]: f for n, f in row.terms.items()})
        rows[row.name] = pulp.LpConstraint(total, senses[row.sense], row.name, row.limit)
        problem += rows[row.name]
    return problem, rows
