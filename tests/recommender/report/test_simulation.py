"""A simulation in every form: table, JSON, CSV, Markdown, picture."""

import csv
import io
import json
from dataclasses import replace
from xml.etree import ElementTree

import jsonschema
import pytest

from recommender.job.jobfile import find_job
from recommender.plan.answer import Check, Difference
from recommender.plan.limits import Limits
from recommender.plan.simulation import (
    ClosedForm,
    ExecutorRun,
    Histogram,
    LimitChance,
    PolicyRun,
    Quantiles,
    Simulation,
    State,
)
from recommender.report import answer_table, explain, json_output, layout, simulation
from recommender.report import formatting as fmt
from recommender.report.answer_frame import PlanRequest
from recommender.report.answer_page import Shown, answer_page
from recommender.report.explain import check_words
from recommender.report.formats import written
from recommender.report.html.picture import runs_spec
from recommender.report.json_output import document, dumps
from recommender.report.layout import drawn
from recommender.report.short_forms import short_text
from tests.recommender.answers import ANSWER

H = 3600.0
ASKED = PlanRequest(find_job("resnet50-imagenet"), Limits(deadline_s=24 * H, budget_usd=110.0))
FOUND = Simulation(
    plan=ANSWER.plans[0],
    number=1,
    runs=10_000,
    seed=7,
    capacity="spot class a100x8 (transferred, 2025-10-18)",
    cost=Quantiles(61.2, 0.31, 38.0, 50.1, 59.9, 70.2, 92.0, 120.4),
    time=Quantiles(9.1 * H, 0.05 * H, 5.2 * H, 7 * H, 8.8 * H, 10.4 * H, 15.3 * H, 20.2 * H),
    interruptions=Quantiles(3.2, 0.02, 0, 1, 3, 5, 8, 11),
    lost=Quantiles(0.4 * H, 9.0, 0, 0.1 * H, 0.3 * H, 0.5 * H, 1.3 * H, 2.1 * H),
    states=(
        State("waiting", 0.21),
        State("starting", 0.02),
        State("training", 0.68),
        State("saving", 0.01),
        State("restarting", 0.03),
        State("lost work", 0.05),
        State("fallback", 0.0),
    ),
    limit_chances=(LimitChance("deadline", 24 * H, 0.985), LimitChance("budget", 110.0, 0.962)),
    chance=0.957,
    chance_error=0.002,
    fallback_share=0.04,
    closed_form=ClosedForm("fallback rule", 8.2 * H, None, 57.0, None, 0.62, 14 * H, 0.03),
    cost_histogram=Histogram((20.0, 40.0, 60.0, 80.0, 100.0), (0.07, 0.44, 0.37, 0.12)),
    time_histogram=Histogram((0.0, 5 * H, 10 * H, 15 * H), (0.04, 0.66, 0.3)),
    notes=("one zone at a time",),
)


@pytest.mark.parametrize("width", [40, 60, 80, 140])
def test_the_page_fits(width: int) -> None:
    page = drawn(simulation.render(FOUND, ASKED, width), width)
    assert [line for line in page.splitlines() if len(line) > width] == []


POLICIES = tuple(
    PolicyRun(name, FOUND.cost, FOUND.time, 0.97, 0.002, 1.25, 3.2, 240.0)
    for name in ("fallback rule", "two thresholds", "full policy")
)


@pytest.mark.parametrize("width", [40, 60, 80, 140])
def test_policies_are_listed_next_to_each_other_in_every_form(width: int) -> None:
    followed = replace(FOUND, policies=POLICIES)
    page = drawn(simulation.render(followed, ASKED, width), width).splitlines()
    assert [line for line in page if len(line) > width] == []
    (row,) = [line for line in page if line.startswith("full policy")]
    assert len(row) <= width
    assert row.split()[2:4] == (["61.2", "0.31"] if width >= 80 else ["61.2", "97"])
    made = simulation.document(followed, ASKED)
    jsonschema.validate(json.loads(dumps(made)), json.loads(json_output.schema_text()))
    assert "| full policy | 61.2 |" in written(
        simulation.simulation_page(followed, ASKED), "markdown"
    )
    assert '"chance in time, full policy",share,0.97' in written(
        simulation.simulation_page(followed, ASKED), "csv"
    )


def test_quiet_leaves_the_figures() -> None:
    page = drawn(simulation.render(FOUND, ASKED, 80, quiet=True), 80)
    assert len(page.splitlines()) == 6


def test_json_follows_its_schema() -> None:
    made = json.loads(dumps(simulation.document(FOUND, ASKED)))
    jsonschema.Draft202012Validator(json.loads(json_output.schema_text())).validate(made)
    assert made["schema"] == "recommend.simulation/v1"
    assert made["simulation"]["cost"]["mean"] == 61.2
    assert made["simulation"]["plan"]["launch"] is None  # it is in no answer that can be exported


def test_csv_has_a_row_per_figure_state_and_chance() -> None:
    rows = list(
        csv.DictReader(io.StringIO(written(simulation.simulation_page(FOUND, ASKED), "csv")))
    )
    by_name = {row["figure"]: row for row in rows}
    assert float(by_name["time"]["p95"]) == pytest.approx(15.3)
    assert float(by_name["time"]["form"]) == pytest.approx(8.2)
    assert float(by_name["state: waiting"]["mean"]) == 0.21
    assert float(by_name["chance: in 24 h"]["mean"]) == 0.985
    assert float(by_name["chance: all limits"]["mean"]) == 0.957


