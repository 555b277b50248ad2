"""What cannot go on ends in one line that names what failed, with the code of docs/cli.md."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from recommender.errors import UsageError
from recommender.inputs import settings
from recommender.traces.law_store import stored
from recommender.traces.read import read_traces
from tests.recommender.cli.conftest import Run

LONG = "9" * 5000  # Python refuses to read an integer of more than 4,300 digits


def program(*words: str, cwd: Path, **more: object) -> "subprocess.CompletedProcess[str]":
    """A call of the program itself."""
    env = {**os.environ, "HOME": str(cwd), "XDG_CONFIG_HOME": str(cwd / "config")}
    call = [sys.executable, "-m", "recommender", *words]
    return subprocess.run(call, cwd=cwd, env=env, text=True, **more)  # type: ignore[call-overload,no-any-return]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_behind_standard_output_is_named(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = program("jobs", "list", cwd=tmp_path, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr == "error: standard output: No space left on device\n"


def test_a_working_directory_that_was_deleted_holds_no_project_settings(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = (
        "import os, sys; from recommender.cli import main; os.rmdir(os.getcwd()); "
        "sys.exit(main(['config', 'show']))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=gone, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_word_of_five_thousand_letters_is_not_said_again_whole(tmp_path: Path) -> None:
    done = program("jobs", "list", "--budget", LONG, cwd=tmp_path, capture_output=True)
    assert done.returncode == 2
    assert len(done.stderr) < 500


def test_a_word_that_is_missing_is_reported_with_where_the_words_are_listed(run: Run) -> None:
    reported = run("catalog", "history", "p5.48xlarge")
    assert (reported.code, reported.out) == (2, "")
    assert reported.err == "error: Missing option '--region'; recommend catalog history --help\n"


def test_a_config_folder_that_cannot_be_written_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        settings.save("confidence", ("90%",), tmp_path / "file" / "config.toml")


@pytest.mark.parametrize("key", ["max_machines", "confidence"])
def test_a_setting_of_five_thousand_digits_is_refused(tmp_path: Path, key: str) -> None:
    (tmp_path / "config.toml").write_text(f"{key} = {LONG}\n")
    with pytest.raises(UsageError, match="not TOML"):
        settings.load({}, tmp_path, {}, tmp_path / "config.toml")
    with pytest.raises(UsageError, match="edit the file"):
        settings.save(key, ("0.5" if key == "confidence" else "5",), tmp_path / "config.toml")


@pytest.mark.parametrize("value", [f"0x{LONG}", f"[[0x{LONG}]]", f"{{aws = 0x{LONG}}}"])
@pytest.mark.parametrize("key", ["max_machines", "discount"])
def test_a_setting_of_five_thousand_digits_to_another_base_is_refused(
    tmp_path: Path, key: str, value: str
) -> None:
    (tmp_path / "config.toml").write_text(f"{key} = {value}\n")
    with pytest.raises(UsageError, match=f"config.toml: {key}: holds a number of thousands"):
        settings.load({}, tmp_path, {}, tmp_path / "config.toml")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("prices.json", f'[{{"SpotPrice": {LONG[:4000]}, "Timestamp": "2026-01-01T00:00Z"}}]'),
        ("operations.json", f'[{{"operationType": "insert", "id": {LONG}}}]'),
        ("own.csv", f"t_s,event,value\n{LONG},machines,1\n"),
    ],
)
def test_a_trace_with_a_number_beyond_all_floats_is_refused(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError):
        read_traces(tmp_path / name)


def test_kept_laws_with_such_a_number_are_refused(tmp_path: Path) -> None:
    (tmp_path / "laws.json").write_text(f'{{"schema": {LONG[:400]}}}')
    with pytest.raises(UsageError, match="not JSON"):
        stored(tmp_path / "laws.json")


def test_a_ranking_without_an_offer_is_refused(run: Run) -> None:
    for words, said in (
        (("T4", "--precision", "bf16"), "the speed of T4 in bf16 is not known; known: fp16, fp32"),
        (("H100", "--region", "us-east2"), "--region: unknown region 'us-east2'; did you mean"),
        (("K80",), "no offer matches; recommend catalog show lists all"),
    ):
        result = run("bench", "show", *words)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith(f"error: {said}")
    result = run("catalog", "show", "H100", "--region", "us-east2")
    assert "unknown region 'us-east2'; did you mean us-east-2?" in result.err


def test_a_gpu_without_bf16_is_ranked_by_what_it_has(run: Run) -> None:
    for gpu, precision in (("t4", "fp16"), ("P4", "fp32")):
        result = run("bench", "show", gpu)
        assert result.out.startswith(f"Matrix multiplication in {precision} per dollar")
