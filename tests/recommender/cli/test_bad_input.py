"""Each mistake gives one clear line on standard error, exit 2, and nothing on standard output."""

import json

import jsonschema
import pytest

from recommender.report.json_output import schema_text
from tests.recommender.cli.conftest import Planner, Run

JOB = "resnet50-imagenet"
MISTAKES = [
    (["--deadline", "24"], "--deadline 24 has no unit; write 24h"),
    (["--deadline", "2020-01-01T00:00Z"], "--deadline 2020-01-01T00:00Z is past"),
    (["--deadline", "-3h"], "--deadline -3h is negative"),
    (["--budget", "nan"], "--budget nan is not a finite number"),
    (["--budget", "$5/h"], "--budget $5/h is a price per hour, not a total"),
    (["--budget", "1e309"], "--budget 1e309"),
    (["--hourly", "0"], "--hourly 0 is zero"),
    (["--confidence", "95"], "--confidence 95 is not a share below 1; write 95%"),
    (["--confidence", "100%"], "--confidence 100% is 100 % or more"),
    (["--max-overhead", "x"], "--max-overhead x is not a share"),
    (["--max-machines", "1.5"], "--max-machines 1.5 is not a whole number"),
    (["--objective", "speed"], "--objective: unknown value 'speed'"),
    (["--provider", "asw"], "--provider: unknown value 'asw'; did you mean aws?"),
    (["--region", "us-east-11"], "--region: unknown region 'us-east-11'; did you mean us-east-1?"),
    (["--region", "us-esat-1"], "--region: unknown region 'us-esat-1'; did you mean us-east-1?"),
    (["--region", "us-east"], "--region: unknown region 'us-east'; did you mean us-east*?"),
    (["--instance", "p4d"], "--instance: unknown instance type 'p4d'; did you mean p4d*?"),
    (["--provider", "aws", "--region", "us-central1"], "--region us-central1: no region of aws;"),
    (["--zone", "nowhere"], "--zone: unknown zone 'nowhere'"),
    (["--gpu", "H10"], "--gpu: unknown GPU 'H10'; did you mean H100?"),
    (["--gpu", "A100-20GB"], "--gpu: unknown GPU 'A100-20GB'; did you mean A100?"),
    (["--gpu", "nvidia-a100-80gb"], "did you mean A100-80GB?"),
    (["--gpu", "A100:"], "--gpu A100: cannot be read"),
    (["--instance", "p5.48xlarg"], "--instance: unknown instance type 'p5.48xlarg'"),
    (["--deny", "H10"], "--deny: unknown name 'H10'"),
    (["--deny", " "], "--deny is empty"),
    (["--market", "sopt"], "--market: unknown value 'sopt'; did you mean spot?"),
    (["--market", "spot", "--no-spot"], "--no-spot contradicts --market spot"),
    (["--failover", "all"], "--failover: unknown value 'all'"),
    (["--checkpoint-to", "s3"], "--checkpoint-to: unknown value 's3'"),
    (["--accelerator", "intel"], "--accelerator: unknown value 'intel'"),
    (["--arch", "x86"], "--arch: unknown value 'x86'"),
    (["--data-at", "us-east-1"], "--data-at us-east-1 has no provider"),
    (["--data-at", "aws:mars"], "--data-at: unknown aws region 'mars'"),
    (["--measured", "8xH100"], "--measured 8xH100 has no colon"),
    (["--method", "lorra"], "--method: unknown value 'lorra'; did you mean lora?"),
    (["--precision", "fp4"], "--precision: unknown value 'fp4'"),
    (["--precision", "fp7"], "--precision: unknown value 'fp7'; did you mean fp8?"),
    (["--precision", "double"], "--precision: unknown value 'double'; known: auto, mixed, fp8"),
    (["--tokens", "many"], "--tokens many is not a number"),
    (["--batch", "0"], "--batch 0 is zero"),
    (["--setup", "5"], "--setup 5 has no unit"),
    (["--compare", "8x"], "--compare 8x"),
    (["--done", "140%"], "--done 140% is 100 % or more"),
    (["--elapsed", "9"], "--elapsed 9 has no unit"),
    (["--spent", "-5"], "--spent -5 is negative"),
    (["--mtbf", "soon"], "--mtbf soon"),
    (["--discount", "0.2"], "--discount 0.2 has no provider"),
    (["--assume-on-demand", "2"], "--assume-on-demand 2 is not a share"),
    (["--quota", "none.csv"], "none.csv: no such file"),
    (["--offers", "none.csv"], "none.csv: no such file"),
    (["--top", "0"], "--top 0 is zero"),
    (["--top", "100000"], "--top 100000 is more than 1000 plans"),
    (["--explain", "x"], "--explain x is not a number"),
    (["--seed", "1.5"], "--seed 1.5 is not a whole number"),
    (["--max-age", "30"], "--max-age 30 has no unit"),
    (["--output", "xml"], "--output: unknown value 'xml'"),
    (["--color", "blue"], "--color: unknown value 'blue'"),
    (["--deadline"], "--deadline needs a value: --deadline TIME"),
    (["--deadline", "--budget", "5"], "--deadline needs a value"),
    (["--deadline", "5h", "--deadline", "6h"], "--deadline is given twice"),
    (["--dedline", "5h"], "unknown flag --dedline; did you mean --deadline?"),
    (["--spot-only"], "unknown flag --spot-only; did you mean --market spot?"),
    (["--max-cost", "20"], "unknown flag --max-cost; did you mean --budget?"),
    (["--plans", "3"], "unknown flag --plans; see recommend --help-all"),
    (["--cheapest"], "unknown flag --cheapest; see recommend --help-all"),
    (["--quiet=yes"], "--quiet takes no value"),
    (["another"], "one job at a time; remove another"),
]


