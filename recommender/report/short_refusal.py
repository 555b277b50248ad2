"""A refusal in the form of the short answer: what binds, the nearest plan each way, what to do."""

from collections.abc import Iterable

from recommender.plan.answer import Answer, Infeasible, SensitivityStep
from recommender.plan.effort import doubted_cost_usd
from recommender.plan.plan import Plan
from recommender.report import cells
from recommender.report import formatting as fmt
from recommender.report.answer_frame import PlanRequest, age_words, asked_words
from recommender.report.infeasible import extremes, headline
from recommender.report.short_answer import (
    ShortAnswer,
    ShortPlan,
    amount_words,
    first_words,
    job_words,
    lacking,
    place_words,
)

_ROWS = 3  # of plans; all others are in the table
_REASONS = 3
_QUOTAS = "the quotas:"  # begins reasons that the row of a quota says as well


def short_refusal(answer: Answer, request: PlanRequest) -> ShortAnswer:
    """The short form of an answer without plans."""
    why = answer.infeasible or Infeasible((), ())
    near = _near(why, answer)
    rows = [_row("or" if i else "nearest", _with(s), p) for i, (s, p) in enumerate(near)]
    rows += [_row(role, words, plan) for role, words, plan in extremes(why)]
    steps = (("Why", _why(why)), *(_steps(*near[0], request) if near else ()))
    return ShortAnswer(
        job=job_words(request),
        verdict=headline(request, answer.status == "infeasible"),
        asked=asked_words(request, brief=True) or "without any limit",
        headings=("cost", "time"),
        plans=tuple(rows[:_ROWS]),
        span="",
        steps=tuple((name, words) for name, words in steps if words),
        prices=age_words([plan for _, plan in near[:1]]),
        more=" · ".join(
            ["--table why, every change", *(["--prove simulates more"] if why.unexplored else [])]
        ),
    )


def _near(why: Infeasible, answer: Answer) -> list[tuple[SensitivityStep, Plan]]:
    """Of each way to change the question the plan that is worth most, the best way first."""
    steps = [(step, step.plan) for step in why.relaxed if step.plan is not None]
    ways: dict[object, tuple[SensitivityStep, Plan]] = {}
    for step, plan in sorted(steps, key=lambda each: doubted_cost_usd(each[1], answer.goal)):
        ways.setdefault(_way(step), (step, plan))
    return list(ways.values())


def _way(step: SensitivityStep) -> object:
    """The flags that are changed, whatever they are changed to."""
    return step.change if step.offers else tuple(w for w in step.change.split() if w[:2] == "--")


def _with(step: SensitivityStep) -> str:
    change = fmt.clean(step.change)
    return change if change.startswith("without ") else f"with {change}"


def _row(role: str, words: str, plan: Plan) -> ShortPlan:
    return ShortPlan(
        plan=plan,
        role=role,
        rank=0,
        machines=cells.short_machines(plan),
        where=" · ".join((words, cells.gpus(plan.machines), place_words(plan))),
        figures=(f"{fmt.usd(plan.estimate.cost.mean)} USD", fmt.duration(plan.estimate.time.p50)),
        catch="",
    )


def _why(why: Infeasible) -> str:
    """What binds, without what the plans below say."""
    said = [fmt.clean(each) for each in why.binding]
    return "; ".join([each for each in said if not each.startswith(_QUOTAS)][:_REASONS])


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
