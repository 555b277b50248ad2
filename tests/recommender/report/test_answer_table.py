"""What the table promises at any width, for any figure."""

import math
import re
from dataclasses import replace

import pytest

from recommender.plan.answer import SAME_PLAN, Answer, SensitivityStep
from recommender.plan.limits import Limits
from recommender.plan.plan import Fallback
from recommender.report import advice, answer_frame, answer_table, explain, short_forms
from recommender.report.layout import drawn
from tests.recommender.answers import (
    ANSWER,
    AWS_A100,
    AWS_H100,
    GCP,
    HURT,
    INFEASIBLE,
    ON_DEMAND,
    QUESTION,
    TWO_MACHINES,
    machines,
    plan,
)

FIGURES = ("64", "38-108", "8.0", "4.2-13.8", "99 %", "10.2", "168-351", "10.6-24.0", "22.0")


@pytest.mark.parametrize("width", range(40, 161, 3))
def test_no_line_is_wider_than_the_terminal_and_no_number_is_cut(width: int) -> None:
    text = drawn(answer_table.render(ANSWER, QUESTION, width), width)
    assert all(len(line) <= width for line in text.splitlines())
    for figure in FIGURES:
        assert re.search(rf"(?<![\d.]){re.escape(figure)}(?![\d.])", text), figure


@pytest.mark.parametrize("width", range(40, 161, 3))
def test_an_infeasible_answer_fits_as_well(width: int) -> None:
    lines = drawn(short_forms.short_blocks(INFEASIBLE, HURT, width), width).splitlines()
    assert all(len(line) <= width for line in lines)


def test_chance_and_price_move_below_the_machines_in_narrow_terminals() -> None:
    narrow, usual = (drawn(answer_table.render(ANSWER, QUESTION, w), w) for w in (50, 80))
    assert "99 % chance · 10.2 USD/h" in narrow
    assert "99 % chance" not in usual
    assert "chance  USD/h" in usual


def test_wide_terminals_add_columns_the_weightiest_first() -> None:
    header = heading(130)
    assert header.split() == [
        *("#", "machines", "cost", "USD", "time", "h", "chance", "USD/h"),
        *("overhead", "saving", "checkpoints", "interr.", "FLOP/USD"),
    ]
    assert heading(95).split()[8:] == ["overhead", "saving"]


def heading(width: int) -> str:
    """The line with the names of the columns."""
    lines = drawn(answer_table.render(ANSWER, QUESTION, width), width).splitlines()
    return next(line for line in lines if "cost USD" in line)


@pytest.mark.parametrize("width", [*range(95, 200, 7)])
def test_added_columns_leave_every_machine_on_one_line(width: int) -> None:
    long = replace(GCP.machines[0], instance_type="Standard_NCC40ads_H100_v5_and_more")
    answer = replace(ANSWER, plans=(replace(GCP, machines=(long,)), *ANSWER.plans[1:]))
    assert "× Standard_NCC40ads_H100_v5_and_more spot" in drawn(
        answer_table.render(answer, QUESTION, width), width
    )


def test_quiet_leaves_the_table_alone() -> None:
    text = drawn(answer_table.render(ANSWER, QUESTION, 80, quiet=True), 80)
    assert text.splitlines()[0].lstrip().startswith("#")
    assert "Plan 1" not in text


def test_all_regions_lists_the_failover_list() -> None:
    text = drawn(answer_table.render(ANSWER, QUESTION, 140, all_regions=True), 140)
    assert "also europe-west9, asia-south2" in text


def test_prices_have_the_age_of_what_the_plans_rent_by_market() -> None:
    said = answer_frame.price_line(ANSWER, QUESTION)
    assert said == (
        "Prices rented here: on-demand 91, spot 91 days old (the spans allow for it); "
        "recommend catalog update renews them."
    )


def dated(as_of: str) -> Answer:
    """The answer with plans that rent at prices of a day."""
    plans = []
    for each in ANSWER.plans:
        late = each.fallback
        if late is not None:
            late = replace(late, machines=tuple(replace(m, as_of=as_of) for m in late.machines))
        machines = tuple(replace(m, as_of=as_of) for m in each.machines)
        plans.append(replace(each, machines=machines, fallback=late))
    return replace(ANSWER, plans=tuple(plans))


@pytest.mark.parametrize(("as_of", "named"), [("2026-11-15", False), ("2026-11-10", True)])
def test_the_command_that_renews_prices_is_named_from_a_week_on(as_of: str, named: bool) -> None:
    said = answer_frame.price_line(dated(as_of), QUESTION)
    assert ("recommend catalog update" in said) == named


def test_prices_of_today_are_called_so() -> None:
    assert (
        answer_frame.price_line(dated("2026-11-20"), QUESTION) == "Prices rented here: from today."
    )


