"""Many jobs under many limits: each job is planned once for all of them, each as a row of a table.

What is done is written down as it ends, so a run that was killed is continued by the next.
"""

import gc
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

from recommender.api.calls import plan_row
from recommender.catalogs.catalog import Catalog
from recommender.catalogs.files import replace_file
from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.inputs.files import writing
from recommender.inputs.units import format_duration
from recommender.inputs.workers import Workers
from recommender.job.job import Job
from recommender.job.jobfile import find_job
from recommender.plan.limits import Choice, Limits, Progress
from recommender.plan.version import __version__
from recommender.planner.infeasibility import infeasible
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import planning_problem
from recommender.planner.ranking import best_kinds
from recommender.report.json_output import plain
from recommender.risk.random_numbers import SEED
from recommender.text import shown_path

Row = dict[str, Any]
SUFFIXES = (".yaml", ".yml")
DIED = "the processes that planned it died again and again; is memory short?"
LASTS = timedelta(days=1)  # how long a run that was stopped may be continued as of its moment


@dataclass(frozen=True, slots=True)
class JobEntry:
    """A job of a batch by its name and file, or why it cannot be read."""

    name: str
    file: str
    job: Job | None
    problem: str = ""
    limits: tuple[Limits, ...] = ()  # its own; else those of the question


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of every job: its limits, each an answer of its own, and what may be rented."""

    limits: tuple[Limits, ...]
    choice: Choice
    catalog: Catalog
    moment: datetime  # from which the ages of prices count
    top: int = 1  # plans of each answer, of different kinds
    seed: int = SEED
    inputs: bool = False  # with what each plan is simulated from

    def of(self, entry: JobEntry) -> "Question":
        """The question about one job, which may have limits of its own."""
        return replace(self, limits=entry.limits or self.limits)

    def key(self, entry: JobEntry) -> str:
        """What names the question about a job, on every machine; "" where there is no job."""
        if entry.job is None:
            return ""
        asked = replace(self.of(entry), catalog=self.catalog.sha256)  # type: ignore[arg-type]
        job = replace(entry.job, name="")
        return sha256(repr((__version__, asked, job)).encode()).hexdigest()


def read_jobs(words: Sequence[str]) -> list[JobEntry]:
    """The jobs of folders, files and presets; what cannot be read is an entry as well."""
    files = [each for word in words for each in _files_of(word)]
    if not files:
        raise UsageError(f"{', '.join(map(shown_path, words))}: no job files (*.yaml) there")
    return [read_entry(each) for each in files]


def _files_of(word: str) -> list[str]:
    folder = Path(word)
    if not folder.is_dir():
        return [word]
    return sorted(str(each) for each in folder.iterdir() if each.suffix in SUFFIXES)


def read_entry(file: str) -> JobEntry:
    """The job of a file or preset, or why there is none."""
    path, name = Path(file), Path(file).stem
    try:
        in_folder = path.suffix in SUFFIXES
        job = find_job(path.name, path.parent) if in_folder else find_job(file)
        return JobEntry(name, file, job)
    except UsageError as error:
        return JobEntry(name, file, None, "; ".join(error.problems))


def plan_rows(question: Question, entry: JobEntry) -> list[Row]:
    """The plans of one job under every limit; a refusal is a row too."""
    assert entry.job is not None  # those that cannot be read are not planned
    try:
        return _rows(question.of(entry), entry.job)
    except UsageError as error:
        return [_refused("error", "; ".join(error.problems))]
    except Exception as error:  # a defect that one job meets is no reason to lose the others
        return [_refused("error", f"internal error, please report it ({error!r})")]
    finally:
        gc.collect(0)  # what a job leaves, 40 MB; the command line collects seldom (2026-11)


def _rows(question: Question, job: Job) -> list[Row]:
    first, choice, catalog = question.limits[0], question.choice, question.catalog
    moment, seed = question.moment, question.seed
    problem = planning_problem(job, first, choice, catalog, Progress(), moment, seed)
    rows, pools = list[Row](), list[PlanPool]()
    for limits in question.limits:
        most = problem.limits.max_machines  # the job's own where it states them
        pools.append(PlanPool(problem.under(replace(limits, max_machines=most))))
        found = best_kinds(pools[-1], question.top)
        asked = _asked(limits)
        for rank, each in enumerate(found, 1):
            row = {**asked, "status": "ok", "message": "", **plan_row(rank, each.plan)}
            row["needs"] = plain(each.plan.needs)
            if question.inputs:
                row["inputs"] = {n: getattr(each.inputs, n).item() for n in each.inputs.__slots__}
            rows.append(row)
        rows += [] if found else [{**asked, **_refused("infeasible", "")}]
    if not any(row["status"] == "ok" for row in rows):
        why = "; ".join(infeasible(pools[-1]).binding)
        rows = [{**row, "message": why} for row in rows]
    return rows


def _refused(status: str, message: str) -> Row:
    return {"status": status, "message": message}


def _asked(limits: Limits) -> Row:
    due_s = limits.deadline_s
    word = "" if due_s is None else format_duration(due_s)
    return {"deadline": word, "deadline_s": due_s, "budget_usd": limits.budget_usd}


@dataclass(frozen=True, slots=True)
class Journal:
    """What a run has done so far, a line for each job as it ends; without a path only in memory."""

    path: Path | None
    done: dict[str, list[Row]]
    moment: datetime  # at which the run began

    @staticmethod
    def opened(path: Path | None, moment: datetime) -> "Journal":
        """The journal of a run that was stopped less than a day ago, or a new one."""
        lines = list(_lines(path)) if path is not None else []
        begun = datetime.fromisoformat(lines[0]["begun"]) if lines else moment
        if not timedelta(0) <= moment - begun < LASTS:
            begun, lines = moment, []
        done = {line["key"]: line["rows"] for line in lines[1:]}
        journal = Journal(path, done, begun)
        if path is not None:
            journal.rewrite(done)
        return journal

    def rewrite(self, kept: dict[str, list[Row]]) -> None:
        """Write the journal anew with what is kept; a line cut off by a killed run goes."""
        assert self.path is not None
        lines = [{"begun": self.moment.isoformat()}, *({"key": k, "rows": kept[k]} for k in kept)]
        with writing(f"-o {shown_path(self.path)}"):
            replace_file(self.path, "".join(f"{json.dumps(line)}\n" for line in lines).encode())

    def add(self, key: str, rows: list[Row]) -> None:
        """Keep what came of a job."""
        self.done[key] = rows
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps({'key': key, 'rows': rows})}\n")


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The whole lines of a journal."""
    if not path.exists():
        return
    for line in path.read_text("utf-8").splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            return


