"""The planner: from a job and its limits to an answer."""

from dataclasses import replace
from datetime import datetime

from recommender.catalogs.catalog import Catalog
from recommender.inputs.units.times import now as clock_now
from recommender.job.job import Job
from recommender.optimize.watch import Watch
from recommender.plan.answer import Answer, PolicyFacts
from recommender.plan.limits import Choice, Limits, Progress
from recommender.planner.options import AnswerOptions
from recommender.planner.pipeline import Pipeline
from recommender.planner.plan_builder import Evaluated
from recommender.planner.problem import Problem, planning_problem
from recommender.risk.random_numbers import SEED


def recommend(
    job: Job,
    limits: Limits,
    choice: Choice,
    options: AnswerOptions,
    *,
    catalog: Catalog,
    progress: Progress = Progress(),  # noqa: B008 (frozen)
    seed: int = SEED,
    now: datetime | None = None,
    watch: Watch | None = None,
) -> Answer:
    """Rank the plans that meet the limits; if none does, the answer says so.

    `now` (for the ages of prices) defaults to the clock. `watch` reports the running search to
    another thread, and can end a proof early.
    """
    moment = clock_now() if now is None else now
    problem = planning_problem(job, limits, choice, catalog, progress, moment, seed)
    pipeline = Pipeline(problem, options, watch or Watch())
    answer, plans = pipeline.answer(), pipeline.table
    if options.explain and options.explain <= len(plans):
        answer = replace(answer, policy=_policy(problem, plans[options.explain - 1]))
    if not options.verify:
        return answer
    from recommender.planner.verify import checks  # most answers need none

    return replace(answer, checks=checks(problem, plans))


def _policy(problem: Problem, evaluated: Evaluated) -> PolicyFacts:
    from recommender.policies.plan_policy import policy_facts, rule_of  # only `--explain` needs it

    rule = rule_of(evaluated.plan.fallback)
    return policy_facts(evaluated.inputs, problem.limits.deadline_s, rule)
