"""`recommend-bench` says what it will cost, measures, and leaves a whole record; also packed."""

import ast
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from recommender.benchmarks import (
    backend,
    checkpoint,
    collectives,
    command,
    input_pipeline,
    matmul,
    memory,
    suite,
)
from recommender.benchmarks.bundle import write_bundle
from recommender.benchmarks.errors import BenchError
from recommender.benchmarks.estimate import Probe
from recommender.benchmarks.input_pipeline import Loader
from recommender.benchmarks.record import parse_record, read_record
from recommender.benchmarks.suite import SuiteOptions, prepare
from recommender.benchmarks.training import find_training
from tests.benchmarks.machines import bench

ROOT = Path(__file__).parents[2]
SMALL = ["--no-metadata"]


def test_a_full_disk_behind_standard_output_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(command, "measure", full)
    assert command.main(SMALL) == 1
    assert capsys.readouterr().err == "error: standard output: No space left on device\n"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tiny sizes, no torch, no processes next to this one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(backend, "find_torch", lambda: None)
    monkeypatch.setattr(matmul, "_SQUARES", {("cpu", "quick"): (32, 64)})
    monkeypatch.setattr(matmul, "_WIDTH", {"cpu": (32, 32)})
    monkeypatch.setattr(memory, "_SIZES_MIB", {"quick": (1,)})
    monkeypatch.setattr(checkpoint, "_SIZES_MIB", {"quick": (1,)})
    monkeypatch.setattr(input_pipeline, "_FILE_MIB", {"quick": 1})
    monkeypatch.setattr(input_pipeline, "BATCH", 1)
    monkeypatch.setattr(
        collectives, "measure_ring", lambda n, name, sizes, _: {s: (s / 1e9,) * 3 for s in sizes}
    )


@pytest.mark.usefixtures("small")
def test_the_last_line_is_the_whole_record(capsys: pytest.CaptureFixture[str]):
    assert command.main(SMALL) == 0
    lines = capsys.readouterr().out.splitlines()
    found = parse_record(lines[-1], "stdout")
    assert lines[0].startswith("CPU: ")
    assert lines[1].startswith("suite quick: about ")
    assert found.device == "cpu"
    subjects = {each.benchmark for each in found.results}
    assert subjects == {"matmul", "memory", "checkpoint", "inputs", "collectives"}
    assert any("torch is not installed" in reason for reason in found.skipped)
    assert {"python", "numpy", "kernel"} <= set(found.software)


@pytest.mark.usefixtures("small")
def test_the_record_goes_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["-o", "r.json", "--provider", "aws", "--instance", "p5.48xlarge", "--market", "spot"]
    assert command.main([*SMALL, *words]) == 0
    place = read_record(tmp_path / "r.json").place
    assert (place.provider, place.instance_type, place.market) == ("aws", "p5.48xlarge", "spot")
    out = capsys.readouterr().out
    assert "aws p5.48xlarge spot" in out
    assert "{" not in out


@pytest.mark.usefixtures("small")
def test_a_full_disk_costs_the_file_and_not_what_was_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command.main([*SMALL, "-o", "/dev/full"]) == 1
    said = capsys.readouterr()
    assert said.err == "error: /dev/full: No space left on device\n"
    assert parse_record(said.out.splitlines()[-1], "stdout").device == "cpu"


@pytest.mark.usefixtures("small")
def test_time_and_cost_are_reported_before_anything_is_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(suite, "measure", stop)
    monkeypatch.setattr(suite, "probe", lambda folder: Probe(0.1, 10.0, 1.0, 1.0, False))
    with pytest.raises(KeyboardInterrupt):
        command.main([*SMALL, "--usd-per-hour", "36"])
    out = capsys.readouterr().out
    seconds = prepare(SuiteOptions(ask_metadata=False)).seconds
    assert f"about {36 * seconds / 3600:.2g} USD at 36 USD/h" in out


