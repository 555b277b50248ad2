"""A batch gives what single questions give, with any workers, and loses nothing that was done."""

import json
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from recommender import recommend
from recommender.api import batch
from recommender.api.batch import JobEntry, Question, Row, plan_batch, read_jobs
from recommender.inputs.workers import LOCAL, Workers
from recommender.plan.limits import Choice, Limits, QuotaLimit
from recommender.report.batch import COLUMNS, check_target, json_lines, write
from tests.recommender.planning import NOW, small

HOUR = 3600.0
LIMITS = tuple(Limits(deadline_s=h * HOUR, max_machines=4) for h in (16, 48))
OF_ALL = ("job", "file", "catalog", "as_of")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four jobs, two of which are one question, and one that cannot be read."""
    folder = tmp_path_factory.mktemp("jobs")
    for name, epochs in (("a", 60), ("b", 90), ("c", 30), ("same-as-a", 60)):
        text = f"like: resnet50-imagenet\nepochs: {epochs}\n"
        (folder / f"{name}.yaml").write_text(text, "utf-8")
    (folder / "broken.yaml").write_text("like: resnet50-imagenet\nepochs: [\n", "utf-8")
    return folder


@pytest.fixture(scope="module")
def jobs(folder: Path) -> list[JobEntry]:
    return read_jobs([str(folder)])


@pytest.fixture(scope="module")
def question() -> Question:
    return Question(LIMITS, Choice(mix="no"), small(), NOW, top=2)


@pytest.fixture(scope="module")
def rows(jobs: list[JobEntry], question: Question) -> list[Row]:
    """What one process without a journal gives."""
    return plan_batch(jobs, question, Workers())


class Killed(Exception):
    """The client of a batch ends here."""


def dies_after(pieces: int) -> Any:
    """A tick that ends the client once so many jobs are done."""

    def tick(done: int, _: int) -> None:
        if done >= pieces:
            raise Killed

    return tick


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch, rows: list[Row]) -> list[str]:
    """The jobs that are planned, in their order; each gets the rows known for its name."""
    names = list[str]()

    def known(_: Question, entry: JobEntry) -> list[Row]:
        names.append(entry.name)
        mine = [row for row in rows if row["job"] == entry.name]
        return [{n: v for n, v in row.items() if n not in OF_ALL} for row in mine]

    monkeypatch.setattr(batch, "plan_rows", known)
    return names


def test_each_best_plan_is_that_of_a_question_of_its_own(
    jobs: list[JobEntry], question: Question
) -> None:
    rows = plan_batch(jobs, question, Workers())
    compared = 0
    for entry in jobs:
        for limits in LIMITS if entry.job is not None else ():
            alone = recommend(entry.job, limits, catalog=question.catalog, now=NOW)  # type: ignore[arg-type]
            mine = [
                r
                for r in rows
                if (r["job"], r.get("deadline_s")) == (entry.name, limits.deadline_s)
            ]
            if alone.status != "ok":
                assert [row["status"] for row in mine] == ["infeasible"]
                continue
            best = alone.plans[alone.best - 1]
            assert mine[0]["cost_usd"] == best.estimate.cost.mean
            assert mine[0]["time_s_p50"] == best.estimate.time.p50
            assert mine[0]["chance"] == best.estimate.chance >= limits.confidence - 0.02
            compared += 1
    assert compared >= 8


def test_a_job_that_cannot_be_read_is_a_row_and_the_others_are_planned(
    rows: list[Row],
) -> None:
    broken = [row for row in rows if row["status"] == "error"]
    assert [row["job"] for row in broken] == ["broken"]
    assert broken[0]["message"].startswith("broken.yaml, line 3")
    assert {row["job"] for row in rows} == {"a", "b", "broken", "c", "same-as-a"}


def test_a_defect_of_one_job_is_its_row(
    jobs: list[JobEntry], question: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = batch.best_kinds

    def fails(pool: Any, top: int) -> Any:
        if pool.problem.job.name == "b":
            raise ZeroDivisionError("by nothing")
        return kinds(pool, top)

    monkeypatch.setattr(batch, "best_kinds", fails)
    status = {row["job"]: row["status"] for row in plan_batch(jobs[:3], question, Workers())}
    assert status == {"a": "ok", "b": "error", "broken": "error"}


def test_a_quota_below_every_plan_stops_a_job_and_says_so(
    jobs: list[JobEntry], question: Question
) -> None:
    none = tuple(QuotaLimit(p, "others", "any", "", "machine", 0.0) for p in ("aws", "gcp"))
    choice = Choice(quotas=none, quotas_known=True)
    rows = plan_batch(jobs[:1], replace(question, choice=choice), Workers())
    assert {row["status"] for row in rows} == {"infeasible"}
    assert "quota" in rows[0]["message"]


def test_one_question_is_planned_once_however_many_files_ask_it(
    jobs: list[JobEntry], question: Question, planned: list[str]
) -> None:
    rows = plan_batch(jobs, question, Workers())
    assert planned == ["a", "b", "c"]
    mine = [{**row, "job": "", "file": ""} for row in rows if row["job"] in ("a", "same-as-a")]
    assert mine[: len(mine) // 2] == mine[len(mine) // 2 :]


@pytest.mark.parametrize("cut", [False, True], ids=["whole lines", "a line cut off"])
def test_a_client_that_ends_loses_nothing_that_was_done(
    jobs: list[JobEntry],
    question: Question,
    planned: list[str],
    rows: list[Row],
    tmp_path: Path,
    cut: bool,
) -> None:
    journal = tmp_path / "plans.done"
    with pytest.raises(Killed):
        plan_batch(jobs, question, Workers(), journal, dies_after(2))
    if cut:
        journal.write_text(journal.read_text("utf-8")[:-40], "utf-8")
    done = planned.copy()
    later = replace(question, moment=NOW + timedelta(hours=3))
    assert plan_batch(jobs, later, Workers(), journal) == rows
    assert planned[len(done) :] == (["b", "c"] if cut else ["c"])
    again = planned.copy()
    assert plan_batch(jobs, later, Workers(), journal) == rows
    assert planned == again


@pytest.mark.parametrize(
    "changed",
    [
        {"moment": NOW + timedelta(days=2)},
        {"limits": LIMITS[:1]},
        {"choice": Choice(providers=("gcp",))},
        {"seed": 8},
    ],
    ids=["two days later", "other limits", "other offers", "another seed"],
)
def test_another_question_is_planned_anew(
    jobs: list[JobEntry], question: Question, planned: list[str], tmp_path: Path, changed: Any
) -> None:
    journal = tmp_path / "plans.done"
    plan_batch(jobs[:1], question, Workers(), journal)
    plan_batch(jobs[:1], replace(question, **changed), Workers(), journal)
    assert planned == ["a", "a"]
    assert len(journal.read_text("utf-8").splitlines()) == 2  # nothing is kept in vain


def test_processes_give_the_same_bytes(
    jobs: list[JobEntry], question: Question, rows: list[Row]
) -> None:
    assert json_lines(plan_batch(jobs, question, Workers(2))) == json_lines(rows)


@pytest.mark.slow
def test_a_dask_cluster_gives_the_same_bytes(
    jobs: list[JobEntry], question: Question, rows: list[Row]
) -> None:
    pytest.importorskip("distributed")
    assert json_lines(plan_batch(jobs, question, Workers(2, LOCAL))) == json_lines(rows)


def test_a_job_of_which_workers_die_is_a_row_and_is_tried_again_by_the_next_run(
    jobs: list[JobEntry],
    question: Question,
    planned: list[str],
    rows: list[Row],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def results(_: Workers, do: Any, common: Any, work: Any) -> Any:
        return ((n, None if each.name == "b" else do(common, each)) for n, each in enumerate(work))

    journal = tmp_path / "plans.done"
    with monkeypatch.context() as dying:
        dying.setattr(Workers, "results", results)
        found = plan_batch(jobs, question, Workers(), journal)
    status = {row["job"]: row["status"] for row in found}
    assert status == {"a": "ok", "b": "error", "broken": "error", "c": "ok", "same-as-a": "ok"}
    planned.clear()
    assert plan_batch(jobs, question, Workers(), journal) == rows
    assert planned == ["b"]


KILLED = """
import os, signal, sys
from pathlib import Path
from recommender.api import batch
from recommender.inputs.workers import Workers
from tests.recommender.api.test_batch import LIMITS, NOW, Choice, Question, small
def main():
    tick = lambda done, of: os.kill(os.getpid(), signal.SIGKILL)
    question = Question(LIMITS, Choice(mix="no"), small(), NOW, top=2)
    batch.plan_batch(batch.read_jobs(sys.argv[1:2]), question, Workers(2), Path(sys.argv[2]), tick)
