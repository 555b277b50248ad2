"""The plans that an answer leads with, in words, and how a tie is reported."""

from dataclasses import replace

import pytest

from recommender.plan.answer import Pick, Trio
from recommender.plan.evidence import Evidence, PriceGrade, SpeedGrade
from recommender.plan.plan import Need, Plan
from recommender.report import answer_table, csv_markdown, json_output
from recommender.report.layout import drawn
from recommender.report.trio import one_sentence, tie_line, trio_parts, why_it_leads
from tests.recommender.answers import (
    ANSWER,
    AWS_A100,
    GCP,
    ON_DEMAND,
    QUESTION,
    machines,
    plan,
    spread,
)

SMALL = plan(
    machines("g6e.xlarge", "L40S", "aws:us-east-1", "on_demand", gpus=1, usd_per_hour=1.86),
    (), (10.2, 6.0, 20.0), (5.1, 3.0, 9.0), 0.99,
)  # fmt: skip


def asking(amount: float, **known: float) -> Plan:
    return replace(SMALL, needs=(Need("Running G", amount, "vcpu", "us-east-1", **known),))


def three(sensible: Plan, cheapest: Plan, third: Plan) -> Trio:
    return Trio(
        Pick("sensible", 4, sensible, ("no interruptions", "one machine")),
        Pick("cheapest", 1, cheapest),
        Pick("safest", 5, third),
    )


def test_a_plan_is_reported_as_a_person_would_say_it() -> None:
    assert one_sentence(asking(4.0, new_accounts=0.0)) == (
        "Rent 1× g6e.xlarge on demand in AWS us-east-1: about 10 USD, about 5.1 h; "
        "needs 4 vCPU of quota"
    )


@pytest.mark.parametrize(
    ("region", "reported"), [("own", "Use 1× lab: "), ("rack", " lab in rack: ")]
)
def test_own_machines_are_never_rented(region: str, reported: str) -> None:
    rented = machines("lab", "RTX-4090", f"own:{region}", "on_demand")
    own = plan(rented, (region,), (10.0, 6.0, 14.0), (5.0, 4.0, 8.0), 0.97)
    assert reported in one_sentence(own)
    assert "on demand" not in one_sentence(own)


@pytest.mark.parametrize(
    ("hours", "reported"),
    [
        ((17.0, 9.0, 504.0), "about 17 h (1 run in 20 over 21 d)"),
        ((17.0, 9.0, 40.0), "about 17 h"),  # a speed that is half of what was expected
        ((0.5, 0.4, 4.0), "about 30 min"),  # eight times as long, but only hours
    ],
)
def test_a_wait_of_weeks_that_one_run_in_twenty_meets_is_reported_with_the_median(
    hours: tuple[float, float, float], reported: str
) -> None:
    late = replace(SMALL.estimate, time=spread(*hours, unit=3600.0))
    assert one_sentence(replace(SMALL, estimate=late)).endswith(f"about 10 USD, {reported}")


def test_one_quota_in_several_regions_is_reported_once_and_that_of_the_fallback_apart() -> None:
    spot = [Need("All G Spot", 96.0, "vcpu", region, 0.0) for region in ("a", "b", "c")]
    late = Need("Running G", 48.0, "vcpu", "d", 0.0, fallback=True)
    assert one_sentence(replace(SMALL, needs=(*spot, late))).endswith(
        "; needs 96 vCPU of quota in each of 3 regions and 48 vCPU of quota for the fallback"
    )


@pytest.mark.parametrize("known", [{"new_accounts": 4.0}, {"new_accounts": 0.0, "yours": 8.0}])
def test_a_quota_that_is_there_need_not_be_requested(known: dict[str, float]) -> None:
    assert one_sentence(asking(4.0, **known)).endswith("about 5.1 h")


def test_each_role_has_a_line_and_a_plan_of_several_roles_one() -> None:
    parts = trio_parts(three(SMALL, GCP, ON_DEMAND))
    assert [role for role, _ in parts] == ["sensible", "cheapest", "safest"]
    assert parts[0][1].endswith("(plan 4); no interruptions")
    assert parts[1][1].endswith("(plan 1)")
    same = Trio(Pick("sensible", 1, GCP), Pick("cheapest", 1, GCP), Pick("fastest", 2, AWS_A100))
    assert [role for role, _ in trio_parts(same)] == ["sensible, cheapest", "fastest"]
    assert trio_parts(None) == []
    asked = replace(three(SMALL, GCP, ON_DEMAND), asked="cheapest")
    assert [role for role, _ in trio_parts(asked)] == ["cheapest", "sensible", "safest"]


def test_plans_that_are_as_sensible_are_reported_as_a_tie() -> None:
    trio = three(SMALL, GCP, ON_DEMAND)
    tied = replace(trio, sensible=replace(trio.sensible, ties=(1, 3)))
    assert "(plan 4; a tie with plans 1 and 3); no interruptions" in trio_parts(tied)[0][1]
    assert "tie" not in trio_parts(trio)[0][1]
    made = json_output.document(replace(ANSWER, trio=tied), QUESTION)
    assert made["trio"][0]["ties"] == [1, 3]


@pytest.mark.parametrize(
    ("usd", "reported"),
    [
        (0.806, "0.81"),
        (4.0817, "4.1"),
        (9.96, "10"),
        (12.6, "13"),
        (361.4, "361"),
        (1234.0, "1,230"),
    ],
)
def test_no_estimate_is_printed_to_the_cent(usd: float, reported: str) -> None:
    cheap = replace(SMALL.estimate, cost=spread(usd, usd / 2, 2 * usd))
    assert f"about {reported} USD" in one_sentence(replace(SMALL, estimate=cheap))


