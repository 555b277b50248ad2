"""The price, and the speed, at which a machine becomes as good as the best plan.

One figure of the machine is multiplied by a factor, all its clusters are rated again, and
bisection finds the factor at which the best of them reaches the best plan's goal: the goal of a
machine never rises when its price falls or its speed rises. Then everything is planned again
slightly beyond and slightly before that factor, as a check.
"""

from array import array
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from recommender.catalogs.frozen import dataclass
from recommender.plan.plan import Plan
from recommender.plan.standing import BreakEven
from recommender.planner.plan_builder import Evaluated, goal_value_of
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import Problem

Figure = Literal["price", "speed"]
Change = Callable[[Problem, float], Problem]  # a machine so many times as cheap, or as fast
MAX_FACTOR = 16.0  # a machine so many times as cheap or as fast is not looked for
STEPS = 10  # halvings of ln(factor): 16 to within 0.3 %
BUILT = 8  # plans of the least goals whose printed figures are compared
BRACKET = 0.02  # everything is planned again with factors so much above and below
_RATES = (
    "compute_per_s", "network_bytes_per_s", "intra_bytes_per_s", "prepare_per_s", "fetch_per_s",
)  # fmt: skip


@dataclass(frozen=True)
class MachineChange:
    """One machine of a problem, and the best plan that it must reach."""

    problem: Problem  # with all machines, this one in the requested places
    machine: str
    own: Problem  # the same with this machine alone, in the requested places
    goal_value: float  # of the best plan on other machines

    def break_even(self, figure: Figure, plan: Plan) -> BreakEven | None:
        """The smallest sufficient change of a figure; None if even `MAX_FACTOR` is not enough."""
        change = self._cheaper if figure == "price" else self._faster
        if not self._reaches(change, MAX_FACTOR):
            return None
        low, high = 0.0, float(np.log(MAX_FACTOR))
        for _ in range(STEPS):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self._reaches(change, np.exp(middle)) else (middle, high)
        times = float(np.exp(high))
        found = best_within_limits(change(self.own, times))
        assert found is not None  # it was reached
        before, after = _figure_of(figure, plan), _figure_of(figure, found.plan)
        return BreakEven(
            factor=1.0 / times if figure == "price" else times,
            before=before,
            after=after,
            plan=found.plan,
            wins=self._leads(change, times * (1.0 + BRACKET)),
            loses=not self._leads(change, times / (1.0 + BRACKET)),
        )

    def _reaches(self, change: Change, times: float) -> bool:
        found = best_within_limits(change(self.own, times))
        return found is not None and goal_value_of(found.plan, self.own.limits) <= self.goal_value

    def _leads(self, change: Change, times: float) -> bool:
        """Whether the best of all plans is on this machine, when everything is planned again."""
        best = best_within_limits(change(self.problem, times))
        return best is not None and is_on(best.plan, self.machine)

    def _cheaper(self, problem: Problem, times: float) -> Problem:
        """The problem with the machine's offers at a fraction of their price, in these places."""
        offers = problem.catalog.offers
        rows = set(self.own.offers.allowed.rows)
        usd = [
            price / times if row in rows else price for row, price in enumerate(offers.usd_per_hour)
        ]
        catalog = replace(problem.catalog, offers=replace(offers, usd_per_hour=array("d", usd)))
        return problem.with_catalog(catalog)

    def _faster(self, problem: Problem, times: float) -> Problem:
        """The problem with the machine's GPUs, links and input that many times as fast."""
        columns = problem.columns
        mine = np.array([name.partition("/")[2] == self.machine for name in columns.names])
        factor = np.where(mine, times, 1.0)
        rates = {name: getattr(columns, name) * factor for name in _RATES}
        latency_s = columns.network_latency_s / factor
        return problem.with_speeds(replace(columns, **rates, network_latency_s=latency_s))


def best_within_limits(problem: Problem) -> Evaluated | None:
    """The best plan of one machine type that meets the limits, by its printed figures."""
    pool = PlanPool(problem.among(replace(problem.choice, mix="no")))
    met = pool.builder.meeting(pool.best.plans[:BUILT])
    return min(met, key=lambda each: goal_value_of(each.plan, problem.limits), default=None)


def is_on(plan: Plan, machine: str) -> bool:
    """Whether a plan's cluster uses this machine."""
    return all(m.instance_type == machine for m in plan.machines)


def _figure_of(figure: Figure, plan: Plan) -> float:
    first = plan.machines[0]
    return float(first.usd_per_hour) if figure == "price" else plan.estimate.step.step_s
