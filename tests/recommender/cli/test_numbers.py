"""Every number that can be typed: nonsense is refused by name, and the hint can be typed."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from recommender.cli.options import AnswerFlags, JobFlags, LimitFlags, OwnFlags, SearchFlags
from recommender.errors import UsageError
from recommender.job.jobfile import job_from_text
from recommender.job.schema import DataFile, JobFile
from tests.recommender.cli.conftest import Planner, Run
from tests.shipped import snapshot

NONSENSE = ("nan", "inf", "-inf", "-1", "0", "1e30", "", " ", "soon")
ZERO_IS_FINE = ("--done", "--spent", "--seed", "--assume-on-demand")  # nothing yet, no capacity
FLAGS = (
    "--deadline", "--budget", "--hourly", "--confidence", "--max-overhead", "--max-machines",
    "--mtbf", "--assume-on-demand", "--done", "--elapsed", "--spent", "--tokens", "--samples",
    "--epochs", "--examples", "--steps", "--batch", "--params", "--seq-len", "--lora-rank",
    "--setup", "--max-age", "--seed", "--top", "--explain", "--machines", "--batch-per-gpu",
    "--max-global-batch",
)  # fmt: skip
WORDS = (  # flags that take words; those that take a number inside a word are in PARTS
    "objective", "measured", "quota", "offers", "discount", "data_at", "compare", "precision",
    "method", "optimizer", "sharding", "elastic", "stack", "image", "catalog", "prove", "verify",
    "save_lp", "all_regions", "prices_as_quoted", "model", "image_size", "table", "currency",
)  # fmt: skip
PARTS = (
    ("--measured", "8xH100: {} s/step"), ("--measured", "{}xH100: 3 s/step"),
    ("--discount", "aws={}"), ("--data-at", "aws:us-east-1,{}GB"), ("--gpu", "A100:{}"),
    ("--gpu", "{}GB+"), ("--compare", "{}x p4d.24xlarge"), ("--currency", "EUR={}"),
)  # fmt: skip
JOB = "llama3-8b-lora"
TOGETHER = {"--max-global-batch": ("--batch-per-gpu", "1")}  # what a flag goes together with


@pytest.fixture(autouse=True)
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shipped catalog, read once for all calls."""
    monkeypatch.setattr("recommender.cli.planner_inputs.load_catalog", lambda path: snapshot())


def refused(run: Run, flag: str, *words: str) -> str:
    """The one message about a flag."""
    result = run(*words)
    assert (result.code, result.out) == (2, "")
    (line,) = result.err.splitlines()
    assert line.startswith(f"error: {flag}")
    return line


@pytest.mark.parametrize("value", NONSENSE)
@pytest.mark.parametrize("flag", FLAGS)
def test_nonsense_is_refused_under_the_name_of_its_flag(
    run: Run, planner: Planner, flag: str, value: str
) -> None:
    if value == "0" and flag in ZERO_IS_FINE:
        assert run(JOB, flag, value).code == 0
        return
    line = refused(run, flag, JOB, flag, value)
    assert "; write" in line
    assert not planner.calls


@pytest.mark.parametrize("flag", FLAGS)
def test_what_the_message_says_to_write_can_be_written(run: Run, flag: str) -> None:
    hint = refused(run, flag, JOB, flag, "nan").partition("; ")[2]
    examples = re.findall(r"[$]?[0-9][0-9.:TZhmsdkMBe+-]*%?(?: tokens)?", hint)
    assert examples
    for example in examples:
        words = (JOB, flag, example, *TOGETHER.get(flag, ()))
        assert run(*words).code in (0, 4), example  # 4: the shipped prices are older


@pytest.mark.parametrize(
    "words",
    ["--setup 1000d", "--setup 25h", "--mtbf 1000d", "--mtbf 1e6", "--deadline 11000d",
     "--elapsed 11000d", "--seq-len 1e9", "--lora-rank 1e6", "--params 1e16", "--epochs 1e9",
     "--steps 1e12", "--batch 1e13", "--tokens 1e17", "--explain 1e9", "--top 1e9",
     "--max-machines 1e9", "--machines 1e9", "--hourly 1e12", "--budget 1e12"],
)  # fmt: skip
def test_absurd_sizes_are_refused(run: Run, planner: Planner, words: str) -> None:
    refused(run, words.split()[0], JOB, *words.split())
    assert not planner.calls


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "0", "1e30"])
@pytest.mark.parametrize(("flag", "form"), PARTS)
def test_nonsense_inside_a_word_is_refused(
    run: Run, planner: Planner, flag: str, form: str, value: str
) -> None:
    if (flag, value) == ("--discount", "0") or (form.startswith("{}xH") and value.isalpha()):
        return  # no discount; the name of a GPU that the planner refuses
    refused(run, flag, JOB, flag, form.format(value))
    assert not planner.calls


def test_no_flag_that_takes_a_number_is_forgotten() -> None:
    groups = (LimitFlags, OwnFlags, JobFlags, SearchFlags, AnswerFlags)
    names = {each.name for group in groups for each in fields(group)}
    assert names == {flag[2:].replace("-", "_") for flag in FLAGS} | set(WORDS)


def numbers_of(kind: type[object], inside: str = "") -> list[str]:
    """Fields of a job file that hold a number."""
    return [f"{inside}{f.name}" for f in fields(kind) if _is_number(str(f.type))]  # type: ignore[arg-type]


def _is_number(kind: str) -> bool:
    return any(word in kind for word in ("float |", "int |", "Batch")) and "dict" not in kind


FIELDS = [*numbers_of(JobFile), *numbers_of(DataFile, "data.")]


def test_the_fields_of_a_job_file_that_hold_numbers_are_found() -> None:
    assert {"params", "batch", "setup", "lora_rank", "data.gib", "fault_rate_per_hour"} <= set(
        FIELDS
    )
    assert len(FIELDS) > 25


# A network may look up no row, as one whose table of words also puts out.
_WRITTEN = [(f, v) for f in FIELDS for v in NONSENSE if (f, v) != ("lookup_params", "0")]


@pytest.mark.parametrize(("field", "value"), _WRITTEN)
def test_nonsense_in_a_job_file_is_refused_under_the_name_of_its_field(
    field: str, value: str
) -> None:
    outer, _, inner = field.partition(".")
    line = f'{outer}: {{{inner}: "{value}"}}' if inner else f'{outer}: "{value}"'
    with pytest.raises(UsageError) as error:
        job_from_text(f"schema: recommend.job/v1\nlike: {JOB}\n{line}\n", "mine.yaml")
    (problem,) = error.value.problems
    assert problem.startswith(f"mine.yaml: {field}:")
    assert "; write" in problem


_CELLS = [
    (column, value)
    for column in ("gpus", "usd_per_hour", "count", "vcpus", "gpu_memory_gib")
    for value in ("nan", "inf", "-1", "0", "1e30")
    if (column, value) != ("usd_per_hour", "0")  # paid anyway
]


@pytest.mark.parametrize(("column", "value"), _CELLS)
def test_nonsense_in_a_file_of_machines_is_named_with_line_and_column(
    run: Run, planner: Planner, column: str, value: str
) -> None:
    cells = {"label": "lab", "gpu": "H100", "gpus": "8", "usd_per_hour": "12", column: value}
    Path("own.csv").write_text(f"{','.join(cells)}\n{','.join(cells.values())}\n", "utf-8")
    refused(run, f"own.csv, line 2, column {column}:", JOB, "--offers", "own.csv")
    assert not planner.calls
