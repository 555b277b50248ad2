"""The advice to stay or to move, in words."""

from pathlib import Path

from recommender.plan.limits import Choice, Limits, Progress
from recommender.planner.replan import RunningJob, replan
from recommender.report.answer_frame import PlanRequest
from recommender.report.replan import replan_page
from tests.recommender.planning import HOUR, NOW, ask, job, written


def test_the_words_say_how_often_each_option_meets_what_is_left_of_the_limits(
    tmp_path: Path,
) -> None:
    catalog, limits = written(tmp_path), Limits(deadline_s=60 * HOUR, max_machines=6)
    plan = ask(catalog, deadline_s=60 * HOUR).plans[0]
    progress = Progress(done_share=0.1, elapsed_s=56 * HOUR)
    found = replan(RunningJob(plan, job(), limits, Choice(), progress), catalog=catalog, now=NOW)
    assert found.move is not None
    page = replan_page(found, PlanRequest(job(), limits, progress=progress))
    assert page.title.startswith(f"{job().name}, 10 % done after 56 h: move to ")
    often = f"in {int(100 * found.move.chance)} % of the runs, staying in "
    assert f": it meets the remaining limits {often}" in page.title
    assert page.below[1].startswith(
        "No other machines meet the remaining limits with 95 % chance: --elapsed 2d8h leaves 4h"
    )
