"""Tests see the installed package, and no catalogs that the person at this machine refreshed."""

import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import settings

# The source folder `recommender` lacks what is installed into it from next to it. Python must not
# find it first: here, under `python -m pytest`, nor in the programs that tests start.
ROOT = Path(__file__).parents[1]
sys.path[:] = [each for each in sys.path if Path(each).resolve() != ROOT]
os.environ["PYTHONSAFEPATH"] = "1"

for _name in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):
    os.environ[_name] = os.path.join(tempfile.gettempdir(), "recommend-tests-nobody-writes-here")

settings.register_profile("same examples in every run", derandomize=True, database=None)
settings.load_profile("same examples in every run")


@pytest.fixture(scope="session")
def answers() -> dict[str, object]:
    """What was planned so far for the tests of this process, by question."""
    return {}


@pytest.fixture
def planned_once(monkeypatch: pytest.MonkeyPatch, answers: dict[str, object]) -> None:
    """What the command line asks is planned once per process."""
    planner = import_module("recommender.planner.recommend")
    once = import_module("tests.recommender.planned").planned_once
    monkeypatch.setattr(planner, "recommend", once(planner.recommend, answers))
