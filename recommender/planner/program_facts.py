"""What is told of the linear program: shares of the work, what a limit is worth, conflicts."""

from dataclasses import replace

from recommender.market.quota_rows import one_machine_more
from recommender.optimize import master_program as rows
from recommender.optimize.master_program import MasterProgram
from recommender.plan.answer import LimitWorth, ProgramFacts, ProgramShare
from recommender.plan.limits import BUDGET, DEADLINE, HOURLY, LIMITS, MAX_OVERHEAD, Limit, Limits
from recommender.planner.search import PlanSearch, search_other_offers
from recommender.planner.single_type_search import BASELINE

SHOWN = 1e-3  # shares below this are what rounding leaves
DIFFERS = 0.10  # by more than this the figure planned again is told
# What one unit of a limit is in its own quantity, and the row of the program.
UNITS: tuple[tuple[Limit, str, float, str], ...] = (
    (DEADLINE, "hour", 3600.0, rows.DEADLINE),
    (BUDGET, "USD", 1.0, rows.BUDGET),
    (HOURLY, "USD/h", 1.0, rows.HOURLY),
    (MAX_OVERHEAD, "point", 0.01, rows.OVERHEAD),
)
STEP = 0.05  # of a limit: how much more of it is planned with again, one unit at least


def program_facts(search: PlanSearch, worth: bool) -> ProgramFacts | None:
    """The program of a question; `worth` plans again to check what each limit is worth."""
    program = search.single_type.program
    if program is None:
        return None
    shares = sorted(
        (
            ProgramShare(words, bool(spot), float(share))
            for words, spot, share in zip(
                program.configurations, program.columns.spot, program.share, strict=True
            )
            if share > SHOWN
        ),
        key=lambda each: -each.share,
    )
    return ProgramFacts(
        status=program.solution.status,
        columns=len(program.names),
        rows=len(program.model.rows),
        spot_share=program.spot_share,
        on_demand_share=sum(each.share for each in shares if not each.spot),
        shares=tuple(shares),
        worth=_worth(search, program) if worth and search.best.incumbents else (),
        conflict=() if search.best.incumbents else program.conflict(),
    )


def _worth(search: PlanSearch, program: MasterProgram) -> tuple[LimitWorth, ...]:
    limits = search.problem.limits
    units = {limit: (unit, size, row) for limit, unit, size, row in UNITS}
    found = [
        _limit_worth(search, program, limit, value, *units[limit])
        for limit, value in limits.given(LIMITS)
        if limits.goal != "frontier"
    ]
    if not _mixed(search):
        return (*found, *_quota_worth(search))
    return tuple(each for each in found if each.gain > 0.0)  # its search was cut off


def _mixed(search: PlanSearch) -> bool:
    return len(search.best.best_candidate().entries) > 1


def _limit_worth(
    search: PlanSearch,
    program: MasterProgram,
    limit: Limit,
    value: float,
    unit: str,
    size: float,
    row: str,
) -> LimitWorth:
    """The dual of a limit's row, or what planning again gains where that differs."""
    by_row = {rows.DEADLINE: 1.0, rows.OVERHEAD: 0.01}.get(row, 1.0)
    told = -program.solution.duals.get(row, 0.0) * by_row
    more = max(size, STEP * value)
    limits = search.problem.limits.with_value(limit, value + more)
    # Next to a mix, what planning with one machine type gains says nothing.
    looser = (
        search.again(limits) if _mixed(search) else search.single_type.search(limits, cap=BASELINE)
    )
    gained = max(search.best.best_goal - looser.best_goal, 0.0)
    planned = _in_goal_units(search.problem.limits, gained) * size / more
    if abs(told - planned) <= DIFFERS * max(abs(planned), abs(told), 1e-9):
        return LimitWorth(limit.name, unit, told, "program")
    return LimitWorth(limit.name, unit, planned, "planned again")


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
