"""Starting is quick because little is loaded; completion knows jobs, commands and flags."""

import json
import os
import shlex
import subprocess
import sys

import pytest

HEAVY = ("numpy", "pulp", "highspy", "pandas", "boto3", "botocore", "google", "scipy")
CLOUD = ("pandas", "boto3", "botocore", "google", "scipy", "pyarrow")

LOADED = """
import json, sys
from recommender.cli import main
code = main(sys.argv[1:])
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""
PLANNED = (
    """
import sys, recommender.planner.recommend
sys.path.append("tests/..")
from tests.recommender.answers import ANSWER
recommender.planner.recommend.recommend = lambda *given, **options: ANSWER
"""
    + LOADED
)


def python(script: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *words],
        env={**os.environ, "RECOMMEND_NOW": "2026-11-20T12:00Z", **env},
        capture_output=True,
        text=True,
        timeout=60,
    )


def loaded(script: str, *words: str) -> set[str]:
    done = python(script, *words)
    assert done.stderr == ""
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("words", [[], ["--help"], ["--version"], ["jobs", "new"], ["schema"]])
def test_nothing_heavy_is_loaded_before_a_question(words: list[str]) -> None:
    assert not loaded(LOADED, *words) & set(HEAVY)


def test_the_name_alone_loads_no_command_line_library() -> None:
    assert not loaded(LOADED) & {"typer", "rich", "pydantic"}


def test_an_answer_needs_no_cloud_library() -> None:
    found = loaded(PLANNED, "--deadline", "24h", "resnet50-imagenet")
    assert "numpy" in found
    assert not found & set(CLOUD)
    assert "pydantic" not in found, "Typer's validators are built for every flag"


def test_an_answer_loads_no_masked_arrays_and_draws_only_where_it_is_drawn() -> None:
    script = LOADED.replace('name.partition(".")[0]', "name")
    found = loaded(script, "--deadline", "24h", "--gpu", "H100", "resnet50-imagenet", "-q")
    assert "rich.table" in found
    assert not found & {"numpy.ma", "rich.panel", "rich.progress", "rich.markdown"}
    as_json = "--deadline", "24h", "--gpu", "H100", "resnet50-imagenet", "-o", "json"
    done = python(script, *as_json)
    assert "rich.console" not in json.loads(done.stdout.splitlines()[-1])


def completions(*words: str) -> list[str]:
    """What a bash user is offered for the last word."""
    done = subprocess.run(
        [sys.executable, "-c", "from recommender.cli import main; main([])"],
        env={
            **os.environ,
            "_RECOMMEND_COMPLETE": "complete_bash",
            "COMP_WORDS": " ".join(["recommend", *words]),
            "COMP_CWORD": str(len(words)),
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout.split()


def test_the_first_word_completes_to_jobs_and_commands() -> None:
    assert completions("cat") == ["catalog"]
    assert "llama3-8b-lora" in completions("llama3")
    assert {"plan", "jobs", "resnet50-imagenet"} <= set(completions(""))


def test_flags_complete_before_and_after_the_job() -> None:
    assert completions("--dead") == ["--deadline"]
    assert completions("resnet50-imagenet", "--dead") == ["--deadline"]
    assert "catalog" not in completions("--deadline", "24h", "")


def test_a_flag_that_takes_one_of_a_few_words_completes_to_them() -> None:
    assert completions("--market", "") == ["any", "spot", "on-demand", "reserved"]
    assert completions("--deadline", "24h", "-o", "m") == ["markdown"]


def test_commands_of_a_group_complete() -> None:
    assert {"status", "show", "refresh", "rollback"} <= set(completions("catalog", ""))


def test_a_completion_script_is_printed() -> None:
    # Which shell it is for is read from the parent process.
    words = f"{shlex.quote(sys.executable)} -m recommender --show-completion; exit $?"
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, timeout=60)
    assert "_RECOMMEND_COMPLETE" in done.stdout
