"""Why no plan keeps the limits: which of them bind, by how much, and the plans nearest to them."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from recommender.catalogs.frozen import dataclass
from recommender.inputs.limits import amount, as_typed, exact, rounded_up
from recommender.inputs.units import format_gpu
from recommender.optimize.search_state import Candidate, SearchState, ranking_key
from recommender.plan.limits import (
    DEADLINE,
    LIMITS,
    Choice,
    Limit,
    Limits,
    Progress,
    RateLimit,
    RunLimit,
)
from recommender.plan.plan import Infeasible, Plan, SensitivityStep
from recommender.planner.plan_builder import saving
from recommender.planner.problem import Problem
from recommender.planner.search import QUICK, Only, PlanSearch, search_other_offers
from recommender.planner.sensitivity import TRIES
from recommender.text import duration, usd

MOST_MACHINES = 128  # looked at for a job that does not fit
# What a user may have narrowed: the flag, and the field of `Choice` behind it.
NARROWED = (
    ("--gpu", "gpus"), ("--instance", "instances"), ("--provider", "providers"),
    ("--region", "regions"), ("--zone", "zones"), ("--deny", "deny"), ("--market", "market"),
    ("--accelerator", "accelerator"), ("--arch", "arch"), ("--quoted-only", "quoted_only"),
    ("--confidential", "confidential"),
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
EITHER: tuple[Only, ...] = ("any", "on_demand")
LEAST_SURE, SURE_STEP = 50, 5  # per cent: the chances tried where a surer one leaves no plan
WAIT, WORTH_IT = 1.2, 0.8  # a deadline so much longer is named where it costs so much less


@dataclass(frozen=True, slots=True)
class Relaxed:
    """One limit loosened by as little as leaves a plan."""

    limit: Limit | None  # None: the chance that all are kept
    typed: str  # "--deadline 9h40m"
    limits: Limits
    plan: Plan


def infeasible(search: PlanSearch) -> Infeasible:
    """Which limits bind, by how much, and the plans nearest when one of them is relaxed.

    The fastest and the cheapest plan without limits are those that one gets who asks for them.
    """
    problem = search.problem
    if not fits(problem):
        nothing = () if problem.allowed.rows else (_no_offers(problem),)
        return Infeasible(binding=nothing + blocking_flags(problem), relaxed=())
    limits = problem.limits
    fastest, cheapest = search.best_unconstrained("time"), search.best_unconstrained("cost")
    baseline = _cheapest_on_demand(search)
    relaxed = _each_relaxed(limits, search)
    steps = [step for each in relaxed for step in _steps(each, search)]
    binding = (_binding(each, limits) for each in relaxed)
    sentences = [*_remaining_limits(limits, problem.progress), *binding]
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
        relaxed=tuple(replace(step, plan=_against(step.plan, baseline)) for step in steps),
        fastest=None if fastest is None else fastest.against(baseline).plan,
        cheapest=None if cheapest is None else cheapest.against(baseline).plan,
        unexplored=_unexplored(search),
    )


def _unexplored(search: PlanSearch) -> str:
    """What may still keep the limits, and how to go on; nothing where it is proven that none does.

    Clusters of one type are left out only where their search used its plans up.
    """
    if search.proven_infeasible:
        return ""
    single = search.single_type
    if np.isfinite(single.open_bound):
        return (
            f"{single.plans_evaluated:,} plans of one machine type were simulated and none keeps "
            "the limits; --prove tries all, and a looser limit needs fewer"
        )
    how = "a looser limit" if search.prove else "--prove searches on, or try a looser limit"
    return (
        "no cluster of one machine type will do; clusters of several types were searched in "
        f"part, and one may: {how}"
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


def _no_offers(problem: Problem) -> str:
    """Why no offer is left to plan with: first what the user did not ask for."""
    counts = sorted(
        problem.allowed.left_out,
        key=lambda reason: (reason[0].startswith(("not ", "no ")), -reason[1], reason[0]),
    )
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in counts[:3])
    return f"no offer is left that can train this job ({reasons} left out)"


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


def _remaining_limits(limits: Limits, progress: Progress) -> list[str]:
    """What is left of the limits of a job that has begun."""
    return [
        f"{amount(limit, left)} are left of the {limit.name} after {limit.spent.flag} "
        f"{exact(limit, limit.spent.of(progress))}"
        for limit, left in limits.given(LIMITS)
        if limit.spent is not None and limit.spent.of(progress)
    ]


def _each_relaxed(limits: Limits, search: PlanSearch) -> list[Relaxed]:
    """Each limit loosened alone, those that leave a plan; the chance is lowered last."""
    found = [_relaxed(limit, limits, search) for limit, _ in limits.given(LIMITS)]
    found.append(_less_sure(limits, search))
    return [each for each in found if each is not None]


def _step(relaxed: Relaxed, search: PlanSearch) -> SensitivityStep:
    """The plan one gets who asks for a limit that was loosened."""
    leading = search.replan(relaxed.limits)
    plan = relaxed.plan if leading is None else leading.plan
    return SensitivityStep(relaxed.typed, _effect_alone(plan), plan)


def _steps(relaxed: Relaxed, search: PlanSearch) -> list[SensitivityStep]:
    """The plan at the least of a limit, and a much cheaper one at a deadline near it."""
    least = _step(relaxed, search)
    if relaxed.limit != DEADLINE or relaxed.limits.deadline_s is None or least.plan is None:
        return [least]
    progress = search.problem.progress
    longer_s = rounded_up(DEADLINE, relaxed.limits.deadline_s * WAIT, progress)
    limits = replace(relaxed.limits, deadline_s=longer_s)
    plan = _plan_keeping(limits, search)
    if plan is None or plan.estimate.cost.mean > WORTH_IT * least.plan.estimate.cost.mean:
        return [least]
    longer = as_typed(DEADLINE, longer_s, progress)
    return [least, SensitivityStep(longer, _effect_alone(plan), plan)]


def _together(search: PlanSearch) -> tuple[list[SensitivityStep], list[str]]:
    """What would do where no limit does alone: one as near as it can be, then the others."""
    given = list(search.problem.limits.given(LIMITS))
    steps, alone = [], []
    free = search.problem.limits
    for limit, _ in given:
        free = free.with_value(limit, None)
    for lead in given:
        now, words = free, []
        for limit, value in (lead, *(each for each in given if each != lead)):
            now = now.with_value(limit, value)
            if _plan_keeping(now, search) is not None:
                continue
            relaxed = _relaxed(limit, now, search)
            if relaxed is None:
                break
            now = relaxed.limits
            words.append(relaxed.typed)
            alone += [relaxed.typed] if limit == lead[0] else []
        else:
            leading = search.replan(now)
            if leading is not None:
                plan = leading.plan
                steps.append(SensitivityStep(" ".join(words), _effect_alone(plan), plan))
    if alone and len(alone) == len(given):
        each = " and ".join(alone)
        return steps, [f"each limit alone is too tight: the minimum is about {each}"]
    return steps, ["relaxing a single limit is not enough: more than one has to change"]


def _relaxed(limit: Limit, limits: Limits, search: PlanSearch) -> Relaxed | None:
    """The least value of one limit that leaves a plan, checked by planning again."""
    value = (_least_rate if isinstance(limit, RateLimit) else _needed)(limit, limits, search)
    if value is None:
        return None
    found = _widened(limit, value, limits, search)
    if found is None:
        return None
    if isinstance(limit, RunLimit):
        found = _narrowed_again(limit, *found, limits, search)
    value, plan = found
    progress = search.problem.progress
    value = rounded_up(limit, value, progress)
    return Relaxed(limit, as_typed(limit, value, progress), limits.with_value(limit, value), plan)


def _widened(
    limit: Limit, value: float, limits: Limits, search: PlanSearch
) -> tuple[float, Plan] | None:
    """A value of one limit that leaves a plan, from one that may, and that plan."""
    for _ in range(WIDENED):
        plan = _plan_keeping(limits.with_value(limit, value), search)
        if plan is not None:
            return value, plan
        value *= WIDER
    return None


def _narrowed_again(
    limit: Limit, value: float, plan: Plan, limits: Limits, search: PlanSearch
) -> tuple[float, Plan]:
    """What one plan needs is enough; others may need less."""
    low = max(limits.value(limit) or 0.0, value / NARROWER)
    for _ in range(HALVINGS):
        middle = (low * value) ** 0.5
        tighter = _plan_keeping(limits.with_value(limit, middle), search, FEW)
        low, value = (middle, value) if tighter is None else (low, middle)
        plan = tighter or plan
    return value, plan


def _less_sure(limits: Limits, search: PlanSearch) -> Relaxed | None:
    """A plan that keeps all limits with a lower chance, as high as one can be."""
    sure, wider, best = limits.confidence, limits, None
    chances = [c / 100 for c in range(LEAST_SURE, 100, SURE_STEP) if c / 100 < sure]
    low, high = 0, len(chances)  # nothing is known of the chances from low on, nor below high
    while low < high:
        middle = (low + high) // 2 if best else low
        tried = replace(limits, confidence=chances[middle])
        plan = _plan_keeping(tried, search, TRIES if best is None else FEW)
        if plan is None:
            high = middle
            continue
        low, wider, best = middle + 1, tried, plan
    if best is None:
        return None
    return Relaxed(None, f"--confidence {wider.confidence:g}", wider, best)


def _plan_keeping(limits: Limits, search: PlanSearch, tries: int = TRIES) -> Plan | None:
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


def _needed(limit: Limit, limits: Limits, search: PlanSearch) -> float | None:
    """What a limit would have to be for the plan found without it."""
    free = replace(limits.with_value(limit, None), objective=limit.aim)
    # The fastest and cheapest as a rule may be spot plans of a wide span; others are surer.
    found = [_best(search.search(free, only, QUICK)) for only in EITHER]
    builder = search.builder.under(free)
    plans = [builder.build(best).plan for best in found if best is not None]
    return min((limit.of_plan(plan) * MARGIN for plan in plans), default=None)


def _least_rate(limit: Limit, limits: Limits, search: PlanSearch) -> float | None:
    """The least price per hour that leaves a plan, by bisection."""
    free = replace(limits.with_value(limit, None), objective=limit.aim)
    best = _best(search.search(free, budget=QUICK))
    if best is None:
        return None
    low, high = limits.value(limit) or 0.0, search.builder.build(best).max_usd_per_hour
    for _ in range(WIDENED):
        middle = (low * high) ** 0.5
        if _best(search.search(free.with_value(limit, middle), budget=QUICK)) is None:
            low = middle
        else:
            high = middle
    return high


def _binding(relaxed: Relaxed, limits: Limits) -> str:
    """By how much a limit is missed when all others are kept."""
    if relaxed.limit is None:
        return f"{relaxed.typed} leaves a plan, other limits unchanged"
    least = f"{relaxed.typed} is about the least that leaves a plan, other limits unchanged"
    short_s = (relaxed.limits.deadline_s or 0.0) - (limits.deadline_s or 0.0)
    return f"{least}: {duration(short_s)} more" if relaxed.limit == DEADLINE else least


def _effect_alone(plan: Plan) -> str:
    return f"{usd(plan.estimate.cost.mean)} USD, {duration(plan.estimate.time.typical)}"
