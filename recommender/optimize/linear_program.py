"""Linear programs: named variables and rows, solver, files; the one place that knows PuLP.

A solver is never believed: `broken` recomputes every row of a solution in rational arithmetic
after its integers were rounded.

HiGHS runs with one thread and a fixed seed. Its answer counts as a proof only with
`sol_status` 1 (under a time limit `LpStatus` says "Optimal" as well) or as infeasible, and
only after every row was recomputed in rational arithmetic.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import pulp as untyped

from recommender.catalogs.frozen import dataclass

Sense = Literal["<=", ">=", "="]
Status = Literal["optimal", "found", "infeasible", "unknown"]

TOLERANCE = 1e-6  # solvers keep rows to 1e-7 of their scaled size


@dataclass(frozen=True, slots=True)
class Variable:
    """One unknown and its range."""

    name: str
    low: float
    high: float
    integer: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One limit: the sum of coefficient times variable against a number."""

    name: str
    terms: Mapping[str, float]
    sense: Sense
    limit: float


@dataclass(slots=True)
class Model:
    """A minimisation: what is sought, the unknowns and the rows, all named."""

    name: str
    objective: dict[str, float] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)

    def whole(self, name: str, low: float, high: float) -> None:
        """Add a whole number."""
        self._add(Variable(name, low, high, True))

    def real(self, name: str, high: float) -> None:
        """Add a number from 0 on."""
        self._add(Variable(name, 0.0, high, False))

    def row(self, name: str, terms: Mapping[str, float], sense: Sense, limit: float) -> None:
        """Add a row; terms of coefficient 0 are left out."""
        if name in self.rows:
            raise ValueError(f"two rows are called {name}")
        kept = {key: value for key, value in terms.items() if value != 0.0}
        self.rows[name] = Row(name, kept, sense, limit)

    def _add(self, variable: Variable) -> None:
        if variable.name in self.variables:
            raise ValueError(f"two variables are called {variable.name}")
        self.variables[variable.name] = variable


@dataclass(frozen=True, slots=True)
class Solution:
    """What a solver reported, integers rounded; only "optimal" and "infeasible" are proofs."""

    status: Status
    values: Mapping[str, float]
    objective: float = 0.0
    duals: Mapping[str, float] = field(default_factory=dict)  # by row; without integers only


def rounded(model: Model, values: Mapping[str, float]) -> dict[str, float]:
    """The values with every whole number exactly whole."""
    return {
        name: float(round(value)) if model.variables[name].integer else value
        for name, value in values.items()
    }


def violated(model: Model, values: Mapping[str, float]) -> tuple[str, ...]:
    """Names of the rows and ranges that a solution does not keep, in rational arithmetic."""
    exact = {name: Fraction(value) for name, value in values.items()}
    not_kept = [v.name for v in model.variables.values() if not _in_range(v, exact.get(v.name))]
    known = not not_kept
    if known:
        not_kept += [row.name for row in model.rows.values() if not _satisfied(row, exact)]
    return tuple(not_kept)


def _in_range(variable: Variable, value: Fraction | None) -> bool:
    if value is None or (variable.integer and value.denominator != 1):
        return False
    slack = Fraction(TOLERANCE * max(1.0, abs(variable.high)))
    return Fraction(variable.low) - slack <= value <= Fraction(variable.high) + slack


def _satisfied(row: Row, values: Mapping[str, Fraction]) -> bool:
    parts = [Fraction(factor) * values[name] for name, factor in row.terms.items()]
    limit = Fraction(row.limit)
    size = max([abs(part) for part in parts] + [abs(limit), Fraction(1)])
    excess = sum(parts, Fraction(0)) - limit
    slack = Fraction(TOLERANCE) * size
    above, below = excess <= slack, excess >= -slack
    return {"<=": above, ">=": below, "=": above and below}[row.sense]


SECONDS = 2.0  # for one program
GAP = 1e-6
SEED = 7

Solver = Literal["highs", "cbc"]
pulp: Any = untyped  # half of its functions have no types
_SOLVERS = {"highs": "HiGHS", "cbc": "PULP_CBC_CMD"}


def solve(
    model: Model, seconds: float = SECONDS, gap: float = GAP, solver: Solver = "highs"
) -> Solution:
    """Minimise a program to a relative gap; a solution that breaks a row is no solution."""
    problem, rows = _problem(model)
    options = {"msg": False, "timeLimit": seconds, "gapRel": gap, "threads": 1}
    if solver == "highs":
        options["random_seed"] = SEED
    try:
        problem.solve(getattr(pulp, _SOLVERS[solver])(**options))
    except pulp.PulpError:
        return Solution("unknown", {})
    if problem.status == pulp.LpStatusInfeasible:
        return Solution("infeasible", {})
    values = {v.name: v.varValue for v in problem.variables()}
    if any(value is None for value in values.values()) or problem.sol_status not in (1, 2):
        return Solution("unknown", {})
    kept = rounded(model, {name: values.get(name, 0.0) for name in model.variables})
    if violated(model, kept):
        return Solution("unknown", kept)
    goal = sum(factor * kept[name] for name, factor in model.objective.items())
    proven = problem.sol_status == pulp.LpSolutionOptimal
    continuous = not any(v.integer for v in model.variables.values())
    duals = {name: row.pi for name, row in rows.items()} if continuous else {}
    return Solution("optimal" if proven else "found", kept, goal, duals)


def write(model: Model, path: Path, conflict: Sequence[str] = ()) -> None:
    """Save a program as an .lp file with its names; rows in conflict are named at its top."""
    _problem(model)[0].writeLP(str(path))
    if conflict:
        head = f"\\ These rows cannot be kept together: {', '.join(conflict)}\n"
        path.write_text(head + path.read_text("utf-8"), "utf-8")


def _problem(model: Model) -> tuple[Any, dict[str, Any]]:
    """The program for PuLP, and its rows by name: they carry the duals."""
    problem = pulp.LpProblem(model.name, pulp.LpMinimize)
    unknowns = {
        v.name: problem.add_variable(
            v.name, v.low, v.high, pulp.LpInteger if v.integer else pulp.LpContinuous
        )
        for v in model.variables.values()
    }
    problem += pulp.LpAffineExpression({unknowns[n]: f for n, f in model.objective.items()}), "goal"
    senses = {"<=": pulp.LpConstraintLE, ">=": pulp.LpConstraintGE, "=": pulp.LpConstraintEQ}
    rows = {}
    for row in model.rows.values():
        total = pulp.LpAffineExpression({unknowns[n]: f for n, f in row.terms.items()})
        rows[row.name] = pulp.LpConstraint(total, senses[row.sense], row.name, row.limit)
        problem += rows[row.name]
    return problem, rows
