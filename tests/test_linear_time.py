"""No pattern takes more than twice the time for a text of twice the length.

Each regular expression of the source searches long texts made of what it looks for. A search from
every place to the end is quadratic: 30,000 characters then take seconds where others take 1 ms.
"""

import ast
import gc
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from recommender.benchmarks.errors import BenchError
from recommender.catalogs.registry import CLOUDS
from recommender.catalogs.rentable import _rules
from recommender.errors import RecommendError, UsageError
from tests.attack.test_attack import KINDS
from tests.attack.whole_commands import ANSWERS, READING, SHARES, called_with

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
    "\n", " ", "a", "1", "a,", '"', "[", "a: [", "- ", "a = ", "a.", "#", "a: &a ", "'a'\n",
    "a: 1\n", "(", "-", "a+", "not ", "a(", "$A", "A=$A$A\n", "--a b ", "\\\n", "import a\n",
    "a = 1\n", "if a:\n ",
)  # fmt: skip
FILE_LENGTH, FILE_FLOOR_S = 60_000, 0.5  # where a reader is linear it takes less
FLOOR_S = 0.05  # of a linear search of 20,000 characters: 1 ms; of a quadratic one: 1 s


@dataclass(frozen=True)
class Pattern:
    """A pattern, where it is written, and whether it searches or only compares a beginning."""

    place: str
    text: str | bytes
    flags: int
    searches: bool

    def seconds(self, unit: str, length: int) -> float:
        """How long it looks at a text of such units."""
        text: Any = unit * (length // len(unit)) + "\0"
        if isinstance(self.text, bytes):
            text = text.encode()
        compiled: Any = re.compile(self.text, self.flags)
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


def names_in(path: str) -> dict[str, Any]:
    """What a module's expressions may name."""
    parts = Path(path).with_suffix("").parts
    parts = parts if parts[0] == "recommender" else ("recommender", *parts)
    try:
        return vars(import_module(".".join(parts)))
    except ImportError:  # of a library that is not installed here
        return {"re": re}


def patterns() -> Iterator[Pattern]:
    """Every pattern that does not depend on what a function is given."""
    for path, tree, source in sources():
        calls = [node for node in ast.walk(tree)
                 if isinstance(node, ast.Call) and ast.unparse(node.func) in CALLS]  # fmt: skip
        known = names_in(path) if calls else {}
        assigned = {id(each.value): each.targets[0] for each in ast.walk(tree)
                    if isinstance(each, ast.Assign)}  # fmt: skip
        for node in calls:
            how, place = ast.unparse(node.func).removeprefix("re."), f"{path}:{node.lineno}"
            try:
                text = eval(ast.unparse(node.args[0]), dict(known))
            except NameError:
                GIVEN.append(path)
                continue
            if isinstance(text, re.Pattern):
                text = text.pattern
            words = re.findall(
                r"re\.(M|I|S|X|MULTILINE|IGNORECASE|DOTALL|VERBOSE)\b", ast.unparse(node)
            )
            flags = sum({int(getattr(re, each)) for each in words})
            name = assigned.get(id(node)) if how == "compile" else None
            used = {how}
            if name is not None:
                used = set(re.findall(rf"\b{ast.unparse(name)}\.(\w+)", source))
            anchored = bool(used) and used <= {"match", "fullmatch"}
            yield Pattern(place, text, flags, not anchored)
    for place, texts in OF_TABLES.items():
        for text in texts:
            yield Pattern(place, text, 0, searches=False)


# Patterns of tables, which are compared with the beginning of a name.
OF_TABLES = {
    "catalogs/registry.py": [each.family_pattern for each in CLOUDS.values()],
    "catalogs/rentable.csv": [rule.pattern for rules in _rules().values() for rule in rules],
}
GIVEN: list[str] = []  # patterns of which a part is given to a function
PATTERNS = list(patterns())
# Those parts are constants of the caller (`question.py`: of its schemas, compiled there), escaped
# words, or patterns of which others keep watch: of tables above, of a file (`trained.py`: few
# steps, tests/recommender/networks).
KNOWN_GIVEN = {
    "benchmarks/ceilings.py", "catalogs/providers/aws/regions.py", "catalogs/providers/redact.py",
    "catalogs/refresh/rules.py", "catalogs/rentable.py", "recommender/inputs/project_software.py",
    "recommender/inputs/settings.py", "recommender/market/account_quotas.py",
    "recommender/networks/trained.py", "recommender/serve/question.py",
}  # fmt: skip


def slow_unit(pattern: Pattern) -> str | None:
    """A unit of which a text of twice the length takes more than 2.5 times as long."""
    for unit in UNITS:
        for length in (LENGTH, 4 * LENGTH):
            once, twice = (pattern.seconds(unit, each) for each in (length, 2 * length))
            if twice > FLOOR_S and twice > 2.5 * once:
                return unit
    return None


def test_the_patterns_are_found():
    assert len(PATTERNS) > 150
    assert set(GIVEN) == KNOWN_GIVEN


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


def grown(ending: str, valid: bytes, unit: str, length: int) -> bytes:
    """A valid file that goes on in units: as the value of its first key, or as lines."""
    text = unit * (length // len(unit))
    if ending != ".json":
        return valid + text.encode()
    tree = json.loads(valid)
    return json.dumps(tree | {next(iter(tree)): text} if isinstance(tree, dict) else text).encode()


def repeated(length: int) -> bytes:
    """An object of many fields, of which the last two are one."""
    fields = [f'"{number:x}":0' for number in range(length // 8)]
    return ("{" + ",".join([*fields, fields[-1]]) + "}").encode()


Make = Callable[[int], bytes]


def blown_files(ending: str) -> list[Make]:
    """Makers of files of a length."""
    makes: list[Make] = [partial(blown, ending, unit) for unit in FILE_UNITS]
    return [*makes, repeated] if ending == ".json" else makes


def check_linear(took: Callable[[bytes], float], makes: Sequence[Make]) -> None:
    """Files of twice the length take 2.5 times as long at most, or next to nothing."""
    for make in makes:
        once, twice = took(make(FILE_LENGTH)), took(make(2 * FILE_LENGTH))
        assert twice < FILE_FLOOR_S or twice < 2.5 * once, (make, once, twice)


@pytest.mark.parametrize("name", [each for each in KINDS if "tar" not in each and each != "zip"])
def test_a_file_of_twice_the_length_is_read_in_twice_the_time(name: str, tmp_path: Path):
    ending, valid, read = KINDS[name]
    path = tmp_path / f"file{ending}"

    def took(content: bytes) -> float:
        path.write_bytes(content)
        gc.disable()  # looking through what a thousand tests have left takes 1.5 s
        try:
            began = process_time()
            with suppress(RecommendError, BenchError):
                read(path)
            return process_time() - began
        finally:
            gc.enable()

    took(valid)  # imports
    check_linear(took, blown_files(ending))


COMMANDS = {
    (name, ending): content
    for name, reading in READING.items()
    if name not in SHARES or SHARES[name] > 1
    for ending, content in reversed(reading.seeds())
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "ending"), COMMANDS, ids=map(" ".join, COMMANDS))
def test_a_whole_command_takes_twice_the_time_for_twice_the_file(
    name: str, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    for each in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(each, str(tmp_path / each))

    def took(content: bytes) -> float:
        began = process_time()
        assert not called_with(name, (ending, content), ANSWERS)
        return process_time() - began

    valid = COMMANDS[name, ending]
    took(valid)  # imports
    longer = [partial(grown, ending, valid, unit) for unit in FILE_UNITS]
    check_linear(took, longer)


def test_a_repeated_field_of_a_question_is_found_in_linear_time():
    app = pytest.importorskip("recommender.serve.app", reason="Starlette is not installed")

    def took(length: int) -> float:
        content, began = repeated(length).decode(), process_time()
        with pytest.raises(UsageError, match="given twice"):
            json.loads(content, object_pairs_hook=app._object)
        return process_time() - began

    once, twice = took(FILE_LENGTH), took(2 * FILE_LENGTH)
    assert twice < FILE_FLOOR_S or twice < 2.5 * once
