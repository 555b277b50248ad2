"""What a page counts is what the answer printed, at the limits asked and exactly."""

import base64
import json
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.plan.frontier import frontier_of
from recommender.report.html.page_data import (
    STEPS,
    PageData,
    PlanRow,
    code,
    page_data,
    without_duplicates,
)
from recommender.report.html.picture import frontier_spec
from tests.recommender.report.html.reports import asked

FIGURES = st.floats(1e-3, 1e9)
CHANCE_ERROR = 0.03  # two standard errors of a chance of 95 % on the 256 runs of some plans


def codes(text: str) -> list[int]:
    raw = base64.b64decode(text)
    return list(struct.unpack(f"<{len(raw) // 2}h", raw))


def limit_code(limit: float | None, origin: float) -> int:
    """As the page's script has it."""
    return 32767 if limit is None else math.floor(STEPS * math.log(limit / origin) + 1e-9)


def chance(data: PageData, plan: PlanRow) -> float:
    """As the page's script counts it, at the limits asked."""
    time = limit_code(data.deadline_s, data.scale.origin_s)
    cost = limit_code(data.budget_usd, data.scale.origin_usd)
    runs = zip(codes(plan.time_codes), codes(plan.cost_codes), strict=True)
    met = sum(t <= time and c <= cost for t, c in runs) / plan.runs
    return min(plan.weight * met, 1.0)


@pytest.mark.parametrize("which", ["deadline", "budget", "frontier"])
def test_the_chance_counted_is_the_chance_printed(which: str):
    answer, request = asked(which)
    data = page_data(answer, request)
    table = [plan for plan in data.plans if plan.kind == "table"]
    for plan, printed in zip(table, answer.plans, strict=True):
        error = CHANCE_ERROR if plan.runs < 2048 else 1e-9
        assert chance(data, plan) == pytest.approx(printed.estimate.chance, abs=error)
    assert {plan.runs for plan in table[:8]} == {2048}
    picked = [] if answer.trio is None else [pick.rank for pick in answer.trio.picks]
    assert all(table[rank - 1].runs == 2048 for rank in picked)


@given(st.lists(FIGURES, min_size=1), FIGURES)
def test_counting_codes_at_the_origin_counts_figures(values: list[float], limit: float):
    near = limit_code(limit, limit)
    assert [code(x, limit) <= near for x in values] == [x <= limit for x in values]


@given(FIGURES, FIGURES)
def test_a_code_is_fine_to_a_four_thousandth_within_three_thousandfold(x: float, origin: float):
    again = origin * math.exp(code(x, origin) / STEPS)
    if abs(math.log(x / origin)) < 7.9:
        assert x * (1 - 1e-9) <= again <= x * math.exp(1.5 / STEPS)
    else:
        assert (again > origin) == (x > origin)


def test_baselines_of_the_table_are_drawn_once():
    data = page_data(*asked("deadline"))
    answer, _ = asked("deadline")
    baselines = [plan for plan in data.plans if plan.baseline]
    assert len({(plan.name, plan.where, plan.x, plan.y) for plan in baselines}) == len(baselines)
    names = {label for plan in answer.baselines for label in plan.labels}
    assert {
        name for plan in baselines for name in plan.baseline.replace(" and ", ", ").split(", ")
    } == names


def test_the_plan_that_leads_is_chosen_first_and_named_by_its_role():
    answer, request = asked("deadline")
    data = page_data(answer, request)
    lead = data.plans[data.lead]
    assert (lead.kind, lead.number) == ("table", answer.lead)
    assert answer.trio is not None
    assert answer.trio.picks[0].role in lead.label
    assert lead.label.endswith(lead.where.partition(" · ")[0])


@pytest.mark.parametrize("which", ["deadline", "budget", "frontier"])
def test_a_picture_of_its_own_has_the_chances_of_the_answer_and_no_runs(which: str):
    answer, request = asked(which)
    spec = frontier_spec(answer, request)
    rows = spec["datasets"]["plans"]
    table = [row["chance"] for row in rows if row["kind"] == "table"]
    printed = [plan.estimate.chance for plan in answer.plans]
    assert table == pytest.approx(printed, abs=1e-9)
    assert all("time_codes" not in row for row in rows)
    assert answer.report is not None
    found = frontier_of(without_duplicates(answer.report.simulated_plans), request.limits)
    best = sorted((row["mean_usd"], row["median_s"]) for row in rows if row["best"])
    assert best == [(point.cost.mean, point.time.p50) for point in found.points]
    assert len(spec["datasets"]["limits"]) == {"deadline": 1, "budget": 1, "frontier": 0}[which]
    assert "$ink" not in json.dumps(spec)
