"""Explains why no plan meets the limits: which bind, by how much, and the closest plans."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from recommender.catalogs.registry import CLOUDS
from recommender.inputs.limits import amount, exact
from recommender.inputs.units import brief_duration
from recommender.plan.answer import Infeasible, SensitivityStep
from recommender.plan.limits import BUDGET, DEADLINE, LIMITS, Choice, Limits, Progress
from recommender.plan.plan import Plan
from recommender.planner.baselines import proof_of
from recommender.planner.blocking_flags import blocking_flags, fits, no_offers, wider_choices
from recommender.planner.plan_builder import saving
from recommender.planner.plan_pool import PlanPool, best_among_other_offers
from recommender.planner.problem import Problem
from recommender.planner.quota_request import (
    needs_words,
    request_words,
    smallest_requests,
    without_quotas,
)
from recommender.planner.ranking import HORIZON_S, best_unconstrained
from recommender.planner.relaxed_limits import (
    Relaxed,
    best_within,
    each_relaxed,
    horizon_s,
    in_turn,
    in_turn_after,
    joined,
    with_longer_deadline,
)
from recommender.planner.sensitivity import alike
from recommender.planner.trio import sensible_without
from recommender.text import duration, usd

WIDE = 3.0  # a span whose end is so many times its beginning is printed next to the mean
WORTH_IT = 0.8  # a longer deadline is named where it costs, or asks of another limit, so much less


def infeasible(pool: PlanPool, asked: Limits | None = None) -> Infeasible:
    """Find the limits that bind, by how much, and the closest plans if one of them is relaxed.

    The limits `asked` are those that may be, if not all of the pool's are.
    The fastest and the cheapest plan without limits are those of a question with that objective.
    """
    problem = pool.problem
    if not len(problem.catalog.offers):
        return Infeasible(binding=("the catalog holds no offers",), relaxed=())
    if not fits(problem):
        nothing = () if problem.offers.allowed.rows else (no_offers(problem),)
        return Infeasible(binding=nothing + blocking_flags(problem), relaxed=())
    limits = problem.limits
    fastest, cheapest = (best_unconstrained(pool, aim) for aim in ("time", "cost"))
    baseline = _cheapest_on_demand(pool)
    looser = each_relaxed(limits, pool, asked or limits)
    near = [[] if each.is_far(limits) else _steps(each, pool) for each in looser]
    steps = [*chain(*near), *_sensible(pool, asked or limits)]
    # Of each limit the sentence and the table are of the same plan.
    binding = (
        _binding(each if not found else replace(each, plan=found[0].plan or each.plan), limits)
        for each, found in zip(looser, near, strict=True)
    )
    sentences = [*_remaining_limits(limits, problem.progress), *binding]
    sentences += [] if fastest is None else _small_batch(problem, fastest.plan)
    if problem.choice.quotas:
        more, needed = _quotas(problem)
        sentences += needed
        steps += more
    if not steps:
        steps, why = _narrowed(problem)
        sentences += why
    if not steps:
        steps, why = _together(pool)
        sentences += why
    return Infeasible(
        binding=tuple(sentences),
        relaxed=tuple(
            replace(step, plan=_against(step.plan, baseline)) for step in _to_act_on(steps)
        ),
        fastest=_against(None if fastest is None else fastest.plan, baseline),
        cheapest=_against(None if cheapest is None else cheapest.plan, baseline),
        unexplored=_unexplored(pool),
    )


def _sensible(pool: PlanPool, asked: Limits) -> Iterator[SensitivityStep]:
    """What most people would rent were one of the limits as wide as that needs it."""
    for limit, _ in asked.given(LIMITS):
        change, plan = sensible_without(pool, limit, asked)
        if plan is not None:
            yield SensitivityStep(change, _effect_alone(plan), plan)


def _small_batch(problem: Problem, fastest: Plan) -> list[str]:
    """That the batch, not the offers or the limits, keeps a deadline from being met."""
    job, limits = problem.job, problem.limits
    more = sum(m.count for m in fastest.machines) < limits.max_machines
    if not more or fastest.estimate.step.is_model_parallel:
        return []
    in_time = limits.deadline_s is None or fastest.estimate.time.p95 <= limits.deadline_s
    if in_time or fastest.gpus < job.global_batch:
        return []
    return [
        f"a batch of {job.global_batch:,} keeps no more than {job.global_batch:,} GPUs busy: a "
        "larger one (--batch) may be faster on more machines"
    ]


def _unexplored(pool: PlanPool) -> str:
    """What may still meet the limits, and how to go on; nothing where none provably does."""
    proof = proof_of(pool)
    if proof.status == "optimal" and not proof.mixes_rated:
        return ""
    looked = f"none of {pool.best.simulated:,} plans simulated meets the limits"
    if proof.status == "optimal":
        return f"{looked}; clusters of several types were looked at in part: loosen a limit"
    how = "loosen a limit" if pool.prove else "--prove simulates more, or loosen a limit"
    return f"{looked}; of {proof.rated:,} clusters rated the others are less likely to: {how}"


def _cheapest_on_demand(pool: PlanPool) -> Plan | None:
    """The cheapest plan without spot, limits or not: what the others save against."""
    free = replace(pool.problem.limits.of_size, confidence=0.0, objective="cost")
    found = pool.select(free, "on_demand")
    return pool.builder.build(found.best).plan if found.plans else None


def _against(plan: Plan | None, baseline: Plan | None) -> Plan | None:
    return None if plan is None else replace(plan, saving=saving(plan, baseline))


def _quotas(problem: Problem) -> tuple[list[SensitivityStep], list[str]]:
    """The smallest quota that leaves a plan at each provider, and the best plan without quotas."""
    steps, said = [], []
    for plan in smallest_requests(problem):
        cloud, ask = CLOUDS[plan.machines[0].provider], request_words(plan)
        said.append(
            f"the quotas: on {cloud.label}, {ask} would be enough: "
            f"{usd(plan.estimate.cost.mean)} USD, "
            f"{duration(plan.estimate.time.p50)}; request it at {cloud.quota_page}"
        )
        steps.append(_of_offers(f"{cloud.label} quota: {ask.partition(' of ')[0]}", plan))
    best = _plan_of_other_offers(problem, without_quotas(problem.choice))
    if best is None:
        return [], []
    if steps and problem.limits.by_value:
        return steps, said  # the best is the fastest at any price, which few want first
    steps.append(_of_offers("larger quotas", best))
    return steps, [*said, f"the quotas: without them the best plan needs {needs_words(best)}"]


def _narrowed(problem: Problem) -> tuple[list[SensitivityStep], list[str]]:
    """Flags about offers that alone keep every plan away, and the best plan without each."""
    steps, reasons = [], []
    for flag, name, wider in wider_choices(problem.choice):
        plan = _plan_of_other_offers(problem, wider)
        if plan is not None:
            steps.append(_of_offers(f"without {name}", plan))
            reasons.append(f"{flag}: without it a plan meets the limits")
    return steps, reasons


def _of_offers(change: str, plan: Plan) -> SensitivityStep:
    return SensitivityStep(change, _effect_alone(plan), plan, offers=True)


def _plan_of_other_offers(problem: Problem, choice: Choice) -> Plan | None:
    found, builder = best_among_other_offers(problem, choice)
    return builder.build(found.best).plan if found.plans else None


def _remaining_limits(limits: Limits, progress: Progress) -> list[str]:
    """What is left of the limits of a job that has begun."""
    return [
        f"{limit.spent.flag} {exact(limit, limit.spent.of(progress))} leaves "
        f"{amount(limit, left)} of the {limit.name}"
        for limit, left in limits.given(LIMITS)
        if limit.spent is not None and limit.spent.of(progress)
    ]


def _step(looser: Relaxed, pool: PlanPool) -> SensitivityStep:
    """About the plan of the question with the loosened limit."""
    plan = best_within(looser, pool)
    return SensitivityStep(looser.typed, _effect_alone(plan), plan)


def _steps(looser: Relaxed, pool: PlanPool) -> list[SensitivityStep]:
    """The plan at the least of a limit, and a much cheaper one at a deadline near it."""
    least = _step(looser, pool)
    if looser.limit != DEADLINE or least.plan is None:
        return [least]
    longer = with_longer_deadline(replace(looser, plan=least.plan), pool)
    return [least, *_cheaper(longer, least.plan, pool)]


def _cheaper(looser: Relaxed, least: Plan, pool: PlanPool) -> list[SensitivityStep]:
    """The plan that one gets under other limits, where it costs much less than another."""
    step = _step(looser, pool)
    if step.plan is None or step.plan.estimate.cost.mean > WORTH_IT * least.estimate.cost.mean:
        return []
    return [step]


def _together(pool: PlanPool) -> tuple[list[SensitivityStep], list[str]]:
    """What would do where no limit does alone: one as near as it can be, then the others."""
    limits = pool.problem.limits
    given = list(limits.given(LIMITS))
    steps, alone = [], []
    for lead in given:
        found, all_met = in_turn([lead, *(each for each in given if each != lead)], pool)
        first = found[0] if found and found[0].limit == lead[0] else None
        alone += [] if first is None else [first.typed]
        if not found or not all_met:
            continue
        least = _step(joined(found), pool)
        steps.append(least)
        if first is not None and first.limit == DEADLINE and least.plan is not None:
            longer, all_met = in_turn_after(first, given, pool)
            if all_met and not longer[0].is_far(limits):
                less = _asks_less(longer[-1].limits, found[-1].limits)
                both = joined(longer)
                steps += [_step(both, pool)] if less else _cheaper(both, least.plan, pool)
    if alone and len(alone) == len(given):
        each = " and ".join(alone)
        return steps, [f"each limit alone is too tight: the minimum is about {each}"]
    return steps, ["relaxing a single limit is not enough: more than one has to change"]


def _asks_less(longer: Limits, least: Limits) -> bool:
    """Whether a longer deadline asks for much less of another limit."""
    others = [(limit, value) for limit, value in least.given(LIMITS) if limit != DEADLINE]
    return any((longer.value(limit) or 0.0) <= WORTH_IT * value for limit, value in others)


def _to_act_on(steps: list[SensitivityStep]) -> list[SensitivityStep]:
    """No plan that lasts beyond the horizon where a shorter one is named, and none twice."""
    plans = [(step, step.plan) for step in steps if step.plan is not None]
    short = [each for each in plans if each[1].estimate.time.p95 <= HORIZON_S]
    kept: list[SensitivityStep] = []
    for step, plan in short or plans:
        twins = (other for other in kept if _flags(other) == _flags(step))
        if not any(other.plan is not None and alike(other.plan, plan) for other in twins):
            kept.append(step)
    return kept


def _flags(step: SensitivityStep) -> list[str]:
    """The flags that a step changes; none if other quotas."""
    return [word for word in step.change.split() if word.startswith("--")]


def _binding(looser: Relaxed, limits: Limits) -> str:
    """By how much a limit is missed when all others are met."""
    others = ", other limits unchanged" if len(list(limits.given(LIMITS))) > 1 else ""
    if looser.is_far(limits):
        most = brief_duration(horizon_s(limits))
        return f"no deadline under {most} works{others}"
    if looser.limit is None:
        return f"{looser.typed} works{others}"
    least = f"{looser.typed} is about the minimum that works{others}"
    if looser.limit == BUDGET:
        mean, budget = looser.plan.estimate.cost.mean, looser.limits.budget_usd or 0.0
        sure = f"{100.0 * limits.confidence:g} % of the runs"
        return f"{least}: {usd(mean)} USD on average, up to {usd(budget)} USD in {sure}"
    short_s = (looser.limits.deadline_s or 0.0) - (limits.deadline_s or 0.0)
    return f"{least}: {duration(short_s)} more" if looser.limit == DEADLINE else least


def _effect_alone(plan: Plan) -> str:
    """Its mean cost, the span where that says little, and its time."""
    cost = plan.estimate.cost
    wide = cost.p95 > WIDE * cost.p05
    span = f" ({usd(cost.p05)} to {usd(cost.p95)})" if wide else ""
    return f"{usd(cost.mean)} USD{span}, {duration(plan.estimate.time.p50)}"
