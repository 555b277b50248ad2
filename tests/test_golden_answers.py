"""What the command line says to a hundred questions, kept byte for byte.

The calls stand in golden_answers/cases.toml, the files that they read in golden_answers/files,
what they print in golden_answers/printed. Only the entry points of the program and of its planner
are known here, so that everything behind them may move. RECOMMEND_UPDATE_GOLDEN=1 writes what is
printed today.

Two things hang on the processor that numpy finds. Digits after the ninth are left out everywhere.
Which paths at the edge of a span count as inside it is a matter of the last bit, so the parts
of a mean time in JSON are compared only where numpy uses the instructions that it used when the
files were written (arithmetic.txt).
"""

import os
import re
import shlex
import shutil
import tomllib
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

import numpy as np
import pytest

from recommender.cli import main

FOLDER = Path(__file__).parent / "golden_answers"
PRINTED = FOLDER / "printed"
NOW = "2026-11-21T12:00Z"
FORMS = {
    "answers": ("json", "80", "120"),
    "figures": ("json",),
    "pages": ("json", "80"),
    "texts": ("80",),
    "refusals": ("80",),
}
CODES = {"answers": {0, 3}, "figures": {0, 3}, "pages": {0}, "texts": {0}, "refusals": {2, 4}}
KEPT = ("PATH", "TMPDIR", "PYTEST_CURRENT_TEST")  # of a caller's environment
DIFF_LINES = 60
# A quarter of the time of all cases; each has a quicker sibling of its class of question.
SLOW = frozenset(
    {
        "budget", "checkpoints-memory", "deadline-budget-hourly", "elastic", "gpus-denied",
        "job-like", "large-model", "other-vendors", "overhead-low",
    }
)  # fmt: skip
ARITHMETIC = FOLDER / "arithmetic.txt"
LONG = re.compile(r"(?<![\w.])-?\d+\.\d{8,}(?:e[-+]?\d+)?")
USAGE = re.compile(r"^(Usage: recommend \w+ \[OPTIONS\]).*$", re.MULTILINE)  # Typer 0.28, 0.29
PARTS = re.compile(r'("(?:work|checkpoint|lost|restart|waiting)_s": )[^,\n]+')


@dataclass(frozen=True)
class Case:
    """A call with a name, what must run before it, and the forms that are kept of it."""

    name: str
    kind: str
    before: tuple[str, ...]
    words: str


@dataclass(frozen=True)
class Printed:
    """What a call left behind; the folder that it ran in is named FOLDER."""

    code: int
    out: str
    err: str


def cases() -> list[Case]:
    """Every case of the list."""
    tables = tomllib.loads((FOLDER / "cases.toml").read_text("utf-8"))
    found = []
    for kind, calls in tables.items():
        for name, given in calls.items():
            *before, words = [given] if isinstance(given, str) else given
            found.append(Case(name, kind, tuple(before), words))
    return found


CASES = cases()


class Caller:
    """Runs `recommend` in this process, in a folder of its own, as nobody in particular."""

    def __init__(
        self, folder: Path, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]
    ) -> None:
        self.folder, self.patch, self.capture = folder, patch, capture
        here = folder / "here"
        shutil.copytree(FOLDER / "files", here)
        for name in set(os.environ) - set(KEPT):
            patch.delenv(name)
        patch.setenv("RECOMMEND_NOW", NOW)
        patch.setenv("HOME", str(folder / "home"))
        for name in ("CONFIG", "DATA", "CACHE"):
            patch.setenv(f"XDG_{name}_HOME", str(folder / name.lower()))
        patch.chdir(here)

    def run(self, words: str, form: str = "80") -> Printed:
        """One call, as JSON or so many columns wide."""
        self.patch.setenv("COLUMNS", "80" if form == "json" else form)
        code = main([*shlex.split(words), *(["--json"] if form == "json" else [])])
        out, err = (text.replace(str(self.folder), "FOLDER") for text in self.capture.readouterr())
        return Printed(code, out, err)


def files_of(case: Case, form: str, found: Printed) -> dict[str, str]:
    """The files that keep what a call left behind: JSON as it is, text under the exit code."""
    if form == "json":
        return {f"{case.name}.json": found.out, f"{case.name}-json.err": found.err}
    reported = f"--- standard error\n{found.err}" if found.err else ""
    return {f"{case.name}-{form}.txt": f"exit {found.code}\n{found.out}{reported}"}


def arithmetic() -> str:
    """What decides the last bit of a sum: numpy, and the instructions that it uses here."""
    found = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    return f"numpy {np.__version__}: {' '.join(found)}\n"


def comparable(text: str, exact: bool) -> str:
    """A text without the digits that hang on the processor, and Typer's way to write arguments."""
    text = USAGE.sub(r"\1", LONG.sub(lambda number: f"{float(number[0]):.9g}", text))
    return text if exact else PARTS.sub(r"\1-", text)


def difference(name: str, made: str) -> str:
    """How a text differs from the file that keeps it; nothing where it does not."""
    path = PRINTED / name
    exact = ARITHMETIC.read_text("utf-8") == arithmetic()
    made = comparable(made, exact)
    kept = comparable(path.read_bytes().decode() if path.is_file() else "", exact)
    if kept == made:
        return ""
    lines = list(
        unified_diff(
            kept.splitlines(), made.splitlines(), f"kept: {name}", "printed now", "", "", 2, ""
        )
    )
    lines = lines or [f"{name}: the ends of lines differ"]
    more = len(lines) - DIFF_LINES
    return "\n".join([*lines[:DIFF_LINES], *([f"… {more} lines more"] if more > 0 else [])])


def keep(name: str, made: str) -> None:
    """Write a file of what is printed; no file stands for nothing printed."""
    PRINTED.mkdir(exist_ok=True)
    ARITHMETIC.write_text(arithmetic(), "utf-8")
    if made:
        (PRINTED / name).write_bytes(made.encode())
    else:
        (PRINTED / name).unlink(missing_ok=True)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(each, id=each.name, marks=pytest.mark.slow if each.name in SLOW else ())
        for each in CASES
    ],
)
def test_a_call_prints_what_it_printed(
    case: Case,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    planned_once: None,
) -> None:
    update = bool(os.environ.get("RECOMMEND_UPDATE_GOLDEN"))
    codes, differences = set(), []
    for form in FORMS[case.kind]:
        caller = Caller(tmp_path / form, monkeypatch, capsys)
        for words in case.before:
            assert caller.run(words).code == 0, words
        found = caller.run(case.words, form)
        codes.add(found.code)
        assert found.code in CODES[case.kind], found.err
        assert not (found.out and case.kind == "refusals"), found.out
        for name, made in files_of(case, form, found).items():
            if update:
                keep(name, made)
            differences.append(difference(name, made))
    said = "\n".join(filter(None, differences))
    assert not said, f"recommend {case.words}\n{said}"
    assert len(codes) == 1, f"recommend {case.words}: exit codes {codes} in different forms"


def test_every_file_belongs_to_a_case() -> None:
    known = {
        name
        for case in CASES
        for form in FORMS[case.kind]
        for name in files_of(case, form, Printed(0, "", ""))
    }
    assert {path.name for path in PRINTED.iterdir()} - known == set()
    assert len({case.name for case in CASES}) == len(CASES)
    assert {case.name for case in CASES} >= SLOW
