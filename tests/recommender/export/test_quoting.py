"""Every text is read back as it was, by bash and by YAML."""

import json
import subprocess

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from recommender.export.quoting import hcl, scalar, shell
from recommender.text import has_control

HOSTILE = [
    "a}\"b", "x\u2028y", "\x1b[0m", "a\x85b", "x\n- y", "a: b # c", "`id`", "$(id)", "'\"",
    "{a: 1}", "null", "yes", "1e5", "0x1", "~", "<<", "=", "1:30", "2026-01-01", "", " a ", "-",
    "a,b", "#", "!x",
    "${a}", "%{b}", "\\", "*a", "&a", "\U000e0001", "日本", "\t", "a\rb",
]  # fmt: skip
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0")) | st.sampled_from(HOSTILE)


@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_yaml_reads_every_text_back_in_a_list_and_in_a_mapping(texts: list[str]) -> None:
    for text in (f"[{', '.join(map(scalar, texts))}]", "\n".join(f"- {scalar(t)}" for t in texts)):
        assert yaml.safe_load(text) == texts
        assert not any(has_control(c) for c in text.replace("\n", ""))
    mapping = "{" + ", ".join(f"k{at}: {scalar(text)}" for at, text in enumerate(texts)) + "}"
    assert list(yaml.safe_load(mapping).values()) == texts


@given(st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False, width=16))
def test_numbers_stay_numbers(value: float) -> None:
    assert yaml.safe_load(f"[{scalar(value)}]") == [value]


@settings(max_examples=40, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=20))
def test_bash_reads_every_text_back_and_runs_nothing_of_it(texts: list[str]) -> None:
    words = " ".join(map(shell, texts))
    assert not any(has_control(c) for c in words)
    told = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {words}"], capture_output=True, env={"LC_ALL": "C.UTF-8"}
    )
    assert told.stdout.decode("utf-8").split("\0")[:-1] == texts


@given(TEXTS)
def test_hcl_is_quoted_as_json_and_evaluates_nothing(text: str) -> None:
    found = hcl(text)
    assert "${" not in found.replace("$${", "")
    assert "%{" not in found.replace("%%{", "")
    assert not has_control(found)
    if "\\U" not in found:
        assert json.loads(found.replace("$${", "${").replace("%%{", "%{")) == text
