"""Runs the command line in this process, with a planner that knows two answers."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from recommender.cli import main
from recommender.plan.answer import Answer
from tests.recommender.answers import ANSWER, INFEASIBLE


@dataclass
class Planner:
    """A stand-in for the planner: records its arguments and returns a given answer."""

    answer: Answer = ANSWER
    calls: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, job: Any, limits: Any, choice: Any, options: Any, **more: Any) -> Answer:
        call = {"job": job, "limits": limits, "choice": choice, "options": options, **more}
        self.calls.append(call)
        return INFEASIBLE if limits.hourly_usd == 1 else self.answer


@dataclass(frozen=True)
class Result:
    """What one call left behind."""

    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def planner(monkeypatch: pytest.MonkeyPatch) -> Planner:
    """The planner that `run` calls."""
    stand_in, module = Planner(), ModuleType("recommender.planner.recommend")
    module.recommend = stand_in  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "recommender.planner.recommend", module)
    return stand_in


@pytest.fixture
def run(
    planner: Planner,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> Run:
    """Run `recommend` with some words, in an empty folder, on a fixed day."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "RECOMMEND_OUTPUT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RECOMMEND_NOW", "2026-11-20T12:00Z")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("RECOMMEND_BENCH", str(tmp_path / "bench"))
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> Result:
        code = main(words)
        out, err = capsys.readouterr()
        return Result(code, out, err)

    return call


@pytest.fixture
def run_with_planner(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Run:
    """Run `recommend` with the real planner, in a folder of its own, on a fixed day."""
    monkeypatch.setenv("RECOMMEND_NOW", "2026-11-20T12:00Z")
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> Result:
        code = main(words)
        return Result(code, *capsys.readouterr())

    return call
