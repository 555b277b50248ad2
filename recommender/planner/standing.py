"""The rank of one machine: whether it may be rented, can train, meets the limits, and how good it
is.

Each question is asked only if the previous one is answered with yes, and a no names the deciding
figure: the flag that excludes the machine, the memory it lacks, the limit it misses.

What would make it win is found by multiplying its price or its speed by a factor: all its clusters
are rated again, and bisection finds the factor at which the best of them reaches the best plan's
goal, which never rises when the price falls or the speed rises. Then everything is planned again
slightly beyond and slightly before that factor, as a check.
"""

from array import array
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from recommender.catalogs.catalog import Catalog, in_regions
from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.optimize.watch import Watch
from recommender.performance.clusters import clusters_of
from recommender.performance.step import why_infeasible
from recommender.plan.answer import Infeasible
from recommender.plan.limits import LIMITS, Limits
from recommender.plan.plan import Plan
from recommender.plan.standing import BreakEven, MachineStanding
from recommender.planner.blocking_flags import NARROWED, wider_choices
from recommender.planner.current_setup import machine_named
from recommender.planner.infeasibility import infeasible
from recommender.planner.plan_builder import Evaluated, goal_value_of
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import Problem
from recommender.planner.ranking import Ranked, ranked_plans

RANKED_AMONG = 40  # plans among which the machine's rank is looked for
REGIONS_NAMED = 8  # regions that fit into one message
REASONS = 8  # at most so many reasons for offers that are left out
Figure = Literal["price", "speed"]
Change = Callable[[Problem, float], Problem]  # a machine so many times as cheap, or as fast
MAX_FACTOR = 16.0  # a machine so many times as cheap or as fast is not looked for
STEPS = 10  # halvings of ln(factor): 16 to within 0.3 %
BUILT = 8  # plans of the least goals whose printed figures are compared
BRACKET = 0.02  # everything is planned again with factors so much above and below
_RATES = (
    "compute_per_s", "network_bytes_per_s", "intra_bytes_per_s", "prepare_per_s", "fetch_per_s",
)  # fmt: skip


def standing(
    machine: str, problem: Problem, regions: tuple[str, ...] = (), watch: Watch | None = None
) -> MachineStanding:
    """Find the rank of a machine, in `regions` or anywhere, among all plans of a problem.

    Raises `UsageError` for a machine that no catalog knows.
    """
    known = machine_named(machine, problem.catalog)
    if isinstance(known, str):
        raise UsageError(known)
    name = known.instance_type
    own = problem.among(replace(problem.choice, instances=(name,), regions=regions))
    why = _not_offered(name, regions, problem.catalog)
    if why:
        return MachineStanding(name, "not offered", (why,))
    if not own.offers.allowed.rows:
        return MachineStanding(name, "not allowed", _not_allowed(own))
    unable = _unable(own)
    if unable:
        return MachineStanding(name, "cannot train", (unable,))
    return _among_all(problem, own, name, watch or Watch())


def _not_offered(name: str, regions: tuple[str, ...], catalog: Catalog) -> str:
    """Why the machine has no offer in the requested places; empty if it has one."""
    o = catalog.offers
    sold = sorted({o.region[row] for row in range(len(o)) if o.instance_type[row] == name})
    if any(region in sold for region in regions) or (sold and not regions):
        return ""
    if not sold:
        return "no provider offers it in this catalog"
    more = f" and {len(sold) - REGIONS_NAMED} more" if len(sold) > REGIONS_NAMED else ""
    return (
        f"it is not offered in {', '.join(regions)}, but in {', '.join(sold[:REGIONS_NAMED])}{more}"
    )


def _not_allowed(own: Problem) -> tuple[str, ...]:
    """The flags that leave the machine's offers out, or what its provider says of them."""
    flags = [
        f"{typed} leaves it out"
        for typed, flag, wider in wider_choices(own.choice, NARROWED)
        if flag not in ("--instance", "--region") and own.among(wider).offers.allowed.rows
    ]
    counts = [
        f"{count} offer{'s' * (count > 1)} of it left out: {reason}"
        for reason, count in own.offers.allowed.left_out
        if reason != "not among --instance"
    ]
    return tuple(flags or counts[:REASONS])


def _unable(own: Problem) -> str:
    """Why no number of these machines can train the job; empty where one can."""
    if np.isfinite(own.step_s).any():
        return ""
    most, columns = own.limits.max_machines, own.columns
    counts = np.zeros((1, len(columns.gpus)), dtype=np.int64)
    counts[0, 0] = most
    why = why_infeasible(own.job, columns, clusters_of(columns, counts), 0)
    return f"a cluster of {most} of them {why}" if why.startswith("needs ") else why


def _among_all(problem: Problem, own: Problem, name: str, watch: Watch) -> MachineStanding:
    """Its best plan against all plans, and what would make it win."""
    ranked = ranked_plans(PlanPool(problem, watch=watch), RANKED_AMONG)
    mine, reasons, rank = best_within_limits(own), tuple[str, ...](), None
    if mine is None:
        failed = infeasible(PlanPool(own))
        plan, reasons = _nearest(failed, problem.limits), failed.binding
    else:
        plan, rank = mine.plan, _rank(ranked, mine.plan, name, problem.limits)
    change = None if plan is None or rank == 1 else _change(problem, own, name, ranked)
    return MachineStanding(
        machine=name,
        standing="over limits" if mine is None else "behind" if change else "first",
        reasons=reasons,
        plan=plan,
        best=ranked.plans[0].plan if ranked.plans else None,
        rank=rank,
        compared=len(ranked.plans),
        price=None if change is None or plan is None else change.break_even("price", plan),
        speed=None if change is None or plan is None else change.break_even("speed", plan),
    )


def _nearest(failed: Infeasible, limits: Limits) -> Plan | None:
    """Of its fastest and its cheapest plan the one that exceeds the limits by less."""

    def excess(plan: Plan) -> float:
        return max(limit.of_plan(plan) / most for limit, most in limits.given(LIMITS))

    found = [plan for plan in (failed.fastest, failed.cheapest) if plan is not None]
    return min(found, key=excess, default=None)


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


def _change(problem: Problem, own: Problem, name: str, ranked: Ranked) -> MachineChange | None:
    """The machine in the requested places against the best plan on others, if there is one."""
    others = [each.plan for each in ranked.plans if not is_on(each.plan, name)]
    if not others:
        return None
    regions = own.choice.regions
    if regions:
        problem = problem.with_catalog(in_regions(problem.catalog, name, regions))
    own = problem.among(replace(problem.choice, instances=(name,)))
    least = min(goal_value_of(plan, problem.limits) for plan in others)
    return MachineChange(problem, name, own, least)


def _rank(ranked: Ranked, mine: Plan, name: str, limits: Limits) -> int | None:
    """How many plans are better, and one; None where all that were looked at are."""
    value = goal_value_of(mine, limits)
    better = [p for p in ranked.plans if goal_value_of(p.plan, limits) < value * (1.0 - 1e-9)]
    whole = len(better) == len(ranked.plans) and ranked.more > 0
    return None if whole and not is_on(ranked.plans[0].plan, name) else len(better) + 1
