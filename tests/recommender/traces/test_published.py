"""Against the statistics of published traces, which others computed with other code."""

import csv
import functools
import gzip
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from recommender.traces.fit import fit, fit_size
from recommender.traces.intervals import gang_intervals
from recommender.traces.law_fit import fit_laws
from recommender.traces.law_store import level_sd
from recommender.traces.market_law import law_of, logit
from recommender.traces.statistics import market_of
from recommender.traces.trace import ADDED, TAKEN, Trace, counted, named_events
from tests.shipped import snapshot

pytestmark = pytest.mark.reference
# Where the published lognormal is not the most likely one: its AIC is worse than ours.
WORSE = {"cbl-preem-4n-08-03-2023-us-west-2c-v100x1", "bamboo-p3"}


@functools.cache
def folder() -> Path:
    path = os.environ.get("RECOMMEND_REFERENCE_DATA", "")
    if not path:
        pytest.skip("RECOMMEND_REFERENCE_DATA is not set")
    return Path(path) / "spot"


@functools.cache
def statistics() -> dict[str, Mapping[str, str]]:
    with open(folder() / "traces.csv", newline="") as file:
        return {row["trace_id"]: row for row in csv.DictReader(file)}


@functools.cache
def changes() -> dict[str, list[tuple[float, int]]]:
    found: dict[str, list[tuple[float, int]]] = {}
    with gzip.open(folder() / "availability.csv.gz", "rt", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["trace_id"], []).append((float(row["t_s"]), int(row["nodes"])))
    return found


def series(name: str) -> Trace:
    seen, row = changes()[name], statistics()[name]
    return Trace(
        name=name,
        end_s=seen[-1][0],
        t_s=np.array([t for t, n in seen if n >= 0]),
        machines=np.array([n for _, n in seen if n >= 0]),
        capacity=int(row["capacity"]),
        step_s=float(row["gap_s"]),
        kind="hold" if row["kind"] == "hold" else "probe",
    )


def campaign(name: str) -> list[Trace]:
    return [series(key) for key, row in statistics().items() if row["campaign"] == name]


def test_every_published_fit_is_reproduced() -> None:
    checked = 0
    for name, row in statistics().items():
        if not row["weibull_k"]:
            continue
        made = series(name)
        laws = {
            law.family: law for law in fit_laws("runs", gang_intervals(made, made.capacity).runs)
        }
        assert laws["exponential"].mean_h.value == pytest.approx(float(row["exp_mean_h"]), abs=1e-3)
        assert laws["weibull"].shape.value == pytest.approx(float(row["weibull_k"]), abs=1e-3)
        advantage = laws["exponential"].aic - min(law.aic for law in laws.values())
        if name in WORSE:
            assert advantage > float(row["daic_exp_minus_best"])
        else:
            sigma = laws["lognormal"].shape.value
            assert sigma == pytest.approx(float(row["lognorm_sigma"]), abs=1e-3)
            assert advantage == pytest.approx(float(row["daic_exp_minus_best"]), abs=1e-2)
        checked += 1
    assert checked >= 30


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_shares_of_time_are_reproduced(every: int) -> None:
    for name, row in list(statistics().items())[::every]:
        found = fit([series(name)])
        full = found.sizes[-1]
        assert full.availability.value == pytest.approx(float(row["full_fraction"]), abs=2e-4)
        assert full.interruptions == int(row["preemptions"])


@pytest.mark.parametrize(
    ("name", "share", "group", "per_hour"),
    [("bamboo-p3", 0.77, 2.1, 0.61), ("bamboo-g4dn", 0.58, 1.54, 0.55)],
)
def test_losses_of_bamboo(name: str, share: float, group: float, per_hour: float) -> None:
    """Share of losses in groups, mean group, removals per node-hour (Bamboo, NSDI'23 traces)."""
    rows = []
    with gzip.open(folder() / "node_events.csv.gz", "rt", newline="") as file:
        for row in csv.DictReader(file):
            if row["trace_id"] == name:
                change = ADDED if row["event"] == "add" else TAKEN
                rows.append((float(row["t_s"]), change, row["node"]))
    events = named_events(rows)
    t_s, machines = counted(events)
    end_s = changes()[name][-1][0]
    most = int(machines.max())
    made = Trace(name, end_s, capacity=most, t_s=t_s, machines=machines, events=events)
    groups = fit([made]).groups
    assert groups is not None
    assert groups.share_in_groups.value == pytest.approx(share, abs=0.01)
    assert groups.mean_group.value == pytest.approx(group, abs=0.05)
    assert groups.per_machine_hour.value == pytest.approx(per_hour, abs=0.01)


