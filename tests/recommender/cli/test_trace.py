"""`recommend trace`: what it prints, what it keeps, and what the next call makes of it."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from recommender.risk.normal_law import normal_quantile
from recommender.risk.random_numbers import uniforms
from recommender.traces.own_format import write
from tests.recommender.cli.conftest import Planner, Run
from tests.recommender.traces.made import START, alternating

JOB = "resnet50-imagenet"
OFFER = "gcp:us-central1:a3-highgpu-8g"


@pytest.fixture
def zones(tmp_path: Path) -> Path:
    """Two zones of four machines, each watched for some weeks."""
    lengths = [np.exp(0.7 * normal_quantile(uniforms(1, stream, 120))) for stream in range(4)]
    made = [
        alternating(2.7 * lengths[0], 1.3 * lengths[1], 4, "us-central1-a"),
        alternating(2.7 * lengths[2], 1.3 * lengths[3], 4, "us-central1-b"),
    ]
    (tmp_path / "zones.csv").write_text(write(made))
    return tmp_path / "zones.csv"


def test_a_series_that_was_never_up_is_reported_as_such(run: Run, tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text("t_s,event,value\n0,machines,0\n360000,end,\n")
    rows = csv.reader(io.StringIO(run("trace", "fit", "none.csv", "-o", "csv").out))
    assert [row[1:4] for row in rows if row[0] == "gang"][0] == ["1", "availability", "0"]
    assert "never up" in run("trace", "fit", "none.csv").out


@pytest.mark.parametrize("words", [["fit"], ["show"]])
@pytest.mark.parametrize("columns", ["40", "80", "140"])
def test_a_page_fits_the_terminal(
    run: Run, zones: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    result = run("trace", *words, "zones.csv")
    assert (result.code, result.err) == (0, "")
    assert [line for line in result.out.splitlines() if len(line) > int(columns)] == []


def test_figures_as_json_and_as_csv_are_the_same(run: Run, zones: Path) -> None:
    made = json.loads(run("trace", "fit", "zones.csv", "-o", "json").out)
    assert made["schema"] == "recommend.trace-fit/v1"
    rows = list(csv.DictReader(io.StringIO(run("trace", "fit", "zones.csv", "-o", "csv").out)))
    found = {(r["part"], r["of"], r["figure"]): r for r in rows}
    mean = found["planner", "law", "run_mean"]
    assert float(mean["value"]) == made["law"]["run_mean_s"]["value"]
    assert float(mean["low"]) == made["law"]["run_mean_s"]["low"]
    assert found["gang", "4", "availability"]["unit"] == "share"
    assert len([r for r in rows if r["part"] == "hour"]) == 24


def test_a_law_is_kept_used_listed_and_forgotten(run: Run, zones: Path, planner: Planner) -> None:
    run(JOB)
    assert planner.calls[-1]["choice"].spot_laws == ()
    kept = run("trace", "fit", "zones.csv", "--store", OFFER, "--store", "gcp:*:A100:8")
    assert f"saved for {OFFER}; recommend uses it from now on" in kept.out
    run(JOB)
    laws = planner.calls[-1]["choice"].spot_laws
    assert [law.offer for law in laws] == ["gcp:*:A100:8", OFFER]
    assert laws[1].fitted == "2026-11-20"
    assert laws[1].trace == "us-central1-a, us-central1-b"
    assert OFFER in run("trace", "list").out
    assert len(json.loads(run("trace", "list", "--json").out)["laws"]) == 2
    assert run("trace", "forget", OFFER).out == f"forgot {OFFER}\n"
    assert run("trace", "forget", OFFER).code == 2
    assert "No spot law" not in run("trace", "list").out
    run("trace", "forget", "gcp:*:a100:8")
    assert run("trace", "list").out.startswith("No spot law of your own is saved.\n")


def test_a_law_of_few_days_is_kept_with_a_warning(run: Run, tmp_path: Path) -> None:
    short = alternating(np.full(30, 2.0), np.full(30, 1.0), 1, "us-central1-a")
    (tmp_path / "short.csv").write_text(write([short]))
    out = run("trace", "fit", "short.csv", "--store", OFFER).out
    assert "warning: watched for only 90 h; availability moves from week to week" in out


def test_one_series_can_be_chosen(run: Run, zones: Path) -> None:
    made = json.loads(run("trace", "fit", "zones.csv", "--series", "*-b", "--json").out)
    assert [s["name"] for s in made["series"]] == ["us-central1-b"]
    wrong = run("trace", "fit", "zones.csv", "--series", "us-central1-c")
    assert (wrong.code, wrong.out) == (2, "")
    assert "--series: unknown series 'us-central1-c'; did you mean" in wrong.err


def test_a_converted_file_holds_the_same_data(run: Run, zones: Path, tmp_path: Path) -> None:
    assert (
        run("trace", "convert", "zones.csv", "-o", "out.csv.gz").out == "2 series in out.csv.gz\n"
    )
    before, after = (run("trace", "fit", f, "--json").out for f in ("zones.csv", "out.csv.gz"))
    assert before == after
    assert run("trace", "convert", "zones.csv").out == zones.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fit", "none.csv"], "none.csv: no such file"),
        (["fit", "zones.csv", "-o", "xml"], "--output: unknown value 'xml'"),
        (["fit", "zones.csv", "--store", "gcp:us-central1"], "is not an offer; write PROVIDER:"),
        (["fit", "zones.csv", "--store", "gpc:*:H100:8"], "unknown provider 'gpc'"),
        (["fit", "zones.csv", "--store", "gcp:mars:H100:8"], "unknown zone or region 'mars'"),
        (["fit", "zones.csv", "--store", "gcp:*:H1000"], "unknown machine 'H1000'"),
        (["fit", "zones.csv", "--store", "gcp:*:H100"], "name one: H100:1"),
        (
            ["fit", "zones.csv", "--store", "aws:us-east-1a:H100:8"],
            "write its id, such as use1-az1",
        ),
        (["fit", "zones.csv", "--stor", "x"], "unknown flag --stor; did you mean --store?"),
        (["convert", "zones.csv", "-o", "no/out.csv"], "no/out.csv: cannot be written"),
        (["fti"], "unknown command 'trace fti'; did you mean fit?"),
    ],
)
def test_a_mistake_is_one_clear_line(run: Run, zones: Path, words: list[str], said: str) -> None:
    result = run("trace", *words)
    assert (result.code, result.out) == (2, "")
    assert said in result.err
    assert len(result.err.splitlines()) == 1
    assert run("trace", "list").out.startswith("No spot law")


def test_a_damaged_store_stops_the_next_answer(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data" / "recommend").mkdir(parents=True)
    (tmp_path / "data" / "recommend" / "spot-laws.json").write_text("{")
    result = run(JOB)
    assert (result.code, result.out) == (2, "")
    assert "spot-laws.json: not JSON" in result.err


def test_a_stream_of_few_characters_gets_simpler_bars() -> None:
    from recommender.cli.screen import write_text

    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    write_text("▁▃▆█\n", stream)
    stream.flush()
    assert raw.getvalue() == b"_:+#\n"


def test_prices_alone_are_shown(run: Run, tmp_path: Path) -> None:
    rows = "AvailabilityZone,InstanceType,ProductDescription,SpotPrice,Timestamp\n"
    for hour, usd in ((0, 1.0), (30, 2.0), (200, 1.5)):
        when = np.datetime64(START.replace(tzinfo=None)) + np.timedelta64(hour, "h")
        rows += f"us-east-1a,p3.2xlarge,Linux/UNIX,{usd},{when}Z\n"
    (tmp_path / "aws.csv").write_text(rows)
    assert "1-2" in run("trace", "show", "aws.csv").out
    out = run("trace", "fit", "aws.csv").out
    assert "only prices were watched" in out
    assert run("trace", "fit", "aws.csv", "--store", "aws:*:V100:1").code == 2
