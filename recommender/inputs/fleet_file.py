"""Reads a fleet: jobs with deadlines, teams with budgets, and what all share, from YAML."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, TypeVar

from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError, refuse_all
from recommender.inputs.files import read_text
from recommender.inputs.units import parse_duration, parse_money, parse_whole
from recommender.inputs.units.times import parse_instant
from recommender.inputs.yaml_text import load_yaml
from recommender.text import shown, unknown

Value = TypeVar("Value")
Default = TypeVar("Default")


@dataclass(frozen=True, slots=True)
class FleetEntry:
    """A job of a fleet, as its file states it."""

    name: str
    job: str  # a job file, relative to the fleet's, or a job that comes with the tool
    deadline_s: float  # since the start of the fleet
    first_s: float  # before which it cannot begin
    team: str
    priority: int
    worth_usd: float | None  # None: twice its dearest plan, times its priority
    after: tuple[str, ...]  # names of jobs that must be done before


@dataclass(frozen=True, slots=True)
class FleetFile:
    """A fleet, as its file states it."""

    jobs: tuple[FleetEntry, ...]
    start: datetime | None  # None: now
    slot_s: float | None  # None: as suits the deadlines
    max_jobs: int | None  # at once
    budgets: Mapping[str, float]  # of each team, USD a month


@dataclass(frozen=True, slots=True)
class _Section:
    """A mapping of the file, whose values are read one by one; what is wrong is kept."""

    tree: Mapping[str, Any]
    where: str
    problems: list[str] = field(default_factory=list)

    def read(
        self, key: str, parse: Callable[[str, str], Value], default: Default
    ) -> Value | Default:
        """The value of a key; its default where it is missing or wrong."""
        word = self.tree.get(key)
        if word is None:
            return default
        try:
            if not isinstance(word, str):
                raise UsageError(f"{self.where}, {key}: must be one value")
            return parse(word, f"{self.where}, {key}")
        except UsageError as error:
            self.problems.extend(error.problems)
            return default

    def check(self, known: Sequence[str], needed: Sequence[str] = ()) -> None:
        """Note keys that are not known, and those that are missing."""
        odd = [unknown("key", key, known) for key in self.tree if key not in known]
        missing = [f"{key} is missing" for key in needed if self.tree.get(key) is None]
        self.problems.extend(f"{self.where}: {each}" for each in (*odd, *missing))


def read_fleet(path: Path) -> FleetFile:
    """Read the file of a fleet; raises `UsageError` with everything that is wrong in it."""
    name = shown(path.name)
    tree = load_yaml(read_text(path), name)
    if not isinstance(tree, dict) or not isinstance(tree.get("jobs"), list):
        raise UsageError(f"{name}: has no list of jobs; write jobs: [{{job: …, deadline: 24h}}, …]")
    top = _Section(tree, name)
    top.check(("jobs", "start", "slot", "max_jobs", "budgets"))
    jobs = [
        _entry(each, f"{name}, job {n}", top.problems) for n, each in enumerate(tree["jobs"], 1)
    ]
    budgets = tree.get("budgets") or {}
    if not isinstance(budgets, dict):
        top.problems.append(f"{name}, budgets: write a budget for each team: {{research: 20000}}")
        budgets = {}
    of_teams = _Section(budgets, f"{name}, budgets", top.problems)
    fleet = FleetFile(
        tuple(jobs),
        top.read("start", parse_instant, None),
        top.read("slot", parse_duration, None),
        top.read("max_jobs", parse_whole, None),
        {team: of_teams.read(team, parse_money, 0.0) for team in budgets},
    )
    refuse_all([*top.problems, *_contradictions(fleet, name)])
    return fleet


def _entry(tree: object, where: str, problems: list[str]) -> FleetEntry:
    if not isinstance(tree, dict):
        raise UsageError(f"{where}: not a job; write {{job: llama3-8b-lora, deadline: 24h}}")
    section = _Section(tree, where, problems)
    keys = ("job", "name", "deadline", "from", "team", "priority", "worth", "after")
    section.check(keys, ("job", "deadline"))
    after = tree.get("after") or ()
    job = section.read("job", _word, "")
    return FleetEntry(
        name=section.read("name", _word, Path(job).stem),
        job=job,
        deadline_s=section.read("deadline", parse_duration, 0.0),
        first_s=section.read("from", parse_duration, 0.0),
        team=section.read("team", _word, ""),
        priority=section.read("priority", parse_whole, 1),
        worth_usd=section.read("worth", parse_money, None),
        after=(after,) if isinstance(after, str) else tuple(map(str, after)),
    )


def _word(word: str, name: str) -> str:
    return word


def _contradictions(fleet: FleetFile, name: str) -> list[str]:
    """What is wrong between jobs and teams."""
    names = [job.name for job in fleet.jobs]
    teams = {job.team for job in fleet.jobs}
    problems = [
        f"{name}: two jobs are called {shown(each)}; give each a name"
        for each in dict.fromkeys(names)
        if names.count(each) > 1
    ]
    problems += [
        f"{name}, {shown(job.name)}: after: {unknown('job', each, names)}"
        for job in fleet.jobs
        for each in job.after
        if each not in names
    ]
    problems += [
        f"{name}, budgets: no job is of team {shown(team)}"
        for team in fleet.budgets
        if team not in teams
    ]
    try:
        TopologicalSorter({job.name: job.after for job in fleet.jobs}).prepare()
    except CycleError as error:
        problems.append(f"{name}: jobs wait for each other: {' after '.join(error.args[1])}")
    return problems
