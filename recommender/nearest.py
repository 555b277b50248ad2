"""What lies around an answer: what each limit is worth, and the nearest plans if none keeps it."""

from collections.abc import Callable
from dataclasses import replace
from math import ceil, floor, log10

from recommender.limits import Limits, QuotaLimit
from recommender.optimize.search import Candidate, Found, search_singles
from recommender.plan import Infeasible, Plan, Step
from recommender.present import Presenter
from recommender.question import Question
from recommender.units import brief_duration

Search = Callable[[Limits], Found]

TIGHTER, LOOSER = 0.6, 1.5
MOST_WIDER = 1000  # plans followed to see what wider quotas are worth
WORTH = 0.01  # a change of the answer below this share is not worth a line


def neighbours(
    question: Question, search: Search, presenter: Presenter, first: Candidate
) -> tuple[Step, ...]:
    """What each limit is worth, found by planning again under neighbouring limits.

    The plans are compared on the histories of the search, which are the same for all of them.
    """
    limits = question.limits
    others: list[tuple[str, Limits, bool]] = []
    for share in (TIGHTER, LOOSER):
        looser = share > 1.0
        if limits.deadline_s is not None:
            value = limits.deadline_s * share
            words = f"--deadline {brief_duration(value)}"
            others.append((words, replace(limits, deadline_s=value), looser))
        if limits.budget_usd is not None:
            value = limits.budget_usd * share
            others.append((f"--budget {value:.3g}", replace(limits, budget_usd=value), looser))
        if limits.hourly_usd is not None:
            value = limits.hourly_usd * share
            others.append((f"--hourly {value:.3g}", replace(limits, hourly_usd=value), looser))
    others.sort(key=lambda other: LIMITS.index(other[0].split()[0]))
    return tuple(
        step
        for words, other, looser in others
        for step in _step(words, search(other), presenter, first, looser)
    )


def wider_quotas(question: Question, first: Candidate) -> tuple[Step, ...]:
    """What half as much again of every quota is worth; nothing without quotas."""
    quotas = tuple(replace(q, amount=q.amount * LOOSER) for q in question.choice.quotas)
    if not quotas:
        return ()
    found, presenter = _under_quotas(question, quotas)
    return tuple(_step(f"every quota × {LOOSER:g}", found, presenter, first, looser=True))


def _under_quotas(question: Question, quotas: tuple[QuotaLimit, ...]) -> tuple[Found, Presenter]:
    """The best clusters of one type under other quotas, and what shows them."""
    other = replace(question, choice=replace(question.choice, quotas=quotas))
    found = Found(slack=0.0, most=MOST_WIDER)
    search_singles(other.space(other.lists), found)
    return found, Presenter(other, other.lists)


def _step(
    change: str, found: Found, presenter: Presenter, first: Candidate, looser: bool
) -> list[Step]:
    best = _best(found)
    if best is None and not looser:
        return [] if found.full else [Step(change, "no plan keeps it", None)]
    # Under a looser limit the plan at hand remains; it may mix types, which this search does not.
    if best is None or (looser and best.goal > first.goal) or _alike(best.goal, first.goal):
        return [Step(change, "the same plan", None)]
    return [Step(change, _effect(best, first), presenter.plan(best))]


def _alike(goal: float, other: float) -> bool:
    return abs(goal / other - 1.0) < WORTH


def _effect(best: Candidate, first: Candidate) -> str:
    money = best.cost_usd - first.cost_usd
    hours = (best.time_s - first.time_s) / 3600.0
    dollars = f"{'saves' if money < 0 else 'costs'} {abs(money):.3g} USD"
    clock = f"{abs(hours):.2g} h {'sooner' if hours < 0 else 'later'}"
    return f"{dollars}{' more' if money >= 0 else ''}, {clock}"


def _best(found: Found) -> Candidate | None:
    return min(found.kept.values(), key=lambda c: c.goal, default=None)


def infeasible(question: Question, search: Search) -> Infeasible:
    """Which limits bind, by how much, and the nearest plans when one of them is relaxed."""
    limits = question.limits
    presenter = Presenter(question, question.lists)
    free = Limits(max_machines=limits.max_machines, confidence=0.0)
    fastest = _best(search(replace(free, objective="time")))
    cheapest = _best(search(replace(free, objective="cost")))
    steps = [step for name in LIMITS for step in _relaxed(name, limits, search, presenter)]
    sentences = [_binding(step, limits) for step in steps if step.plan is not None]
    if question.choice.quotas:
        sentences += _quotas(question)
    if not question.rows:
        sentences.append(_nothing(question))
    if not sentences:
        sentences.append("no single limit can be relaxed to make the job possible")
    return Infeasible(
        binding=tuple(sentences),
        nearest=tuple(steps),
        fastest=None if fastest is None else presenter.plan(fastest),
        cheapest=None if cheapest is None else presenter.plan(cheapest),
    )