@pytest.mark.parametrize(("words", "said"), MISTAKES, ids=lambda v: " ".join(v)[:40])
def test_one_mistake_is_one_clear_line(run: Run, words: list[str], said: str) -> None:
    result = run(JOB, *words)
    assert result.code == 2
    assert result.out == ""
    lines = result.err.splitlines()
    assert [line for line in lines if said in line], result.err
    assert len(lines) == 1
    assert lines[0].startswith("error: ")


def test_all_mistakes_of_a_call_are_reported_at_once(run: Run, planner: Planner) -> None:
    result = run("--deadline", "24", "llama3-8b-pretrian", "--gpu", "H10", "--budgt", "5")
    assert result.code == 2
    assert result.err.splitlines() == [
        "error: unknown flag --budgt; did you mean --budget?",
        "error: --deadline 24 has no unit; write 24h, 1d12h, tomorrow 08:00 or 2026-12-01T08:00Z",
        "error: unknown job 'llama3-8b-pretrian'; did you mean llama3-8b-pretrain?",
        "error: --gpu: unknown GPU 'H10'; did you mean H100?",
    ]
    assert not planner.calls


@pytest.mark.parametrize("form", [["--json"], ["-o", "json"], ["-ojson"], ["--output=json"]])
def test_errors_are_json_where_json_was_requested(run: Run, form: list[str]) -> None:
    result = run(JOB, "--deadline", "24", *form)
    made = json.loads(result.err)
    jsonschema.validate(made, json.loads(schema_text()))
    assert (result.code, result.out) == (2, "")
    assert (made["code"], made["exit_code"]) == ("USAGE", 2)


def test_two_forms_contradict_each_other(run: Run) -> None:
    result = run(JOB, "--json", "-o", "csv")
    assert (result.code, result.out) == (2, "")
    assert json.loads(result.err)["problems"] == ["--json contradicts --output csv; keep one"]


def test_a_misspelt_command_is_no_job(run: Run) -> None:
    result = run("catlog", "status")
    assert (result.code, result.out) == (2, "")
    assert "did you mean recommend catalog?" in result.err
    assert "did you mean status?" in run("catalog", "statsu").err


def test_an_unusable_catalog_is_exit_4(run: Run) -> None:
    result = run(JOB, "--catalog", "nowhere")
    assert (result.code, result.out) == (4, "")
    assert "no catalog here" in result.err


def test_old_prices_are_refused_by_max_age(run: Run) -> None:
    result = run(JOB, "--max-age", "30d", "--provider", "azure")
    assert (result.code, result.out) == (4, "")
    assert "prices are older than --max-age 30d: Azure on-demand" in result.err
    assert run(JOB, "--max-age", "2y", "--provider", "azure").code == 2
    assert run(JOB, "--max-age", "300d", "--provider", "azure").code == 0


