"""Programs handed to a solver and written to files; the only place that knows PuLP.

HiGHS runs with one thread and a fixed seed. Its answer counts as a proof only with
`sol_status` 1 (under a time limit `LpStatus` says "Optimal" as well) or as infeasible, and
only after every row was recomputed in rational arithmetic.
"""

from pathlib import Path
from typing import Any, Literal

import pulp as untyped

from recommender.optimize.linear import Model, Solution, broken, rounded

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
    problem = _problem(model)
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
    if broken(model, kept):
        return Solution("unknown", kept)
    goal = sum(factor * kept[name] for name, factor in model.objective.items())
    proven = problem.sol_status == pulp.LpSolutionOptimal
    return Solution("optimal" if proven else "found", kept, goal)


def write(model: Model, path: Path) -> None:
    """Save a program as an .lp file with its names."""
    _problem(model).writeLP(str(path))


def _problem(model: Model) -> Any:
    problem = pulp.LpProblem(model.name, pulp.LpMinimize)
    unknowns = {
        v.name: pulp.LpVariable(
            v.name, v.low, v.high, pulp.LpInteger if v.integer else pulp.LpContinuous
        )
        for v in model.variables.values()
    }
    problem += pulp.LpAffineExpression({unknowns[n]: f for n, f in model.objective.items()}), "goal"
    senses = {"<=": pulp.LpConstraintLE, ">=": pulp.LpConstraintGE, "=": pulp.LpConstraintEQ}
    for row in model.rows.values():
        total = pulp.LpAffineExpression({unknowns[n]: f for n, f in row.terms.items()})
        problem += pulp.LpConstraint(total, senses[row.sense], row.name, row.limit)
    return problem