def test_the_law_of_h100_is_that_of_the_shipped_class() -> None:
    """Same traces as the class (docs/research/risk-facts.md), other code: run 3.80 h, ρ 0.9."""
    law = fit(campaign("skynomad-gcp-2025-10")).law
    assert law is not None
    assert law.run_mean_s.value == pytest.approx(3.80 * 3600, rel=0.01)
    assert law.co_interruption is not None
    assert law.co_interruption.value == pytest.approx(0.90, abs=0.01)
    for value, shipped in (
        (law.run_sigma, 2.06),
        (law.outage_sigma, 1.30),
        (law.availability, 0.910),
        (law.zone_sd, 2.6),
        (law.availability_slope, 1.40),
    ):
        assert value is not None
        assert value.low is not None
        assert value.high is not None
        assert value.low <= shipped <= value.high


def test_hours_of_the_day_of_v100() -> None:
    """Published over nine zones: 0.76 at 06 h, 0.53 at 18 h by the trace's own clock."""
    zones = campaign("cbl-aws-02-15-2023")
    start = datetime.fromisoformat(statistics()[zones[0].name]["start_utc"]).replace(tzinfo=UTC)
    hours = [v.value for v in fit([replace(zone, start=start) for zone in zones]).hours]
    assert 3 <= int(np.argmax(hours)) <= 8
    assert 13 <= int(np.argmin(hours)) <= 19
    assert max(hours) - min(hours) > 0.15


def half(whole: Trace, second: bool) -> Trace:
    """One half of a series as a series of its own."""
    middle = 0.5 * whole.end_s
    kept = (whole.t_s > middle) == second
    t_s, machines = whole.t_s[kept], whole.machines[kept]
    if second:
        begin = whole.machines_at(np.array([middle]))
        t_s, machines = np.append(0.0, t_s - middle), np.append(begin, machines)
    return replace(whole, end_s=middle, t_s=t_s, machines=machines)


@dataclass(frozen=True)
class Judged:
    """A zone's law of its first half against its second half."""

    moved: float  # logits of the share up
    spread: float  # that the first half alone would promise
    level: float  # logit of the second half
    run_ratio: float  # ln of mean run, first half to second
    run_h: float  # mean run of the second half


def judged(name: str) -> list[Judged]:
    """Every zone that had five interruptions in its first half: else no law would be kept."""
    found = []
    for zone in campaign(name):
        law, _ = law_of(market_of([half(zone, second=False)]))
        then = fit_size(market_of([half(zone, second=True)]), 0)
        if law is None or then.run_mean_h is None:
            continue
        spread, level = level_sd(law), logit(then.availability.value)
        assert spread is not None
        found.append(
            Judged(
                moved=level - logit(law.availability.value),
                spread=spread,
                level=level,
                run_ratio=math.log(law.run_mean_s.value / 3600 / then.run_mean_h.value),
                run_h=then.run_mean_h.value,
            )
        )
    return found


@pytest.mark.parametrize(
    ("name", "gpu_class", "zones"),
    [
        pytest.param("skynomad-gcp-2025-10", "h100", 7, marks=pytest.mark.slow),
        ("cbl-aws-02-15-2023", "v100", 6),
    ],
)
def test_levels_move_between_halves_as_zones_differ(name: str, gpu_class: str, zones: int) -> None:
    """Why a kept law has at least its class's spread: with its own it would be far too sure."""
    (kept,) = (c for c in snapshot().spot_classes if c.spot_class == gpu_class)
    found = judged(name)
    assert len(found) == zones
    by_class = math.sqrt(np.mean([z.moved**2 for z in found])) / kept.zone_sd
    by_itself = math.sqrt(np.mean([(z.moved / z.spread) ** 2 for z in found]))
    print(f"{name}: moves {by_class:.2f} spreads of the class, {by_itself:.2f} of its own")
    level = [abs(z.level - logit(kept.availability)) for z in found]
    run = [abs(math.log(kept.run_mean_s / 3600 / z.run_h)) for z in found]
    own = [abs(z.moved) for z in found], [abs(z.run_ratio) for z in found]
    print(f"  logits missed: own {np.mean(own[0]):.2f}, class {np.mean(level):.2f}")
    print(f"  ln of mean run missed: own {np.mean(own[1]):.2f}, class {np.mean(run):.2f}")
    assert 0.6 < by_class < 1.4
    assert by_itself > by_class
