"""YAML is text: what could surprise is refused before it is built."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recommender.errors import UsageError
from recommender.inputs.yaml_text import load_yaml

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(9)
)


def test_every_scalar_stays_the_text_that_was_typed() -> None:
    tree = load_yaml("a: no\nb: 1:30\nc: 0o17\nd: 2026-12-01\ne: 1e3\nf:\ng: ''\nh: [1, ~]\n", "x")
    wanted = {"a": "no", "b": "1:30", "c": "0o17", "d": "2026-12-01", "e": "1e3", "f": None}
    assert tree == {**wanted, "g": "", "h": ["1", None]}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (BOMB, "x, line 1: anchors (&) and aliases (*) are refused"),
        ("a: 1\nb: 2\na: 3\n", "x, line 3: 'a' occurs twice"),
        ("a: !!python/object/apply:os.system [ls]", "x, line 1: the tag"),
        ("[" * 50_000, "nest"),  # libyaml has a limit of its own from 0.2.6 on (PyYAML 6.0.4)
        ("{a: " * 50_000, "nest"),
        ("[" * 21 + "]" * 21, "nested deeper than 20"),
        ("a: [1", "x, line 2: not YAML"),
        ('a: "\\e[31mred"', "control characters"),
        ("a: " + "9" * 20_000, "too long"),
        ("? [a]\n: b", "a key must be one plain word"),
        ("a: 1\n---\nb: 2", "not YAML"),
        ("a: \x00", "not YAML"),
        ("a" * 2**21, "larger than 1 MiB"),
    ],
    ids=range(13),
)
def test_tricks_are_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError) as error:
        load_yaml(text, "x")
    assert reason in str(error.value)


@given(st.text(max_size=200) | st.text("[]{}:,-&*!?|>'\"%@`# \nab", max_size=60))
@settings(deadline=None, max_examples=300)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        load_yaml(text, "x")
    except UsageError as error:
        assert str(error).startswith("x")  # noqa: PT017
