"""Changes to a plan in a simulation: its law of runs, a recording, deflatable machines."""

from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path

import numpy as np

from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.inputs.csv_text import read_csv
from recommender.inputs.units import parse_count, parse_duration, parse_money, parse_share
from recommender.plan.plan import Plan
from recommender.risk.laws import (
    OUTAGE_FAMILY,
    RUN_FAMILY,
    Lognormal,
    RunLaw,
    SurvivalCurve,
    Weibull,
)
from recommender.risk.path_inputs import PathInputs
from recommender.risk.spot_capacity import CLASS_CAPACITY, Capacity, ClassCapacity
from recommender.simulation.deflatable import Deflatable, deflated
from recommender.simulation.recorded import FOREVER_S, RecordedCapacity, recorded_capacity
from recommender.text import nearest, shown, shown_path
from recommender.traces.read import chosen
from recommender.traces.trace import Trace

LAWS = ("weibull:SHAPE", "lognormal:SIGMA", "exponential", "FILE.csv")
_SHAPES = {"weibull": (0.1, 10.0), "lognormal": (0.01, 4.0)}
_KEYS = ("pressure", "depth", "episode", "price")
EPISODE_S = 1800.0  # an episode of pressure, unless said
_CURVE = 400  # points of a recording's survival curve


def parse_law(text: str, name: str = "--run-law") -> RunLaw:
    """Read a law of run lengths: a family with its shape, or a file with a survival curve."""
    family, colon, shape = text.strip().partition(":")
    if family.lower() == "exponential" and not colon:
        return Weibull(1.0)
    if family.lower() in _SHAPES and colon:
        low, high = _SHAPES[family.lower()]
        value = parse_count(shape, f"{name} {family}:")
        if not low <= value <= high:
            raise UsageError(f"{name} {shown(text)} is out of range; write {low:g} to {high:g}")
        return Weibull(value) if family.lower() == "weibull" else Lognormal(value)
    if text.strip().lower().endswith(".csv"):
        return read_curve(Path(text.strip()))
    raise UsageError(f"{name} {shown(text)} is no law of runs; write {', '.join(LAWS)}")


def read_curve(path: Path) -> SurvivalCurve:
    """Read a survival curve: columns age_h, survival (share of runs still alive), from 0 and 1."""
    rows = read_csv(path, ("age_h", "survival"), (), {"hours": "age_h", "alive": "survival"})
    points: list[tuple[float, float]] = []
    for row in rows:
        values = []
        for column in ("age_h", "survival"):
            try:
                values.append(float(row.cells.get(column, "")))
            except ValueError:
                message = shown(row.cells.get(column, "nothing"))
                raise UsageError(f"{row.where(column)} {message} is not a number") from None
        points.append((values[0] * 3600.0, values[1]))
    ages, alive = zip(*points, strict=True)
    rises = all(a < b for a, b in zip(ages, ages[1:], strict=False))
    falls = all(1.0 >= a >= b >= 0.0 for a, b in zip(alive, alive[1:], strict=False))
    if len(points) < 2 or points[0] != (0.0, 1.0) or not (rises and falls) or alive[-1] >= 1.0:
        raise UsageError(
            f"{shown(path.name)}: not a survival curve; age_h must rise from 0, "
            "survival fall from 1"
        )
    return SurvivalCurve(ages, alive)


def parse_deflatable(text: str, name: str = "--deflatable") -> Deflatable:
    """Read deflatable machines: `pressure=10%,depth=50%`, optional `episode=30m`, `price=2.5`."""
    given: dict[str, str] = {}
    for part in text.split(","):
        key, sign, value = part.strip().partition("=")
        if key not in _KEYS or not sign or key in given:
            meant = nearest(key, _KEYS)
            hint = f"did you mean {meant}?" if meant and meant != key else "write pressure=10%"
            raise UsageError(f"{name} '{shown(part)}' cannot be read; {hint}")
        given[key] = value
    missing = [key for key in ("pressure", "depth") if key not in given]
    if missing:
        raise UsageError(f"{name} has no {' and no '.join(missing)}; write pressure=10%,depth=50%")
    price = given.get("price")
    return Deflatable(
        pressure=parse_share(given["pressure"], f"{name} pressure"),
        depth=parse_share(given["depth"], f"{name} depth", zero=True, one=True),
        episode_s=parse_duration(given["episode"], f"{name} episode")
        if "episode" in given
        else EPISODE_S,
        usd_per_hour=None if price is None else parse_money(price, f"{name} price"),
    )


HOUR_S, DAY_S = 3600.0, 86_400.0


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The requested changes; none by default."""

    trace: Path | None = None
    series: tuple[str, ...] = ()  # of the trace; none: all
    law: RunLaw | None = None
    deflatable: Deflatable | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """A plan's path inputs, and where its runs come from."""

    inputs: PathInputs
    capacity: Capacity
    law: RunLaw  # shape of the runs, for the closed form
    words: str
    start_s: float = 0.0  # passes before the inputs begins, paid in its fixed cost
    notes: tuple[str, ...] = field(default=())


