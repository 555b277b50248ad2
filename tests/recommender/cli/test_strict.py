"""The words of a call, whatever they are, are checked without an exception."""

from typing import Annotated, Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_command

from recommender.cli.strict import check_words, options_of

app = typer.Typer()


@app.command()
def sample(
    deadline: Annotated[str | None, typer.Option(metavar="TIME")] = None,
    gpu: Annotated[list[str] | None, typer.Option(metavar="GPU")] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet")] = False,
    mix: Annotated[bool | None, typer.Option("--mix/--no-mix")] = None,
    output: Annotated[str | None, typer.Option("-o", "--output", metavar="FORM")] = None,
) -> None:
    """A command with a flag of each kind."""


COMMAND: Any = get_command(app)
FLAGS = options_of(COMMAND.params)
WORD = st.one_of(st.sampled_from([*FLAGS, "--", "-", "--x", "--deadline=1", "job"]), st.text())


@given(st.lists(WORD))
def test_any_words(words: list[str]) -> None:
    kept, problems = check_words(words, FLAGS)
    assert len(kept) <= len(words)
    assert bool(problems) or kept == words


@pytest.mark.parametrize(
    "words",
    [
        ["--deadline", "-5h"],
        ["--gpu", "A", "--gpu", "B", "-q", "-q"],
        ["-q", "--quiet"],
        ["-ojson", "-", "--", "--deadline"],
    ],
    ids=" ".join,
)
def test_what_can_be_parsed_is_kept(words: list[str]) -> None:
    assert check_words(words, FLAGS) == (words, [])


@pytest.mark.parametrize(
    ("words", "kept", "problem"),
    [
        ("--dedline 24h job", "job", "unknown flag --dedline; did you mean --deadline?"),
        ("--deadline", "", "--deadline needs a value: --deadline TIME"),
        ("--deadline --quiet", "--quiet", "--deadline needs a value: --deadline TIME"),
        ("--quiet=yes job", "job", "--quiet takes no value; write --quiet alone"),
        ("-o a -o b", "-o a -o b", "-o is given twice; keep one"),
        ("--mix --no-mix", "--mix --no-mix", "--no-mix contradicts --mix; keep one"),
    ],
)
def test_what_cannot_be_meant_is_reported(words: str, kept: str, problem: str) -> None:
    assert check_words(words.split(), FLAGS) == (kept.split(), [problem])