def _nothing(question: Question) -> str:
    """Why no offer is left to plan with: first what the user did not ask for."""
    counts = sorted(
        question.allowed.left_out,
        key=lambda reason: (reason[0].startswith(("not ", "no ")), -reason[1], reason[0]),
    )
    said = ", ".join(f"{count:,} {reason}" for reason, count in counts[:3])
    return f"no offer is left that can train this job ({said} left out)"


def _quotas(question: Question) -> list[str]:
    """What the cheapest plan would need if the quotas were not there."""
    found, presenter = _under_quotas(question, ())
    best = _best(found)
    if best is None:
        return []
    needs = presenter.plan(best).needs
    return [
        f'the quotas: the best plan needs "{n.name}" ≥ {n.amount:g} {n.unit} in {n.region}'
        for n in needs
    ]


LIMITS = ("--deadline", "--budget", "--hourly", "--max-overhead", "--confidence")
MARGIN = 1.03  # a suggested limit is this much wider than what its plan needs on the day
WIDER = 1.15  # and is widened by this factor while no plan keeps it
TRIES = 6


def _relaxed(name: str, limits: Limits, search: Search, presenter: Presenter) -> list[Step]:
    """The least value of one limit that leaves a plan, checked by planning again."""
    value = _needed(name, limits, search, presenter)
    if value is None:
        return []
    for _ in range(1 if name == "--confidence" else TRIES):
        wider = _with(name, limits, value)
        best = _best(search(wider))
        if best is not None:
            plan = presenter.plan(best)
            return [Step(_words(name, value), _effect_alone(plan), plan)]
        value *= WIDER
    return []


def _needed(name: str, limits: Limits, search: Search, presenter: Presenter) -> float | None:
    """What a limit would have to be for the plan found without it; None if it is not set."""
    if name == "--confidence":
        return 0.5 if limits.confidence > 0.5 else None
    if name == "--hourly":
        return _least_hourly(limits, search, presenter)
    if (name, None) in ((n, getattr(limits, FIELD[n])) for n in FIELD):
        return None
    found = search(replace(limits, **{FIELD[name]: None}, objective=AIM[name]))  # type: ignore[arg-type]
    best = _best(found)
    if best is None:
        return None
    estimate = presenter.plan(best).estimate
    if name == "--max-overhead":
        return estimate.overhead * MARGIN
    return (estimate.time.p95 if name == "--deadline" else estimate.cost.p95) * MARGIN


FIELD = {"--deadline": "deadline_s", "--budget": "budget_usd", "--max-overhead": "max_overhead"}
AIM = {"--deadline": "time", "--budget": "cost", "--max-overhead": "auto"}


def _least_hourly(limits: Limits, search: Search, presenter: Presenter) -> float | None:
    """The least hourly limit that leaves a plan, by bisection."""
    if limits.hourly_usd is None:
        return None
    best = _best(search(replace(limits, hourly_usd=None, objective="cost")))
    if best is None:
        return None
    low, high = limits.hourly_usd, _dearest(presenter.plan(best))
    for _ in range(TRIES):
        middle = (low * high) ** 0.5
        if _best(search(replace(limits, hourly_usd=middle, objective="cost"))) is None:
            low = middle
        else:
            high = middle
    return high


def _dearest(plan: Plan) -> float:
    """Most USD per hour that a plan ever pays, fees included."""
    bill = plan.usd_per_hour * 1.02 + 0.05
    return max(bill, 0.0 if plan.fallback is None else plan.fallback.usd_per_hour)


def _with(name: str, limits: Limits, value: float) -> Limits:
    """The limits with one of them at another value."""
    if name == "--confidence":
        return replace(limits, confidence=value)
    if name == "--hourly":
        return replace(limits, hourly_usd=value)
    return replace(limits, **{FIELD[name]: value})  # type: ignore[arg-type]


def _words(name: str, value: float) -> str:
    """A flag with its value, as one would type it."""
    if name == "--deadline":
        return f"--deadline {brief_duration(60.0 * ceil(value / 60.0))}"
    if name == "--max-overhead":
        return f"--max-overhead {ceil(100 * value)}%"
    if name == "--confidence":
        return f"--confidence {value:g}"
    return f"{name} {_rounded_up(value):g}"


def _rounded_up(value: float) -> float:
    """Three significant digits, never less than the value."""
    unit = 10.0 ** (floor(log10(value)) - 2)
    return ceil(value / unit - 1e-9) * unit


def _binding(step: Step, limits: Limits) -> str:
    """By how much a limit is missed when all others are kept."""
    plan = step.plan
    if plan is not None and step.change.startswith("--deadline") and limits.deadline_s:
        time = plan.estimate.time
        over = (time.p95 - limits.deadline_s) / 3600.0
        return (
            f"it takes {time.mean / 3600:.2g} h expected, {time.p95 / 3600:.2g} h with 95 % "
            f"chance: {over:.2g} h over the deadline"
        )
    return f"{step.change} is the least that leaves a plan, the other limits kept"


def _effect_alone(plan: Plan) -> str:
    return f"{plan.estimate.cost.mean:.3g} USD, {plan.estimate.time.mean / 3600:.2g} h"
