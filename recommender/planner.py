"""The planner: from a job and its limits to an answer."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path

from catalogs.catalog import Catalog
from recommender.answering import Answering
from recommender.clock import now as clock_now
from recommender.job import Job
from recommender.limits import Choice, Limits, Progress
from recommender.plan import Answer
from recommender.question import question_of
from recommender.risk.draws import SEED
from recommender.units import Comparison


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
    save_lp: Path | None = None,
    seed: int = SEED,
    now: datetime | None = None,
) -> Answer:
    """Rank the plans that keep the limits; an infeasible request is an answer as well.

    `catalog` defaults to the shipped snapshot, `now` (for the age of prices) to the clock.
    `verify` follows the plans through histories of another seed as well (`Answer.checks`).
    """
    if catalog is None:
        from catalogs.load import load_snapshot

        catalog = load_snapshot()
    moment = clock_now() if now is None else now
    question = question_of(job, limits, choice, catalog, progress, moment, seed)
    asked = Answering(question, top, compare, prove, save_lp)
    answer = asked.answer()
    if not verify:
        return answer
    from recommender.simulate.verify import checks

    return replace(answer, checks=checks(asked.presenter, answer.plans))