def test_a_plan_that_is_two_baselines_is_named_once() -> None:
    other = replace(ON_DEMAND, labels=("one GPU",))
    answer = replace(ANSWER, plans=(GCP,), baselines=(other, replace(other, labels=("all spot",))))
    facts = answer_frame.closing_facts(answer, QUESTION)
    (said,) = (fact for fact in facts if "all spot" in fact)
    assert said.startswith("one GPU and all spot (")


def test_a_cheaper_baseline_that_may_take_months_says_why_it_does_not_lead() -> None:
    """The curve ends at plans that end within a month, and this one is cheaper than all of them."""
    slow = replace(TWO_MACHINES.estimate.time, p95=82 * 86_400.0)
    cost = replace(TWO_MACHINES.estimate.cost, mean=48.0)
    estimate = replace(TWO_MACHINES.estimate, cost=cost, time=slow)
    answer = replace(ANSWER, plans=(GCP,), baselines=(replace(TWO_MACHINES, estimate=estimate),))
    free = replace(QUESTION, limits=Limits())
    (said,) = (f for f in answer_frame.closing_facts(answer, free) if "two machines" in f)
    assert said.endswith("0.75× the cost of plan 1, but 5 h (1 run in 20 over 82 d)")


def test_a_cheaper_baseline_at_a_derived_price_says_so() -> None:
    """Such a price never wins by less than its error, so the plan does not lead."""
    rented = tuple(replace(m, price_kind="derived") for m in TWO_MACHINES.machines)
    cost = replace(TWO_MACHINES.estimate.cost, mean=63.0)
    derived = replace(TWO_MACHINES, machines=rented)
    derived = replace(derived, estimate=replace(derived.estimate, cost=cost))
    answer = replace(ANSWER, plans=(GCP,), baselines=(derived,))
    (said,) = (f for f in answer_frame.closing_facts(answer, QUESTION) if "two machines" in f)
    assert said.endswith("0.98× the cost of plan 1, but at a derived price")


def test_small_jobs_are_reported_in_minutes_and_cents() -> None:
    small = plan(
        machines("g5.xlarge", "A10G", "aws:us-east-1", "on_demand", gpus=1, usd_per_hour=1.006),
        (), (0.0475, 0.04, 0.06), (0.05, 0.04, 0.07), 0.99,
    )  # fmt: skip
    text = drawn(
        answer_table.render(replace(ANSWER, plans=(small,), baselines=()), QUESTION, 80), 80
    )
    assert "time min" in text
    assert "0.048" in text
    assert "3.0" in text


def test_a_certain_plan_is_not_promised() -> None:
    sure = replace(GCP, estimate=replace(GCP.estimate, chance=1.0))
    text = drawn(answer_table.render(replace(ANSWER, plans=(sure,)), QUESTION, 80), 80)
    assert ">99 %" in text
    assert "100 %" not in text


def test_checkpoint_machines_are_named() -> None:
    anchor = machines("m7i.large", "", "aws:eu-north-1", "on_demand", gpus=0)
    saving = replace(AWS_A100.checkpointing, path="anchor", machines=(anchor,))
    anchored = replace(AWS_A100, checkpointing=saving)
    text = drawn(answer_table.render(replace(ANSWER, plans=(anchored,)), QUESTION, 90), 90)
    assert "+ 1× m7i.large on-demand (anchor)" in text


@pytest.mark.parametrize(
    ("some", "mean", "p95", "said"),
    [
        (0.04, 0.1, 0.0, "in 4 % of the runs; failover"),
        (0.2, 0.25, 1.0, "in 20 % of the runs; failover"),
        (
            *(0.43, 2.16, 9.0),
            "in 43 % of the runs; 2.2 times on average, and 1 run in 20 has 9 or more;",
        ),
        (math.nan, 2.16, math.nan, "2.2 times on average; failover"),  # an answer of before
    ],
)
def test_interruptions_in_words(some: float, mean: float, p95: float, said: str) -> None:
    estimate = replace(GCP.estimate, interrupted=some, interruptions=mean, interruptions_p95=p95)
    words = advice.spot_sentence(replace(GCP, estimate=estimate))
    assert words.startswith(f"interrupted {said}")


def test_zones_of_one_region_are_named_and_single_ones_are_not() -> None:
    one, other = AWS_A100.sites[:2]
    zones = (one, replace(other, zone="us-east-1-b"), replace(other, zone="us-east-1-f"))
    said = advice.spot_sentence(replace(AWS_A100, sites=zones))
    assert said.endswith("failover to us-east-1-b, then us-east-1-f")
    alone = advice.spot_sentence(replace(AWS_A100, sites=zones[:2]))
    assert alone.endswith("failover to us-east-1")


def test_on_demand_plans_say_nothing_of_spot() -> None:
    said = dict(advice.sentences(ON_DEMAND, QUESTION))
    assert said["spot"] == said["fallback"] == ""
    assert "spot" not in said["save"]


