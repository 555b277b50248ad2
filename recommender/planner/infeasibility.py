"""Why no plan keeps the limits: which of them bind, by how much, and the plans nearest to them."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from math import ceil, floor, log10

import numpy as np

from recommender.inputs.units import brief_duration, format_gpu
from recommender.optimize.incumbent import Candidate, SearchState, ranking_key
from recommender.plan.limits import Choice, Limits, Progress
from recommender.plan.plan import Estimate, Infeasible, Plan, SensitivityStep
from recommender.planner.plan_builder import saving
from recommender.planner.problem import Problem
from recommender.planner.search import QUICK, Only, PlanSearch, search_other_offers
from recommender.planner.sensitivity import LIMITS, TRIES
from recommender.text import duration, usd

MOST_MACHINES = 128  # looked at for a job that does not fit
# What a user may have narrowed: the flag, and the field of `Choice` behind it.
NARROWED = (
    ("--gpu", "gpus"), ("--instance", "instances"), ("--provider", "providers"),
    ("--region", "regions"), ("--zone", "zones"), ("--deny", "deny"), ("--market", "market"),
    ("--accelerator", "accelerator"), ("--arch", "arch"), ("--quoted-only", "quoted_only"),
)  # fmt: skip
HARDER = (("--checkpoint-to", "checkpoint_to"), ("--failover", "failover"))  # keep plans away only


def fits(problem: Problem) -> bool:
    """Whether some cluster of one type can train the job: computes so, and has the memory."""
    return bool(problem.rows) and bool(np.isfinite(problem.step_s).any())


def blocking_flags(problem: Problem) -> tuple[str, ...]:
    """Which flag alone keeps the job from being trained; the first sentence says that it does."""
    of_the_job = (_sharding(problem), _precision(problem))
    found = tuple(each for each in of_the_job if each)
    if not found:
        found = tuple(each for each in (_machines(problem), *_choices(problem)) if each)
    most = problem.limits.max_machines
    up_to = "no machine" if most == 1 else f"no cluster of up to {most} machines"
    first = (f"{up_to} among those allowed can train this job",) if problem.allowed.rows else ()
    return (*first, *(found or ("more than one flag rules machines out: leave several out",)))


def _sharding(problem: Problem) -> str:
    job = problem.job
    if job.sharding == "auto" or not fits(replace(problem, job=replace(job, sharding="auto"))):
        return ""
    why = "needs a transformer, whose layers it splits" if not job.layers else "does not fit"
    return f"--sharding {job.sharding} {why}; --sharding auto leaves machines that can"


def _precision(problem: Problem) -> str:
    job = problem.job
    if job.precision == "mixed" or not fits(replace(problem, job=replace(job, precision="mixed"))):
        return ""
    return f"--precision {job.precision} is in the way; --precision mixed leaves machines that can"


def _machines(problem: Problem) -> str:
    limits, most = problem.limits, problem.limits.max_machines
    while most < MOST_MACHINES:
        most = min(2 * most, MOST_MACHINES)
        if fits(replace(problem, limits=replace(limits, max_machines=most))):
            return f"--max-machines {limits.max_machines} is too few; {most} are enough"
    return ""


def _choices(problem: Problem) -> list[str]:
    return [
        f"{typed} leaves no machine that can"
        for typed, _, wider in wider_choices(problem.choice, NARROWED)
        if fits(replace(problem, choice=wider))
    ]


def wider_choices(
    choice: Choice, flags: tuple[tuple[str, str], ...] = (*NARROWED, *HARDER)
) -> Iterator[tuple[str, str, Choice]]:
    """Each flag that narrows a choice, as typed and by its name, with the choice without it."""
    usual = Choice()
    for flag, name in flags:
        if getattr(choice, name) != getattr(usual, name):
            wider = replace(choice, **{name: getattr(usual, name)})
            yield _typed(flag, name, choice), flag, wider


def _typed(flag: str, name: str, choice: Choice) -> str:
    value = getattr(choice, name)
    if name == "gpus":
        return f"{flag} {', '.join(format_gpu(wish) for wish in value)}"
    if isinstance(value, bool):
        return flag
    words = value if isinstance(value, str) else ", ".join(value)
    return f"{flag} {words.replace('on_demand', 'on-demand')}"


UNITS = {"vcpu": "vCPU", "gpu": "GPUs", "machine": "machines"}
MARGIN = 1.03  # a suggested limit is this much wider than what its plan needs on the day
WIDER = 1.15  # and is widened by this factor while no plan keeps it
WIDENED = 6  # times at most
NARROWER, HALVINGS, FEW = 3.0, 4, 3  # then it is halved so often, down to a third, on few plans
FIELD = {
    "--deadline": "deadline_s", "--budget": "budget_usd",
    "--hourly": "hourly_usd", "--max-overhead": "max_overhead",
}  # fmt: skip
AIM = {"--deadline": "time", "--budget": "cost", "--max-overhead": "auto"}
EITHER: tuple[Only, ...] = ("any", "on_demand")


def infeasible(search: PlanSearch) -> Infeasible:
    """Which limits bind, by how much, and the plans nearest when one of them is relaxed.

    The fastest and the cheapest plan without limits are those that one gets who asks for them.
    """
    problem = search.problem
    if not fits(problem):
        nothing = () if problem.allowed.rows else (_nothing(problem),)
        return Infeasible(binding=nothing + blocking_flags(problem), nearest=())
    limits = problem.limits
    fastest, cheapest = search.best_unconstrained("time"), search.best_unconstrained("cost")
    baseline = _cheapest_on_demand(search)
    steps = [step for name in LIMITS for step in _alone(name, limits, search)]
    sentences = [*_left(limits, problem.progress), *(_binding(step, limits) for step in steps)]
    if problem.choice.quotas:
        more, needed = _quotas(problem)
        sentences += needed
        steps += more
    if not steps:
        steps, why = _narrowed(problem)
        sentences += why
    if not steps:
        steps, why = _together(search)
        sentences += why
    return Infeasible(
        binding=tuple(sentences),
        nearest=tuple(replace(step, plan=_against(step.plan, baseline)) for step in steps),
        fastest=None if fastest is None else fastest.against(baseline).plan,
        cheapest=None if cheapest is None else cheapest.against(baseline).plan,
    )


def _cheapest_on_demand(search: PlanSearch) -> Plan | None:
    """The cheapest plan without spot, limits or not: what the others save against."""
    most = search.problem.limits.max_machines
    free = Limits(max_machines=most, confidence=0.0, objective="cost")
    best = _best(search.search(free, "on_demand", QUICK))
    return None if best is None else search.builder.build(best).plan


def _best(state: SearchState) -> Candidate | None:
    return min(state.incumbents.values(), key=ranking_key, default=None)


def _against(plan: Plan | None, baseline: Plan | None) -> Plan | None:
    return None if plan is None else replace(plan, saving=saving(plan, baseline))


def _nothing(problem: Problem) -> str:
    """Why no offer is left to plan with: first what the user did not ask for."""
    counts = sorted(
        problem.allowed.left_out,
        key=lambda reason: (reason[0].startswith(("not ", "no ")), -reason[1], reason[0]),
    )
    said = ", ".join(f"{count:,} {reason}" for reason, count in counts[:3])
    return f"no offer is left that can train this job ({said} left out)"


def _quotas(problem: Problem) -> tuple[list[SensitivityStep], list[str]]:
    """The best plan without quotas, and what it would need of them."""
    plan = _plan_of_other_offers(problem, replace(problem.choice, quotas=()))
    if plan is None:
        return [], []
    needs = [
        f'the quotas: the best plan needs "{n.name}" ≥ {n.amount:g} {UNITS[n.unit]} in {n.region}'
        for n in plan.needs
    ]
    return [SensitivityStep("larger quotas", _effect_alone(plan), plan)], needs


def _narrowed(problem: Problem) -> tuple[list[SensitivityStep], list[str]]:
    """Flags about offers that alone keep every plan away, and the best plan without each."""
    steps, reasons = [], []
    for flag, name, wider in wider_choices(problem.choice):
        plan = _plan_of_other_offers(problem, wider)
        if plan is not None:
            steps.append(SensitivityStep(f"without {name}", _effect_alone(plan), plan))
            reasons.append(f"{flag}: without it a plan meets the limits")
    return steps, reasons


def _plan_of_other_offers(problem: Problem, choice: Choice) -> Plan | None:
    state, builder = search_other_offers(problem, choice)
    best = _best(state)
    return None if best is None else builder.build(best).plan


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


def _alone(name: str, limits: Limits, search: PlanSearch) -> list[SensitivityStep]:
    """The least value of one limit that leaves a plan, and the plan one gets who asks for it."""
    found = _relaxed(name, limits, search)
    if found is None:
        return []
    words, wider, plan = found
    leading = search.replan(wider)
    plan = plan if leading is None else leading.plan
    return [SensitivityStep(words, _effect_alone(plan), plan)]


def _together(search: PlanSearch) -> tuple[list[SensitivityStep], list[str]]:
    """What would do where no limit does alone: one as near as it can be, then the others."""
    limits = search.problem.limits
    given = [name for name in FIELD if getattr(limits, FIELD[name]) is not None]
    steps, alone = [], []
    free = replace(limits, **{FIELD[name]: None for name in given})  # type: ignore[arg-type]
    for lead in given:
        now, words = free, []
        for name in (lead, *(each for each in given if each != lead)):
            now = _with(name, now, getattr(limits, FIELD[name]))
            if _some(now, search) is not None:
                continue
            found = _relaxed(name, now, search)
            if found is None:
                break
            typed, now, _ = found
            words.append(typed)
            alone += [typed] if name == lead else []
        else:
            leading = search.replan(now)
            if leading is not None:
                plan = leading.plan
                steps.append(SensitivityStep(" ".join(words), _effect_alone(plan), plan))
    if alone and len(alone) == len(given):
        each = " and ".join(alone)
        return steps, [f"each limit alone is too tight: the minimum is about {each}"]
    return steps, ["relaxing a single limit is not enough: more than one has to change"]


def _relaxed(name: str, limits: Limits, search: PlanSearch) -> tuple[str, Limits, Plan] | None:
    """The least value of one limit that leaves a plan, checked by planning again.

    As words, as limits and with a plan that keeps it, if there is one.
    """
    value = _needed(name, limits, search)
    if value is None:
        return None
    plan: Plan | None = None
    for _ in range(1 if name == "--confidence" else WIDENED):
        plan = _some(_with(name, limits, value), search)
        if plan is not None:
            break
        value *= WIDER
    if plan is None:
        return None
    if name in ("--deadline", "--budget"):
        # What one plan needs is enough; others may need less.
        low = max(getattr(limits, FIELD[name]), value / NARROWER)
        for _ in range(HALVINGS):
            middle = (low * value) ** 0.5
            tighter = _some(_with(name, limits, middle), search, FEW)
            low, value = (middle, value) if tighter is None else (low, middle)
            plan = tighter or plan
    gone = search.problem.progress
    value = _limit_words(name, value, gone)
    return _words(name, value, gone), _with(name, limits, value), plan


def _some(limits: Limits, search: PlanSearch, tries: int = TRIES) -> Plan | None:
    """A plan that keeps the limits; the fastest are met first, and may all be over the budget."""
    aims = (
        (replace(limits, objective="cost"), limits) if limits.budget_usd is not None else (limits,)
    )
    for aim in aims:
        kept = search.search(aim, budget=QUICK).incumbents
        ordered = islice(sorted(kept.values(), key=ranking_key), tries)
        evaluated = next(search.builder.under(aim).keeping(ordered), None)
        if evaluated is not None:
            return evaluated.plan
    return None


def _needed(name: str, limits: Limits, search: PlanSearch) -> float | None:
    """What a limit would have to be for the plan found without it; None if it is not set."""
    if name == "--confidence":
        return 0.5 if limits.confidence > 0.5 else None
    if name == "--hourly":
        return _least_hourly(limits, search)
    if getattr(limits, FIELD[name]) is None:
        return None
    free = replace(limits, **{FIELD[name]: None}, objective=AIM[name])  # type: ignore[arg-type]
    # The fastest and cheapest as a rule may be spot plans of a wide span; others are surer.
    found = [_best(search.search(free, only, QUICK)) for only in EITHER]
    builder = search.builder.under(free)
    estimates = [builder.build(best).plan.estimate for best in found if best is not None]

    def needed(estimate: Estimate) -> float:
        if name == "--max-overhead":
            return estimate.overhead
        return estimate.time.p95 if name == "--deadline" else estimate.cost.p95

    return min((needed(e) * MARGIN for e in estimates), default=None)


def _least_hourly(limits: Limits, search: PlanSearch) -> float | None:
    """The least hourly limit that leaves a plan, by bisection."""
    if limits.hourly_usd is None:
        return None
    best = _best(search.search(replace(limits, hourly_usd=None, objective="cost"), budget=QUICK))
    if best is None:
        return None
    low, high = limits.hourly_usd, search.builder.build(best).max_usd_per_hour
    for _ in range(WIDENED):
        middle = (low * high) ** 0.5
        under = replace(limits, hourly_usd=middle, objective="cost")
        if _best(search.search(under, budget=QUICK)) is None:
            low = middle
        else:
            high = middle
    return high


def _with(name: str, limits: Limits, value: float) -> Limits:
    """The limits with one of them at another value."""
    if name == "--confidence":
        return replace(limits, confidence=value)
    return replace(limits, **{FIELD[name]: value})  # type: ignore[arg-type]


def _limit_words(name: str, value: float, gone: Progress) -> float:
    """A limit as one would type it: of the whole job, and never less than what is needed."""
    if name == "--deadline":
        return 60.0 * ceil((value + gone.elapsed_s) / 60.0) - gone.elapsed_s
    if name == "--max-overhead":
        return ceil(100 * value) / 100
    if name == "--confidence":
        return value
    spent = gone.spent_usd if name == "--budget" else 0.0
    return _rounded_up(value + spent) - spent


def _words(name: str, value: float, gone: Progress) -> str:
    """A flag with its value, for the whole job, not for what is left."""
    if name == "--deadline":
        return f"--deadline {brief_duration(value + gone.elapsed_s)}"
    if name == "--max-overhead":
        return f"--max-overhead {round(100 * value)}%"
    return f"{name} {value + (gone.spent_usd if name == '--budget' else 0.0):g}"


def _rounded_up(value: float) -> float:
    """Three significant digits, never less than the value."""
    unit = 10.0 ** (floor(log10(value)) - 2)
    return ceil(value / unit - 1e-9) * unit


def _binding(step: SensitivityStep, limits: Limits) -> str:
    """By how much a limit is missed when all others are kept."""
    plan = step.plan
    if plan is not None and step.change.startswith("--deadline") and limits.deadline_s:
        time = plan.estimate.time
        if time.p95 <= limits.deadline_s:
            return f"{step.change} is about the least that leaves a plan, other limits unchanged"
        return (
            f"it takes {duration(time.typical)} typically, {duration(time.p95)} with 95 % "
            f"chance: {duration(time.p95 - limits.deadline_s)} over the deadline"
        )
    if step.change.startswith("--confidence"):
        return f"{step.change} leaves a plan, other limits unchanged"
    return f"{step.change} is about the least that leaves a plan, other limits unchanged"


def _effect_alone(plan: Plan) -> str:
    return f"{usd(plan.estimate.cost.mean)} USD, {duration(plan.estimate.time.typical)}"
