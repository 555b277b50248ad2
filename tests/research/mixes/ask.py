"""Asks one question, and the same without mixes; checks a refusal by narrower searches."""

import math
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import process_time

from recommender.catalogs.catalog import Catalog
from recommender.errors import RecommendError
from recommender.optimize.linear_program import Model, solve
from recommender.plan.limits import Choice, Limits, Progress
from recommender.plan.plan import Machines
from recommender.planner.baselines import proof_of
from recommender.planner.blocking_flags import fits
from recommender.planner.plan_builder import Evaluated, goal_value_of, meets
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import Problem, planning_problem
from recommender.planner.program_facts import program_facts, reported_program
from recommender.planner.ranking import ranked_plans
from tests.recommender.optimize.direct_highs import least
from tests.research.mixes.judge import fresh, recorded
from tests.research.mixes.overhead import beaten
from tests.research.mixes.questions import Question, choice_of, job_of, limits_of
from tests.research.mixes.records import Asked, Judged, PlanRecord, Rented

NOW = datetime(2026, 11, 21, tzinfo=UTC)
SEED = 7
TABLE = 5  # plans of a table
REGIONS = 4  # in which a refusal is checked alone: those with the most offers


def problem_of(question: Question, catalog: Catalog, choice: Choice) -> Problem:
    """The question, ready to be planned."""
    limits = limits_of(question)
    return planning_problem(job_of(question), limits, choice, catalog, Progress(), NOW, SEED)


def answered(question: Question, catalog: Catalog) -> tuple[Asked, PlanPool, tuple[Evaluated, ...]]:
    """The first plan and how sure it is, without what an answer tells next to its table.

    The seconds are the processor's, of the search alone.
    """
    start = process_time()
    search = PlanPool(problem_of(question, catalog, choice_of(question, catalog)))
    table = ranked_plans(search, TABLE).plans
    proof, found = proof_of(search), search.best.plans
    asked = Asked(
        question,
        round(process_time() - start, 3),
        "ok" if table else "unknown" if fits(search.problem) else "infeasible",
        proof.gap,
        f"{proof.mixes_rated} rated",
        record(table[0], search.problem.limits) if table else None,
        least=min((c.goal_value for c in found if c.printed), default=0.0),
    )
    return asked, search, table


def ask(
    question: Question, catalog: Catalog, before: PlanRecord | None, reference: Path | None
) -> Asked:
    """The first plan with all that it is compared with.

    One that mixes nothing is the best that mixes nothing, and is not judged again.
    """
    asked, search, table = answered(question, catalog)
    reported = reported_program(search, table[:1])
    facts = program_facts(search, reported, with_worth=False)
    if reported is not None and facts is not None:
        solvers = _disagreements(reported.program.model)
        asked = replace(asked, spot_share=facts.spot_share, solvers=solvers)
    choice = search.problem.choice
    if asked.first is None:
        return replace(asked, refusal=_refusal(question, catalog, choice))
    again = None if before is None else found_again(search, before)
    limits = search.problem.limits
    asked = replace(
        asked,
        beaten=beaten(search, table),
        before=None if again is None else record(again, limits),
    )
    if not asked.first.mixes:
        return asked
    unmixed = _without_mixes(question, catalog, choice)
    return replace(
        asked,
        unmixed=None if unmixed is None else record(unmixed, limits),
        judged=judged(table[0], limits, reference),
        judged_unmixed=judged(unmixed, limits, reference),
    )


def _disagreements(model: Model) -> str:
    """Where solvers differ on a program, or on one of those without a row that conflicts are of."""
    kept = [{n: row for n, row in model.rows.items() if n != left} for left in model.rows]
    met = [model, *(replace(model, rows=rows) for rows in kept if rows)]
    return "; ".join(words for words in map(_disagreement, met) if words)


def _disagreement(model: Model) -> str:
    """What CBC, and HiGHS without PuLP, find of a program; "" where all agree."""
    one, other, alone = solve(model), solve(model, solver="cbc"), least(model)
    if one.status == other.status == "infeasible":
        return "" if alone is None else f"infeasible, HiGHS alone {alone!r}"
    agree = (
        one.status == other.status == "optimal"
        and alone is not None
        and math.isclose(one.objective, other.objective, rel_tol=1e-6)
        and math.isclose(one.objective, alone, rel_tol=1e-9)
    )
    return "" if agree else f"{one.objective!r}, CBC {other.objective!r}, HiGHS alone {alone!r}"


