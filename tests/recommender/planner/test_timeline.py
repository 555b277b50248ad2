"""Runs that are shown are runs that are counted: the same ends, waits, interruptions and bills."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from recommender.plan.limits import Choice, Limits, Progress
from recommender.planner.pipeline import Pipeline
from recommender.planner.plan_builder import Evaluated
from recommender.planner.problem import PRINTED, planning_problem
from recommender.planner.timeline import LUCK, timelines
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.path_inputs import Paths
from recommender.risk.random_numbers import SEED
from recommender.risk.run_statistics import quantiles
from tests.recommender.planning import NOW, job, small

HOUR = 3600.0
ASKED = {  # a wait for spot, a fallback, on demand alone
    "spot": (Limits(budget_usd=90.0, max_machines=6), Choice(market="spot")),
    "fallback": (Limits(deadline_s=9 * HOUR, max_machines=6), Choice()),
    "on demand": (Limits(deadline_s=24 * HOUR, max_machines=6), Choice(market="on_demand")),
}


@cache
def plans(which: str) -> tuple[tuple[Evaluated, float | None], ...]:
    limits, choice = ASKED[which]
    problem = planning_problem(job(), limits, choice, small(), Progress(), NOW, SEED)
    return tuple((each, limits.deadline_s) for each in Pipeline(problem).table)


def elastic() -> Evaluated:
    """A spot plan as if a part of it were on demand, and trained on at 40 % of the speed."""
    plan, _ = plans("spot")[0]
    part = {"elastic_share": 0.4, "boot_s": 120.0, "resize_s": 200.0}
    inputs = replace(plan.inputs, **{name: np.full(1, value) for name, value in part.items()})
    return replace(plan, inputs=inputs)


def counted(plan: Evaluated, deadline_s: float | None) -> Paths:
    return simulate_paths(plan.inputs, deadline_s, PRINTED, SEED)


@pytest.mark.parametrize("which", sorted(ASKED))
def test_segments_are_contiguous_and_end_when_the_path_ends(which: str):
    for plan, deadline_s in plans(which):
        paths = counted(plan, deadline_s)
        reported = timelines(plan, 1, deadline_s, SEED, paths.cost_usd[0])
        assert [each.luck for each in reported] == [name for name, _ in LUCK]
        for each in reported:
            segments = each.segments
            assert segments[0].start_s == pytest.approx(0.0, abs=1.0)
            gaps = [b.start_s - a.end_s for a, b in zip(segments, segments[1:], strict=False)]
            assert np.allclose(gaps, 0.0, atol=1.0)  # single precision over days
            (time,) = quantiles(paths.time_s[0], each.share)
            assert each.time_s == pytest.approx(time, rel=1e-6, abs=1.0)


@pytest.mark.parametrize("which", ["spot", "fallback", "on demand"])
def test_waits_fallbacks_and_interruptions_are_those_of_the_path(which: str):
    for plan, deadline_s in plans(which):
        paths = counted(plan, deadline_s)
        order = np.argsort(paths.time_s[0], kind="stable")
        for each in timelines(plan, 1, deadline_s, SEED, paths.cost_usd[0]):
            path = int(order[int(np.ceil(each.share * len(order) - 1e-9)) - 1])
            assert each.cost_usd == paths.cost_usd[0, path]
            if any(s.doing == "further cycles" for s in each.segments):
                continue  # shown in part
            spent = {
                doing: sum(s.end_s - s.start_s for s in each.segments if s.doing == doing)
                for doing in ("waiting", "fallback")
            }
            assert spent["waiting"] == pytest.approx(paths.waiting_s[0, path], abs=2.0)
            start_s = float(plan.inputs.fallback_start_s[0])
            starts = sum(s.doing == "fallback" for s in each.segments)
            on_fallback = max(float(paths.fallback_s[0, path]) - starts * start_s, 0.0)
            if spent["fallback"] != pytest.approx(on_fallback, abs=2.0):
                # Spot came back while on-demand machines started: these starts trained nothing.
                idle = (on_fallback - spent["fallback"]) / start_s
                assert idle == pytest.approx(max(round(idle), 1), abs=0.01)
            assert len(each.interruptions_s) == paths.interruptions[0, path]


def test_what_is_lost_and_kept_adds_up_to_the_job():
    """The work shown, less the saves, is the work of the job at the speed of the path."""
    for plan, deadline_s in plans("spot"):
        paths = counted(plan, deadline_s)
        order = np.argsort(paths.time_s[0], kind="stable")
        interval, stall = float(plan.inputs.interval_s[0]), float(plan.inputs.stall_s[0])
        for each in timelines(plan, 1, deadline_s, SEED, paths.cost_usd[0]):
            path = int(order[int(np.ceil(each.share * len(order) - 1e-9)) - 1])
            if any(s.doing in ("further cycles", "fallback") for s in each.segments):
                continue
            done = sum(s.end_s - s.start_s for s in each.segments if s.doing == "work")
            work = done * interval / (interval + stall)
            assert work == pytest.approx(paths.work_s[0, path], rel=0.01, abs=stall + 2.0)


def test_the_fallback_is_seen_where_it_is_needed():
    reported = [
        each
        for plan, deadline_s in plans("fallback")
        if plan.plan.fallback is not None and plan.plan.fallback.probability > 0.1
        for each in timelines(plan, 1, deadline_s, SEED, counted(plan, deadline_s).cost_usd[0])
    ]
    assert reported
    assert any(s.doing == "fallback" for each in reported for s in each.segments)


def test_an_elastic_cluster_trains_on_where_others_wait():
    plan = elastic()
    paths = counted(plan, None)
    reported = timelines(plan, 1, None, SEED, paths.cost_usd[0])
    for each in reported:
        (time,) = quantiles(paths.time_s[0], each.share)
        assert each.time_s == pytest.approx(time, rel=1e-6, abs=1.0)
    doing = {s.doing for each in reported for s in each.segments}
    assert "on-demand part" in doing
    assert "waiting" not in doing
