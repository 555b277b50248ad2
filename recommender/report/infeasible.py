"""The answer when no plan keeps the limits: which one hurts, and the nearest that would do."""

from recommender.plan.limits import LIMITS
from recommender.plan.plan import Answer, Infeasible, Plan, SensitivityStep
from recommender.report import cells
from recommender.report import formatting as fmt
from recommender.report.answer_frame import PlanRequest
from recommender.report.layout import Column, Line, Row, grid, inset, labelled, paragraph, wrapped

_NARROW = 70
_FLAGS = {"overhead": "max-overhead"}  # rows of the program that are called unlike their flag


def infeasible_lines(answer: Answer, request: PlanRequest, width: int) -> list[Line]:
    """Why there is no plan, what to change, and how far one could go at all."""
    why = answer.infeasible or Infeasible((), ())
    lines = paragraph(headline(request, answer.status == "infeasible"), width, "title")
    lines += [line for w in answer.warnings for line in paragraph(f"warning: {w}", width)]
    lines.append(Line(""))
    for label, sentence in _bindings(why):
        lines += labelled(label, fmt.clean(sentence), width, hang=10)
    together = _conflict(answer)
    if together:
        lines += labelled("program", together, width, hang=10)
    if why.unexplored:
        lines += labelled("searched", why.unexplored, width, hang=10)
    lines += _nearest(why, width)
    return lines + _extremes(why, width)


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
    kept = {1: "meets the limit", 2: "meets both limits"}.get(count, f"meets all {count} limits")
    nothing = "No plan" if proven else "No plan was found that"
    return f"{nothing} {kept} with {fmt.percent(limits.confidence)} chance."


def _bindings(why: Infeasible) -> list[tuple[str, str]]:
    return [("" if place else "binding", text) for place, text in enumerate(why.binding)]


def _nearest(why: Infeasible, width: int) -> list[Line]:
    enough = [step for step in why.relaxed if step.plan is not None]
    lines: list[Line] = []
    if enough:
        lines += [
            Line(""),
            *(_changes(enough, width) if width >= _NARROW else _listed(enough, width)),
        ]
    alone = [f"{fmt.clean(s.change)} ({fmt.clean(s.effect)})" for s in why.relaxed if not s.plan]
    if alone:
        lines += inset(f"not enough alone: {', '.join(alone)}", width)
    return lines


def _changes(steps: list[SensitivityStep], width: int) -> list[Line]:
    plans = [step.plan for step in steps if step.plan is not None]
    unit, name = cells.time_unit(plans)
    costs, times = cells.cost_cells(plans), cells.time_cells(plans, unit)
    saves = any((plan.saving or 0.0) > 0.0 for plan in plans)
    changes = [_flags(step.change) for step in steps]
    title = "change one thing" if all(len(each) == 1 for each in changes) else "change one of"
    columns = [
        Column(title, right=False),
        Column("best plan", right=False),
        Column("cost USD"),
        Column(f"time {name}"),
        *([Column("saving")] if saves else []),
    ]
    rows = [
        Row(
            (
                change,
                (cells.short_machines(plan),),
                cost[:1],
                time[:1],
                *([_saved(plan)] if saves else []),
            )
        )
        for change, plan, cost, time in zip(changes, plans, costs, times, strict=True)
    ]
    return grid(columns, rows, width, flexible=1)


def _flags(change: str) -> tuple[str, ...]:
    """Flags that have to change together, one below the other."""
    if not change.startswith("--"):
        return (fmt.clean(change),)
    first, *rest = fmt.clean(change).split(" --")
    return (first, *(f"--{each}" for each in rest))


def _saved(plan: Plan) -> tuple[str, ...]:
    """What is saved against the cheapest on-demand plan; nothing where it costs more."""
    return cells.saving_cell(plan) if (plan.saving or 0.0) > 0.0 else ("",)


def _listed(steps: list[SensitivityStep], width: int) -> list[Line]:
    """The nearest plans as a list, for narrow terminals."""
    several = any(len(_flags(step.change)) > 1 for step in steps)
    lines = [Line("Change one of:" if several else "Change one thing:", "strong")]
    for step in steps:
        lines.append(Line(f"  {fmt.clean(step.change)}"))
        text = wrapped(_brief(step.plan), width, "    ") if step.plan else []
        lines += [Line(each) for each in text]
    return lines


def _brief(plan: Plan) -> str:
    time, cost = plan.estimate.time.typical, plan.estimate.cost.mean
    text = f"{cells.short_machines(plan)}, {fmt.duration(time)}, {fmt.usd(cost)} USD"
    if not plan.saving or plan.saving < 0:
        return text
    return f"{text}, {fmt.percent(plan.saving)} below the cheapest on-demand plan"


def _extremes(why: Infeasible, width: int) -> list[Line]:
    parts = [
        _extreme("Fastest without limits", why.fastest),
        _extreme("Cheapest without limits", why.cheapest),
    ]
    lines = [line for each in parts if each for line in paragraph(each, width)]
    return [Line(""), *lines] if lines else []


def _extreme(name: str, plan: Plan | None) -> str:
    return "" if plan is None else f"{name}: {_brief(plan)}."
