"""A report holds every plan of the answer with its runs, and the best of the others."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.optimize.candidate import Candidate
from recommender.plan.answer import Answer
from recommender.plan.limits import Limits
from recommender.plan.report_data import ReportData
from recommender.planner.report_data import FoundPlan, closest_to_frontier
from tests.recommender.planning import NOW, job, recommend, small

LIMITS = Limits(deadline_s=24 * 3600.0)


@pytest.fixture(scope="module")
def answer() -> Answer:
    return recommend(job(), LIMITS, catalog=small(), now=NOW, report=True)


@pytest.fixture(scope="module")
def report(answer: Answer) -> ReportData:
    assert answer.report is not None
    return answer.report


def candidate(cost: float, time: float) -> FoundPlan:
    made = Candidate(0, (0,), (1,), 1, -1, cost, cost, time, 1.0)
    return FoundPlan(replace(made, counts=(int(cost * 100 + time),)), LIMITS)


def test_an_answer_without_a_report_is_the_same_answer(answer):
    plain = recommend(job(), LIMITS, catalog=small(), now=NOW, worth=True)
    assert plain.report is None
    assert replace(answer, report=None) == plain


def test_the_plans_of_the_table_come_with_the_runs_behind_their_figures(answer, report):
    table = [each for each in report.simulated_plans if each.kind == "table"]
    assert [each.machines for each in table] == [plan.machines for plan in answer.plans]
    for each, plan in zip(table, answer.plans, strict=True):
        assert len(each.time_s) == len(each.cost_usd) == report.runs
        assert np.mean(np.array(each.time_s) <= LIMITS.deadline_s) == pytest.approx(
            plan.estimate.chance, abs=0.01
        )  # near the one asked on more paths
        assert np.mean(each.time_s) == pytest.approx(plan.estimate.time.mean)
        assert sorted(each.cost_usd)[report.runs // 2 - 1] == plan.estimate.cost.p50


def test_baselines_come_as_the_answer_has_them(answer, report):
    plain = [each for each in report.simulated_plans if each.kind == "baseline"]
    assert [each.machines for each in plain] == [plan.machines for plan in answer.baselines]
    assert [each.cost for each in plain] == [plan.estimate.cost for plan in answer.baselines]


def test_other_plans_duplicate_neither_the_table_nor_each_other(report):
    others = [each for each in report.simulated_plans if each.kind == "other"]
    assert others
    shape = [(e.machines, e.checkpoint_path, e.fallback, e.fallback_due_s) for e in others]
    assert len(set(shape)) == len(shape)


def test_plans_of_other_deadlines_have_fallbacks_for_these(report):
    due = {each.fallback_due_s for each in report.simulated_plans if each.fallback}
    assert due - {LIMITS.deadline_s}


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), unique=True, max_size=40))
def test_what_no_other_beats_is_kept_first(points: list[tuple[int, int]]):
    met = [candidate(float(cost), float(time)) for cost, time in points]
    best = {
        (c, t)
        for c, t in points
        if not any(o != (c, t) and o[0] <= c and o[1] <= t for o in points)
    }
    kept = closest_to_frontier(met, len(best))
    assert {(m.candidate.cost_usd, m.candidate.time_s) for m in kept} == best
    assert len(closest_to_frontier(met, 1000)) == len(points)
