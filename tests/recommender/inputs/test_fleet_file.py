"""The file of a fleet is read whole, or everything that is wrong in it is said."""

from pathlib import Path

import pytest

from recommender.errors import UsageError
from recommender.inputs.fleet_file import read_fleet

HOUR = 3600.0
FLEET = """
start: 2026-12-01T00:00Z
slot: 2h
max_jobs: 3
budgets: {vision: 1.5k}
jobs:
  - {job: jobs/first.yaml, team: vision, deadline: 1d, priority: 2}
  - {job: resnet50-imagenet, name: again, deadline: 3d, from: 12h, worth: 900, after: first}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "fleet.yaml"
    path.write_text(text, "utf-8")
    return path


def test_every_key_is_read(tmp_path: Path) -> None:
    fleet = read_fleet(written(tmp_path, FLEET))
    first, again = fleet.jobs
    assert (first.name, first.team, first.priority, first.worth_usd) == ("first", "vision", 2, None)
    assert (first.deadline_s, first.first_s, first.after) == (24 * HOUR, 0.0, ())
    assert (again.name, again.job, again.after) == ("again", "resnet50-imagenet", ("first",))
    assert (again.deadline_s, again.first_s, again.worth_usd) == (72 * HOUR, 12 * HOUR, 900.0)
    assert (fleet.slot_s, fleet.max_jobs, fleet.budgets) == (2 * HOUR, 3, {"vision": 1500.0})
    assert fleet.start is not None
    assert fleet.start.isoformat() == "2026-12-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("team: vision", "teem: vision", "job 1: unknown key 'teem'; did you mean team?"),
        ("deadline: 1d", "deadline: soon", "job 1, deadline"),
        ("deadline: 1d,", "", "job 1: deadline is missing"),
        ("after: first", "after: fist", "did you mean first?"),
        ("name: again", "name: first", "two jobs are called first"),
        ("priority: 2", "after: again", "wait for each other"),
        ("{vision: 1.5k}", "{visions: 1.5k}", "no job is of team visions"),
        ("max_jobs: 3", "max_job: 3", "unknown key 'max_job'"),
        ("from: 12h", "from: [12h]", "job 2, from: must be one value"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert old in FLEET
    with pytest.raises(UsageError) as refused:
        read_fleet(written(tmp_path, FLEET.replace(old, new)))
    assert any(said in each for each in refused.value.problems), refused.value.problems
    assert all(each.startswith("fleet.yaml") for each in refused.value.problems)


def test_all_mistakes_are_said_together(tmp_path: Path) -> None:
    text = FLEET.replace("deadline: 1d", "deadline: soon").replace("worth: 900", "worth: much")
    with pytest.raises(UsageError) as refused:
        read_fleet(written(tmp_path, text))
    assert len(refused.value.problems) == 2


@pytest.mark.parametrize("text", ["jobs: many\n", "- a\n", "jobs: [resnet]\n"])
def test_something_else_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="fleet.yaml"):
        read_fleet(written(tmp_path, text))