@pytest.mark.parametrize("word", ["abc", "nan", "-3", "0"])
def test_what_is_no_price_is_reported(word: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        command.main(["--usd-per-hour", word])
    assert f"{word} is no price per hour" in capsys.readouterr().err


@pytest.mark.usefixtures("small")
def test_every_machine_that_takes_part_is_paid():
    ready = prepare(SuiteOptions(ask_metadata=False, usd_per_hour=36.0))
    two = replace(ready, bench=replace(ready.bench, world=16, machines=2), seconds=100.0)
    assert two.announcement == (
        "suite quick: about 2 min, about 2 USD at 36 USD/h for each of 2 machines"
    )


@pytest.mark.usefixtures("small")
def test_a_training_that_is_not_there_is_reported_before_the_minutes_pass(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(suite, "measure", lambda *_: pytest.fail("measured"))
    assert command.main([*SMALL, "--profile", "no_such_module:f"]) == 2
    assert "No module named" in capsys.readouterr().err


@pytest.mark.usefixtures("small")
def test_a_training_that_fails_loses_only_its_stalls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "my_failing_steps.py").write_text("def steps(kind):\n    return lambda: 1 / 0\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert command.main([*SMALL, "--profile", "my_failing_steps:steps"]) == 0
    lines = capsys.readouterr().out.splitlines()
    found = parse_record(lines[-1], "stdout")
    assert found.profile is None
    assert any("ZeroDivisionError: division by zero" in each for each in found.skipped)
    assert "runs your own code: my_failing_steps:steps" in lines


@pytest.mark.usefixtures("small")
def test_a_store_that_refuses_loses_its_own_cases_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """boto3 raises exceptions of its own, which are no OSError: here for want of credentials."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/no/such/file")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    words = ["--s3", "s3://bucket/runs", "--s3-endpoint", "http://127.0.0.1:9"]
    assert command.main([*SMALL, *words]) == 0
    found = parse_record(capsys.readouterr().out.splitlines()[-1], "stdout")
    assert any(each.startswith("checkpoint write s3 1 MiB: ") for each in found.skipped)
    assert "inputs" in {each.benchmark for each in found.results}


@pytest.mark.usefixtures("small")
def test_a_file_that_cannot_be_written_is_reported_at_once(capsys: pytest.CaptureFixture[str]):
    assert command.main([*SMALL, "-o", "no/where.json"]) == 1
    said = capsys.readouterr()
    assert "No such file" in said.err
    assert said.out == ""


@pytest.mark.usefixtures("small")
def test_a_run_that_is_ended_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """torchrun ends the others with SIGTERM, and so does a spot machine that is taken."""

    def ended(*_: object) -> None:
        assert list(tmp_path.glob("recommend-*.bench"))
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(checkpoint, "forget", ended)
    with pytest.raises(SystemExit):
        command.main([*SMALL, "-o", "r.json"])
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--device", "cuda"], "torch is not installed"),
        (["--folder", "nowhere"], "is no folder"),
        (["--s3", "bucket"], "s3://bucket/prefix"),
        (["--profile", "cnn"], "needs torch"),
        (["--profile", "resnet"], "module:function"),
        (["--profile", "no_such_module:f"], "No module named"),
        (["--profile", "json:no_such"], "no_such"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_the_way_out(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
):
    assert command.main([*SMALL, *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("small")
def test_a_machine_that_computes_wrongly_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(matmul, "SLACK", 0.0)
    assert command.main(SMALL) == 1
    assert "computes wrongly: matmul of fp32" in capsys.readouterr().err


@pytest.mark.usefixtures("small")
def test_a_full_disk_loses_its_own_cases_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "write_safely", full)
    assert command.main(SMALL) == 0
    found = parse_record(capsys.readouterr().out.splitlines()[-1], "stdout")
    assert any("No space left" in reason for reason in found.skipped)
    assert {"matmul", "inputs"} <= {each.benchmark for each in found.results}


def test_ranks_come_from_torchrun(monkeypatch: pytest.MonkeyPatch):
    for name, value in (("RANK", "3"), ("WORLD_SIZE", "8"), ("LOCAL_RANK", "1")):
        monkeypatch.setenv(name, value)
    assert backend.place() == (3, 8, 1)
    monkeypatch.setenv("RANK", "x")
    with pytest.raises(BenchError, match="torchrun"):
        backend.place()


def test_a_function_of_ones_own_is_profiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "my_training_steps.py").write_text("def steps(kind):\n    return lambda: kind\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    training = find_training(bench(tmp_path), "my_training_steps:steps")()
    assert training.begin("cold")() == "cold"


def test_the_perceptron_trains_on_every_kind_of_data(tmp_path: Path):
    training = find_training(bench(tmp_path), "mlp")()
    for kind in ("synthetic_one", "cached", "cold"):
        training.begin(kind)()
    training.close()
    assert list(tmp_path.iterdir()) == []


def test_cold_data_are_dropped_without_waiting_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """An fsync waits for what other programs write too: 100 ms that were counted as fetching."""
    training = find_training(bench(tmp_path), "mlp")()
    dropped: list[Path] = []
    monkeypatch.setattr("recommender.benchmarks.training.drop", dropped.append)
    monkeypatch.setattr(os, "fsync", lambda handle: pytest.fail("waited for the disk"))
    step = training.begin("cold")
    assert len(set(dropped)) == 32
    for _ in range(3):
        step()
    training.close()
    assert len(dropped) >= 32 + 3


def test_a_loader_gives_every_batch_and_hands_on_errors():
    loader = Loader(lambda i: i, lambda i: 2 * i, workers=2)
    given = [loader.next() for _ in range(12)]
    assert len(set(given)) == 12  # none twice
    assert all(batch % 2 == 0 for batch in given)
    loader.close()

    def broken(number: int) -> int:
        raise OSError("gone")

    loader = Loader(broken, abs, workers=1)
    with pytest.raises(OSError, match="gone"):
        loader.next()
    loader.close()


def test_the_packed_file_runs_next_to_a_folder_of_the_same_name(tmp_path: Path):
    """Training repositories have such folders; ours must win inside the archive (and not on)."""
    target = tmp_path / "bench.pyz"
    write_bundle(target)
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__init__.py").write_text("raise SystemExit('not ours')\n")
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    script = (
        f"import sys; sys.path.insert(0, {str(target)!r})\n"
        "from benchmarks.ring import measure_ring\n"
        "print(len(measure_ring(2, 'all_reduce', (64,), 3)[64]))"
    )
    for call, said in (([str(target), "--help"], "recommend-bench"), (["-c", script], "3")):
        done = subprocess.run(
            [sys.executable, *call], cwd=tmp_path, env=env, capture_output=True, text=True,
            timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert said in done.stdout


def test_the_packed_file_would_run_under_the_python_of_ubuntu_22_04():
    """3.10: its syntax, and none of the names that 3.11 added to what is imported here."""
    newer = {"UTC", "StrEnum", "Self", "assert_never", "LiteralString", "tomllib"}
    for path in (ROOT / "benchmarks").glob("*.py"):
        tree = ast.parse(path.read_text("utf-8"), feature_version=(3, 10))
        imported = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        assert not imported & newer, path.name


def test_without_numpy_the_packed_file_says_so(tmp_path: Path):
    target = tmp_path / "bench.pyz"
    write_bundle(target)
    done = subprocess.run(
        [sys.executable, "-S", "-I", str(target)], cwd=tmp_path, capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert "numpy is not installed here, with or without torch" in done.stderr


def test_a_file_is_not_overwritten_unasked(tmp_path: Path):
    target = tmp_path / "bench.pyz"
    target.write_text("mine")
    with pytest.raises(BenchError, match="--force"):
        write_bundle(target)
    assert target.read_text() == "mine"
    write_bundle(target, force=True)
    assert target.stat().st_size < 200_000


def test_the_benchmarks_need_nothing_of_the_rest(tmp_path: Path):
    target = tmp_path / "bench.pyz"
    write_bundle(target)
    script = (
        f"import sys; sys.path.insert(0, {str(target)!r})\n"
        "import json, benchmarks.command\n"
        "print(json.dumps(sorted({m.partition('.')[0] for m in sys.modules})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    loaded = set(json.loads(done.stdout))
    assert "benchmarks" in loaded
    assert not loaded & {"recommender", "catalogs", "pandas", "boto3", "torch", "typer"}


def test_the_benchmarks_import_each_other_by_no_name_of_their_package():
    """It is `recommender.benchmarks` where installed and `benchmarks` in the packed file."""
    for path in (ROOT / "benchmarks").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level < 2, path.name
                named = [] if node.level else [node.module or ""]
            tops = {name.partition(".")[0] for name in named}
            assert not tops & {"recommender", "catalogs", "benchmarks"}, path.name


@pytest.mark.usefixtures("small")
def test_a_reader_may_leave(monkeypatch: pytest.MonkeyPatch):
    def gone(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(command, "measure", gone)
    monkeypatch.setattr(command.os, "dup2", lambda *_: None)
    assert command.main(SMALL) == 141