def test_old_booked_prices_are_missed_only_where_they_are_asked_for(
    run: Run, planner: Planner
) -> None:
    result = run(JOB, "--max-age", "60d", "--provider", "azure")  # its commitments are older
    assert result.code == 0
    assert "older than --max-age 60d are left out" in result.err
    offers = planner.calls[-1]["catalog"].offers
    kept = {m for p, m in zip(offers.provider, offers.market, strict=True) if p == "azure"}
    assert kept == {"on_demand", "spot"}
    result = run(JOB, "--max-age", "43d", "--provider", "aws", "--market", "reserved")
    assert (result.code, result.out) == (4, "")
    assert "older than --max-age 43d: AWS reserved block 44 days; allow" in result.err


def test_an_internal_error_has_no_traceback(run: Run, planner: Planner) -> None:
    planner.answer = None  # type: ignore[assignment]
    result = run(JOB)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: internal error, please report it (AttributeError")
    assert len(result.err.splitlines()) == 1


def test_settings_are_checked_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOMMEND_CONFIDENCE", "95")
    assert "RECOMMEND_CONFIDENCE 95 is not a share below 1" in run(JOB).err


def test_hostile_words_are_shown_harmless(run: Run) -> None:
    result = run("\x1b[31m[bold]x[/bold]", "--gpu", "\x1b]0;x\x07")
    assert "\x1b" not in result.err
    assert "\x07" not in result.err
    assert result.code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--deadline", "24h", "--mtbf", "0.0001", JOB),
            "--mtbf 0.0001 is less than a mach",
        ),
        (("--deadline", "24h", "--max-machines", "1000000", JOB), "is more than 1024"),
        (
            ("catalog", "show", "nosuch"),
            "unknown GPU or machine 'nosuch'; recommend catalog status",
        ),
        (("catalog", "show", "H1000"), "unknown GPU or machine 'H1000'; did you mean H100?"),
        (
            ("--deadline", "24h", "--explain", "99", JOB),
            "--explain 99: there is no such plan; the plans are 1 to ",
        ),
        (("--machines", "4", "--max-machines", "2", JOB), "--max-machines 2 contradicts machines"),
        (("explain", "h100", JOB), "'h100' is a GPU; name a machine type that has it, such as "),
        (("simulate", JOB, "--runs", "64", "--plot", "x.pdf"), "pictures end in .svg or .png"),
    ],
)
def test_what_cannot_be_done_is_a_usage_error(run: Run, words: tuple[str, ...], said: str) -> None:
    found = run(*words)
    assert found.code == 2
    assert said in found.err


PATHS = (
    ("--catalog", JOB), ("--quota", JOB), ("--offers", JOB), ("simulate", JOB, "--trace"),
    ("simulate", JOB, "1x g5.xlarge", "--deadline", "24h", "--policy-table"), ("jobs", "show"),
    ("calibrate", JOB, "none.csv", "--to"), ("backtest",), ("trace", "fit"), ("bench", "import"),
    ("bench", "run", "-o"), ("catalog", "export"), ("catalog", "import"), ("plan",),
    ("catalog", "status", "--catalog"), ("bench", "compare", "none.json"),
)  # fmt: skip


@pytest.mark.parametrize("words", PATHS, ids=" ".join)
@pytest.mark.parametrize("path", ["a" * 5000, "/".join(["a" * 200] * 30)], ids=["name", "deep"])
def test_a_path_longer_than_any_is_a_mistake_of_the_call(
    run: Run, words: tuple[str, ...], path: str
) -> None:
    flag = words[0].startswith("--")
    found = run(words[1], words[0], path) if flag else run(*words, path)
    assert found.code in (2, 4)
    assert len(found.err.splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [("--seed", "0"), ("--done", "0%"), ("--elapsed", "0h"), ("--spent", "0"), ("--spent", "$0")],
)
def test_nothing_done_or_spent_yet_and_the_seed_zero_can_be_said(
    run: Run, words: tuple[str, ...]
) -> None:
    found = run(JOB, *words, "--deadline", "24h", "--budget", "100")
    assert (found.code, found.err) == (0, "")
