"""The planner: from a job and its limits to an answer."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.store import Store, default_root, newest_good
from recommender.inputs.units import Comparison
from recommender.inputs.units.times import now as clock_now
from recommender.job.job import Job
from recommender.optimize.search_state import Watch
from recommender.plan.answer import Answer, PolicyFacts
from recommender.plan.limits import Choice, Limits, Progress
from recommender.planner.pipeline import Pipeline
from recommender.planner.plan_builder import Evaluated
from recommender.planner.problem import Problem, planning_problem
from recommender.risk.random_numbers import SEED


def recommend(
    job: Job,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
    choice: Choice = Choice(),  # noqa: B008 (frozen)
    *,
    catalog: Catalog | None = None,
    progress: Progress = Progress(),  # noqa: B008 (frozen)
    compare: Comparison | None = None,
    top: int = 5,
    prove: bool = False,
    verify: bool = False,
    explain: int = 0,
    worth: bool = False,
    simulated_plans: bool = False,
    report: bool = False,
    save_lp: Path | None = None,
    seed: int = SEED,
    now: datetime | None = None,
    watch: Watch | None = None,
) -> Answer:
    """Rank the plans that meet the limits; if none does, the answer says so.

    `catalog` defaults to the newest valid version that `recommend catalog refresh` has published
    for this user, or else to the shipped snapshot, as on the command line. `Answer.warnings` names
    a version that could not be used, `Answer.prices` has the ages of prices. `now` (for these ages)
    defaults to the clock. `load_catalog(folder)` loads another catalog. `verify` also simulates the
    plans on paths of another seed (`Answer.checks`). `explain` computes the fallback policy of one
    plan, by its number (`Answer.policy`). `watch` reports the running search to another thread, and
    can end a proof early. `worth` plans again to find the value of a little more of each limit
    (`Answer.program`). `simulated_plans` collects every promising plan with its simulated runs
    (`Answer.report`); `report` also what else `report.html.page` draws, and implies `worth`.
    """
    passed_over: tuple[str, ...] = ()
    if catalog is None:
        found = newest_good(Store(default_root()))
        catalog, passed_over = found.catalog, found.skipped
    moment = clock_now() if now is None else now
    problem = planning_problem(job, limits, choice, catalog, progress, moment, seed)
    pipeline = Pipeline(
        problem=problem,
        top=top,
        compare=compare,
        prove=prove,
        save_lp=save_lp,
        watch=watch or Watch(),
        shadow_prices=worth or report or explain > 0,
        simulated_plans=simulated_plans,
        report=report,
    )
    answer = pipeline.answer()
    answer = replace(answer, warnings=(*passed_over, *answer.warnings))
    plans = pipeline.table
    if explain and explain <= len(plans):
        answer = replace(answer, policy=_policy(problem, plans[explain - 1]))
    if not verify:
        return answer
    from recommender.planner.verify import checks

    return replace(answer, checks=checks(problem, plans))


def _policy(problem: Problem, evaluated: Evaluated) -> PolicyFacts:
    from recommender.policies.plan_policy import policy_facts, rule_of

    rule = rule_of(evaluated.plan.fallback)
    return policy_facts(evaluated.inputs, problem.limits.deadline_s, rule)
