"""Linear programs as plain data: named variables and rows, and their check in own arithmetic.

A solver is never believed: `broken` recomputes every row of a solution in rational arithmetic
after its integers were rounded.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

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
    """What a solver said, integers rounded; only "optimal" and "infeasible" are proofs."""

    status: Status
    values: Mapping[str, float]
    objective: float = 0.0


def rounded(model: Model, values: Mapping[str, float]) -> dict[str, float]:
    """The values with every whole number exactly whole."""
    return {
        name: float(round(value)) if model.variables[name].integer else value
        for name, value in values.items()
    }


def broken(model: Model, values: Mapping[str, float]) -> tuple[str, ...]:
    """Names of the rows and ranges that a solution does not keep, in rational arithmetic."""
    exact = {name: Fraction(value) for name, value in values.items()}
    wrong = [v.name for v in model.variables.values() if not _in_range(v, exact.get(v.name))]
    known = not wrong
    if known:
        wrong += [row.name for row in model.rows.values() if not _kept(row, exact)]
    return tuple(wrong)


def _in_range(variable: Variable, value: Fraction | None) -> bool:
    if value is None or (variable.integer and value.denominator != 1):
        return False
    slack = Fraction(TOLERANCE * max(1.0, abs(variable.high)))
    return Fraction(variable.low) - slack <= value <= Fraction(variable.high) + slack


def _kept(row: Row, values: Mapping[str, Fraction]) -> bool:
    parts = [Fraction(factor) * values[name] for name, factor in row.terms.items()]
    limit = Fraction(row.limit)
    size = max([abs(part) for part in parts] + [abs(limit), Fraction(1)])
    excess = sum(parts, Fraction(0)) - limit
    slack = Fraction(TOLERANCE) * size
    above, below = excess <= slack, excess >= -slack
    return {"<=": above, ">=": below, "=": above and below}[row.sense]
