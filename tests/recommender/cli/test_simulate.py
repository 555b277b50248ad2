"""`recommend simulate`, from words to pages."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from recommender.cli import main, screen
from recommender.cli.screen import write_text
from tests.recommender.cli.conftest import Result

Run = Callable[..., Result]
JOB = "resnet50-imagenet"
QUICK = ("--provider", "aws", "--gpu", "A10G", "--runs", "2048")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run `recommend simulate` with the real planner, in an empty folder, on a fixed day."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "RECOMMEND_OUTPUT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RECOMMEND_NOW", "2026-11-20T12:00Z")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> Result:
        code = main(["simulate", *words])
        return Result(code, *capsys.readouterr())

    return call


@pytest.mark.usefixtures("planned_once")
def test_the_plan_that_leads_is_simulated(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(JOB, "--deadline", "48h", *QUICK)
    assert (found.code, found.err) == (0, "")
    assert main([JOB, "--deadline", "48h", *QUICK[:4], "--json"]) == 0
    lead = json.loads(capsys.readouterr().out)["lead"]
    assert f"Plan {lead}:" in found.out
    assert "2,048 simulated runs, seed 7" in found.out
    for word in (
        "Where the time of a usual run goes",
        "training",
        "in 48 h",
        "first order",
        "Cost in USD",
    ):
        assert word in found.out


def test_the_same_seed_gives_the_same_bytes_and_the_seed_changes_the_runs_alone(run: Run) -> None:
    words = (JOB, "--deadline", "48h", *QUICK, "-o", "json")
    first, again, other = run(*words), run(*words), run(*words, "--seed", "8")
    assert first.out == again.out
    one, two = (json.loads(r.out)["simulation"] for r in (first, other))
    assert one["plan"] == two["plan"]
    assert one["cost"] != two["cost"]


@pytest.mark.parametrize(
    "words", [("4x g5.12xlarge spot us-east-1",), ("4x", "g5.12xlarge", "spot", "us-east-1")]
)
def test_machines_are_named_after_the_job(run: Run, words: tuple[str, ...]) -> None:
    found = run(JOB, *words, "--runs", "512")
    assert found.code == 0
    assert "Your machines: 4× g5.12xlarge spot" in found.out


@pytest.mark.parametrize("form", ["csv", "markdown", "json"])
def test_other_forms(run: Run, form: str) -> None:
    found = run(JOB, "4x g5.12xlarge spot us-east-1", "--runs", "512", "-o", form)
    assert found.code == 0
    assert {"csv": "figure,unit,mean", "markdown": "| cost USD |", "json": '"simulation"'}[
        form
    ] in found.out


def test_a_picture_is_written(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    found = run(JOB, "4x g5.12xlarge spot us-east-1", "--runs", "512", "--plot", "out.svg")
    assert found.code == 0
    text = (tmp_path / "out.svg").read_bytes()
    assert text.startswith(b"<svg")


def test_a_recording_is_replayed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "z.csv").write_text("t_s,event,value\n0,machines,4\n36000,machines,0\n72000,end,\n")
    found = run(JOB, "4x g5.12xlarge spot us-east-1", "--runs", "512", "--trace", "z.csv")
    assert "recorded: z.csv" in found.out


def test_some_series_of_a_recording_are_replayed(run: Run, tmp_path: Path) -> None:
    rows = [
        f"{name},{t},{what}"
        for name in "ab"
        for t, what in ((0, "machines,4"), (36000, "machines,0"), (72000, "end,"))
    ]
    (tmp_path / "z.csv").write_text("\n".join(["series,t_s,event,value", *rows]) + "\n")
    words = (JOB, "4x g5.12xlarge spot us-east-1", "--runs", "256", "--trace", "z.csv")
    assert "2 series" in run(*words).out
    assert "1 series" in run(*words, "--series", "b").out
    assert "unknown series 'c'; known: a, b" in run(*words, "--series", "c").err


def test_a_survival_curve_is_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("age_h,survival\n0,1\n1,0.6\n10,0.2\n")
    found = run(JOB, "4x g5.12xlarge spot us-east-1", "--runs", "512", "--run-law", "c.csv")
    assert "survival curve of your file, mean 6.04 h" in found.out


@pytest.mark.usefixtures("planned_once")
def test_no_plan_means_exit_3_and_why(run: Run) -> None:
    hopeless = (JOB, "--deadline", "1m", "--instance", "g5.xlarge", "--max-machines", "1")
    found = run(*hopeless)
    assert found.code == 3
    assert "no plan" in found.out.lower()
    made = json.loads(run(*hopeless, "-o", "json").out)
    assert (made["schema"], made["status"]) == ("recommend.plan/v1", "infeasible")


WRONG = [
    (("--plan", "2", "4x g5.12xlarge"), "--plan names a plan of the answer"),
    (("--compare", "4x g5.12xlarge"), "--compare has no place here"),
    (("--run-law", "weibull:0.6", "--deflatable", "pressure=1%,depth=5%"), "exclude each other"),
    (("--run-law", "gamma:2"), "is no law of runs"),
    (("--run-law", "weibull:90"), "is out of range"),
    (("--deflatable", "pressure=10%"), "has no depth"),
    (("--deflatable", "presure=10%,depth=5%"), "did you mean pressure?"),
    (("--runs", "0"), "is zero"),
    (("--series", "a"), "give --trace FILE as well"),
    (("--runs", "90M"), "more than 10,000,000"),
    (("8x", "nothing at all"), "names two regions"),
]


@pytest.mark.parametrize(("words", "said"), WRONG, ids=[said for _, said in WRONG])
def test_what_is_wrong_is_reported(run: Run, words: tuple[str, ...], said: str) -> None:
    found = run(JOB, *words)
    assert (found.code, found.out) == (2, "")
    assert said in found.err


class Watched(io.StringIO):
    """A terminal that says when something is drawn on it."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn = Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if text.strip():
            self.drawn.set()
        return super().write(text)


