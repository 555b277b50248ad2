"""The words of a call, whatever they are, are split without an exception."""

from hypothesis import given
from hypothesis import strategies as st

from recommender.cli.strict import Flag, scan

FLAGS = {
    "--deadline": Flag("--deadline", True, False, "TIME"),
    "--gpu": Flag("--gpu", True, True, "GPU"),
    "--quiet": Flag("--quiet", False, False),
    "-q": Flag("--quiet", False, False),
    "-o": Flag("--output", True, False, "FORM"),
}
WORD = st.one_of(st.sampled_from([*FLAGS, "--", "-", "--x", "--deadline=1", "job"]), st.text())


@given(st.lists(WORD))
def test_any_words(words: list[str]) -> None:
    kept, problems = scan(words, FLAGS)
    assert len(kept) <= len(words)
    assert bool(problems) or kept == words


def test_values_may_begin_with_a_dash() -> None:
    assert scan(["--deadline", "-5h"], FLAGS) == (["--deadline", "-5h"], [])


def test_a_repeatable_flag_may_be_given_twice() -> None:
    words = ["--gpu", "A", "--gpu", "B", "-q", "-q"]
    assert scan(words, FLAGS) == (words, [])


def test_an_unknown_flag_takes_its_value_along() -> None:
    kept, problems = scan(["--dedline", "24h", "job"], FLAGS)
    assert kept == ["job"]
    assert problems == ["unknown flag --dedline; did you mean --deadline?"]
