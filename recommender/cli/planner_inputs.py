"""One call of the planner: everything it needs, read from flags, settings and files."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.frozen import dataclass
from recommender.cli.error_collector import ErrorCollector, check_names
from recommender.cli.open_catalog import load_catalog, warn, with_files, without_old_prices
from recommender.cli.options import (
    JobFlags,
    LimitFlags,
    OfferFlags,
    OwnFlags,
    SearchFlags,
    with_settings,
)
from recommender.cli.request import (
    check_job_flags,
    choice_of,
    deadline_at,
    limits_of,
    progress_of,
)
from recommender.cli.search_progress import watched
from recommender.errors import UsageError
from recommender.inputs import units
from recommender.inputs.units.times import now
from recommender.job.job import Job
from recommender.job.jobfile import find_job
from recommender.optimize.watch import Watch
from recommender.plan.answer import Answer
from recommender.plan.limits import LIMITS, Choice, Limits
from recommender.planner.options import AnswerOptions
from recommender.report.answer_frame import PlanRequest
from recommender.text import shown

if TYPE_CHECKING:
    from recommender.catalogs.catalog import Catalog
    from recommender.planner.problem import Problem


@dataclass(frozen=True, slots=True)
class PlannerFlags:
    """The flags of one call that bear on the question."""

    limits: LimitFlags
    offers: OfferFlags
    own: OwnFlags
    job: JobFlags
    search: SearchFlags
    words: tuple[str, ...] = ()

    def over(
        self, settings: Mapping[str, str | tuple[str, ...]], words: Sequence[str] | None
    ) -> "PlannerFlags":
        """These flags, about the job of some words, with settings laid under each of them."""
        changed = {
            each.name: with_settings(getattr(self, each.name), settings)
            for each in fields(self)
            if each.name != "words"
        }
        return replace(self, words=tuple(words or ()), **changed)


@dataclass(frozen=True, slots=True)
class PlannerInputs:
    """A question and what the planner needs besides it."""

    request: PlanRequest
    catalog: "Catalog"
    options: AnswerOptions
    seed: int  # of the simulated runs


def read_inputs(call: PlannerFlags, top: int, errors: ErrorCollector) -> PlannerInputs:
    """Read everything; raise all mistakes together."""
    from recommender.risk.random_numbers import SEED

    limits = limits_of(call.limits, errors)
    choice = choice_of(call.offers, call.own, errors)
    progress = progress_of(call.own, errors)
    max_age = errors.parse(call.search.max_age, "--max-age", units.duration_of("30d"), None)
    options = _options(call, top, errors)
    seed = errors.parse(call.search.seed, "--seed", parse_seed, SEED)
    check_job_flags(call.job, call.own, errors)
    job = errors.attempt(lambda: _job(call), None)
    catalog, choice = read_offers(call.search.catalog, choice, call.own, errors)
    errors.problems += _too_few_machines(call, limits, job)
    errors.raise_all()
    assert job is not None  # else the reader has stopped
    catalog = without_old_prices(catalog, max_age, choice)
    warn(_idle(call, limits))
    at = deadline_at(call.limits)
    if at is not None:  # a moment says what is left, and is no time of the whole job
        limits = replace(limits, deadline_s=(limits.deadline_s or 0.0) + progress.elapsed_s)
    message = units.moment_in_words(at) if at is not None else ""
    request = PlanRequest(job, limits, choice, progress, catalog.version, message)
    return PlannerInputs(request, catalog, options, seed)


def read_offers(
    path: str | None, choice: Choice, own: OwnFlags, errors: ErrorCollector
) -> "tuple[Catalog, Choice]":
    """What may be rented: the catalog, and the choice with the files of the user."""
    catalog, choice = with_files(load_catalog(path), choice, own.quota, own.offers, errors)
    check_names(choice, catalog, own.data_at or "", errors)
    return catalog, choice


def _too_few_machines(call: PlannerFlags, limits: Limits, job: Job | None) -> list[str]:
    """That a stated maximum is below the number of machines that the job is to run on."""
    if job is None or call.limits.max_machines is None or job.machines <= limits.max_machines:
        return []
    return [
        f"--max-machines {limits.max_machines} contradicts machines: {job.machines}, which is to "
        "be used exactly; allow as many, or leave one out"
    ]


def run_planner(ready: PlannerInputs) -> Answer:
    """Run the planner, and show the progress of its search."""
    from recommender.planner.recommend import recommend

    request, watch = ready.request, Watch()
    with watched(watch, request.limits.goal, ready.options.prove):
        return recommend(
            request.job,
            request.limits,
            request.choice,
            ready.options,
            catalog=ready.catalog,
            progress=request.progress,
            seed=ready.seed,
            watch=watch,
        )


def problem_of(ready: PlannerInputs) -> "Problem":
    """The problem of the question."""
    from recommender.planner.problem import planning_problem

    r = ready.request
    return planning_problem(r.job, r.limits, r.choice, ready.catalog, r.progress, now(), ready.seed)


def _idle(call: PlannerFlags, limits: Limits) -> tuple[str, ...]:
    """What was spent so far where there is no limit that it counts against."""
    spent = ((limit, limit.spent.flag) for limit in LIMITS if limit.spent is not None)
    typed = ((limit, flag, getattr(call.own, flag.removeprefix("--"))) for limit, flag in spent)
    return tuple(
        f"{flag} {shown(word)} has no effect without {limit.flag}"
        for limit, flag, word in typed
        if word is not None and limits.value(limit) is None
    )


def _options(call: PlannerFlags, top: int, errors: ErrorCollector) -> AnswerOptions:
    search = call.search
    return AnswerOptions(
        top=top,
        compare=errors.parse(call.own.compare, "--compare", units.parse_comparison, None),
        prove=bool(search.prove),
        verify=bool(search.verify),
        save_lp=Path(search.save_lp) if search.save_lp else None,
    )


def parse_seed(word: str, name: str) -> int:
    """The seed of simulated runs."""
    if word.strip() == "0":
        return 0
    return units.parse_whole(word, name, instead="write a whole number such as 1")


def _job(call: PlannerFlags) -> Job:
    from recommender.job.merge_layers import JobFlags

    if len(call.words) > 1:
        extra = ", ".join(shown(word) for word in call.words[1:])
        raise UsageError(f"one job at a time; remove {extra}")
    typed = {each.name: getattr(call.job, each.name) for each in fields(call.job)}
    flags = JobFlags(**typed, measured=tuple(call.own.measured or ()), data_at=call.own.data_at)
    return find_job(call.words[0] if call.words else None, flags=flags)
