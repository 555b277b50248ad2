"""What lies around an answer: what each limit is worth, and the nearest plans if none keeps it."""

from dataclasses import replace
from itertools import islice
from math import ceil, floor, log10
from typing import Literal, Protocol

from recommender.limits import Limits, Progress, QuotaLimit
from recommender.optimize.found import Candidate, Found, order
from recommender.optimize.search import search_singles
from recommender.plan import Estimate, Infeasible, Plan, Step
from recommender.present import Presenter, is_derived, keeps, saving
from recommender.question import Question
from recommender.text import duration, usd
from recommender.unfit import fits, in_the_way
from recommender.units import brief_duration


class Search(Protocol):
    """Finds plans under other limits, with some entries only: "any", "on_demand"."""

    def __call__(self, limits: Limits, only: str = "any") -> Found:
        """What was found."""


class Freely(Protocol):
    """Finds the plan that leads the answer to the same question with no limit but an aim."""

    def __call__(self, aim: Literal["time", "cost"]) -> Candidate | None:
        """The fastest or the cheapest."""


TIGHTER, LOOSER = 0.6, 1.5
MOST_WIDER = 1000  # plans followed to see what wider quotas are worth
WORTH = 0.01  # a change of the answer below this share is not worth a line
SAME, NONE_KEEPS = "the same plan", "no plan keeps it"
TRIES = 12  # plans followed again until one keeps a neighbouring limit


