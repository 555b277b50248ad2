"""Spot capacity: runs, days and gangs of zones that the law was not fitted on.

Every zone is predicted by the law of the recommender (lognormal runs, levels of zones,
co-interruption) fitted, as for the shipped classes, on the other zones of its campaign.
Which zone is left out of which campaign was frozen in `data/spot_splits.csv` before any error
was looked at.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from catalogs.load import load_snapshot
from catalogs.spot_fit import (
    GANGS,
    HOUR,
    Trace,
    ZoneLaw,
    co_interruption,
    day_shares,
    fit_gangs,
    fit_runs,
    logistic,
    logit,
    pooled_run_mean,
    read_traces,
    spells,
)
from recommender.accuracy.likelihood import (
    RunLaw,
    RunsSeen,
    exponential_law,
    log_likelihood,
    lognormal_law,
    runs_seen,
)
from recommender.accuracy.study import Held, Score, Study, Target, score
from recommender.errors import UsageError
from recommender.risk.draws import draws
from recommender.risk.plans import Journeys
from recommender.risk.runs import draw_runs

Floats = NDArray[np.float64]

SPLITS = Path(__file__).parent / "data" / "spot_splits.csv"
DAY_S = 86_400.0
PATHS, CYCLES = 1024, 256
# Fewer interruptions than this tell a mean but no shape: the shipped class lends its own.
ENOUGH = 20


@dataclass(frozen=True, slots=True)
class Split:
    """One gang size in one campaign, and the zones left out of it one at a time."""

    campaign: str
    gpu: str
    gpus: int  # per machine
    machines: int
    named: bool  # three zones and twenty interruptions: has a line of its own
    zones: tuple[str, ...]
    traces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A gang in a zone that was left out; the other zones of its campaign are known."""

    split: Split
    zone: str
    trace: Trace
    others: tuple[Trace, ...]


def splits(question: str) -> list[Split]:
    """Read the frozen splits of a question: "runs", "uptime" or "gangs"."""
    found: dict[tuple[str, str, str, str], list[Mapping[str, str]]] = {}
    with open(SPLITS, newline="") as file:
        for row in csv.DictReader(file):
            if row["question"] == question:
                key = (row["campaign"], row["gpu"], row["gpus_per_machine"], row["machines"])
                found.setdefault(key, []).append(row)
    return [
        Split(
            campaign,
            gpu,
            int(gpus),
            int(machines),
            rows[0]["named"] == "yes",
            tuple(row["zone_left_out"] for row in rows),
            tuple(row["trace"] for row in rows),
        )
        for (campaign, gpu, gpus, machines), rows in found.items()
    ]


def left_out(reference: Path | None, question: str) -> list[LeftOut]:
    """Leave out every zone of the splits of a question, one at a time."""
    if reference is None:
        raise UsageError(
            "spot studies: no folder of reference tables; the availability series are too large "
            "to carry: name the folder that holds spot/traces.csv"
        )
    found = []
    for split in splits(question):
        series = _series(reference, split.campaign, split.gpu, split.gpus)
        for zone, name in zip(split.zones, split.traces, strict=True):
            others = tuple(t for t in series if t.name != name)
            (mine,) = (t for t in series if t.name == name)
            found.append(LeftOut(split, zone, mine, others))
    return found


@lru_cache(maxsize=64)
def _series(reference: Path, campaign: str, gpu: str, gpus: int) -> tuple[Trace, ...]:
    with open(reference / "spot" / "traces.csv", newline="") as file:
        same = {
            row["trace_id"]
            for row in csv.DictReader(file)
            if (row["campaign"], row["gpu"], row["gpus_per_node"]) == (campaign, gpu, str(gpus))
        }
    return tuple(t for t in read_traces(reference, campaign) if t.name in same)


def _sizes(traces: tuple[Trace, ...]) -> list[int]:
    return [n for n in GANGS if n <= min(t.capacity for t in traces)]


