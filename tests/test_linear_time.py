"""No pattern takes more than twice the time for a text of twice the length.

Each regular expression of the source searches long texts made of what it looks for. A search from
every place to the end is quadratic: 30,000 characters then take seconds where others take 1 ms.
"""

import ast
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import process_time

import pytest

from recommender.benchmarks.errors import BenchError
from recommender.errors import RecommendError, UsageError
from tests.attack.test_attack import KINDS

ROOT = Path(__file__).parents[1]
FOLDERS = ("recommender", "catalogs", "benchmarks")
CALLS = {f"re.{each}" for each in (
    "compile", "search", "match", "fullmatch", "sub", "subn", "findall", "finditer", "split",
)}  # fmt: skip
UNITS = (
    "\n", " ", "\t", " \n", "a", "1", "a.", "a-", "A1 ", "x ", '"', "'", "[", "[ ", "tool", "/",
    "://", "1.", "1_", "\\", "=", "a = ", ",", "from a import ", "import ", "a:\n", "-", "_", "1x ",
)  # fmt: skip
LENGTH = 10_000
FILE_UNITS = (
    "\n",
    " ",
    "a",
    "1",
    "a,",
    '"',
    "[",
    "a: [",
    "- ",
    "a = ",
    "a.",
    "#",
    "a: &a ",
    "'a'\n",
    "a: 1\n",
)
FILE_LENGTH, FILE_FLOOR_S = 60_000, 0.5  # where a reader is linear it takes less
FLOOR_S = 0.05  # of a linear search of 20,000 characters: 1 ms; of a quadratic one: 1 s


@dataclass(frozen=True)
class Pattern:
    """A pattern, where it is written, and whether it searches or only compares a beginning."""

    place: str
    text: str
    flags: int
    searches: bool

    def seconds(self, unit: str, length: int) -> float:
        """How long it looks at a text of such units."""
        text = unit * (length // len(unit)) + "\0"
        compiled = re.compile(self.text, self.flags)
        began = process_time()
        if self.searches:
            for _ in compiled.finditer(text):
                pass
        else:
            compiled.match(text)
        return process_time() - began


def sources() -> Iterator[tuple[str, ast.Module, str]]:
    """Every module that may have a pattern."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text("utf-8")
            if "\nimport re\n" in text:
                yield str(path.relative_to(ROOT)), ast.parse(text), text


def patterns() -> Iterator[Pattern]:
    """Every pattern that is written as one string."""
    for path, tree, source in sources():
        names = {id(each.value): each.targets[0] for each in ast.walk(tree)
                 if isinstance(each, ast.Assign)}  # fmt: skip
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or ast.unparse(node.func) not in CALLS:
                continue
            text, how = node.args[0], ast.unparse(node.func).removeprefix("re.")
            if not (isinstance(text, ast.Constant) and isinstance(text.value, str)):
                continue
            words = re.findall(
                r"re\.(M|I|S|X|MULTILINE|IGNORECASE|DOTALL|VERBOSE)\b", ast.unparse(node)
            )
            flags = sum({int(getattr(re, each)) for each in words})
            name = names.get(id(node)) if how == "compile" else None
            used = {how}
            if name is not None:
                used = set(re.findall(rf"\b{ast.unparse(name)}\.(\w+)", source))
            anchored = bool(used) and used <= {"match", "fullmatch"}
            yield Pattern(f"{path}:{node.lineno}", text.value, flags, not anchored)


PATTERNS = list(patterns())


def slow_unit(pattern: Pattern) -> str | None:
    """A unit of which a text of twice the length takes more than 2.5 times as long."""
    for unit in UNITS:
        for length in (LENGTH, 4 * LENGTH):
            once, twice = (pattern.seconds(unit, each) for each in (length, 2 * length))
            if twice > FLOOR_S and twice > 2.5 * once:
                return unit
    return None


def test_the_patterns_are_found():
    assert len(PATTERNS) > 60


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda each: each.place)
def test_a_text_of_twice_the_length_takes_twice_as_long(pattern: Pattern):
    assert slow_unit(pattern) is None


@pytest.mark.parametrize("text", [r"^\s*\[", "a.*recommend", r"\w+://\S+", r"\s*UTC$"])
def test_a_quadratic_pattern_is_found(text: str):
    assert slow_unit(Pattern("here", text, re.MULTILINE, searches=True))


def blown(ending: str, unit: str, length: int) -> bytes:
    """A long text of units, as one value of a file of a kind, or as its lines."""
    text = unit * (length // len(unit))
    if ending == ".json":
        text = json.dumps({"a": text, text: "a"})
    return text.encode()


def repeated(length: int) -> bytes:
    """An object of many fields, of which the last two are one."""
    fields = [f'"{number:x}":0' for number in range(length // 8)]
    return ("{" + ",".join([*fields, fields[-1]]) + "}").encode()


@pytest.mark.parametrize("name", [each for each in KINDS if "tar" not in each and each != "zip"])
def test_a_file_of_twice_the_length_is_read_in_twice_the_time(name: str, tmp_path: Path):
    ending, _, read = KINDS[name]
    path = tmp_path / f"file{ending}"

    def took(content: bytes) -> float:
        path.write_bytes(content)
        began = process_time()
        with suppress(RecommendError, BenchError):
            read(path)
        return process_time() - began

    makes = [partial(blown, ending, unit) for unit in FILE_UNITS] + [repeated] * (ending == ".json")
    for make in makes:
        took(make(1000))  # imports
        once, twice = took(make(FILE_LENGTH)), took(make(2 * FILE_LENGTH))
        assert twice < FILE_FLOOR_S or twice < 2.5 * once, (make, once, twice)


def test_a_repeated_field_of_a_question_is_found_in_linear_time():
    app = pytest.importorskip("recommender.serve.app", reason="Starlette is not installed")

    def took(length: int) -> float:
        content, began = repeated(length).decode(), process_time()
        with pytest.raises(UsageError, match="given twice"):
            json.loads(content, object_pairs_hook=app._object)
        return process_time() - began

    once, twice = took(FILE_LENGTH), took(2 * FILE_LENGTH)
    assert twice < FILE_FLOOR_S or twice < 2.5 * once
