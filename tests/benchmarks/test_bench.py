"""The benchmarks measure what they say, check their results and leave a whole record."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from benchmarks import command, matmul, memory, record
from benchmarks.record import Result

ROOT = Path(__file__).parents[2]
NUMBERS = {"type": "number", "exclusiveMinimum": 0}
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["schema", "taken_at", "tool", "quick", "hardware", "results"],
    "properties": {
        "schema": {"const": "recommend.bench/v1"},
        "taken_at": {"type": "string"},
        "tool": {"type": "string"},
        "quick": {"type": "boolean"},
        "hardware": {"type": "object", "required": ["device", "processor", "cpus", "numpy"]},
        "results": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["benchmark", "case", "unit", "work", "seconds", "error", "median"],
                "properties": {
                    "work": NUMBERS,
                    "median": NUMBERS,
                    "seconds": {"type": "array", "minItems": 3, "items": NUMBERS},
                },
            },
        },
    },
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matmul, "QUICK_SIZES", (64,))
    monkeypatch.setattr(memory, "QUICK_SIZES_MIB", (1,))


def test_a_rate_is_the_work_over_the_median_second():
    result = Result("matmul", "fp32 8", "GFLOP/s", 6.0, (1.0, 4.0, 2.0), 0.0)
    assert result.median == 3.0
    assert result.spread == pytest.approx((6.0 - 1.5) / 3.0)


def test_warm_up_runs_are_not_timed():
    calls: list[int] = []
    assert len(record.timed(lambda: calls.append(1), warm_up=2, repeats=3)) == 3
    assert len(calls) == 5


@pytest.mark.usefixtures("small")
def test_matmul_counts_two_operations_per_term_and_agrees_with_float64():
    found = {each.case: each for each in matmul.matmul(quick=True)}
    assert set(found) == {"fp32 64", "fp64 64"}
    assert found["fp32 64"].work == pytest.approx(2 * 64**3 / 1e9)
    assert 0 < found["fp32 64"].error < 1e-5
    assert found["fp64 64"].error < 1e-13


def test_a_wrong_product_is_refused():
    a = np.eye(32, dtype=np.float32)
    with pytest.raises(ArithmeticError, match="float32"):
        matmul._error(a, a, 1.001 * a)
    with pytest.raises(ArithmeticError):
        matmul._error(a, a, np.full_like(a, np.nan))


@pytest.mark.usefixtures("small")
def test_a_copy_counts_both_directions():
    (found,) = memory.memory(quick=True)
    assert found.work == pytest.approx(2 * 2**20 / 1e9)


@pytest.mark.usefixtures("small")
def test_the_last_line_is_the_whole_record(capsys: pytest.CaptureFixture[str]):
    assert command.main(["--quick"]) == 0
    lines = capsys.readouterr().out.splitlines()
    said = json.loads(lines[-1])
    jsonschema.validate(said, SCHEMA)
    assert lines[0].startswith("CPU: ")
    assert said["hardware"]["device"] == "CPU"
    assert {row["benchmark"] for row in said["results"]} == {"matmul", "memory"}
    assert all(row["median"] == pytest.approx(_median(row)) for row in said["results"])


def _median(row: dict[str, Any]) -> float:
    return float(row["work"] / np.median(row["seconds"]))


@pytest.mark.usefixtures("small")
def test_the_record_goes_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "result.json"
    assert command.main(["--quick", "-o", str(path)]) == 0
    jsonschema.validate(json.loads(path.read_text()), SCHEMA)
    assert "{" not in capsys.readouterr().out


@pytest.mark.usefixtures("small")
def test_a_file_that_cannot_be_written_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert command.main(["--quick", "-o", str(tmp_path / "no" / "where")]) == 1
    assert "No such file" in capsys.readouterr().err


@pytest.mark.usefixtures("small")
def test_a_machine_that_computes_wrongly_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(matmul, "SLACK", 0.0)
    assert command.main(["--quick"]) == 1
    assert "computes wrongly: matmul of float32" in capsys.readouterr().err


def test_a_reader_may_leave():
    script = "from benchmarks.command import main; import sys; sys.exit(main(['--quick']))"
    call = f'{sys.executable} -c "{script}" | head -1; exit ${{PIPESTATUS[0]}}'
    done = subprocess.run(["bash", "-c", call], cwd=ROOT, capture_output=True, timeout=60)
    assert done.returncode in (0, 141)
    assert done.stderr == b""