def neighbours(
    question: Question, search: Search, presenter: Presenter, first: Plan, own: Found
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
        if mine is not None and _alike(mine, first):
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


def _with_kept(found: Found, own: Found, tighter: Limits) -> Found:
    """A search under a tighter budget with the plans of the question's own that it may allow.

    The fastest plans are looked at first: all that a short search meets may be too dear.
    """
    budget = tighter.budget_usd
    if budget is None:
        return found
    also = {k: c for k, c in own.kept.items() if c.fallback < 0 and c.cost_usd < budget}
    return replace(found, kept=also | found.kept)


def wider_quotas(question: Question, first: Plan) -> tuple[Step, ...]:
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
    change: str,
    found: Found,
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
        return [] if found.full and not found.kept else [Step(change, NONE_KEEPS, None)]
    # Under a looser limit the plan at hand remains; it may mix types, which this search does not.
    if best is None or _alike(best, first) or (looser and not _better(best, first, by_time)):
        return [Step(change, SAME, None)]
    return [Step(change, _effect(best, first), best)]


def _three(value: float) -> str:
    """Three significant digits without a power of ten: 1300."""
    return f"{float(f'{value:.3g}'):g}"


def _lead(found: Found, presenter: Presenter, first: Plan, bar: float) -> Plan | None:
    """The best plan that keeps the limits; at quoted prices, where the plan at hand has them.

    Only plans whose goal lies below `bar` are followed again.
    """
    ordered = (c for c in sorted(found.kept.values(), key=order) if c.goal < bar)
    kept = presenter.keeping(islice(ordered, TRIES))
    return next((p for p in kept if is_derived(first) or not is_derived(p)), None)


def _alike(plan: Plan, first: Plan) -> bool:
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


def _best(found: Found) -> Candidate | None:
    return min(found.kept.values(), key=order, default=None)


def infeasible(question: Question, search: Search, freely: Freely) -> Infeasible:
    """Which limits bind, by how much, and the nearest plans when one of them is relaxed.

    The fastest and the cheapest plan without limits are those that one gets who asks for them.
    """
    if not fits(question):
        said = () if question.allowed.rows else (_nothing(question),)
        return Infeasible(binding=said + in_the_way(question), nearest=())
    limits, gone = question.limits, question.progress
    presenter = Presenter(question, question.lists)
    free = Limits(max_machines=limits.max_machines, confidence=0.0)
    fastest, cheapest = freely("time"), freely("cost")
    without = _best(search(replace(free, objective="cost"), "on_demand"))
    steady = None if without is None else presenter.plan(without)
    steps = [step for name in LIMITS for step in _relaxed(name, question, search, presenter)]
    steps = [replace(step, plan=_against(step.plan, steady)) for step in steps]
    sentences = _left(limits, gone)
    sentences += [_binding(step, limits) for step in steps if step.plan is not None]
    if question.choice.quotas:
        sentences += _quotas(question)
    if not any(step.plan for step in steps):
        sentences.append("no single limit is to blame: more than one has to be relaxed")
    return Infeasible(
        binding=tuple(sentences),
        nearest=tuple(steps),
        fastest=None if fastest is None else _against(presenter.plan(fastest), steady),
        cheapest=None if cheapest is None else _against(presenter.plan(cheapest), steady),
    )


def _against(plan: Plan | None, steady: Plan | None) -> Plan | None:
    """A plan with what it saves against the cheapest one without spot, limits or not."""
    return None if plan is None else replace(plan, saving=saving(plan, steady))


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
WIDENED = 6  # times at most
NARROWER, HALVINGS, FEW = 3.0, 4, 3  # then it is halved so often, down to a third, on few plans


def _left(limits: Limits, gone: Progress) -> list[str]:
    """What is left of the limits of a job that has begun."""
    said = []
    if limits.deadline_s is not None and gone.elapsed_s:
        left, past = brief_duration(limits.deadline_s), brief_duration(gone.elapsed_s)
        said.append(f"{left} are left of the deadline after --elapsed {past}")
    if limits.budget_usd is not None and gone.spent_usd:
        left = f"{limits.budget_usd:.3g} USD are left of the budget"
        said.append(f"{left} after --spent {gone.spent_usd:g}")
    return said


def _relaxed(name: str, question: Question, search: Search, presenter: Presenter) -> list[Step]:
    """The least value of one limit that leaves a plan, checked by planning again."""
    limits, gone = question.limits, question.progress
    value = _needed(name, limits, search, presenter)
    if value is None:
        return []

    def first(value: float, tries: int = TRIES) -> Plan | None:
        """The best plan that keeps this limit and all others."""
        return _some(search, presenter, _with(name, limits, value), tries)

    for _ in range(1 if name == "--confidence" else WIDENED):
        plan = first(value)
        if plan is not None:
            break
        value *= WIDER
    else:
        return []
    if name in ("--deadline", "--budget"):
        # What one plan needs is enough; others may need less.
        low = max(getattr(limits, FIELD[name]), value / NARROWER)
        for _ in range(HALVINGS):
            middle = (low * value) ** 0.5
            tighter = first(middle, FEW)
            low, value = (middle, value) if tighter is None else (low, middle)
            plan = tighter or plan
    return [Step(_words(name, value, gone), _effect_alone(plan), plan)]


def _some(search: Search, presenter: Presenter, limits: Limits, tries: int) -> Plan | None:
    """A plan that keeps the limits; the fastest first may all be too dear to be looked through."""
    aims = (
        (replace(limits, objective="cost"), limits) if limits.budget_usd is not None else (limits,)
    )
    for aim in aims:
        ordered = islice(sorted(search(aim).kept.values(), key=order), tries)
        plan = next(presenter.under(aim).keeping(ordered), None)
        if plan is not None:
            return plan
    return None


def _needed(name: str, limits: Limits, search: Search, presenter: Presenter) -> float | None:
    """What a limit would have to be for the plan found without it; None if it is not set."""
    if name == "--confidence":
        return 0.5 if limits.confidence > 0.5 else None
    if name == "--hourly":
        return _least_hourly(limits, search, presenter)
    if (name, None) in ((n, getattr(limits, FIELD[n])) for n in FIELD):
        return None
    free = replace(limits, **{FIELD[name]: None}, objective=AIM[name])  # type: ignore[arg-type]
    # The fastest and cheapest as a rule may be spot plans of a wide span; others are surer.
    found = [_best(search(free, only)) for only in ("any", "on_demand")]
    estimates = [presenter.under(free).plan(best).estimate for best in found if best is not None]

    def needed(estimate: Estimate) -> float:
        if name == "--max-overhead":
            return estimate.overhead
        return estimate.time.p95 if name == "--deadline" else estimate.cost.p95

    return min((needed(e) * MARGIN for e in estimates), default=None)


FIELD = {"--deadline": "deadline_s", "--budget": "budget_usd", "--max-overhead": "max_overhead"}
AIM = {"--deadline": "time", "--budget": "cost", "--max-overhead": "auto"}


def _least_hourly(limits: Limits, search: Search, presenter: Presenter) -> float | None:
    """The least hourly limit that leaves a plan, by bisection."""
    if limits.hourly_usd is None:
        return None
    best = _best(search(replace(limits, hourly_usd=None, objective="cost")))
    if best is None:
        return None
    low, high = limits.hourly_usd, presenter.hourly_usd(best)
    for _ in range(WIDENED):
        middle = (low * high) ** 0.5
        if _best(search(replace(limits, hourly_usd=middle, objective="cost"))) is None:
            low = middle
        else:
            high = middle
    return high


def _with(name: str, limits: Limits, value: float) -> Limits:
    """The limits with one of them at another value."""
    if name == "--confidence":
        return replace(limits, confidence=value)
    if name == "--hourly":
        return replace(limits, hourly_usd=value)
    return replace(limits, **{FIELD[name]: value})  # type: ignore[arg-type]


def _words(name: str, value: float, gone: Progress) -> str:
    """A flag with its value, as one would type it: for the whole job, not for what is left."""
    if name == "--deadline":
        return f"--deadline {brief_duration(60.0 * ceil((value + gone.elapsed_s) / 60.0))}"
    if name == "--max-overhead":
        return f"--max-overhead {ceil(100 * value)}%"
    if name == "--confidence":
        return f"--confidence {value:g}"
    return f"{name} {_rounded_up(value + (gone.spent_usd if name == '--budget' else 0.0)):g}"


def _rounded_up(value: float) -> float:
    """Three significant digits, never less than the value."""
    unit = 10.0 ** (floor(log10(value)) - 2)
    return ceil(value / unit - 1e-9) * unit


def _binding(step: Step, limits: Limits) -> str:
    """By how much a limit is missed when all others are kept."""
    plan = step.plan
    if plan is not None and step.change.startswith("--deadline") and limits.deadline_s:
        time = plan.estimate.time
        return (
            f"it takes {duration(time.typical)} as a rule, {duration(time.p95)} with 95 % "
            f"chance: {duration(time.p95 - limits.deadline_s)} over the deadline"
        )
    if step.change.startswith("--confidence"):
        return f"{step.change} leaves a plan, the other limits kept"
    return f"{step.change} is about the least that leaves a plan, the others kept"


def _effect_alone(plan: Plan) -> str:
    return f"{usd(plan.estimate.cost.mean)} USD, {duration(plan.estimate.time.typical)}"