if __name__ == "__main__":
    main()
"""


@pytest.mark.slow
def test_a_client_that_is_killed_leaves_no_workers_and_its_journal(
    jobs: list[JobEntry], question: Question, rows: list[Row], folder: Path, tmp_path: Path
) -> None:
    script, journal = tmp_path / "killed.py", tmp_path / "plans.done"
    root = Path(__file__).parents[3]
    script.write_text(f"import sys\nsys.path.append({str(root)!r})\n{KILLED}", "utf-8")
    words = [sys.executable, str(script), str(folder), str(journal)]
    # Its workers hold the other end of the pipe: that ends once all of them have gone.
    done = subprocess.run(words, stdout=subprocess.PIPE, timeout=100, check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(journal.read_text("utf-8").splitlines()) >= 2
    assert plan_batch(jobs, question, Workers(), journal) == rows


def test_rows_are_read_by_pandas_and_duckdb(rows: list[Row], tmp_path: Path) -> None:
    pandas, duckdb = pytest.importorskip("pandas"), pytest.importorskip("duckdb")
    folder = tmp_path / "plans.parquet"
    (folder / "deadline=5h").mkdir(parents=True)  # of an earlier batch
    write(rows, folder)
    first = {path: path.read_bytes() for path in folder.glob("*/*")}
    write(rows, folder)
    assert {path: path.read_bytes() for path in folder.glob("*/*")} == first
    frame = pandas.read_parquet(folder)
    assert set(frame.columns) == {*COLUMNS, "deadline"}
    assert sorted(frame["deadline"].unique()) == ["16h", "2d", "none"]
    of_rows = sorted(row["cost_usd"] for row in rows if row["status"] == "ok")
    assert sorted(frame["cost_usd"].dropna()) == of_rows
    total = duckdb.sql(f"select sum(cost_usd) from '{folder}/*/*.parquet'").fetchall()[0][0]
    assert total == pytest.approx(sum(of_rows))
    need = json.loads(frame["needs"].dropna().iloc[0])
    assert all({"name", "region", "amount", "unit"} <= each.keys() for each in need)


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.parquet" / "photos").mkdir(parents=True)
    for name in ("mine.parquet", "plans.csv"):
        with pytest.raises(batch.UsageError):
            check_target(tmp_path / name)


def test_every_row_has_the_version_of_one_catalog(jobs: list[JobEntry], question: Question) -> None:
    rows: list[Row] = plan_batch(jobs, question, Workers())
    assert {row["catalog"] for row in rows} == {question.catalog.version}
    assert {row["as_of"] for row in rows} == {NOW.isoformat()}
