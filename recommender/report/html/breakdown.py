"""Where time and money go, as rows of stacked bars: a run, its bill, one optimiser step."""

import re
from collections.abc import Iterable
from dataclasses import replace

from recommender.catalogs.frozen import dataclass
from recommender.plan.answer import Answer
from recommender.plan.plan import Plan
from recommender.report import cells
from recommender.report import formatting as fmt
from recommender.report.html import charts
from recommender.report.html.palette import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    YELLOW,
)

MAX_PLANS = 12  # plans that bars are drawn of
TIME = {
    "work": BLUE,
    "start-up": SKY,
    "checkpoints": GREEN,
    "restarts": PURPLE,
    "lost work": VERMILION,
    "waiting for capacity": GREY,
}
STEP = {
    "compute": BLUE,
    "recomputation": SKY,
    "network, exposed": VERMILION,
    "inside the machine, exposed": ORANGE,
    "pipeline bubble": PURPLE,
    "input": GREEN,
}
BILL = {
    "spot machines": BLUE,
    "on-demand machines": ORANGE,
    "on-demand fallback": VERMILION,
    "checkpoints and data": GREEN,
    "fees, pricier zones, price drift": GREY,
    "other": YELLOW,
}
_SPOT, _ON_DEMAND = re.compile(r"^\d+x \S+ spot$"), re.compile(r"^\d+x \S+ on-demand$")
_SUBJECTS = (
    ("on-demand fallback", ("on-demand fallback",)),
    ("checkpoints and data", ("checkpoint", "data:", "egress")),
    ("fees, pricier zones, price drift", ("disks", "failover to", "expected rise")),
)


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of one bar."""

    plan: str
    part: str
    amount: float
    words: str
    end: float = 0.0  # of the bar, for its last part,
    whole: str = ""  # and the figure printed there


@dataclass(frozen=True, slots=True)
class Picture:
    """A specification by the name of its place, and its rows."""

    name: str
    spec: charts.Spec
    rows: tuple[Part, ...]


def pictures(answer: Answer) -> list[Picture]:
    """Time, bill and step of the first plans."""
    plans = [
        (f"plan {i}: {cells.short_machines(plan)}", plan)
        for i, plan in enumerate(answer.plans[:MAX_PLANS], 1)
    ]
    unit, name = cells.time_unit(answer.plans)
    time = [part for label, plan in plans for part in time_parts(label, plan, unit)]
    bill = [part for label, plan in plans for part in bill_parts(label, plan)]
    step = [part for label, plan in plans for part in step_parts(label, plan)]
    return [
        _picture("time-parts", time, f"time, {name}", TIME),
        _picture("bill-parts", bill, "cost, USD", BILL),
        _picture("step-parts", step, "share of a step", STEP, percent=True),
    ]


def _picture(
    name: str, parts: list[Part], title: str, colours: dict[str, str], percent: bool = False
) -> Picture:
    used = {part.part for part in parts}
    kept = {part: colour for part, colour in colours.items() if part in used}
    rows = len({part.plan for part in parts})
    return Picture(name, charts.stacked(rows, title, kept, percent), tuple(parts))


def time_parts(label: str, plan: Plan, unit: float) -> list[Part]:
    """The parts of a usual run."""
    split = plan.estimate.split
    seconds = (split.work_s, split.start_up_s, split.checkpoint_s, split.restart_s, split.lost_s,
               split.waiting_s)  # fmt: skip
    found = zip(TIME, seconds, strict=True)
    parts = [Part(label, name, s / unit, fmt.duration(s)) for name, s in found if s > 0.0]
    return _with_whole(parts, fmt.duration(plan.estimate.time.p50))


def step_parts(label: str, plan: Plan) -> list[Part]:
    """The terms of one optimiser step, as shares of it."""
    step = plan.estimate.step
    seconds = (step.compute_s, step.recompute_s, step.exposed_network_s, step.exposed_intra_s,
               step.bubble_s, step.input_s)  # fmt: skip
    found = zip(STEP, seconds, strict=True)
    whole = sum(seconds) or 1.0
    return [Part(label, name, s / whole, fmt.duration(s)) for name, s in found if s > 0.0]


def bill_parts(label: str, plan: Plan) -> list[Part]:
    """The bill by subject."""
    found: dict[str, float] = {}
    for item in plan.estimate.bill:
        subject = subject_of(item.item)
        found[subject] = found.get(subject, 0.0) + item.usd
    ordered = ((name, found[name]) for name in BILL if name in found)
    parts = [Part(label, name, usd, f"{fmt.usd(usd)} USD") for name, usd in ordered]
    return _with_whole(parts, f"{fmt.usd(plan.estimate.cost.mean)} USD")


def _with_whole(parts: list[Part], words: str) -> list[Part]:
    """The parts of a bar, the last with the label at its end."""
    end = sum(part.amount for part in parts)
    return [*parts[:-1], *(replace(part, end=end, whole=words) for part in parts[-1:])]


def subject_of(item: str) -> str:
    """What a line of the bill is for."""
    if _SPOT.match(item):
        return "spot machines"
    if _ON_DEMAND.match(item):
        return "on-demand machines"
    return next((name for name, words in _SUBJECTS if _holds(item, words)), "other")


def _holds(item: str, words: Iterable[str]) -> bool:
    return any(word in item for word in words)
