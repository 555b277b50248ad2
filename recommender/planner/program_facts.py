"""What the answer reports of the linear program: shares, the value of limits, conflicts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import floor, log10

import numpy as np

from recommender.catalogs.frozen import dataclass
from recommender.market.quota_rows import one_machine_more
from recommender.optimize import program as rows
from recommender.optimize.candidate import Candidate
from recommender.optimize.pool import CHOSEN, column_of_answer, shape_of
from recommender.optimize.program import MasterProgram, master_program
from recommender.plan.answer import LimitWorth, ProgramFacts, ProgramShare
from recommender.plan.limits import BUDGET, DEADLINE, HOURLY, MAX_OVERHEAD, Limit, Limits
from recommender.planner.plan_builder import Evaluated
from recommender.planner.plan_pool import PlanPool, best_among_other_offers

SHOWN = 1e-3  # shares below this are what rounding leaves
DIFFERS = 0.10  # by more than this the figure planned again is printed
STEP = 0.05  # of a budget: money is added in powers of ten up to this share of it, or one unit


@dataclass(frozen=True, slots=True)
class PricedLimit:
    """A limit with a row in the program, and the unit of its shadow price."""

    limit: Limit
    unit: str
    size: float  # of the unit, in the limit's own quantity
    row: str
    dual_of_unit: float = 1.0  # the program's rows are in hours, USD and shares
    in_tens: bool = False  # 10, 100 ... units more where the limit is large: one changes nothing


PRICED_LIMITS = (
    PricedLimit(DEADLINE, "hour", 3600.0, rows.DEADLINE),
    PricedLimit(BUDGET, "USD", 1.0, rows.BUDGET, in_tens=True),
    PricedLimit(HOURLY, "USD/h", 1.0, rows.HOURLY, in_tens=True),
    PricedLimit(MAX_OVERHEAD, "point", 0.01, rows.OVERHEAD, dual_of_unit=0.01),
)


@dataclass(frozen=True, slots=True)
class ReportedProgram:
    """The program of an answer, and the column of its best plan; -1: no plan was found."""

    program: MasterProgram
    late: Mapping[Candidate, float]  # the share of the work that a plan's fallback does
    row: int = -1

    @property
    def work(self) -> dict[tuple[str, bool], float]:
        """Shares of the work as the program divides it."""
        return self.program.work(self.program.share, self.late)

    @property
    def plan_work(self) -> dict[tuple[str, bool], float]:
        """Shares of the work as the best plan divides it."""
        alone = np.zeros(len(self.program.names))
        alone[self.row] = 1.0
        return self.program.work(alone, self.late)

    @property
    def saving(self) -> float:
        """By which share the division of the work is better than the best plan alone."""
        name = self.program.names[self.row]
        whole = self.program.model.objective.get(name, 0.0)
        return max(1.0 - self.program.solution.objective / whole, 0.0) if whole > 0.0 else 0.0


def reported_program(pool: PlanPool, best: Sequence[Evaluated]) -> ReportedProgram | None:
    """The program of the plans that were simulated; None if no machine can train the job."""
    space, plan = pool.problem.space(pool.sites), shape_of(best[0].candidate) if best else None
    own = column_of_answer(space, plan, best[0].inputs) if plan else None
    columns = pool.pool.columns(pool.problem.limits, pool.best)
    if not len(columns):
        return None
    program = master_program(space, columns, own)
    used = [program.columns.plans[row] for row in np.flatnonzero(program.share > SHOWN).tolist()]
    wanted = dict.fromkeys([*used, *([] if plan is None else [plan])])
    built = ((each, pool.builder.build(each).plan) for each in wanted if each.fallback >= 0)
    late = {each: plan.fallback.work_share for each, plan in built if plan.fallback is not None}
    row = -1 if plan is None else program.columns.plans.index(plan)
    return ReportedProgram(program, late, row)


def program_facts(
    pool: PlanPool, reported: ReportedProgram | None, with_worth: bool
) -> ProgramFacts | None:
    """The program of a question; with the worth of its limits, by planning again, if wanted."""
    if reported is None:
        return None
    program, feasible = reported.program, reported.row >= 0
    shares = _shares(reported.work)
    return ProgramFacts(
        status=program.solution.status,
        columns=len(program.names),
        rows=len(program.model.rows),
        spot_share=sum((each.share for each in shares if each.spot), 0.0),
        on_demand_share=sum((each.share for each in shares if not each.spot), 0.0),
        shares=tuple(each for each in shares if each.share > SHOWN),
        plan_shares=_shares(reported.plan_work) if feasible else (),
        plan_share=float(program.share[reported.row]) if feasible else 0.0,
        saving=reported.saving if feasible else 0.0,
        worth=_limit_worth(pool, program) if with_worth and feasible else (),
        conflict=() if feasible else program.conflict(),
    )


def _shares(work: Mapping[tuple[str, bool], float]) -> tuple[ProgramShare, ...]:
    """The shares of the work, the largest first."""
    found = [ProgramShare(words, spot, part) for (words, spot), part in work.items()]
    return tuple(sorted(found, key=lambda each: -each.share))


def _limit_worth(pool: PlanPool, program: MasterProgram) -> tuple[LimitWorth, ...]:
    """What a unit more of each limit is worth, and of each quota that the best plan uses."""
    limits = pool.problem.limits
    found = [
        _shadow_price(pool, program, priced, value)
        for priced in PRICED_LIMITS
        if (value := limits.value(priced.limit)) is not None and limits.goal != "frontier"
    ]
    if len(pool.best.best.entries) > 1:  # a mix
        return tuple(each for each in found if each.gain > 0.0)
    return (*found, *_quota_worth(pool))


def _shadow_price(
    pool: PlanPool, program: MasterProgram, priced: PricedLimit, value: float
) -> LimitWorth:
    """What more of a limit gains: by the dual of its row, or by planning again if that differs."""
    more = _units_more(priced, value)
    dual = -program.solution.duals.get(priced.row, 0.0) * priced.dual_of_unit * more
    limits = pool.problem.limits.with_value(priced.limit, value + more * priced.size)
    gained = max(pool.best.goal - pool.select(limits, first=CHOSEN).goal, 0.0)
    planned = _in_goal_units(pool.problem.limits, gained)
    name, unit = priced.limit.name, priced.unit
    if abs(dual - planned) <= DIFFERS * max(abs(planned), abs(dual), 1e-9):
        return LimitWorth(name, unit, dual / more, "program", more)
    return LimitWorth(name, unit, planned / more, "planned again", more)


def _units_more(priced: PricedLimit, value: float) -> float:
    """How many more units of a limit are planned with: one, or a power of ten."""
    most = STEP * value / priced.size
    return 10.0 ** floor(log10(most)) if priced.in_tens and most >= 1.0 else 1.0


def _in_goal_units(limits: Limits, gained: float) -> float:
    return gained / 3600.0 if limits.goal == "time" else gained


def _quota_worth(pool: PlanPool) -> tuple[LimitWorth, ...]:
    """One more machine's worth of every quota that the best plan uses, planned again."""
    problem, best = pool.problem, pool.best
    found = []
    for rented in pool.builder.pools_of(best.best):
        for quota, use in one_machine_more(problem.facts, rented):
            more = replace(quota, amount=quota.amount + use)
            quotas = tuple(more if q == quota else q for q in problem.choice.quotas)
            wider, _ = best_among_other_offers(problem, replace(problem.choice, quotas=quotas))
            gained = _in_goal_units(problem.limits, max(best.goal - wider.goal, 0.0))
            name = f"quota {quota.quota_family}"
            found.append(LimitWorth(name, rented.type.instance_type, gained, "planned again"))
    return tuple(found)