def test_the_median_leads_and_the_mean_is_that_of_all_runs() -> None:
    page = drawn(simulation.render(FOUND, ASKED, 80), 80)
    time = next(line for line in page.split("\n") if line.startswith("time h"))
    assert time.split()[2:] == ["8.8", "5.2", "15.3", "20.2", "9.1", "0.05", "8.2"]


def test_cost_and_time_stand_next_to_those_of_the_answer() -> None:
    """Mean cost and median time of these runs, and what the answer printed of its own."""
    cost, time = replace(FOUND.cost, mean=95.3), replace(FOUND.time, p50=9300.0)
    found = replace(FOUND, number=1, cost=cost, time=time)
    said = FOUND.plan.estimate
    page = " ".join(drawn(simulation.render(found, ASKED, 80), 80).split())
    assert "in short 95 USD on average, half of the runs within 2.6 h; the answer: " in page
    assert f"the answer: {fmt.usd(said.cost.mean)} USD, {fmt.duration(said.time.p50)}" in page
    own = " ".join(drawn(simulation.render(replace(found, number=None), ASKED, 80), 80).split())
    assert "the answer" not in own


def test_the_picture_has_a_bar_for_each_bin_and_a_line_for_each_quantile() -> None:
    cost, time = runs_spec(FOUND)["hconcat"]
    for panel, bins, unit in (
        (cost, FOUND.cost_histogram, 1.0),
        (time, FOUND.time_histogram, 3600.0),
    ):
        rows = panel["data"]["values"]
        assert [row["share"] for row in rows] == list(bins.shares)
        assert [row["low"] * unit for row in rows] == pytest.approx(list(bins.edges[:-1]))
    lines = {row["name"]: row["at"] for row in cost["layer"][1]["data"]["values"]}
    assert lines["50 %"] == FOUND.cost.p50
    assert cost["layer"][0]["encoding"]["x"]["title"] == "cost, USD"
    assert time["layer"][0]["encoding"]["x"]["title"] == "time, h"
    json.dumps(runs_spec(FOUND), allow_nan=False)


def test_a_picture_takes_foreign_names_as_text() -> None:
    drawer = pytest.importorskip("vl_convert")
    (machines,) = FOUND.plan.machines[:1]
    odd = replace(FOUND.plan, machines=(replace(machines, instance_type="<a href='x'>&"),))
    ElementTree.fromstring(drawer.vegalite_to_svg(runs_spec(replace(FOUND, plan=odd))))


def test_bars_are_as_long_as_their_shares() -> None:
    page = layout.drawn([layout.bars([("a", 0.5), ("b", 0.25), ("c", 0.0)])], 40)
    whole, half, none = (line.split()[1:] for line in page.splitlines())
    assert len(half[0]) == (len(whole[0]) + 1) // 2 > 10
    assert [whole[1:], half[1:], none] == [["50", "%"], ["25", "%"], ["0", "%"]]


VERIFIED = replace(
    ANSWER,
    checks=(
        Check(
            1,
            20_480,
            500_016,
            (
                Difference("cost_usd", 100.0, 103.0, 1.0),
                Difference("time_s", 10 * H, 10.1 * H, 0.2 * H),
                Difference("chance", 0.96, 0.955, 0.004),
            ),
        ),
    ),
)


def test_a_check_reports_both_figures_their_difference_and_its_error() -> None:
    assert check_words(VERIFIED.checks[0]) == (
        "cost 100 USD printed, 103 USD simulated (+3.0 %, ± 1.0 %); "
        "time 10 h printed, 10 h simulated (+1.0 %, ± 2.0 %); "
        "chance 96.0 % printed, 95.5 % simulated (-0.5, ± 0.4)"
    )
    far = replace(VERIFIED.checks[0], differences=(Difference("cost_usd", 100.0, 104.0, 1.0),))
    assert check_words(far).endswith("; cost: more than 3 standard errors apart")


def test_a_check_is_printed_below_the_answer_and_in_its_other_forms() -> None:
    for page in (
        drawn(answer_table.render(VERIFIED, ASKED, 80), 80),
        drawn(explain.render(VERIFIED, ASKED, 1, 80), 80),
        written(answer_page(VERIFIED, ASKED, Shown(table=True)), "markdown"),
    ):
        assert "Verified with 20,480 new simulated runs each" in page
    assert "103 USD simulated" in " ".join(short_text(VERIFIED, ASKED).split())
    made = json.loads(dumps(document(VERIFIED, ASKED)))
    jsonschema.Draft202012Validator(json.loads(json_output.schema_text())).validate(made)
    assert made["checks"][0]["differences"][0]["simulated"] == 103
    assert "checks" not in document(ANSWER, ASKED)


def test_nothing_is_reported_of_limits_that_were_not_given() -> None:
    words = dict(simulation.sentences(replace(FOUND, limit_chances=())))
    assert words["limits"] == "none given"


def test_a_target_that_follows_the_plan_is_a_sentence_not_a_table_of_one_row() -> None:
    as_counted = ExecutorRun("as the plan counts", FOUND.cost, FOUND.time, 0.97, 0.0)
    page = drawn(simulation.render(replace(FOUND, executors=(as_counted,)), ASKED, 80), 80)
    assert "The target of --executor runs the plan as it is simulated here." in page
    assert "as the plan counts" not in page