def terminal(monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Standard error as a terminal, on which bars are drawn at once.

    No fixture, since pytest puts its own stream in place of one that stands before a test.
    """
    made = Watched()
    monkeypatch.setattr("sys.stderr", made)
    monkeypatch.setattr(screen, "QUIET_S", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    return made


def test_no_bar_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with screen.progress("runs", 10**6) as tick:
        tick(10**5, 10**6)
    assert capsys.readouterr().err == ""


def test_no_bar_for_what_takes_less_than_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    made = terminal(monkeypatch)
    monkeypatch.setattr(screen, "QUIET_S", 3600.0)
    with screen.progress("runs", 10**6) as tick:
        tick(10**5, 10**6)
    assert made.getvalue() == ""


@pytest.mark.parametrize("total", [3, None])
def test_a_bar_is_drawn_while_the_first_piece_is_done(
    monkeypatch: pytest.MonkeyPatch, total: int | None
) -> None:
    """A back-test of three traces took nine seconds without a word."""
    made = terminal(monkeypatch)
    with screen.progress("back-test", total):
        assert made.drawn.wait(60.0)
    assert "back-test" in made.getvalue()
    assert made.getvalue().endswith("\x1b[2K")  # and is taken away


def test_a_bar_waits_for_the_line_of_the_search_before(monkeypatch: pytest.MonkeyPatch) -> None:
    made = terminal(monkeypatch)
    with screen.progress("runs", 10**6, after_first=True) as tick:
        assert not made.drawn.is_set()
        tick(10**5, 10**6)
        assert made.drawn.wait(60.0)
    assert "of 1,000,000" in made.getvalue()


def test_verify_reaches_the_planner(planner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["--deadline", "24h", JOB, "--verify", "-q"]) == 0
    assert planner.calls[0]["options"].verify


def test_a_terminal_of_plain_characters_gets_plain_bars() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    write_text("██▌ 7 %\n█▎ 2 %\n", stream)
    stream.flush()
    assert raw.getvalue() == b"### 7 %\n# 2 %\n"


# A request whose first plan has a fallback; of one type, so that the search is quick.
ONE_TYPE = ("--instance", "a3-highgpu-8g", "--max-machines", "4")
RESCUED_ASK = ("gpt2-xl", "--deadline", "60h", *ONE_TYPE[:2], "--max-machines", "2")
ALONE = ("gpt2-124m", "--deadline", "300h", *ONE_TYPE)  # and one without
RESCUED = (*RESCUED_ASK, "--plan", "1", "--runs", "512")


@pytest.mark.usefixtures("planned_once")
def test_the_full_policy_is_simulated_next_to_the_fallback_rule(run: Run) -> None:
    found = run(*RESCUED, "--policy", "full")
    assert (found.code, found.err) == (0, "")
    for name in ("fallback rule", "two thresholds", "full policy"):
        assert name in found.out
    facts = json.loads(run(*RESCUED, "--policy", "thresholds", "--json").out)["simulation"]
    assert [each["name"] for each in facts["policies"]] == ["fallback rule", "two thresholds"]
    rows = run(*RESCUED, "--policy", "thresholds", "-o", "csv").out
    assert '"cost, two thresholds"' in rows
    assert "full policy" not in rows
    assert "| two thresholds |" in run(*RESCUED, "--policy", "thresholds", "-o", "markdown").out


@pytest.mark.usefixtures("planned_once")
def test_explain_shows_the_policy_or_why_there_is_none(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RESCUED_ASK, "--explain", "1"]) == 0
    out = capsys.readouterr().out
    assert "Fallback policy" in out
    assert "cost-optimal, a lower bound" in out
    assert "spot/wait" in out
    assert main([*ALONE, "--explain", "1"]) == 0
    assert "No policy was computed: the plan waits for spot" in capsys.readouterr().out
    assert main(["gpt2-xl", *ONE_TYPE, "--explain", "1"]) == 0
    assert "No policy was computed: there is no deadline" in capsys.readouterr().out


@pytest.mark.usefixtures("planned_once")
def test_with_the_fallback_rule_alone_the_simulation_is_unchanged(run: Run) -> None:
    assert run(*RESCUED, "--policy", "net").out == run(*RESCUED).out


@pytest.mark.usefixtures("planned_once")
def test_the_plan_as_skypilot_runs_it_is_simulated_next_to_the_plan_itself(run: Run) -> None:
    alone = "skypilot, no switch"
    found = json.loads(run(*RESCUED, "--executor", "skypilot", "--json").out)["simulation"]
    counted, left, *_ = found["executors"]
    assert (counted["name"], left["name"]) == ("as the plan counts", alone)
    assert counted["cost"] == found["cost"]
    assert counted["chance"] == found["chance"]
    assert left["chance"] < counted["chance"]
    assert left["fallback_share"] == 0
    for form in ("table", "csv", "markdown"):
        assert alone in run(*RESCUED, "--executor", "skypilot", "-o", form).out
    assert "did you mean skypilot" in run(*RESCUED, "--executor", "skypilots").err


@pytest.mark.usefixtures("planned_once")
def test_the_policy_is_written_as_a_table(run: Run, tmp_path: Path) -> None:
    found = run(*RESCUED, "--policy-table", "policy.csv")
    assert (found.code, found.err) == (0, "")
    comment, header, *rows = (tmp_path / "policy.csv").read_text("utf-8").splitlines()
    for said in ("# recommend ", "catalog ", "seed 7", "a3-highgpu-8g", "spot class h100x8"):
        assert said in comment
    assert header.split(",")[-2:] == ["decision", "usd_to_go"]
    assert len(rows) > 10_000
    assert {len(row.split(",")) for row in rows} == {9}


@pytest.mark.usefixtures("planned_once")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*RESCUED, "--policy", "best"), "--policy: unknown value 'best'"),
        ((*RESCUED, "--policy-table", "."), "--policy-table . is a folder"),
        ((*RESCUED, "--policy-table", "none/there.csv"), "cannot be written"),
        (
            ("gpt2-124m", "--deadline", "300h", "--market", "spot", *ONE_TYPE, "--policy", "full"),
            "no on-demand fallback",
        ),
        ((*ALONE, "--market", "spot", "--policy-table", "x.csv"), "no on-demand fallback"),
        (("gpt2-xl", *ONE_TYPE, "--policy", "full"), "there is no deadline"),
    ],
)
def test_what_has_no_policy_is_refused(
    run: Run, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    found = run(*words)
    assert found.code == 2
    assert said in found.err
    assert list(tmp_path.glob("*.csv")) == []