# --- runs -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunsForecast:
    """The runs of a zone that was left out, beside two laws of the other zones."""

    left_out: LeftOut
    seen: RunsSeen
    ours: RunLaw
    memoryless: RunLaw

    @property
    def gain(self) -> float:
        """Nats by which our law is more likely than the memoryless one."""
        return log_likelihood(self.seen, self.ours) - log_likelihood(self.seen, self.memoryless)


def run_forecasts(reference: Path | None) -> list[RunsForecast]:
    """Forecast the runs of every zone left out, from the other zones of its campaign.

    The exponential has the mean run of the gang's own size, pooled over the other zones; our
    law has one mean, one sigma and one co-interruption for all sizes of gangs.
    """
    laws: dict[tuple[str, str], ZoneLaw | None] = {}
    found = []
    for case in left_out(reference, "runs"):
        key = (case.split.campaign, case.trace.name)
        if key not in laws:
            laws[key] = _run_law(case.others)
        law, machines = laws[key], case.split.machines
        mean = pooled_run_mean([spells(t, machines) for t in case.others])
        if law is None:
            ours = lognormal_law(mean, _shipped_sigma(case.split))
        else:
            ours = lognormal_law(law.run_mean(machines), law.run_sigma)
        seen = runs_seen(case.trace, machines)
        found.append(RunsForecast(case, seen, ours, exponential_law(mean)))
    return found


def _run_law(others: tuple[Trace, ...]) -> ZoneLaw | None:
    """Fit runs as the catalog's build does; None where there are too few to show a shape."""
    seen = {n: [spells(trace, n) for trace in others] for n in _sizes(others)}
    if sum(zone.interruptions for zone in seen[1]) < ENOUGH:
        return None
    rho = co_interruption({n: pooled_run_mean(zones) for n, zones in seen.items()})
    return fit_runs(seen, rho)


@lru_cache(maxsize=1)
def _shipped() -> Mapping[tuple[str, int], float]:
    return {
        (gpu, gpus): law.run_sigma
        for law in load_snapshot().spot_classes
        for gpu in law.gpus
        for gpus in range(law.gpus_per_machine_min, law.gpus_per_machine_max + 1)
    }


def _shipped_sigma(split: Split) -> float:
    return _shipped()[split.gpu, split.gpus]


def _gain(campaign: str, gpu: str, sizes: range, reference: Path | None) -> Score:
    """Gain over the exponential of the sizes of a campaign; all campaigns where it is empty."""
    return gain_score(
        [
            f
            for f in run_forecasts(reference)
            if not campaign
            or (f.left_out.split.campaign, f.left_out.split.gpu) == (campaign, gpu)
            and f.left_out.split.machines in sizes
        ]
    )


def gain_score(forecasts: list[RunsForecast]) -> Score:
    """Nats per interruption by which our law beats the exponential, and who gains least.

    `mean` is over all interruptions, `median` and `p90` over zones and sizes (nine in ten gain
    at least `p90`); `coverage` is the share of ended runs inside our 5-95 % span.
    """
    events = sum(f.seen.ended for f in forecasts)
    each = [f.gain / f.seen.ended for f in forecasts if f.seen.ended]
    places = np.concatenate([run_places(f)[0] for f in forecasts])
    return Score(
        points=events,
        mean=sum(f.gain for f in forecasts) / events,
        median=float(np.median(each)),
        p90=float(np.quantile(each, 0.1)),
        bias=None,
        unit="nats",
        coverage=float(((places >= 0.05) & (places <= 0.95)).mean()),
    )


def run_places(forecast: RunsForecast) -> tuple[Floats, Floats]:
    """Where runs fell in our law, 0 (short) to 1 (long): those that ended, and those cut off."""
    seen, law = forecast.seen, forecast.ours
    place = 1.0 - law.beyond(seen.ticks * seen.tick_h, seen.began_before)
    return place[~seen.not_over], place[seen.not_over]


# --- days -------------------------------------------------------------------------------------


