"""Solves a program with HiGHS itself, past PuLP: an independent reading of the same model."""

import highspy
import numpy as np

from recommender.optimize.linear_program import Model

SENSES = {"<=": (-highspy.kHighsInf, 0.0), ">=": (0.0, highspy.kHighsInf), "=": (0.0, 0.0)}


def least(model: Model) -> float | None:
    """The least objective to the last bit of the solver; None where the rows contradict."""
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    place = {name: number for number, name in enumerate(model.variables)}
    for name, high in model.variables.items():
        solver.addVar(0.0, high)
        solver.changeColCost(place[name], model.objective.get(name, 0.0))
    for row in model.rows.values():
        low, high = (row.limit + bound for bound in SENSES[row.sense])
        columns = np.array([place[name] for name in row.terms], dtype=np.int32)
        factors = np.array(list(row.terms.values()), dtype=np.float64)
        solver.addRow(low, high, len(columns), columns, factors)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return float(solver.getInfo().objective_function_value)
