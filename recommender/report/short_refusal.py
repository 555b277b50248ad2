"""A refusal in the form of the short answer: what binds, the nearest plan each way, what to do."""

import math
from collections.abc import Iterable

from recommender.plan.answer import Answer, Infeasible, SensitivityStep
from recommender.plan.effort import doubted_cost_usd
from recommender.plan.limits import LIMITS
from recommender.plan.plan import Plan
from recommender.report import formatting as fmt
from recommender.report.answer_frame import PlanRequest, age_words, asked_words
from recommender.report.short_answer import (
    ShortAnswer,
    ShortPlan,
    amount_words,
    first_words,
    job_words,
    lacking,
    plan_row,
)

_FLAGS = {"overhead": "max-overhead"}  # rows of the program that are called unlike their flag
_ROWS = 3  # of plans; all others are in the table
_REASONS = 3
_QUOTAS = "the quotas:"  # begins reasons that the row of a quota says as well


def short_refusal(answer: Answer, request: PlanRequest, every: bool = False) -> ShortAnswer:
    """The short form of an answer without plans; with `every` change, reason and end."""
    why = answer.infeasible or Infeasible((), ())
    enough = _enough(why, answer)
    near = list({_way(step): (step, plan) for step, plan in reversed(enough)}.values())[::-1]
    listed = enough if every else near
    rows = [_row("or" if i else "nearest", _with(s), p) for i, (s, p) in enumerate(listed)]
    rows += [_row(role, words, plan) for role, words, plan in _ends(why)]
    reasons = _all_reasons(why, answer) if every else [("Why", _why(why))]
    steps = (*reasons, *(_steps(*near[0], request) if near else ()))
    return ShortAnswer(
        job=job_words(request),
        verdict=headline(request, answer.status == "infeasible"),
        asked=asked_words(request, brief=True) or "without any limit",
        headings=("cost", "time"),
        plans=tuple(rows if every else rows[:_ROWS]),
        span="",
        steps=tuple((name, words) for name, words in steps if words),
        prices=age_words([plan for _, plan in near[:1]]),
        more=" · ".join(
            [
                *([] if every else ["--table why, every change"]),
                *(["--prove simulates more"] if why.unexplored else []),
            ]
        ),
    )


def _enough(why: Infeasible, answer: Answer) -> list[tuple[SensitivityStep, Plan]]:
    """The changes that leave a plan, with that plan, those that are worth most first."""
    steps = [(step, step.plan) for step in why.relaxed if step.plan is not None]
    return sorted(steps, key=lambda each: doubted_cost_usd(each[1], answer.goal))


def _way(step: SensitivityStep) -> object:
    """The flags that are changed, whatever they are changed to."""
    return step.change if step.offers else tuple(w for w in step.change.split() if w[:2] == "--")


def _with(step: SensitivityStep) -> str:
    change = fmt.clean(step.change)
    return change if change.startswith("without ") else f"with {change}"


def _row(role: str, words: str, plan: Plan) -> ShortPlan:
    saved = plan.saving or 0.0
    below = f"{fmt.percent(saved)} below the cheapest on-demand plan" if saved > 0.0 else ""
    return plan_row(plan, role, words, below)


def _why(why: Infeasible) -> str:
    """What binds, without what the plans below say."""
    said = [fmt.clean(each) for each in why.binding]
    return "; ".join([each for each in said if not each.startswith(_QUOTAS)][:_REASONS])


def _all_reasons(why: Infeasible, answer: Answer) -> list[tuple[str, str]]:
    """Everything that keeps plans away, and what was not looked at."""
    said = [fmt.clean(each) for each in why.binding]
    alone = [f"{fmt.clean(s.change)} ({fmt.clean(s.effect)})" for s in why.relaxed if not s.plan]
    said += [_conflict(answer), f"not enough alone: {', '.join(alone)}" if alone else ""]
    lines = [each for each in (*said, why.unexplored) if each]
    return [("" if i else "Why", each) for i, each in enumerate(lines)]


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


def _ends(why: Infeasible) -> list[tuple[str, str, Plan]]:
    """The ends of the curve; none of the other plans has a shorter time than the fastest.

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
        words = "ends within a month" if slower else "without limits"
        found.append(("cheapest", words, why.cheapest))
    return found


def _steps(step: SensitivityStep, plan: Plan, request: PlanRequest) -> Iterable[tuple[str, str]]:
    """What to change, and what the plan needs that the change gives."""
    if "quota" in step.change:
        yield "First", first_words(plan, request)
        yield "Then", "repeat this call with what you are granted (--quota FILE)"
        return
    yield "First", f"repeat this call {_with(step)}"
    asked = [f"{amount_words(need)} in {fmt.clean(where[0])}" for need, where in lacking(plan)]
    name = fmt.provider(plan.machines[0].provider)
    yield "Then", f"ask {name} for {'; '.join(asked)}" if asked else first_words(plan, request)