def test_a_plan_that_cuts_the_network_says_what_the_code_must_do() -> None:
    step = replace(GCP.estimate.step, recompute_s=0.0)
    kept = replace(GCP, estimate=replace(GCP.estimate, step=step))
    step = replace(step, sharding="TP 8 × PP 4 × DP 2")
    cut = replace(GCP, estimate=replace(GCP.estimate, step=step))
    assert dict(advice.sentences(cut, QUESTION))["layout"].startswith("TP 8 × PP 4 × DP 2: needs")
    assert dict(advice.sentences(kept, QUESTION))["layout"] == ""


def test_a_fallback_of_several_types_is_listed() -> None:
    both = (
        machines("p5.48xlarge", "H100", "aws:us-east-1", "on_demand"),
        machines("p4d.24xlarge", "A100", "aws:us-east-1", "on_demand", count=2),
    )
    late = replace(GCP, fallback=Fallback(both, 99, 1.0, 0.0, 0.3))
    assert advice.fallback_sentence(late, QUESTION.job) == (
        "when the time left is down to the work left: 1× p5.48xlarge on-demand + 2× p4d.24xlarge "
        "on-demand (99 USD/h) until the end; needed in 30 % of runs"
    )


def test_a_plan_that_costs_more_than_today_says_so() -> None:
    cheap = replace(ON_DEMAND, estimate=GCP.estimate)
    answer = replace(ANSWER, plans=(AWS_A100,), compared=cheap)
    assert advice.comparison(answer, QUESTION) == (
        "Plan 1 is 66 % cheaper than the cheapest on-demand plan (247 USD); it costs 31 % more "
        "than yours and takes 18 h instead of 8 h."
    )


def test_an_answer_says_what_was_rated_and_simulated_and_what_is_left() -> None:
    open_ = replace(ANSWER.proof, status="open", gap=0.03, open_clusters=183, mixes_rated=32)
    text = drawn(answer_table.render(replace(ANSWER, proof=open_), QUESTION, 160), 160)
    assert (
        "9,800 clusters and 32 mixes compared, 41,210 plans simulated; plan 1 is the best of "
        "these, and 183 others could be better only by losing no work (--prove)"
    ) in " ".join(text.split())


def test_a_proven_answer_says_among_what() -> None:
    text = drawn(answer_table.render(ANSWER, QUESTION, 160), 160)
    assert (
        "No other cluster of one machine type can be cheaper than plan 1, even if it lost no work"
    ) in " ".join(text.split())


def test_a_change_that_changes_nothing_is_not_reported() -> None:
    same = SensitivityStep("--deadline 36h", SAME_PLAN, None)
    other = SensitivityStep("--deadline 9h", "costs 5 USD more", None)
    text = drawn(answer_table.render(replace(ANSWER, sensitivity=(same, other)), QUESTION, 80), 80)
    assert "--deadline 9h" in text
    assert "--deadline 36h" not in text
    text = drawn(answer_table.render(replace(ANSWER, sensitivity=(same,)), QUESTION, 80), 80)
    assert "What would change" not in text


def test_every_assumption_is_in_the_explanation_that_the_answer_names() -> None:
    many = tuple(f"assumption {name}" for name in ("one", "two", "three", "four", "five"))
    answer = replace(ANSWER, assumptions=many)
    assert "--explain 1" in drawn(answer_table.render(answer, QUESTION, 80), 80)
    page = drawn(explain.render(answer, QUESTION, 1, 80), 80)
    assert all(each in page for each in many)


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_overhead_is_shown_at_any_width_where_it_is_heavy(width: int) -> None:
    def shown(overhead: float) -> str:
        heavy = replace(GCP, estimate=replace(GCP.estimate, overhead=overhead))
        answer = replace(ANSWER, plans=(heavy,), compared=None)
        return drawn(answer_table.render(answer, QUESTION, width, quiet=True), width)

    assert "31 %" in shown(0.31)
    assert "overhead" in shown(0.31)
    assert "19 %" not in shown(0.19) or width >= 80


@pytest.mark.parametrize("width", [80, 100])
def test_the_overhead_is_shown_where_it_is_limited(width: int) -> None:
    light = [replace(p, estimate=replace(p.estimate, overhead=0.01)) for p in ANSWER.plans]
    answer = replace(ANSWER, plans=tuple(light))
    limits = replace(QUESTION.limits, max_overhead=0.02)
    page = drawn(answer_table.render(answer, replace(QUESTION, limits=limits), width), width)
    assert "overhead" in page


def test_remarks_do_not_take_the_room_of_figures() -> None:
    """Two remarks in one line were 64 columns, and the overhead and the saving gave way."""
    floor = replace(AWS_H100.machines[0], price_flag="floor")
    noted = replace(AWS_H100, machines=(floor,), move_after_s=1800.0)
    page = drawn(answer_table.render(replace(ANSWER, plans=(noted, GCP)), QUESTION, 100), 100)
    assert "overhead" in page
    assert "saving" in page
