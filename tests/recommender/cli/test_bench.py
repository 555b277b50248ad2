"""`recommend bench`: records go in, plans and rankings use them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from recommender.benchmarks import suite
from recommender.benchmarks.metadata import Place
from recommender.benchmarks.record import dumps
from tests.benchmarks.machines import record
from tests.recommender.cli.conftest import Planner, Run
from tests.recommender.performance.measurements.test_pool_links import bare, exchange
from tests.recommender.performance.measurements.test_stall_vector import (
    ALL,
    CACHED,
    COLD,
    ONE,
    made,
    wide,
)


@pytest.fixture
def result(run: Run) -> Path:
    """A record in the folder of the call."""
    path = Path("result.json")
    path.write_text(dumps(record(700.0)), "utf-8")
    return path


@pytest.mark.usefixtures("result")
def test_an_imported_speed_replaces_the_shipped_one(run: Run, planner: Planner) -> None:
    shipped = json.loads(run("bench", "show", "H100", "--json").out)["offers"][0]
    done = run("bench", "import", "result.json")
    assert (done.code, done.err) == (0, "")
    assert "H100, quick suite of 2026-11-20" in done.out
    own = json.loads(run("bench", "show", "H100", "--json").out)
    assert own["offers"][0]["tflops"] == 700.0
    assert own["offers"][0]["kind"] == "yours"
    assert shipped["kind"] == "measured"
    assert own["measured"][0]["machines"] == 1
    run("--deadline", "24h", "resnet50-imagenet")
    asked = planner.calls[-1]["catalog"]
    assert asked.achieved["H100", "bf16"].tflops == 700.0
    assert asked.source_by_key[-1].name == "your own benchmarks"
    assert asked.achieved["A100", "bf16"].tflops != 700.0


@pytest.mark.usefixtures("result")
def test_importing_twice_changes_nothing(run: Run) -> None:
    run("bench", "import", "result.json")
    first = run("bench", "show", "H100").out
    again = run("bench", "import", "result.json")
    assert "known already" in again.out
    assert run("bench", "show", "H100").out == first


def test_links_of_an_instance_type_reach_plans(run: Run, planner: Planner) -> None:
    own = bare("p5.48xlarge")
    Path("links.json").write_text(dumps(exchange(own, 8, 1, 300.0)), "utf-8")
    out = run("bench", "import", "links.json").out
    assert "links of aws/p5.48xlarge: 300 GB/s between its GPUs" in " ".join(out.split())
    run("--deadline", "24h", "resnet50-imagenet")
    asked = planner.calls[-1]["catalog"]
    assert asked.instance_types["aws", "p5.48xlarge"].intra_gb_per_s == 300.0


def test_several_machines_are_pooled_and_outliers_are_reported(run: Run) -> None:
    for name, tflops in (("a", 700.0), ("b", 710.0), ("c", 400.0)):
        Path(f"{name}.json").write_text(dumps(record(tflops, machine=name)), "utf-8")
    done = run("bench", "import", "a.json", "b.json", "c.json")
    assert "1 of 3 machines are more than 10 % off" in " ".join(done.out.split())
    found = json.loads(run("bench", "show", "--json").out)["measured"][0]
    assert (found["tflops"], found["outliers"]) == (700.0, 1)


def test_a_speed_far_from_the_published_ones_is_kept_with_a_warning(run: Run) -> None:
    Path("r.json").write_text(dumps(record(300.0)), "utf-8")
    done = run("bench", "import", "r.json")
    assert done.code == 0
    assert "published are" in " ".join(done.out.split())


def test_one_bad_file_keeps_all_out(run: Run, result: Path) -> None:
    Path("cut.json").write_text(result.read_text("utf-8")[:-100], "utf-8")
    Path("odd.json").write_text(dumps(record(2000.0 / 1.1, gpu="Tesla T4")), "utf-8")
    done = run("bench", "import", "result.json", "cut.json", "odd.json", "gone.json")
    assert done.code == 2
    assert done.out == ""
    assert [line.partition(":")[2].split(":")[0].strip() for line in done.err.splitlines()] == [
        "cut.json", "odd.json", "gone.json",
    ]  # fmt: skip
    assert not Path("bench").exists()


def test_an_unknown_gpu_can_be_named(run: Run) -> None:
    Path("r.json").write_text(dumps(record(700.0, gpu="NVIDIA Graphics Device")), "utf-8")
    refused = run("bench", "import", "r.json")
    assert refused.code == 2
    assert "--gpu" in refused.err
    assert run("bench", "import", "r.json", "--gpu", "h100").code == 0
    assert run("bench", "import", "r.json", "--gpu", "H1000").code == 2


def test_a_processors_record_is_kept_and_shown(run: Run) -> None:
    own = record(0.5)
    own = replace(own, device="cpu", machine=replace(own.machine, gpu="", gpus=0))
    Path("cpu.json").write_text(dumps(own), "utf-8")
    done = run("bench", "import", "cpu.json")
    assert "no speed of a GPU" in done.out
    assert "matmul bf16" in run("bench", "show").out


def test_a_broken_table_of_speeds_is_reported_with_the_way_out(run: Run, result: Path) -> None:
    run("bench", "import", str(result))
    table = Path("bench/speeds.csv")
    table.write_text(table.read_text("utf-8").replace("700", "-7"), "utf-8")
    refused = run("bench", "show")
    assert refused.code == 2
    assert "remove it" in refused.err


def test_offers_are_ranked_and_narrowed(run: Run) -> None:
    words = ("bench", "show", "H100", "--market", "spot", "--region", "us-central1", "--top", "2")
    found = json.loads(run(*words, "--json").out)["offers"]
    assert 0 < len(found) <= 2
    assert {(o["market"], o["region"], o["gpu"]) for o in found} == {
        ("spot", "us-central1", "H100")
    }
    tf32 = json.loads(run("bench", "show", "H100", "--precision", "tf32", "--json").out)
    assert tf32["offers"][0]["tflops"] < found[0]["tflops"]
    out = run(*words).out
    assert "FLOP/USD" in out
    assert "published" in out


@pytest.mark.usefixtures("result")
@pytest.mark.parametrize("columns", ["40", "80", "140"])
def test_pages_fit_the_terminal(run: Run, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    run("bench", "import", "result.json")
    for words in (("show", "--top", "5"), ("compare", "result.json", "result.json")):
        lines = run("bench", *words).out.splitlines()
        assert [line for line in lines if len(line) > int(columns)] == []


def test_two_records_are_compared(run: Run, result: Path) -> None:
    Path("b.json").write_text(dumps(record(600.0)), "utf-8")
    out = run("bench", "compare", "result.json", "b.json").out
    assert "0.86" in out
    assert "noise" in out
    found = json.loads(run("bench", "compare", "result.json", "b.json", "--json").out)
    assert found[0]["ratio"] == pytest.approx(600 / 700, rel=1e-4)
    own = replace(record(), results=record().results[:1], profile=None)
    Path("c.json").write_text(
        dumps(replace(own, results=(replace(own.results[0], case="other"),))), "utf-8"
    )
    refused = run("bench", "compare", "result.json", "c.json")
    assert refused.code == 2
    assert "no case in common" in refused.err


def test_stalls_of_two_records_calibrate_a_job(run: Run) -> None:
    one, two = (made(*own) for own in ((ONE, ALL, CACHED, COLD), (wide(ALL, 0.05),)))
    Path("one.json").write_text(dumps(one), "utf-8")
    Path("two.json").write_text(dumps(two), "utf-8")
    done = run("bench", "stalls", "one.json", "two.json", "--timings", "t.csv")
    assert (done.code, done.err) == (0, "")
    said = " ".join(done.out.split())
    assert "Stalls of cnn, 16 H100 on 2 machines: 250 ms a step" in said
    assert "each is assumed to wait like the one that was timed" in said
    facts = json.loads(run("bench", "stalls", "one.json", "--json").out)
    assert [each["name"] for each in facts["stalls"]] == ["interconnect", "preparation", "fetch"]
    fitted = run("calibrate", "resnet50-imagenet", "t.csv")
    assert (fitted.code, fitted.err) == (0, "")
    assert run("bench", "stalls", "one.json", "--timings", "t.csv").code == 2


def test_a_run_says_its_price_before_it_starts(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    made = record(place=Place("aws", "p5.48xlarge", "us-east-1", "", "on_demand"))
    monkeypatch.setattr("recommender.benchmarks.backend.find_torch", lambda: None)
    monkeypatch.setattr("recommender.benchmarks.command.run", lambda ready, notify: made)
    monkeypatch.setattr(suite.metadata, "provider_of", lambda: "")
    words = ("--provider", "aws", "--instance", "p5.48xlarge", "--region", "us-east-1")
    done = run("bench", "run", *words, "-o", "r.json")
    assert (done.code, done.err) == (0, "")
    assert "USD at " in done.out
    assert "written to r.json" in done.out
    assert run("bench", "import", "r.json").code == 0
    plain = run("bench", "run", "--no-metadata", "-o", "r.json")
    assert "no price is known" in plain.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "--suite", "huge"), "--suite"),
        (("run", "--device", "tpu"), "--device"),
        (("run", "--folder", "nowhere"), "is no folder"),
        (("show", "H10"), "H100"),
        (("show", "--market", "block"), "--market"),
        (("show", "--precision", "fp3"), "--precision"),
        (("compare", "a", "b"), "a: No such file"),
        (("stalls", "none.json"), "no such file"),
        (("import", "none.json"), "no such file"),
        (("impart", "x"), "did you mean import"),
    ],
)
def test_a_wrong_call_is_refused(run: Run, words: tuple[str, ...], said: str) -> None:
    done = run("bench", *words)
    assert done.code == 2
    assert said in done.err


def test_the_benchmarks_are_packed(run: Run) -> None:
    assert "python3 b.pyz" in run("bench", "pack", "-o", "b.pyz").out
    refused = run("bench", "pack", "-o", "b.pyz")
    assert refused.code == 2
    assert "--force" in refused.err
    assert run("bench", "pack", "-o", "b.pyz", "--force").code == 0
