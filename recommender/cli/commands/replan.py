"""`recommend replan`: stay on the machines that run, or move."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from recommender.catalogs.frozen import dataclass
from recommender.cli.error_collector import ErrorCollector
from recommender.cli.exit_codes import CHANGED, INFEASIBLE
from recommender.cli.flags import Word, argument, flag
from recommender.cli.groups import command_app
from recommender.cli.open_catalog import load_catalog, store_at, with_own_machines
from recommender.cli.options import CATALOG, OwnFlags, PageFlags
from recommender.cli.output import form_of, show_page
from recommender.cli.request import progress_of
from recommender.cli.search_progress import watched
from recommender.errors import UsageError
from recommender.export.answer_file import AnswerFile, read_answer
from recommender.inputs import units
from recommender.inputs.limits import parse_limit
from recommender.inputs.units.times import now
from recommender.plan.limits import BUDGET, DEADLINE, Limits, Progress
from recommender.report.answer_frame import PlanRequest
from recommender.train.progress_file import read_progress

if TYPE_CHECKING:
    from recommender.catalogs.catalog import Catalog
    from recommender.plan.replan import Replan

OF_PLAN = "plan"  # of --changed-since: the prices that the plan was made with


@dataclass(frozen=True, slots=True)
class ReplanFlags:
    """What is done of a job, and what may have changed about its limits and prices."""

    done: Word = flag("SHARE", "Share of the job that is done: 40%.")
    elapsed: Word = flag("TIME", "Time since the job started: 9h.")
    spent: Word = flag("USD", "Money spent so far: 61.")
    progress: Word = flag("FILE", "progress.json of the checkpoint helper, instead of these three.")
    plan: Word = flag("N", "Number or role of the running plan (the leading one).")
    deadline: Word = flag("TIME", "New deadline of the whole job.")
    budget: Word = flag("USD", "New budget of the whole job.")
    changed_since: Word = flag(
        "VERSION|plan",
        "For cron: print nothing and exit with 0, unless moving pays or prices of the plan "
        "moved since this catalog version, or since the answer (exit code 7).",
    )
    catalog: Word = CATALOG
    offers: Word = flag("FILE", "CSV file of machines you own or rent elsewhere.")


def replan(
    flags: ReplanFlags,
    output: PageFlags,
    answer: str = argument("ANSWER.json", "The answer written by recommend ... --json."),
) -> None:
    """Whether a running job should move: the rest of it on its machines and on the best others.

    \b
    recommend replan answer.json --done 40% --elapsed 9h --spent 61
    recommend replan answer.json --progress /checkpoints/progress.json --changed-since plan
    """
    errors = ErrorCollector()
    form = form_of(output, errors)
    saved = errors.attempt(lambda: read_answer(Path(answer)), None)
    progress, unsaved_s = _progress(flags, errors)
    errors.raise_all()
    assert saved is not None  # else the reader has stopped
    limits = _limits(saved.limits, flags, errors)
    if limits.budget_usd is not None and flags.spent is None and not progress.spent_usd:
        errors.problems.append("the answer has a budget; state what is spent of it: --spent USD")
    errors.raise_all()
    saved = replace(saved, limits=limits, progress=progress)
    catalog = _catalog(flags)
    found = _found(saved, flags, catalog, unsaved_s)
    if flags.changed_since is None or found.changed or form.kind != "table":
        from recommender.report.replan import replan_page

        request = PlanRequest(saved.job, limits, saved.choice, progress, catalog.version)
        show_page(replan_page(found, request), form)
    if flags.changed_since is not None and found.changed:
        raise typer.Exit(CHANGED)
    if not found.meets_limits:
        raise typer.Exit(INFEASIBLE)


def _progress(flags: ReplanFlags, errors: ErrorCollector) -> tuple[Progress, float | None]:
    """What is done, and the training since the last checkpoint where it is known."""
    typed = progress_of(OwnFlags(done=flags.done, elapsed=flags.elapsed, spent=flags.spent), errors)
    if flags.progress is None:
        missing = [f"--{name}" for name in ("done", "elapsed") if getattr(flags, name) is None]
        if missing:
            errors.problems.append(
                f"{' and '.join(missing)} must be given, or --progress FILE of the checkpoint "
                "helper"
            )
        return typed, None
    path = Path(flags.progress)
    return errors.attempt(lambda: _of_file(path, typed, flags, now()), (typed, None))


def _of_file(
    path: Path, typed: Progress, flags: ReplanFlags, at: datetime
) -> tuple[Progress, float | None]:
    """The file of the checkpoint helper; what is typed besides wins."""
    found = read_progress(path)
    since_s = max(0.0, (at - found.at).total_seconds())
    unsaved_s = since_s if found.interval_s is None else min(since_s, found.interval_s)
    progress = Progress(
        done_share=typed.done_share if flags.done else found.done_share,
        elapsed_s=typed.elapsed_s if flags.elapsed else found.elapsed_s_until(at),
        spent_usd=typed.spent_usd if flags.spent else found.spent_usd or 0.0,
    )
    if progress.done_share >= 1.0:
        raise UsageError(f"{path.name}: the job is done; nothing is left to plan")
    return progress, unsaved_s


def _limits(limits: Limits, flags: ReplanFlags, errors: ErrorCollector) -> Limits:
    """Those of the answer, replaced by those of this call."""
    for limit, word in ((DEADLINE, flags.deadline), (BUDGET, flags.budget)):
        value = errors.parse(word, limit.flag, parse_limit(limit), None)
        limits = limits if value is None else limits.with_value(limit, value)
    at = units.deadline_moment(flags.deadline, now()) if flags.deadline else None
    if at is not None:
        errors.problems.append(
            f"--deadline {flags.deadline}: write the time of the whole job, such as 24h"
        )
    return limits


def _catalog(flags: ReplanFlags) -> "Catalog":
    catalog = load_catalog(flags.catalog)
    return catalog if flags.offers is None else with_own_machines(catalog, flags.offers)[0]


def _before(flags: ReplanFlags) -> "Catalog | None":
    """The catalog whose prices are compared with; None for those of the plan."""
    if flags.changed_since in (None, OF_PLAN):
        return None
    from recommender.cli.commands.versions import load_version, named_version

    store = store_at(None)
    return load_version(store, named_version(store, flags.changed_since))


def _found(
    saved: AnswerFile, flags: ReplanFlags, catalog: "Catalog", unsaved_s: float | None
) -> "Replan":
    from recommender.optimize.watch import Watch
    from recommender.planner.replan import RunningJob
    from recommender.planner.replan import replan as compared

    plan = saved.named(flags.plan).plan
    running = RunningJob(plan, saved.job, saved.limits, saved.choice, saved.progress, unsaved_s)
    watch = Watch()
    with watched(watch, saved.limits.goal, False):
        return compared(running, catalog=catalog, before=_before(flags), watch=watch)


command = command_app("replan", replan)
