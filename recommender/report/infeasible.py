"""The answer when no plan meets the limits: which limit fails, and the closest that works."""

import math

from rich.table import Table

from recommender.plan.answer import Answer, Infeasible, SensitivityStep
from recommender.plan.limits import LIMITS
from recommender.plan.plan import Plan
from recommender.report import cells
from recommender.report import formatting as fmt
from recommender.report.answer_frame import PlanRequest
from recommender.report.layout import (
    BLANK,
    STRONG,
    WARNING,
    Block,
    Column,
    add_row,
    fits,
    inset,
    labelled,
    sheet,
    text,
)

_FLAGS = {"overhead": "max-overhead"}  # rows of the program that are called unlike their flag


def infeasible_blocks(answer: Answer, request: PlanRequest, width: int) -> list[Block]:
    """Why there is no plan, what to change, and the best plans without limits."""
    why = answer.infeasible or Infeasible((), ())
    found = [("program", _conflict(answer)), ("searched", why.unexplored)]
    labels = _bindings(why) + [(label, words) for label, words in found if words]
    return [
        text(headline(request, answer.status == "infeasible"), STRONG),
        *(text(f"warning: {fmt.clean(w)}", WARNING) for w in answer.warnings),
        BLANK,
        *([labelled(labels)] if labels else []),
        *_nearest(why, width),
        *_ends(why),
    ]


def _conflict(answer: Answer) -> str:
    """Which rows of the linear program exclude each other, where these are more than one."""
    rows = () if answer.program is None else answer.program.conflict
    names = [
        "the quotas" if row.startswith("quota") else f"--{_FLAGS.get(row, row)}" for row in rows
    ]
    named = list(dict.fromkeys(names))
    if len(named) < 2:
        return ""
    return f"by its estimates {fmt.listing(named)} exclude each other, however work is shared out"


def headline(request: PlanRequest, proven: bool = True) -> str:
    """One sentence that counts the limits, and says whether there is no plan or none was found."""
    limits = request.limits
    count = sum(1 for _ in limits.given(LIMITS))
    if not count:
        return "No plan can run this job on the offers that are allowed."
    met = {1: "meets the limit", 2: "meets both limits"}.get(count, f"meets all {count} limits")
    nothing = "No plan" if proven else "No plan was found that"
    return f"{nothing} {met} with {fmt.exact(100.0 * limits.confidence)} % chance."


def _bindings(why: Infeasible) -> list[tuple[str, str]]:
    return [("" if i else "binding", fmt.clean(each)) for i, each in enumerate(why.binding)]


def _nearest(why: Infeasible, width: int) -> list[Block]:
    enough = [step for step in why.relaxed if step.plan is not None]
    blocks: list[Block] = []
    if enough:
        table = _changes(enough)
        blocks += [BLANK, *([table] if fits(table, width) else _listed(enough))]
    alone = [f"{fmt.clean(s.change)} ({fmt.clean(s.effect)})" for s in why.relaxed if not s.plan]
    if alone:
        blocks += [BLANK, text(f"not enough alone: {', '.join(alone)}")]
    return blocks


def _changes(steps: list[SensitivityStep]) -> Table:
    plans = [step.plan for step in steps if step.plan is not None]
    costs, (heading, times) = (
        cells.cost_cells(plans),
        cells.time_column([plan.estimate.time for plan in plans]),
    )
    saves = any((plan.saving or 0.0) > 0.0 for plan in plans)
    changes = [_flags(step) for step in steps]
    title = "change one thing" if all(len(each) == 1 for each in changes) else "change together"
    columns = [
        Column(title, right=False),
        Column("best plan", right=False),
        Column("cost USD"),
        Column(heading),
        *([Column("saving")] if saves else []),
    ]
    table = sheet(columns, flexible=1)
    for change, plan, cost, time in zip(changes, plans, costs, times, strict=True):
        saved = [_saved(plan)] if saves else []
        add_row(table, [change, (cells.short_machines(plan),), cost[:1], time[:1], *saved])
    return table


def _flags(step: SensitivityStep) -> tuple[str, ...]:
    """Flags that have to change together, one below the other."""
    change = fmt.clean(step.change)
    if step.offers:
        return (change,)
    first, *rest = change.split(" --")
    return (first, *(f"--{each}" for each in rest))


def _saved(plan: Plan) -> tuple[str, ...]:
    """What is saved against the cheapest on-demand plan; nothing where it costs more."""
    return cells.saving_cell(plan) if (plan.saving or 0.0) > 0.0 else ("",)


def _listed(steps: list[SensitivityStep]) -> list[Block]:
    """The nearest plans as a list, for narrow terminals."""
    several = any(len(_flags(step)) > 1 for step in steps)
    head = "Change the flags of one line:" if several else "Change one thing:"
    rows = [(fmt.clean(step.change), _brief(step.plan)) for step in steps if step.plan]
    return [text(head, STRONG), *(b for c, w in rows for b in (inset(text(c)), inset(text(w), 4)))]


def _brief(plan: Plan) -> str:
    time, cost = plan.estimate.time.p50, plan.estimate.cost.mean
    text = f"{cells.short_machines(plan)}, {fmt.duration(time)}, {fmt.usd(cost)} USD"
    if not plan.saving or plan.saving < 0:
        return text
    return f"{text}, {fmt.percent(plan.saving)} below the cheapest on-demand plan"


def _ends(why: Infeasible) -> list[Block]:
    """The ends of the curve, each as a sentence."""
    found = [text(f"{r.title()} {words}: {_brief(plan)}.") for r, words, plan in extremes(why)]
    return [BLANK, *found] if found else []


def extremes(why: Infeasible) -> list[tuple[str, str, Plan]]:
    """The ends of the curve; none of the plans above has a shorter time than the fastest.

    Plans are ordered by a mean of slow runs, too, and people read medians. The cheapest ends within
    a month, which a plan within a budget need not. Plans of other offers do not count: they cannot
    be rented today.
    """
    listed = [step.plan for step in why.relaxed if step.plan is not None and not step.offers]
    found = []
    if why.fastest is not None:
        fastest = min((why.fastest, *listed), key=lambda plan: plan.estimate.time.p50)
        found.append(("fastest", "without limits", fastest))
    if why.cheapest is not None:
        least_usd = min((plan.estimate.cost.mean for plan in listed), default=math.inf)
        slower = least_usd < why.cheapest.estimate.cost.mean
        words = "that ends within a month" if slower else "without limits"
        found.append(("cheapest", words, why.cheapest))
    return found
