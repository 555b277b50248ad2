"""What lies around an answer: what each limit is worth."""

from dataclasses import replace
from itertools import islice
from typing import Protocol

from recommender.inputs.units import brief_duration
from recommender.optimize.incumbent import SearchState, ranking_key
from recommender.optimize.search import search_singles
from recommender.plan.limits import Choice, Limits
from recommender.plan.plan import Plan, Step
from recommender.planner.plan_builder import Presenter, is_derived, keeps
from recommender.planner.problem import Question
from recommender.text import duration, usd


class Search(Protocol):
    """Finds plans under other limits, with some entries only: "any", "on_demand"."""

    def __call__(self, limits: Limits, only: str = "any") -> SearchState:
        """What was found."""


TIGHTER, LOOSER = 0.6, 1.5
MOST_WIDER = 1000  # plans followed to see what wider quotas are worth
WORTH = 0.01  # a change of the answer below this share is not worth a line
SAME, NONE_KEEPS = "the same plan", "no plan meets it"
LIMITS = ("--deadline", "--budget", "--hourly", "--max-overhead", "--confidence")
TRIES = 12  # plans followed again until one keeps a neighbouring limit


def neighbours(
    question: Question, search: Search, presenter: Presenter, first: Plan, own: SearchState
) -> tuple[Step, ...]:
    """What each limit is worth, found by planning again under neighbouring limits.

    Both plans are compared by their printed figures, from the same histories.
    """
    limits = question.limits
    others: list[tuple[str, Limits, bool]] = []
    for share in (TIGHTER, LOOSER):
        looser = share > 1.0
        if limits.deadline_s is not None:
            value = limits.deadline_s * share
            words = f"--deadline {brief_duration(value + question.progress.elapsed_s)}"
            others.append((words, replace(limits, deadline_s=value), looser))
        if limits.budget_usd is not None:
            value = limits.budget_usd * share
            words = f"--budget {_three(value + question.progress.spent_usd)}"
            others.append((words, replace(limits, budget_usd=value), looser))
        if limits.hourly_usd is not None:
            value = limits.hourly_usd * share
            others.append((f"--hourly {_three(value)}", replace(limits, hourly_usd=value), looser))
    others.sort(key=lambda other: LIMITS.index(other[0].split()[0]))
    steps: list[Step] = []
    for words, other, looser in others:
        mine = None if looser else _still(presenter, other, first)
        if mine is not None and alike(mine, first):
            steps.append(Step(words, SAME, None))
            continue
        bar = presenter.candidate_of(first).goal if looser else float("inf")
        found = search(other) if looser else _with_kept(search(other), own, other)
        steps += _step(words, found, presenter.under(other), first, looser, bar, mine)
    return tuple(steps)


def _still(presenter: Presenter, tighter: Limits, first: Plan) -> Plan | None:
    """The plan at hand under a tighter limit, if it keeps that as well.

    It is then as good as any there, but for a fallback that has to start earlier.
    """
    candidate, estimate = presenter.candidate_of(first), first.estimate
    if tighter.hourly_usd is not None and presenter.hourly_usd(candidate) > tighter.hourly_usd:
        return None
    if first.fallback is None and tighter.confidence >= 0.95:  # seen without following it again
        late = tighter.deadline_s is not None and estimate.time.p95 > tighter.deadline_s
        if late or (tighter.budget_usd is not None and estimate.cost.p95 > tighter.budget_usd):
            return None
    plan = presenter.under(tighter).plan(candidate)
    return plan if keeps(plan, tighter) else None


def _with_kept(found: SearchState, own: SearchState, tighter: Limits) -> SearchState:
    """A search under a tighter budget with the plans of the question's own that it may allow.

    The fastest plans are looked at first: all that a short search meets may be too dear.
    """
    budget = tighter.budget_usd
    if budget is None:
        return found
    also = {k: c for k, c in own.incumbents.items() if c.fallback < 0 and c.cost_usd < budget}
    return replace(found, incumbents=also | found.incumbents)


def wider_quotas(question: Question, first: Plan) -> tuple[Step, ...]:
    """What half as much again of every quota is worth; nothing without quotas."""
    quotas = tuple(replace(q, amount=q.amount * LOOSER) for q in question.choice.quotas)
    if not quotas:
        return ()
    found, presenter = under_choice(question, replace(question.choice, quotas=quotas))
    return tuple(_step(f"every quota × {LOOSER:g}", found, presenter, first, looser=True))


def under_choice(question: Question, choice: Choice) -> tuple[SearchState, Presenter]:
    """The best clusters of one type of other offers, and what shows them."""
    other = replace(question, choice=choice)
    found = SearchState(slack=0.0, max_plans=MOST_WIDER)
    search_singles(other.space(other.lists), found)
    return found, Presenter(other, other.lists)


def _step(
    change: str,
    found: SearchState,
    presenter: Presenter,
    first: Plan,
    looser: bool,
    bar: float = float("inf"),
    mine: Plan | None = None,
) -> list[Step]:
    best = _lead(found, presenter, first, bar)
    by_time = presenter.limits.goal == "time"
    if mine is not None and (best is None or not _better(best, mine, by_time)):
        best = mine
    if best is None and not looser:
        return [] if found.exhausted and not found.incumbents else [Step(change, NONE_KEEPS, None)]
    # Under a looser limit the plan at hand remains; it may mix types, which this search does not.
    if best is None or alike(best, first) or (looser and not _better(best, first, by_time)):
        return [Step(change, SAME, None)]
    return [Step(change, _effect(best, first), best)]


def _three(value: float) -> str:
    """Three significant digits without a power of ten: 1300."""
    return f"{float(f'{value:.3g}'):g}"


def _lead(found: SearchState, presenter: Presenter, first: Plan, bar: float) -> Plan | None:
    """The best plan that keeps the limits; at quoted prices, where the plan at hand has them.

    Only plans whose goal lies below `bar` are followed again.
    """
    ordered = (c for c in sorted(found.incumbents.values(), key=ranking_key) if c.goal < bar)
    kept = presenter.keeping(islice(ordered, TRIES))
    return next((p for p in kept if is_derived(first) or not is_derived(p)), None)


def alike(plan: Plan, first: Plan) -> bool:
    """Whether nobody would tell two plans apart by their cost and time."""
    money = plan.estimate.cost.mean / first.estimate.cost.mean - 1.0
    time = plan.estimate.time.typical / first.estimate.time.typical - 1.0
    return abs(money) < WORTH and abs(time) < WORTH


def _better(plan: Plan, first: Plan, by_time: bool) -> bool:
    """Whether the goal gains enough to be worth a line."""
    ours, theirs = plan.estimate, first.estimate
    if by_time:
        return ours.time.typical < theirs.time.typical * (1.0 - WORTH)
    return ours.cost.mean < theirs.cost.mean * (1.0 - WORTH)


def _effect(plan: Plan, first: Plan) -> str:
    money = plan.estimate.cost.mean - first.estimate.cost.mean
    seconds = plan.estimate.time.typical - first.estimate.time.typical
    dollars = f"saves {usd(-money)} USD" if money < 0 else f"costs {usd(money)} USD more"
    clock = f"{duration(abs(seconds))} {'sooner' if seconds < 0 else 'later'}"
    if abs(money) < WORTH * first.estimate.cost.mean:  # of near-ties, fewer machines lead a table
        dollars = "the same cost"
    if abs(seconds) < WORTH * first.estimate.time.typical:
        clock = "the same time"
    return f"{dollars}, {clock}"
