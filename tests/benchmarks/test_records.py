"""Records come back as they were, old ones are understood, damaged ones are refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recommender.benchmarks import figures
from recommender.benchmarks import record as record_module
from recommender.benchmarks.errors import BadRecord
from recommender.benchmarks.metadata import Place
from recommender.benchmarks.record import Record, document, dumps, parse_record, read_record
from tests.benchmarks.machines import record

OLD = {
    "schema": "recommend.bench/v1", "taken_at": "2026-11-20T22:06:34+00:00", "tool": "0.1",
    "quick": True,
    "hardware": {"device": "CPU", "processor": "AMD EPYC", "cpus": 2, "memory_gib": 23.5,
                 "system": "Linux x86_64", "python": "3.11.7", "numpy": "2.4.6", "threads": {}},
    "results": [{"benchmark": "matmul", "case": "fp32 512", "unit": "GFLOP/s", "work": 0.268,
                 "seconds": [0.002, 0.0021, 0.0022], "error": 1e-7, "median": 127.0,
                 "spread": 0.1}],
}  # fmt: skip


def test_a_record_comes_back_as_it_was():
    made = record(place=Place("aws", "p5.48xlarge", "us-east-1", "", "spot", "aaaa"))
    assert parse_record(dumps(made), "r.json") == made


def test_every_repetition_and_version_is_kept():
    reported = json.loads(dumps(record()))
    assert reported["schema"] == "recommend.bench/v2"
    assert len(reported["results"][0]["seconds"]) == 5
    assert (
        reported["results"][0]["low"]
        < reported["results"][0]["median"]
        < reported["results"][0]["high"]
    )
    assert reported["software"]["driver"] == "580.1"
    assert reported["gpu_states"][0]["watts"] == 690.0
    assert [s["name"] for s in reported["profile"]["stalls"]] == [
        "interconnect",
        "preparation",
        "fetch",
    ]


def test_the_first_version_is_still_read():
    old = parse_record(json.dumps(OLD), "old.json")
    assert (old.suite, old.device, old.machine.gpu) == ("quick", "cpu", "")
    (speed,) = figures.speeds(old)
    assert speed.precision == "fp32"
    assert speed.best == pytest.approx(0.268 / 0.0021 / 1e3)  # GFLOP/s then, TFLOP/s now
    assert parse_record(dumps(old), "again") == old


def changed(change: Callable[[Any], object]) -> str:
    tree = document(record())
    tree = json.loads(json.dumps(tree))
    change(tree)
    return json.dumps(tree)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.pop("machine"), "machine is missing"),
        (lambda t: t.update(schema="recommend.bench/v9"), "this version reads"),
        (lambda t: t.update(taken_at="yesterday"), "no date"),
        (lambda t: t.update(taken_at="2026-11-20T10:00:00"), "time zone"),
        (lambda t: t.update(suite="huge"), "one of quick, full"),
        (lambda t: t.update(results=[], profile=None), "holds no results"),
        (lambda t: t.update(results={}), "must be a list"),
        (lambda t: t["results"][0].update(seconds=[1.0]), "3 positive numbers"),
        (lambda t: t["results"][0].update(seconds=[1.0, 0.0, 1.0]), "positive"),
        (lambda t: t["results"][0].update(seconds=[1.0, -1.0, 1.0]), "cannot be"),
        (lambda t: t["results"][0].update(work="much"), "must be a number"),
        (lambda t: t["results"][0].update(work=0), "above zero"),
        (lambda t: t["results"][0].update(work=True), "must be a number"),
        (lambda t: t["results"][0].update(unit="parsec"), "one of"),
        (lambda t: t["results"][0].update(ceiling=1.0), "more than the 1 that the hardware can"),
        (lambda t: t["results"][0].update(case="x" * 999), "short text"),
        (lambda t: t["results"][0].update(case="\x1b[31m"), "short text"),
        (lambda t: t["machine"].update(gpus=-1), "cannot be"),
        (lambda t: t["place"].update(provider="hetzner"), "one of"),
        (lambda t: t["software"].update(numpy=2), "short text"),
        (lambda t: t["profile"]["runs"][0].update(seconds=[0.1]), "steps"),
        (lambda t: t["links"][0].update(bytes_per_s=0), "above zero"),
        (lambda t: t.update(results=[3]), "must be an object"),
    ],
)
def test_a_damaged_record_is_refused_with_the_reason(change: Callable[[Any], object], said: str):
    with pytest.raises(BadRecord, match=r"^r\.json") as refusal:
        parse_record(changed(change), "r.json")
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", '{"schema": NaN}', "null", dumps(record())[:-40], "[" * 100_000]
)
def test_what_is_no_record_is_refused(text: str):
    with pytest.raises(BadRecord):
        parse_record(text, "r.json")


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(BadRecord, match="No such file"):
        read_record(tmp_path / "none.json")
    (tmp_path / "b.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadRecord, match="not a text file"):
        read_record(tmp_path / "b.json")
    monkeypatch.setattr(record_module, "MAX_BYTES", 2)
    with pytest.raises(BadRecord, match="larger"):
        read_record(tmp_path / "b.json")


def test_a_record_holds_no_infinity():
    made: Record = record()
    broken = [*made.results, made.results[0].__class__("a", "b", "GB/s", float("inf"), (1.0,), 0.0)]
    with pytest.raises(ValueError):
        dumps(Record(made.taken_at, "quick", "cpu", made.machine, made.place, {}, tuple(broken)))


def test_the_figures_are_the_best_and_the_typical_shape():
    (speed,) = figures.speeds(record(760.0))
    assert speed.best == pytest.approx(836.0)
    assert speed.typical == pytest.approx(760.0)
    assert (speed.low, speed.high) == (pytest.approx(722.0), pytest.approx(798.0))
    assert speed.share == pytest.approx(0.836)
    names = {each.name: each for each in figures.others(record())}
    assert names["memory device copy"].value == pytest.approx(30 / 0.0105)
    assert names["link all_reduce 8 nccl"].value == pytest.approx(360)
