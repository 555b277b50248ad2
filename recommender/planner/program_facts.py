"""What the answer reports of the linear program: shares, the value of limits, conflicts."""

from collections.abc import Mapping
from dataclasses import replace
from math import floor, log10

from recommender.catalogs.frozen import dataclass
from recommender.market.quota_rows import one_machine_more
from recommender.optimize import master_program as rows
from recommender.optimize.master_program import MasterProgram
from recommender.plan.answer import LimitWorth, ProgramFacts, ProgramShare
from recommender.plan.limits import BUDGET, DEADLINE, HOURLY, MAX_OVERHEAD, Limit, Limits
from recommender.planner.reported_program import ReportedProgram
from recommender.planner.search import PlanSearch, search_other_offers

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


def program_facts(
    search: PlanSearch, reported: ReportedProgram | None, with_worth: bool
) -> ProgramFacts | None:
    """The program of a question; with the worth of its limits, by planning again, if wanted."""
    if reported is None:
        return None
    program, feasible = reported.program, reported.row >= 0
    shares = _shares(program.work(program.share))
    return ProgramFacts(
        status=program.solution.status,
        columns=len(program.names),
        rows=len(program.model.rows),
        spot_share=program.spot_share,
        on_demand_share=sum((each.share for each in shares if not each.spot), 0.0),
        shares=tuple(each for each in shares if each.share > SHOWN),
        plan_shares=_shares(reported.plan_work) if feasible else (),
        plan_share=reported.plan_share if feasible else 0.0,
        saving=reported.saving if feasible else 0.0,
        worth=_limit_worth(search, program) if with_worth and feasible else (),
        conflict=() if feasible else program.conflict(),
    )


def _shares(work: Mapping[tuple[str, bool], float]) -> tuple[ProgramShare, ...]:
    """The shares of the work, the largest first."""
    found = [ProgramShare(words, spot, part) for (words, spot), part in work.items()]
    return tuple(sorted(found, key=lambda each: -each.share))


def _limit_worth(search: PlanSearch, program: MasterProgram) -> tuple[LimitWorth, ...]:
    """What a unit more of each limit is worth, and of each quota that the best plan uses."""
    limits = search.problem.limits
    found = [
        _shadow_price(search, program, priced, value)
        for priced in PRICED_LIMITS
        if (value := limits.value(priced.limit)) is not None and limits.goal != "frontier"
    ]
    if not _mixed(search):
        return (*found, *_quota_worth(search))
    return tuple(each for each in found if each.gain > 0.0)  # its search was cut off


def _mixed(search: PlanSearch) -> bool:
    return len(search.best.best_candidate().entries) > 1


def _shadow_price(
    search: PlanSearch, program: MasterProgram, priced: PricedLimit, value: float
) -> LimitWorth:
    """What more of a limit gains: by the dual of its row, or by planning again if that differs."""
    more = _units_more(priced, value)
    dual = -program.solution.duals.get(priced.row, 0.0) * priced.dual_of_unit * more
    limits = search.problem.limits.with_value(priced.limit, value + more * priced.size)
    gained = max(search.best.best_goal - search.again(limits).best_goal, 0.0)
    planned = _in_goal_units(search.problem.limits, gained)
    if abs(dual - planned) <= DIFFERS * max(abs(planned), abs(dual), 1e-9):
        return LimitWorth(priced.limit.name, priced.unit, dual / more, "program", more)
    return LimitWorth(priced.limit.name, priced.unit, planned / more, "planned again", more)


def _units_more(priced: PricedLimit, value: float) -> float:
    """How many more units of a limit are planned with: one, or a power of ten."""
    most = STEP * value / priced.size
    return 10.0 ** floor(log10(most)) if priced.in_tens and most >= 1.0 else 1.0


def _in_goal_units(limits: Limits, gained: float) -> float:
    return gained / 3600.0 if limits.goal == "time" else gained


def _quota_worth(search: PlanSearch) -> tuple[LimitWorth, ...]:
    """One more machine's worth of every quota that the best plan uses, planned again."""
    problem, best = search.problem, search.best
    found = []
    for pool in search.builder.pools_of(best.best_candidate()):
        for quota, use in one_machine_more(problem.facts, pool):
            more = replace(quota, amount=quota.amount + use)
            quotas = tuple(more if q == quota else q for q in problem.choice.quotas)
            state, _ = search_other_offers(problem, replace(problem.choice, quotas=quotas))
            gained = _in_goal_units(problem.limits, max(best.best_goal - state.best_goal, 0.0))
            name = f"quota {quota.quota_family}"
            found.append(LimitWorth(name, pool.type.instance_type, gained, "planned again"))
    return tuple(found)