def plan_batch(
    jobs: Sequence[JobEntry],
    question: Question,
    workers: Workers,
    journal: Path | None = None,
    tick: Callable[[int, int], None] | None = None,
) -> list[Row]:
    """All rows in the order of the jobs, the same for any workers; `tick` hears what is done.

    Raises:
        RecommendError: the workers were lost; what was done is in the journal.
    """
    kept = Journal.opened(journal, question.moment)
    question = replace(question, moment=kept.moment)
    keys = [question.key(each) for each in jobs]
    asked = {key: each for key, each in zip(keys[::-1], jobs[::-1], strict=True) if key}
    work = [key for key in dict.fromkeys(keys) if key and key not in kept.done]
    for number, rows in workers.results(plan_rows, question, [asked[key] for key in work]):
        if rows is not None:
            kept.add(work[number], rows)
        if tick is not None:
            tick(len(asked.keys() & kept.done.keys()), len(asked))
    if journal is not None:
        kept.rewrite({key: kept.done[key] for key in dict.fromkeys(keys) if key in kept.done})
    of_all = {"catalog": question.catalog.version, "as_of": question.moment.isoformat()}
    return [
        {"job": each.name, "file": each.file, **row, **of_all}
        for each, key in zip(jobs, keys, strict=True)
        for row in kept.done.get(key) or [_refused("error", each.problem or DIED)]
    ]
