"""What the answer reports of the linear program: shares, the value of limits, conflicts."""

from dataclasses import replace

from recommender.catalogs.frozen import dataclass
from recommender.market.quota_rows import one_machine_more
from recommender.optimize import master_program as rows
from recommender.optimize.master_program import MasterProgram
from recommender.optimize.search_state import ranking_key
from recommender.plan.answer import LimitWorth, ProgramFacts, ProgramShare
from recommender.plan.limits import BUDGET, DEADLINE, HOURLY, MAX_OVERHEAD, Limit, Limits
from recommender.planner.plan_builder import goal_value_of
from recommender.planner.search import PlanSearch, search_other_offers

SHOWN = 1e-3  # shares below this are what rounding leaves
DIFFERS = 0.10  # by more than this the figure planned again is printed
AT_HAND = 3  # plans of the search that are looked at under looser limits
STEP = 0.05  # of a limit: how much more of it is planned with again, one unit at least


@dataclass(frozen=True, slots=True)
class PricedLimit:
    """A limit with a row in the program, and the unit of its shadow price."""

    limit: Limit
    unit: str
    size: float  # of the unit, in the limit's own quantity
    row: str
    dual_of_unit: float = 1.0  # the program's rows are in hours, USD and shares


PRICED_LIMITS = (
    PricedLimit(DEADLINE, "hour", 3600.0, rows.DEADLINE),
    PricedLimit(BUDGET, "USD", 1.0, rows.BUDGET),
    PricedLimit(HOURLY, "USD/h", 1.0, rows.HOURLY),
    PricedLimit(MAX_OVERHEAD, "point", 0.01, rows.OVERHEAD, dual_of_unit=0.01),
)


def program_facts(search: PlanSearch, with_worth: bool) -> ProgramFacts | None:
    """The program of a question; with the worth of its limits, by planning again, if wanted."""
    program = search.single_type.program
    if program is None:
        return None
    feasible = bool(search.best.incumbents)
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
        worth=_limit_worth(search, program) if with_worth and feasible else (),
        conflict=() if feasible else program.conflict(),
    )


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
    """The dual of a limit's row, or what planning again gains where that differs."""
    dual = -program.solution.duals.get(priced.row, 0.0) * priced.dual_of_unit
    more = max(priced.size, STEP * value)
    limits = search.problem.limits.with_value(priced.limit, value + more)
    gained = max(search.best.best_goal - _min_goal(search, limits), 0.0)
    planned = _in_goal_units(search.problem.limits, gained) * priced.size / more
    if abs(dual - planned) <= DIFFERS * max(abs(planned), abs(dual), 1e-9):
        return LimitWorth(priced.limit.name, priced.unit, dual, "program")
    return LimitWorth(priced.limit.name, priced.unit, planned, "planned again")


def _min_goal(search: PlanSearch, looser: Limits) -> float:
    """The printed goal of the best plan under looser limits: planned again, or of those at hand.

    A fallback may take over later there, so that the plans at hand are better as well.
    """
    builder = search.builder.under(looser)
    printed = [each for each in search.best.incumbents.values() if each.printed]
    at_hand = builder.meeting(sorted(printed, key=ranking_key)[:AT_HAND])
    if _mixed(search):  # next to a mix, what planning with one machine type gains says nothing
        again = search.again(looser).best_goal
    else:
        one = search.replan(looser)
        again = float("inf") if one is None else goal_value_of(one.plan, looser)
    return min([again, *(goal_value_of(each.plan, looser) for each in at_hand)])


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