def _without_mixes(question: Question, catalog: Catalog, choice: Choice) -> Evaluated | None:
    problem = problem_of(question, catalog, replace(choice, mix="no"))
    return next(iter(ranked_plans(PlanPool(problem), 1).plans), None)


def judged(plan: Evaluated | None, limits: Limits, reference: Path | None) -> tuple[Judged, ...]:
    """A plan in fresh runs, and on recorded zones."""
    if plan is None:
        return ()
    return (fresh(plan, limits, SEED), *recorded(plan, limits, SEED, reference))


def record(evaluated: Evaluated, limits: Limits) -> PlanRecord:
    """A plan as it is kept."""
    plan, candidate = evaluated.plan, evaluated.candidate
    places = tuple((site.region, site.zone) for site in plan.sites)
    fallback = plan.fallback
    return PlanRecord(
        machines=tuple(_rented(m, places) for m in plan.machines),
        checkpoint_path=candidate.checkpoint_path,
        fallback=() if fallback is None else tuple(_rented(m, ()) for m in fallback.machines),
        fallback_share=0.0 if fallback is None else fallback.probability,
        cost_usd=plan.estimate.cost.mean,
        time_s=plan.estimate.time.trimmed_mean,
        chance=plan.estimate.chance,
        goal=goal_value_of(plan, limits),
    )


def _rented(m: Machines, places: tuple[tuple[str, str], ...]) -> Rented:
    at = places if m.market == "spot" and places else ((m.region, m.zone),)
    return Rented(m.count, m.provider, m.instance_type, m.gpu, m.market, at)


def found_again(search: PlanPool, before: PlanRecord) -> Evaluated | None:
    """An earlier version's plan in today's plan space; None where it is not there any more.

    Failover lists and the regions of fallbacks are today's: a list has to begin at the same place.
    """
    if not search.best.plans:
        return None
    template = search.best.best
    for number, pools in enumerate(search.sites.pools):
        entries = [_entry(search, pools, machines) for machines in before.machines]
        fallback = _fallback(search, number, before)
        if None in entries or fallback is None:
            continue
        counts = tuple(m.count for m in before.machines)
        candidate = replace(
            template, site=number, entries=tuple(entries), counts=counts,
            checkpoint_path=before.checkpoint_path, fallback=fallback,
        )  # fmt: skip
        return search.builder.build(candidate)
    return None


def _entry(search: PlanPool, pools, machines: Rented) -> int | None:  # type: ignore[no-untyped-def]
    offers = search.problem.catalog.offers
    for number, pool in enumerate(pools):
        places = tuple((offers.region[row], offers.zone[row]) for row in pool.rows)
        named = (offers.provider[pool.rows[0]], pool.type.instance_type, pool.spot)
        wanted = (machines.provider, machines.instance_type, machines.market == "spot")
        if named == wanted and places[0] == machines.places[0]:
            return number
    return None


def _fallback(search: PlanPool, site: int, before: PlanRecord) -> int | None:
    """The number of a fallback at a site, -1 for none; None where it is not there."""
    if not before.fallback:
        return -1
    offers, wanted = search.problem.catalog.offers, before.fallback[0]
    fallbacks = search.sites.sites[site].fallbacks
    for number, (offer, count) in enumerate(zip(fallbacks.offer, fallbacks.count, strict=True)):
        if (offers.instance_type[offer], int(count)) == (wanted.instance_type, wanted.count):
            return number
    return None


def _refusal(question: Question, catalog: Catalog, choice: Choice) -> str:
    """What an on-demand search and searches of single regions find; "" if nothing either."""
    offers = catalog.offers
    most = Counter(
        region
        for region, provider in zip(offers.region, offers.provider, strict=True)
        if not choice.providers or provider in choice.providers
    ).most_common(REGIONS)
    tries = {"on demand": replace(choice, market="on_demand", mix="yes")}
    tries |= {region: replace(choice, regions=(region,), mix="yes") for region, _ in most}
    for words, narrower in tries.items():
        found = _best(question, catalog, narrower)
        if found is not None:
            return f"{words}: {found.words}, {found.goal:.6g}"
    return ""


def _best(question: Question, catalog: Catalog, choice: Choice) -> PlanRecord | None:
    try:
        problem = problem_of(question, catalog, choice)
        plans = ranked_plans(PlanPool(problem), 1).plans
    except RecommendError:
        return None
    met = [plan for plan in plans if meets(plan.plan, problem.limits)]
    return record(met[0], problem.limits) if met else None
