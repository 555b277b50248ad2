"""`recommend replan`: the commands of docs/replan.md, exit codes, and what is refused."""

import io
import json
from contextlib import redirect_stdout
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest

from recommender.cli import main
from recommender.report.json_output import schema_text
from recommender.train.progress_file import TrainingProgress
from tests.recommender.cli.conftest import Run
from tests.recommender.cli.page_commands import run_page

ASK = ("resnet50-imagenet", "--deadline", "24h", "--gpu", "A10G", "--provider", "aws")
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def run(run_with_planner: Run) -> Run:
    return run_with_planner


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The text of one answer, by the real planner."""
    folder, text = tmp_path_factory.mktemp("asked"), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(text):
        patch.setenv("RECOMMEND_NOW", NOW.isoformat())
        patch.setenv("XDG_DATA_HOME", str(folder))
        patch.setenv("XDG_CONFIG_HOME", str(folder))
        assert main((*ASK, "--json")) == 0
    return text.getvalue()


@pytest.fixture
def answer(asked: str, tmp_path: Path) -> Path:
    path = tmp_path / "answer.json"
    path.write_text(asked)
    return path


def progress(folder: Path, step: int, elapsed_h: float, minutes_ago: float = 5.0) -> None:
    began = NOW - timedelta(hours=elapsed_h)
    at = NOW - timedelta(minutes=minutes_ago)
    up_s = (at - began).total_seconds()
    TrainingProgress(step, 1000, began, at, up_s, interval_s=600.0, spent_usd=12.5).write(folder)


def test_every_command_of_the_page_runs_and_says_stay_or_move(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RECOMMEND_GPU", "H100")  # a quick search
    monkeypatch.setenv("RECOMMEND_PROVIDERS", "aws")
    progress(tmp_path, 400, 9.0)
    said = []
    for words, found in run_page("docs/replan.md", run, tmp_path):
        assert found.code in ((0,) if "--changed-since" not in words else (0, 7)), words
        said.append(" ".join(found.out.split()))
    assert "llama3-8b-lora, 40 % done after 9 h: " in said[1]
    assert "Moving " in said[1]
    assert (said[3] == "") == (": stay" in said[2])  # cron hears of what changed alone


def test_the_progress_file_says_what_is_done_what_is_typed_wins_and_json_keeps_its_schema(
    run: Run, answer: Path, tmp_path: Path
) -> None:
    progress(tmp_path, 300, 4.0)
    words = ("replan", str(answer), "--progress", "progress.json", "--spent", "61", "--json")
    made = json.loads(run(*words).out)
    jsonschema.validate(made, json.loads(schema_text()))
    assert made["schema"] == "recommend.replan/v1"
    assert made["inputs"]["progress"] == {
        "done_share": 0.3, "elapsed_s": 4 * 3600, "spent_usd": 61,
    }  # fmt: skip
    assert made["replan"]["moving"]["lost_work_s"] == pytest.approx(300.0)  # since 5 min ago


def test_a_price_that_moved_since_the_plan_ends_with_7(run: Run, answer: Path) -> None:
    words = ("replan", str(answer), "--done", "90%", "--elapsed", "5h", "--changed-since", "plan")
    made = json.loads(answer.read_text())
    for plan in made["plans"]:
        for site in plan["sites"]:
            site["usd_per_hour"] /= 1.2
        for machines in plan["machines"]:
            machines["usd_per_hour"] /= 1.2
    answer.write_text(json.dumps(made))
    found = run(*words)
    assert found.code == 7
    assert "(+20 %)" in found.out
    since_shipped = run(*words[:-1], "shipped")  # its prices are those of the catalog that plans
    assert (since_shipped.code, since_shipped.out) == (0, "")


def test_limits_that_nothing_meets_end_with_3_and_say_why(run: Run, answer: Path) -> None:
    found = run("replan", str(answer), "--done", "1%", "--elapsed", "23h59m")
    assert found.code == 3
    words = " ".join(found.out.split())
    assert "stay, although the remaining limits are unlikely to be met" in words
    assert "No other machines meet the remaining limits with 95 % chance: --elapsed 23h59m" in words


WRONG = [
    ((), "--done and --elapsed must be given, or --progress FILE"),
    (("--done", "40%"), "--elapsed must be given"),
    (("--done", "140%", "--elapsed", "9h"), "--done"),
    (("--progress", "nothing.json"), "progress file nothing.json"),
    (("--done", "4%", "--elapsed", "25h"), "leaves nothing of --deadline"),
    (
        ("--done", "4%", "--elapsed", "5h", "--budget", "9k"),
        "state what is spent of it: --spent USD",
    ),
    (("--done", "4%", "--elapsed", "5h", "--changed-since", "99"), "no version 99"),
    (("--done", "4%", "--elapsed", "5h", "--plan", "77"), "the answer has plans 1"),
]


@pytest.mark.parametrize(("words", "said"), WRONG, ids=[said for _, said in WRONG])
def test_what_is_wrong_is_reported(
    run: Run, answer: Path, words: tuple[str, ...], said: str
) -> None:
    found = run("replan", str(answer), *words)
    assert (found.code in (2, 4), found.out) == (True, "")
    assert said in found.err


def test_a_job_that_is_done_needs_no_plan(run: Run, answer: Path, tmp_path: Path) -> None:
    progress(tmp_path, 1000, 9.0)
    found = run("replan", str(answer), "--progress", "progress.json")
    assert (found.code, found.out) == (2, "")
    assert "the job is done" in found.err