def test_what_is_reported_in_full_is_the_plan_that_leads() -> None:
    """Its launch line, its quota and its number, in text, in Markdown and in JSON."""
    plans = (GCP, AWS_A100, AWS_A100, asking(4.0, new_accounts=0.0), ON_DEMAND)
    answer = replace(ANSWER, plans=plans, trio=three(plans[3], GCP, ON_DEMAND))
    for page in (
        drawn(answer_table.render(answer, QUESTION, 100), 100),
        csv_markdown.render_markdown(answer, QUESTION),
    ):
        below = page.partition("Plan 4 rents on-demand machines only")[2]
        assert "sky jobs launch" in " ".join(below.split())
        assert "Running G" in below
        assert "a3-highgpu-8g" not in below
        assert "against plan 1: 54 USD less, 2.9 h sooner" in " ".join(below.split())
        assert "--explain 1" not in below
    made = json_output.document(answer, QUESTION)
    assert (made["lead"], made["best"], made["order"]) == (4, 1, "cost")
    assert made["trio"][0]["rank"] == 4
    assert "--plan 4 -o run" in made["plans"][made["lead"] - 1]["launch"]


def test_the_answer_leads_with_them_in_every_form_for_people() -> None:
    answer = replace(ANSWER, trio=three(SMALL, GCP, ON_DEMAND))
    page = drawn(answer_table.render(answer, QUESTION, 80), 80)
    assert page.index("sensible") < page.index("cheapest") < page.index("safest")
    assert page.index("safest") < page.index("#  machines")
    assert "* *sensible*: Rent 1× g6e.xlarge" in csv_markdown.render_markdown(answer, QUESTION)


def test_the_three_plans_have_a_frame_only_where_there_are_colours() -> None:
    answer = replace(ANSWER, trio=three(SMALL, GCP, ON_DEMAND))
    for width in (40, 80, 120, 200):
        painted = drawn(answer_table.render(answer, QUESTION, width), width, colour=True)
        assert painted.count("╭") == painted.count("╯") == 1
        assert "╭" not in drawn(answer_table.render(answer, QUESTION, width), width)


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ((0.9, 0.1, 0.0), "Plan 1 is the cheapest in 90 % of the draws of speeds and prices"),
        ((0.48, 0.04, 0.48), "A tie: speeds and prices decide whether plan 1 (48 %) or 3 (48 %)"),
        ((0.2, 0.5, 0.3), "A tie: speeds and prices decide whether plan 2 (50 %), 3 (30 %) or 1 ("),
    ],
)
def test_a_tie_is_called_a_tie(shares: tuple[float, ...], said: str) -> None:
    plans = tuple(replace(p, best_share=s) for p, s in zip(ANSWER.plans, shares, strict=False))
    assert tie_line(replace(ANSWER, plans=plans)).startswith(said)


def test_without_shares_nothing_is_reported_of_ties() -> None:
    assert tie_line(ANSWER) == ""


def test_numbers_of_the_same_machines_at_one_cost_are_not_told_apart_by_draws() -> None:
    """Draws of speeds and prices move them together: one always wins, by a hair."""
    more = replace(GCP.machines[0], count=2)
    cost = replace(GCP.estimate.cost, mean=GCP.estimate.cost.mean * 1.01)
    twin = replace(GCP, machines=(more,), estimate=replace(GCP.estimate, cost=cost))
    plans = (replace(GCP, best_share=1.0), twin, AWS_A100)
    said = tie_line(replace(ANSWER, plans=plans))
    assert said.startswith("Plan 1 or 2, which rent the same machines at about the same cost, is")
    dear = replace(twin.estimate, cost=replace(cost, mean=GCP.estimate.cost.mean * 1.05))
    apart = (plans[0], replace(twin, estimate=dear), AWS_A100)
    assert tie_line(replace(ANSWER, plans=apart)).startswith("Plan 1 is the cheapest in 100 %")


def founded(made: Plan, speed: SpeedGrade, price: PriceGrade) -> Plan:
    return replace(made, evidence=Evidence(speed, price, "measured", 90.0, 0.1, 0.1, 0.1))


@pytest.mark.parametrize(
    ("speed", "price", "said"),
    [
        ("measured", "floor", "its price is the provider's floor"),
        ("guessed", "floor", "its speed was never measured on that GPU"),
        ("measured", "derived", "its price was derived from other prices"),
        ("scaled", "old", ""),
    ],
)
def test_a_better_plan_on_a_guess_is_named_with_the_guess(
    speed: SpeedGrade, price: PriceGrade, said: str
) -> None:
    cheap, led = founded(GCP, speed, price), founded(ON_DEMAND, "measured", "fresh")
    trio = Trio(Pick("sensible", 2, led), Pick("cheapest", 1, cheap), Pick("safest", 2, led))
    why = why_it_leads(replace(ANSWER, plans=(cheap, led), trio=trio, best=1))
    assert why.startswith("against plan 1: ")
    assert ("plan 1 would be better value, but " in why) == bool(said)
    assert said in why


def test_a_plan_that_leads_on_its_own_figures_needs_no_excuse() -> None:
    trio = Trio(Pick("sensible", 1, GCP), Pick("cheapest", 1, GCP), Pick("safest", 2, ON_DEMAND))
    dear = founded(ON_DEMAND, "guessed", "fresh")
    answer = replace(ANSWER, plans=(founded(GCP, "measured", "fresh"), dear), trio=trio, best=1)
    assert why_it_leads(answer) == ""
