"""What the command line says: thirty texts and ten documents byte for byte, other answers by rule.

The calls stand in golden_answers/cases.toml, the files that they read in golden_answers/files,
what they print in golden_answers/printed; the rest of the texts are exports of hand-made plans
(tests/recommender/export/test_targets.py). RECOMMEND_UPDATE_GOLDEN=1 writes what is printed today.

Two things hang on the processor that numpy finds. Digits after the ninth are left out everywhere.
Which paths at the edge of a span count as inside it is a matter of the last bit, so the parts
of a mean time in JSON are compared only where numpy uses the instructions that it used when the
files were written (arithmetic.txt).
"""

import json
import math
import os
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from recommender.cli import main, search_progress
from recommender.report.json_output import schema_text
from tests.recommender.optimize.samples import sampled

FOLDER = Path(__file__).parent / "golden_answers"
PRINTED = FOLDER / "printed"
NOW = "2026-11-21T12:00Z"
UPDATE = bool(os.environ.get("RECOMMEND_UPDATE_GOLDEN"))
KEPT = ("PATH", "TMPDIR", "PYTEST_CURRENT_TEST")  # of a caller's environment
DIFF_LINES = 60
HALF_DIGIT = 0.0005  # of a chance in percent with one decimal
QUICK = (  # of the answers that are not kept, those that are asked by default
    "deadline-fastest", "mix", "law-kept", "own-offers-only", "settings-kept", "job-calibrated",
    "infeasible-anchor", "infeasible-own-flag",
)  # fmt: skip
ARITHMETIC = FOLDER / "arithmetic.txt"
LONG = re.compile(r"(?<![\w.])-?\d+\.\d{8,}(?:e[-+]?\d+)?")
USAGE = re.compile(r"^(Usage: recommend \w+ \[OPTIONS\]).*$", re.MULTILINE)  # Typer 0.28, 0.29
PARTS = re.compile(r'("(?:work|checkpoint|lost|restart|waiting)_s": )[^,\n]+')
CALLS: dict[str, dict[str, str | list[str]]] = tomllib.loads(
    (FOLDER / "cases.toml").read_text("utf-8")
)
ENDINGS = {"texts": ".txt", "documents": ".json"}
FILES = {
    f"{name}{ending}": calls
    for kind, ending in ENDINGS.items()
    for name, calls in CALLS[kind].items()
}


@pytest.fixture
def call(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    planned_once: None,
) -> Any:
    """Runs calls in this process, in a folder of their own, as nobody in particular."""
    shutil.copytree(FOLDER / "files", tmp_path / "here")
    for name in set(os.environ) - set(KEPT):
        monkeypatch.delenv(name)
    monkeypatch.setenv("RECOMMEND_NOW", NOW)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setattr(search_progress, "EVERY_S", 3600.0)  # a busy machine may take long
    monkeypatch.chdir(tmp_path / "here")

    def run(words: str) -> tuple[int, str, str]:
        words, _, file = words.partition(" > ")
        code = main(shlex.split(words))
        out, err = (text.replace(str(tmp_path), "FOLDER") for text in capsys.readouterr())
        if file:
            Path(file).write_text(out, encoding="utf-8")
        return code, out, err

    def last(calls: str | list[str], form: str = "") -> tuple[int, str, str]:
        *before, words = [calls] if isinstance(calls, str) else calls
        for each in before:
            assert run(each)[0] == 0, each
        return run(f"{words} {form}")

    return last


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
    exact = ARITHMETIC.read_text("utf-8") == arithmetic()
    path = PRINTED / name
    kept = path.read_bytes().decode() if path.is_file() else ""
    kept, made = comparable(kept, exact), comparable(made, exact)
    both = (text.splitlines(keepends=True) for text in (kept, made))
    lines = list(unified_diff(*both, f"kept: {name}", "printed now"))
    more = len(lines) - DIFF_LINES
    return "".join([*lines[:DIFF_LINES], *([f"… {more} lines more"] if more > 0 else [])])


@pytest.mark.parametrize("name", FILES)
def test_a_call_prints_what_it_printed(name: str, call: Any) -> None:
    if name.endswith(".json"):
        _, made, err = call(FILES[name], "--json")
        assert err == ""
    else:
        code, out, err = call(FILES[name])
        made = f"exit {code}\n{out}" + (f"--- standard error\n{err}" if err else "")
    if UPDATE:
        PRINTED.mkdir(exist_ok=True)
        ARITHMETIC.write_text(arithmetic(), "utf-8")
        (PRINTED / name).write_bytes(made.encode())
    said = difference(name, made)
    assert not said, f"recommend {FILES[name]}\n{said}"


def test_every_file_belongs_to_a_call() -> None:
    assert {path.name for path in PRINTED.iterdir()} == set(FILES)


@pytest.mark.parametrize("name", sampled(CALLS["answers"], QUICK))
def test_an_answer_keeps_its_schema_and_its_plans_what_was_asked(name: str, call: Any) -> None:
    code, out, err = call(CALLS["answers"][name], "--json")
    assert code == (3 if name.startswith("infeasible") else 0), err
    answer = json.loads(out)
    jsonschema.validate(answer, json.loads(schema_text()))
    assert bool(answer["plans"]) == (code == 0)
    assert [said for plan in answer["plans"] for said in broken(plan, answer["inputs"])] == []


def known(chance: float) -> float:
    """The least that is accepted as a chance: what 16,384 paths know of it, printed in percent."""
    return chance - math.sqrt(chance * (1.0 - chance) / 16_384) - HALF_DIGIT


def broken(plan: dict[str, Any], asked: dict[str, Any]) -> Iterator[str]:
    """What a plan does that was not asked for."""
    limits, choice, estimate = asked["limits"], asked["choice"], plan["estimate"]
    fallback = (plan["fallback"] or {}).get("machines", [])
    cluster, most = plan["machines"], {name: amount or np.inf for name, amount in limits.items()}
    machines = cluster + fallback
    markets = {each["market"] for each in machines}
    kept = {
        "chance": estimate["chance"] >= known(limits["confidence"]),
        "overhead": estimate["overhead"] <= most["max_overhead"],
        "price": plan["max_usd_per_hour"] <= most["hourly_usd"],
        "machines": sum(each["count"] for each in cluster) <= limits["max_machines"],
        "market": choice["market"] == "any" or markets == {choice["market"]},
        "providers": {each["provider"] for each in machines} <= set(choice["providers"])
        or not choice["providers"],
        "regions": {each["region"] for each in machines} <= set(choice["regions"])
        or not choice["regions"],
        "one type": choice["mix"] != "no" or len(cluster) == 1,
        "bill": np.isclose(
            sum(item["usd"] for item in estimate["bill"]),
            estimate["cost"]["mean_of_all_runs"],
            rtol=0.01,
        ),
    }
    return (name for name, is_kept in kept.items() if not is_kept)