def scenario_of(inputs: PathInputs, plan: Plan, what_if: WhatIf) -> Scenario:
    """The capacity on which a plan is simulated.

    Raises `UsageError` for a recording or a law of spot if the plan rents no spot.
    """
    machines = sum(m.count for m in plan.machines if m.market == "spot")
    if not machines and what_if != WhatIf():
        raise UsageError(
            "--trace, --run-law and --deflatable change spot machines, and this plan rents none; "
            "name spot machines or add --market spot"
        )
    if what_if.trace is not None:
        series = _series(what_if.trace, what_if.series)
        return _recorded(inputs, series, what_if.trace, machines)
    if what_if.deflatable is not None:
        return _deflated(inputs, plan, what_if.deflatable, machines)
    if what_if.law is not None:
        return _with_run_law(inputs, what_if.law)
    law = RUN_FAMILY.law(float(inputs.run_sigma[0]))
    if plan.spot is None:
        return Scenario(inputs, CLASS_CAPACITY, law, "on-demand machines; hardware faults only")
    words = f"spot class {plan.spot.name} ({plan.spot.basis}, {plan.spot.as_of})"
    return Scenario(inputs, CLASS_CAPACITY, law, words)


def _with_run_law(inputs: PathInputs, law: RunLaw) -> Scenario:
    if isinstance(law, SurvivalCurve):
        words = f"the survival curve of your file, mean {law.mean_s / HOUR_S:.3g} h"
        inputs = replace(inputs, run_mean_s=np.array([law.mean_s]))
    elif isinstance(law, Weibull):
        name = "exponential" if law.shape == 1.0 else f"Weibull runs of shape {law.shape:g}"
        words = f"{name}, the class's mean"
    else:
        assert isinstance(law, Lognormal)
        words = f"lognormal runs of sigma {law.sigma:g}, the class's mean"
    return Scenario(inputs, ClassCapacity(law), law, words)


def _series(path: Path, wanted: tuple[str, ...]) -> list[Trace]:
    """The series of a file that say how many machines were up; raises `UsageError`."""
    found = [each for each in chosen((path,), wanted) if len(each.t_s)]
    if not found:
        raise UsageError(f"{shown_path(path)}: no series of machines that were up")
    return found


def _recorded(inputs: PathInputs, series: Sequence[Trace], path: Path, machines: int) -> Scenario:
    recorded = recorded_capacity(series, machines)
    name, days = shown_path(path.name), sum(s.length_s for s in recorded.intervals) / DAY_S
    share = recorded.availability
    if share <= 0.0:
        raise UsageError(f"{name}: never has {machines} machines up; simulate a smaller plan")
    words = (
        f"recorded: {name}, {len(recorded.intervals)} series, {days:.3g} days; "
        f"{machines} machine{'s' * (machines > 1)} up {100.0 * share:.3g} % of the time, "
        f"{_mean_run_text(recorded)}"
    )
    return Scenario(
        _as_recorded(inputs, recorded), recorded, _curve(recorded), words,
        notes=("one zone at a time: a failover list is not replayed",),
    )  # fmt: skip


def _mean_run_text(recorded: RecordedCapacity) -> str:
    if recorded.run_mean_s == FOREVER_S:
        return "never interrupted"
    return f"{recorded.run_mean_s / HOUR_S:.3g} h at a time"


def _as_recorded(inputs: PathInputs, recorded: RecordedCapacity) -> PathInputs:
    """The inputs with the recording's means, for the closed form and the number of cycles."""
    up = min(recorded.availability, 1.0 - 1e-9)
    waits = np.concatenate(
        [np.diff(np.stack([s.end_s[:-1], s.begin_s[1:]]), axis=0)[0] for s in recorded.intervals]
    )
    varied = float((waits.std() / waits.mean()) ** 2) if len(waits) else 0.0
    return replace(
        inputs,
        run_mean_s=np.array([recorded.run_mean_s]),
        outage_sigma=np.array([OUTAGE_FAMILY.shape_of_variation(varied)]),
        availability_logit=np.array([np.log(up / (1.0 - up))]),
        zone_sd=np.zeros(1),
        zone_count=np.ones(1),
    )


def _curve(recorded: RecordedCapacity) -> SurvivalCurve:
    """How long the recorded runs lasted, as a survival curve."""
    if recorded.run_mean_s == FOREVER_S:
        return SurvivalCurve((0.0, FOREVER_S), (1.0, 0.0))
    runs = np.sort(
        np.concatenate([s.end_s - s.begin_s for s in recorded.intervals if not s.endless])
    )
    level = np.linspace(0.0, 1.0, _CURVE + 1)
    ages = np.concatenate([[0.0], np.quantile(runs, level)])
    alive = np.concatenate([[1.0], 1.0 - level])
    kept = np.concatenate([[True], np.diff(ages) > 0.0])
    return SurvivalCurve(tuple(ages[kept].tolist()), tuple(alive[kept].tolist()))


def _deflated(inputs: PathInputs, plan: Plan, market: Deflatable, machines: int) -> Scenario:
    co_pressure = plan.spot.co_interruption if plan.spot is not None else 0.0
    words = (
        f"deflatable machines: each under pressure {100.0 * market.pressure:.3g} % of the time, "
        f"{100.0 * market.depth:.3g} % slower then, for {market.episode_s / 60.0:.3g} min at a time"
    )
    return Scenario(
        deflated(inputs, market, machines, co_pressure),
        CLASS_CAPACITY,
        RUN_FAMILY.law(1.0),
        words,
        start_s=float(inputs.changeover_s[0]),
        notes=(
            "no cloud sells deflatable GPU machines: this is a what-if",
            "interruptions are episodes of pressure; waiting is time at the lower speed",
            "no fallback: nothing is ever reclaimed",
        ),
    )
