"""`recommend init`: a job file from flags, questions and files of training tools."""

import io
import json
import sys
from pathlib import Path
from shutil import copy

import pytest

from recommender.job.jobfile import find_job
from tests.recommender.cli.conftest import Planner, Run

CONFIGS = Path(__file__).parents[1] / "inputs" / "training_configs"
SAID = ("--model", "Qwen/Qwen2.5-7B", "--method", "lora", "--examples", "50k", "--epochs", "3")
MORE = ("--tokens-per-example", "600", "--batch", "64", "--lora-rank", "16", "--stack", "trl")


class Terminal(io.StringIO):
    """Typed answers, and Return for the rest."""

    def __init__(self, typed: str) -> None:
        super().__init__(typed + 9 * "\n")

    def isatty(self) -> bool:
        return True


def test_flags_write_a_file_that_the_printed_command_reads(
    run: Run, planner: Planner, tmp_path: Path
) -> None:
    found = run("init", *SAID, *MORE, "--deadline", "24h")
    assert (found.code, found.err) == (0, "")
    assert "50,000 examples × 3 epochs × 600 tokens = 90M tokens" in found.out
    assert "assumed" not in found.out
    assert "recommend --deadline 24h" in found.out
    assert run("--deadline", "24h").code == 0
    job = planner.calls[0]["job"]
    assert (job.examples, job.epochs, job.parameters) == (50_000, 3, 7_615_616_512)


def test_every_line_of_the_file_is_commented_or_plain(run: Run, tmp_path: Path) -> None:
    run("init", *SAID, *MORE)
    lines = (tmp_path / "recommend.yaml").read_text("utf-8").splitlines()
    assert lines[0] == "schema: recommend.job/v1"
    assert all("# " in line for line in lines[1:])


def test_a_file_that_exists_is_kept_unless_forced(run: Run, tmp_path: Path) -> None:
    (tmp_path / "recommend.yaml").write_text("mine")
    found = run("init", *SAID)
    assert (found.code, found.out) == (2, "")
    assert "--force" in found.err
    assert (tmp_path / "recommend.yaml").read_text() == "mine"
    assert run("init", *SAID, "--force").code == 0


def test_the_file_of_a_training_tool_is_read(run: Run, tmp_path: Path) -> None:
    copy(CONFIGS / "axolotl_qlora.yaml", tmp_path / "axolotl.yaml")
    found = run("init", "--from", "axolotl.yaml", "--gpus", "8", "--to", "own.yaml", "--json")
    assert found.code == 0
    reported = json.loads(found.out)
    assert reported["tool"] == "axolotl"
    assert [each.partition(" (")[0] for each in reported["not_read"]] == [
        "size of the data set aaditya/alpaca_subset_1",
    ]
    assert "learning_rate" in reported["not_used"]
    assert reported["next"] == "recommend own.yaml"
    assert find_job(str(tmp_path / "own.yaml")).global_batch == 64


def test_at_a_terminal_questions_are_asked_and_return_takes_the_default(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("gpt2\n\n20k\n\n\n\n\naws:us-east-1\n36h\nnew\n"))
    found = run("init")
    assert found.code == 0
    assert "recommend --deadline 36h --quota default-new" in found.out
    assert "Examples in the data set" in found.err
    job = find_job(str(tmp_path / "recommend.yaml"))
    assert (job.parameters, job.method, job.examples) == (124_439_808, "full", 20_000)
    assert (job.epochs, job.tokens_per_sample, job.global_batch) == (3, 600, 64)
    assert job.data.at == "aws:us-east-1"


def test_a_question_is_repeated_after_an_invalid_answer(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        sys,
        "stdin",
        Terminal("gpt2-tiny-mine\ngpt2\npeft\n\nmany\n20k\n\n\n\n\n\nsoon\n\nmine"),
    )
    found = run("init")
    assert found.code == 0
    assert "known: full, lora, qlora" in found.err
    assert found.err.count("Examples in the data set") == 2
    job = find_job(str(tmp_path / "recommend.yaml"))
    assert (job.parameters, job.method, job.examples) == (124_439_808, "full", 20_000)


def test_a_batch_of_each_gpu_is_written_and_not_requested_again(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("gpt2\n\n20k\n\n\n\n\n\n\n"))
    found = run("init", "--batch-per-gpu", "8")
    assert found.code == 0
    assert "all GPUs together" not in found.err
    job = find_job(str(tmp_path / "recommend.yaml"))
    assert (job.global_batch, job.batch_per_gpu) == (8, True)


def test_with_yes_no_question_is_asked(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(""))
    assert run("init", "--yes").code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--model", "Qwen/Qwenn2.5"), "did you mean Qwen/Qwen2.5-"),
        (("--from", "none.yaml"), "no such file"),
        (("--fetch",), "--fetch needs --model"),
        (("--deadline", "soon"), "--deadline"),
        ((*SAID, "--examples-per-epoch", "1"), "unknown flag"),
        ((*SAID[:-2], "--epochs", "-1"), "epochs"),
        ((*SAID[:-2], "--method", "peft"), "method"),
        ((*SAID, "--stack", "huggingface"), "--stack: unknown value 'huggingface'"),
        ((*SAID, "--stack", "trl\nprecision: fp8"), "--stack: "),
        ((*SAID, "--to", "no/such/folder.yaml"), "cannot be written"),
    ],
)
def test_what_is_wrong_is_reported_and_nothing_is_written(
    run: Run, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    found = run("init", *words)
    assert (found.code, found.out) == (2, "")
    assert said in found.err
    assert list(tmp_path.glob("*.yaml")) == []


def test_the_software_that_the_folders_scripts_import_is_not_requested(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("from unsloth import FastLanguageModel\n")
    monkeypatch.setattr(sys, "stdin", Terminal("gpt2\n\n20k\n\n\n\n"))
    found = run("init")
    assert found.code == 0
    assert "Training software" not in found.err
    assert "unsloth (imported by train.py: speed of typical scripts)" in found.out
    assert "stack" not in find_job(str(tmp_path / "recommend.yaml")).assumed


@pytest.mark.parametrize(("typed", "stack"), [("nemo", "tuned"), ("trl", "typical"), ("", None)])
def test_the_software_is_requested_at_a_terminal_and_may_stay_unknown(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, typed: str, stack: str | None
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(f"gpt2\n\n20k\n\n\n\nhuggingface\n{typed}\n"))
    found = run("init")
    assert found.code == 0
    assert "unknown value 'huggingface'" in found.err
    job = find_job(str(tmp_path / "recommend.yaml"))
    assert (job.stack, "stack" in job.assumed) == (stack or "typical", stack is None)
    assert ("assumed" in found.out and "stack unknown" in found.out) == (stack is None)


def test_software_is_in_the_json(run: Run, tmp_path: Path) -> None:
    assert json.loads(run("init", *SAID, *MORE, "--json").out)["software"].startswith("trl (")


def test_scripts_whose_network_is_not_known_are_not_planned_as_another(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("import torch\nclass Net(torch.nn.Module):\n    pass\n")
    found = run("init", "--yes")
    assert found.code == 2
    assert "train.py" in found.err
    assert "--model" in found.err
    assert not (tmp_path / "recommend.yaml").exists()
