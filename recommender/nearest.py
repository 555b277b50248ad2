"""What lies around an answer: what each limit is worth, and the nearest plans if none keeps it."""

from collections.abc import Callable
from dataclasses import replace

from recommender.limits import Limits
from recommender.optimize.search import Candidate, Found
from recommender.plan import Infeasible, Plan, Step
from recommender.present import Presenter
from recommender.question import Question
from recommender.units import brief_duration

Search = Callable[[Limits], Found]

TIGHTER, LOOSER = 0.6, 1.5
WORTH = 0.01  # a change of the answer below this share is not worth a line


def neighbours(
    question: Question, search: Search, presenter: Presenter, first: Plan
) -> tuple[Step, ...]:
    """What each limit is worth, found by planning again under neighbouring limits."""
    limits = question.limits
    steps: list[Step] = []
    if limits.deadline_s is not None:
        for share in (TIGHTER, LOOSER):
            other = replace(limits, deadline_s=limits.deadline_s * share)
            words = f"--deadline {brief_duration(limits.deadline_s * share)}"
            steps += _step(words, search(other), presenter, first, other)
    if limits.budget_usd is not None:
        for share in (TIGHTER, LOOSER):
            other = replace(limits, budget_usd=limits.budget_usd * share)
            words = f"--budget {limits.budget_usd * share:.3g}"
            steps += _step(words, search(other), presenter, first, other)
    if limits.hourly_usd is not None:
        for share in (TIGHTER, LOOSER):
            other = replace(limits, hourly_usd=limits.hourly_usd * share)
            words = f"--hourly {limits.hourly_usd * share:.3g}"
            steps += _step(words, search(other), presenter, first, other)
    return tuple(steps)


def _step(
    change: str, found: Found, presenter: Presenter, first: Plan, limits: Limits
) -> list[Step]:
    best = _best(found)
    if best is None:
        return [Step(change, "no plan keeps it", None)]
    cost, time = best.cost_usd / first.estimate.cost.mean, best.time_s / first.estimate.time.mean
    worth = cost if limits.goal != "time" else time
    if abs(worth - 1.0) < WORTH:
        return [Step(change, "the same plan", None)]
    return [Step(change, _effect(best, first), presenter.plan(best))]


def _effect(best: Candidate, first: Plan) -> str:
    money = best.cost_usd - first.estimate.cost.mean
    hours = (best.time_s - first.estimate.time.mean) / 3600.0
    dollars = f"{'saves' if money < 0 else 'costs'} {abs(money):.3g} USD"
    clock = f"{abs(hours):.2g} h {'sooner' if hours < 0 else 'later'}"
    return f"{dollars}{' more' if money >= 0 else ''}, {clock}"


def _best(found: Found) -> Candidate | None:
    return min(found.kept.values(), key=lambda c: c.goal, default=None)


def infeasible(question: Question, search: Search) -> Infeasible:
    """Which limit binds, by how much, and the nearest plans when one of them is relaxed."""
    limits = question.limits
    presenter = Presenter(question, question.lists)
    free = Limits(max_machines=limits.max_machines, confidence=0.0)
    fastest = _best(search(replace(free, objective="time")))
    cheapest = _best(search(replace(free, objective="cost")))
    steps: list[Step] = []
    sentences: list[str] = []
    for name, relaxed in _relaxations(limits):
        best = _best(search(relaxed))
        if best is None:
            continue
        plan = presenter.plan(best)
        change = _change(name, plan)
        steps.append(Step(change, _effect_alone(plan), plan))
        sentences.append(f"{name} binds: with the other limits kept it takes {change}")
    if not sentences:
        sentences.append("no single limit can be relaxed to make the job possible")
    return Infeasible(
        binding=tuple(sentences),
        nearest=tuple(steps),
        fastest=None if fastest is None else presenter.plan(fastest),
        cheapest=None if cheapest is None else presenter.plan(cheapest),
    )


def _relaxations(limits: Limits) -> list[tuple[str, Limits]]:
    """Each limit in turn left out, aiming at the least value of what it limits."""
    found = []
    if limits.deadline_s is not None:
        found.append(("--deadline", replace(limits, deadline_s=None, objective="time")))
    if limits.budget_usd is not None:
        found.append(("--budget", replace(limits, budget_usd=None, objective="cost")))
    if limits.hourly_usd is not None:
        found.append(("--hourly", replace(limits, hourly_usd=None, objective="cost")))
    if limits.max_overhead is not None:
        found.append(("--max-overhead", replace(limits, max_overhead=None)))
    if limits.confidence > 0.5:
        found.append(("--confidence", replace(limits, confidence=0.5)))
    return found


def _change(name: str, plan: Plan) -> str:
    """The value a limit would have to take for this plan."""
    e = plan.estimate
    if name == "--deadline":
        return f"--deadline {brief_duration(e.time.p95)}"
    if name == "--budget":
        return f"--budget {e.cost.p95:.3g}"
    if name == "--hourly":
        dearest = max(plan.usd_per_hour, plan.fallback.usd_per_hour if plan.fallback else 0.0)
        return f"--hourly {dearest:.3g}"
    if name == "--max-overhead":
        return f"--max-overhead {100 * e.overhead:.3g}%"
    return "--confidence 0.5"


def _effect_alone(plan: Plan) -> str:
    return f"{plan.estimate.cost.mean:.3g} USD, {plan.estimate.time.mean / 3600:.2g} h"