def uptime_score(reference: Path | None) -> Score:
    """Spread of 24-hour uptime over days and zones, forecast from the other zones, in %."""
    groups: dict[tuple[str, int], list[LeftOut]] = {}
    for case in left_out(reference, "uptime"):
        groups.setdefault((case.split.campaign, case.split.machines), []).append(case)
    laws: dict[str, ZoneLaw] = {}
    for case in (case for cases in groups.values() for case in cases):
        if case.trace.name not in laws:
            laws[case.trace.name] = _zone_law(case.others)
    labels, predicted, measured = [], [], []
    for (campaign, machines), cases in groups.items():
        days = [forecast_days(laws[case.trace.name], machines) for case in cases]
        labels.append(f"{campaign} x{machines}")
        predicted.append(float(np.concatenate(days).std()))
        measured.append(float(day_shares([case.trace for case in cases], machines).std()))
    return score(Held(tuple(labels), np.array(predicted), np.array(measured)))


def _zone_law(others: tuple[Trace, ...]) -> ZoneLaw:
    sizes = _sizes(others)
    seen = {n: pooled_run_mean([spells(t, n) for t in others]) for n in sizes}
    days = [n for n in (1, 4, 16) if n in sizes]
    return fit_gangs(others, sizes, days, co_interruption(seen))


def forecast_days(law: ZoneLaw, machines: int) -> Floats:
    """Share of a day that a gang is there, in histories that the recommender draws; (paths,)."""
    plan = dict.fromkeys(Journeys.__slots__, np.zeros(1))
    plan |= {
        "run_mean_s": np.array([law.run_mean(machines) * HOUR]),
        "run_sigma": np.array([law.run_sigma]),
        "outage_sigma": np.array([law.outage_sigma]),
        "availability_logit": np.array([law.level(machines)]),
        "zone_sd": np.array([law.zone_sd]),
        "sites": np.ones(1),
        "interval_s": np.ones(1),
    }
    held = np.zeros(1, dtype=np.bool_)
    journeys = Journeys(**(plan | {"held": held}))  # type: ignore[arg-type]
    runs = draw_runs(journeys, draws(PATHS, CYCLES))
    begin, end = runs.starts[:, 0], runs.starts[:, 0] + runs.lengths[:, 0]
    up = np.minimum(end, DAY_S) - np.minimum(begin, DAY_S)
    return np.asarray(up.sum(axis=0) / DAY_S, dtype=np.float64)


# --- gangs ------------------------------------------------------------------------------------


def gang_forecasts(reference: Path | None) -> Held:
    """Availability of gangs in zones left out, from that of one machine there."""
    laws: dict[str, ZoneLaw] = {}
    labels, predicted, measured = [], [], []
    for case in left_out(reference, "gangs"):
        machines, name = case.split.machines, case.trace.name
        if name not in laws:
            laws[name] = _zone_law(case.others)
        labels.append(f"{case.split.campaign} {case.zone} x{machines}")
        predicted.append(gang_availability(float(case.trace.up(1).mean()), laws[name], machines))
        measured.append(float(case.trace.up(machines).mean()))
    return Held(tuple(labels), np.array(predicted), np.array(measured))


def gang_availability(one: float, law: ZoneLaw, machines: int) -> float:
    """Share of time that a gang is there where one machine is there a share `one`.

    logit a(n) = logit a(1) - slope·log2 n, as the estimates have it.
    """
    if not 0.0 < one < 1.0:
        return one
    return float(logistic(np.float64(logit(one) + law.level(machines) - law.level(1))))


def share_score(held: Held) -> Score:
    """Errors of predicted shares: differences, not ratios."""
    missed = np.abs(held.predicted - held.measured)
    return Score(
        points=len(missed),
        mean=float(missed.mean()),
        median=float(np.median(missed)),
        p90=float(np.quantile(missed, 0.9)),
        bias=float(np.median(held.predicted - held.measured)),
        unit="share",
    )
