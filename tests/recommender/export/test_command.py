"""`recommend export` and `--write`, as they are called."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from recommender.cli.written_files import write_export
from tests.recommender.export.runs import AWS, TWO_MACHINES

RECOMMEND = str(Path(sys.executable).parent / "recommend")


def called(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([RECOMMEND, *words], cwd=folder, capture_output=True, text=True)


def test_two_commands_lead_to_a_managed_job(tmp_path: Path):
    on_spot = ("--market", "spot")  # a cloud without managed jobs may lead on demand
    asked = ("--deadline", "24h", *on_spot, "llama3-8b-lora", "--json", "--write", "run")
    found = called(tmp_path, *asked)
    assert found.returncode == 0, found.stderr
    assert "wrote run/train.yaml" in found.stderr
    (tmp_path / "answer.json").write_text(found.stdout, encoding="utf-8")
    again = called(tmp_path, "export", "answer.json", "--to", "skypilot", "-o", "again")
    assert again.returncode == 0, again.stderr
    for path in (tmp_path / "run").iterdir():
        if path.suffix == ".zip":
            assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()
            continue
        kept = path.read_text("utf-8").replace("run/", "again/")
        assert yaml_or_text(tmp_path / "again" / path.name) == yaml_or_text(path, kept)
    other = called(
        tmp_path, "export", "answer.json", "--to", "slurm", "-o", "again", "--plan", "99"
    )
    assert other.returncode == 2
    assert "--plan 99: the answer has plans 1" in other.stderr


def test_where_a_script_is_started_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for run, target, words in (
        (TWO_MACHINES, "torchrun", "start on each machine with: bash "),
        (AWS, "torchrun", "start on the machine with: bash "),
        (TWO_MACHINES, "slurm", "start with: sbatch "),
    ):
        write_export(run, target, str(tmp_path / f"{target}-{run.nodes}"))
        assert words in capsys.readouterr().err


def yaml_or_text(path: Path, text: str | None = None) -> object:
    """What a file says, whatever its header."""
    said = path.read_text("utf-8") if text is None else text
    if path.suffix == ".yaml":
        return yaml.safe_load(said)
    return [line for line in said.splitlines() if not line.startswith("#")]
