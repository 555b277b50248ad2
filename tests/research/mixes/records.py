"""What is kept of a question: one JSON line each, read back as the same objects."""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.research.mixes.questions import Question


@dataclass(frozen=True, slots=True)
class Rented:
    """Some machines of a plan, by their names in the catalog."""

    count: int
    provider: str
    instance_type: str
    gpu: str
    market: str
    places: tuple[tuple[str, str], ...]  # region and zone in the order tried

    @property
    def words(self) -> str:
        """2x p5.48xlarge spot"""
        return f"{self.count}x {self.instance_type} {self.market.replace('_', '-')}"


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """A plan and its printed figures."""

    machines: tuple[Rented, ...]
    checkpoint_path: int
    fallback: tuple[Rented, ...]
    fallback_share: float  # of the runs that need it
    cost_usd: float
    time_s: float
    chance: float
    goal: float

    @property
    def words(self) -> str:
        """Its machines, and the fallback where there is one."""
        rest = " + ".join(m.words for m in self.fallback)
        return " + ".join(m.words for m in self.machines) + (f" then {rest}" if rest else "")

    @property
    def mixes_markets(self) -> bool:
        """Whether spot and on-demand machines train together."""
        return len({m.market for m in self.machines}) > 1

    @property
    def mixes_types(self) -> bool:
        """Whether several types train together."""
        return len({m.instance_type for m in self.machines}) > 1

    @property
    def mixes(self) -> bool:
        """Whether machines of several markets or types train together."""
        return self.mixes_markets or self.mixes_types


@dataclass(frozen=True, slots=True)
class Judged:
    """A plan in simulated runs that it was not chosen by, or in recorded ones."""

    on: str  # "fresh", or the recording
    runs: int
    cost_usd: float
    cost_error: float
    time_s: float
    chance: float
    chance_error: float


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and what came of it."""

    question: Question
    seconds: float
    status: str
    gap: float
    mixes: str  # how far mixes were searched, as printed
    first: PlanRecord | None
    unmixed: PlanRecord | None = None  # the best plan with `mix="no"`
    judged: tuple[Judged, ...] = ()  # of the first plan
    judged_unmixed: tuple[Judged, ...] = ()
    before: PlanRecord | None = None  # the plan of an earlier version under today's law
    one_type_gap: float = 1.0  # as `gap`, by clusters of one machine type
    least: float = 0.0  # the least goal that the search met; the first plan may be a simpler one
    spot_share: float = 0.0  # of the work, by the master program
    solvers: str = ""  # where other solvers find another optimum of that program
    refusal: str = ""  # what other searches found where this one found no plan
    beaten: str = ""  # what beats a plan under an overhead limit in cost and time
    failed: str = ""

    @property
    def best(self) -> float:
        """The least goal of the first plan and of what the search met."""
        goals = [self.least or math.inf, math.inf if self.first is None else self.first.goal]
        return min(goals)


def line(asked: Asked) -> str:
    """One line of a file."""
    return json.dumps(asdict(asked))


def read(path: Path) -> list[Asked]:
    """Everything that a file holds; none where there is none."""
    if not path.exists():
        return []
    return [_asked(json.loads(text)) for text in path.read_text("utf-8").splitlines() if text]


def _asked(raw: dict[str, object]) -> Asked:
    fields = dict(raw)
    fields["question"] = Question(**raw["question"])  # type: ignore[arg-type]
    for name in ("first", "unmixed", "before"):
        fields[name] = _plan(raw[name])
    for name in ("judged", "judged_unmixed"):
        fields[name] = tuple(Judged(**each) for each in raw[name])  # type: ignore[attr-defined]
    return Asked(**fields)  # type: ignore[arg-type]


def _plan(raw: object) -> PlanRecord | None:
    if not isinstance(raw, dict):
        return None
    parts = {name: _rented(raw[name]) for name in ("machines", "fallback")}
    return PlanRecord(**(raw | parts))


def _rented(raw: Iterable[dict[str, object]]) -> tuple[Rented, ...]:
    return tuple(
        Rented(**(each | {"places": tuple(tuple(p) for p in each["places"])}))  # type: ignore
        for each in raw
    )
