"""One call of the planner: everything it needs, read from flags and files."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from recommender import units
from recommender.cli.flags import JobFlags, LimitFlags, OfferFlags, OwnFlags, SearchFlags
from recommender.cli.reader import Reader
from recommender.cli.request import check_job_flags, choice_of, limits_of, progress_of
from recommender.cli.show import Form
from recommender.errors import UsageError
from recommender.job import Job
from recommender.plan import Answer
from recommender.report.question import Question
from recommender.text import shown

if TYPE_CHECKING:
    from catalogs.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and how it is to be answered."""

    question: Question
    catalog: "Catalog"
    compare: units.Comparison | None
    top: int
    seed: int
    prove: bool
    save_lp: Path | None


def read(
    reader: Reader,
    words: list[str] | None,
    limit_flags: LimitFlags,
    offers: OfferFlags,
    own: OwnFlags,
    job_flags: JobFlags,
    search: SearchFlags,
    form: Form,
) -> Asked:
    """Read everything; raise all mistakes together."""
    limits = limits_of(limit_flags, reader)
    choice = choice_of(offers, own, reader)
    progress = progress_of(own, reader)
    compare = reader.value(own.compare, "--compare", units.parse_comparison, None)
    seed = reader.value(search.seed, "--seed", units.parse_whole, 1)
    check_job_flags(job_flags, own, reader)
    job = reader.attempt(lambda: _job(words, job_flags, own), None)
    reader.stop()
    assert job is not None  # or there would have been a problem
    catalog = _catalog(search.catalog)
    return Asked(
        Question(job, limits, choice, progress, catalog.version),
        catalog=catalog,
        compare=compare,
        top=form.top,
        seed=seed,
        prove=search.prove,
        save_lp=Path(search.save_lp) if search.save_lp else None,
    )


def answer(asked: Asked) -> Answer:
    """Ask the planner."""
    from recommender.planner import recommend

    question = asked.question
    return recommend(
        question.job,
        question.limits,
        question.choice,
        catalog=asked.catalog,
        progress=question.progress,
        compare=asked.compare,
        top=asked.top,
    )


def _job(words: list[str] | None, flags: JobFlags, own: OwnFlags) -> Job:
    from recommender import jobfile

    if words and len(words) > 1:
        extra = ", ".join(shown(word) for word in words[1:])
        raise UsageError(f"one job at a time; remove {extra}")
    given = {name: getattr(flags, name) for name in JobFlags.__dataclass_fields__}
    overrides = jobfile.JobFlags(
        **given, measured=tuple(own.measured or ()), data_at=own.data_at
    )
    return jobfile.find_job(words[0] if words else None, flags=overrides)


def _catalog(path: str | None) -> "Catalog":
    from catalogs.load import load, load_snapshot

    return load(Path(path)) if path else load_snapshot()
