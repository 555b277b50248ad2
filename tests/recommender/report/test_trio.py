"""The plans that an answer leads with, in words, and how a tie is reported."""

from dataclasses import replace

import pytest

from recommender.plan.answer import Pick, Trio
from recommender.plan.evidence import Evidence, PriceGrade, SpeedGrade
from recommender.plan.plan import Need, Plan
from recommender.report import explain, json_output
from recommender.report.answer_page import answer_page
from recommender.report.formats import written
from recommender.report.layout import drawn
from recommender.report.short_forms import short_text
from recommender.report.trio import role_words, tie_line, why_it_leads
from tests.recommender.answers import (
    ANSWER,
    AWS_A100,
    GCP,
    ON_DEMAND,
    QUESTION,
    machines,
    plan,
)

SMALL = plan(
    machines("g6e.xlarge", "L40S", "aws:us-east-1", "on_demand", gpus=1, usd_per_hour=1.86),
    (), (10.2, 6.0, 20.0), (5.1, 3.0, 9.0), 0.99,
)  # fmt: skip


def asking(amount: float, **known: float) -> Plan:
    return replace(SMALL, needs=(Need("Running G", amount, "vcpu", "us-east-1", **known),))


def three(sensible: Plan, cheapest: Plan, third: Plan) -> Trio:
    return Trio(
        Pick("sensible", 4, sensible),
        Pick("cheapest", 1, cheapest),
        Pick("safest", 5, third),
    )


def test_the_table_says_what_its_leading_plans_are() -> None:
    words = role_words(three(SMALL, GCP, ON_DEMAND))
    assert words == {4: ("rent this: sensible",), 1: ("cheapest",), 5: ("safest",)}
    same = Trio(Pick("sensible", 1, GCP), Pick("cheapest", 1, GCP), Pick("fastest", 2, AWS_A100))
    assert role_words(same)[1] == ("rent this: sensible and cheapest",)
    assert role_words(None) == {}
    asked = replace(three(SMALL, GCP, ON_DEMAND), asked="cheapest")
    assert role_words(asked)[1] == ("rent this: cheapest",)


def test_plans_that_are_as_sensible_are_named() -> None:
    trio = three(SMALL, GCP, ON_DEMAND)
    tied = replace(trio, sensible=replace(trio.sensible, ties=(1, 3)))
    assert role_words(tied)[4][1] == "as sensible: plans 1 and 3"
    made = json_output.document(replace(ANSWER, trio=tied), QUESTION)
    assert made["trio"][0]["ties"] == [1, 3]


def test_what_is_reported_in_full_is_the_plan_that_leads() -> None:
    """Its launch line, its quota and its number, in text, in Markdown and in JSON."""
    plans = (GCP, AWS_A100, AWS_A100, asking(4.0, new_accounts=0.0), ON_DEMAND)
    answer = replace(ANSWER, plans=plans, trio=three(plans[3], GCP, ON_DEMAND))
    for page in (short_text(answer, QUESTION), written(answer_page(answer, QUESTION), "markdown")):
        below = page.partition("First")[2]
        assert "sky jobs launch" in " ".join(below.split())
        assert "Running G" in below
        assert "a3-highgpu-8g" not in below
        assert "--explain 4" in below
    why = drawn(explain.render(answer, QUESTION, 4, 100), 100)
    assert "against plan 1: 54 USD less, 2.9 h sooner" in " ".join(why.split())
    made = json_output.document(answer, QUESTION)
    assert (made["lead"], made["best"], made["order"]) == (4, 1, "cost")
    assert made["trio"][0]["rank"] == 4
    assert "--plan 4 -o run" in made["plans"][made["lead"] - 1]["launch"]


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ((0.9, 0.05, 0.05), "plan 1 in 90 % of their draws."),
        ((0.48, 0.04, 0.48), "plan 1 in 48 % of their draws and plan 3 in 48 %."),
        ((0.2, 0.5, 0.3), "plan 2 in 50 % of their draws, plan 3 in 30 % and plan 1 in 20 %."),
    ],
)
def test_plans_are_named_by_how_often_they_are_the_best(
    shares: tuple[float, ...], said: str
) -> None:
    plans = tuple(replace(p, best_share=s) for p, s in zip(ANSWER.plans, shares, strict=False))
    assert tie_line(replace(ANSWER, plans=plans)).endswith(f"the cheapest is {said}")


def test_without_shares_nothing_is_reported_of_ties() -> None:
    assert tie_line(ANSWER) == ""


def founded(made: Plan, speed: SpeedGrade, price: PriceGrade) -> Plan:
    return replace(made, evidence=Evidence(speed, price, "measured", 90.0, 0.1, 0.1, 0.1))


@pytest.mark.parametrize(
    ("speed", "price", "said"),
    [
        ("measured", "floor", "at the lowest price that the provider allows"),
        ("guessed", "floor", "its speed was never measured on this GPU"),
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
