"""Limits in words."""

from dataclasses import replace

import pytest

from recommender.plan.limits import Limits, Progress
from recommender.plan.simulation import LimitChance
from recommender.report.answer_frame import goal_line
from recommender.report.limit_words import limit_words, limits_in_words, why_not
from tests.recommender.answers import ANSWER, QUESTION

H = 3600.0
PLAN = ANSWER.plans[0]


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (Limits(deadline_s=24 * 3600.0), "finish within 24 h"),
        (Limits(deadline_s=5 * 86_400.0), "finish within 5 d"),
        (Limits(deadline_s=14.4 * 3600.0), "finish within 14h24m"),
        (Limits(deadline_s=100 * 3600.0), "finish within 4d4h"),
        (Limits(budget_usd=1234.5), "cost at most 1,234.5 USD in total"),
        (Limits(hourly_usd=0.2), "cost at most 0.2 USD/h"),
        (
            Limits(deadline_s=24 * H, budget_usd=200.0, hourly_usd=30.0),
            "finish within 24 h and cost at most 200 USD in total and 30 USD/h",
        ),
        (Limits(max_overhead=0.2), ""),
    ],
)
def test_limits_are_repeated_as_they_were_typed(limits: Limits, said: str) -> None:
    assert limits_in_words(limits) == said


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (Limits(), ""),
        (Limits(hourly_usd=0.01), "costs up to "),
        (Limits(max_overhead=1e-6), "loses "),
        (Limits(deadline_s=60.0), "takes up to "),
        (Limits(budget_usd=0.01), "costs up to "),
        (Limits(deadline_s=1e9), "meets the limits in only 10 % of runs"),
        (Limits(deadline_s=60.0, hourly_usd=0.01), "costs up to "),
    ],
)
def test_a_plan_is_described_by_the_first_limit_that_it_does_not_meet(
    limits: Limits, said: str
) -> None:
    chance = 0.1 if limits.deadline_s or limits.budget_usd else 0.99
    unsure = replace(PLAN, estimate=replace(PLAN.estimate, chance=chance))
    assert why_not(unsure, limits).startswith(said)
    assert bool(why_not(unsure, limits)) == bool(said)


def test_a_slow_run_is_allowed_where_the_chance_is_enough() -> None:
    sure = replace(PLAN, estimate=replace(PLAN.estimate, chance=0.99))
    assert why_not(sure, Limits(deadline_s=60.0)) == ""


def test_simulated_limits_are_named_by_their_value() -> None:
    limits = [("deadline", 86_400.0), ("budget", 200.0), ("hourly", 30.0)]
    said = [limit_words(LimitChance(name, value, 1.0)) for name, value in limits]
    assert said == ["in 24 h", "within 200 USD", "within 30 USD/h"]


def test_the_chance_is_repeated_as_it_was_asked_for() -> None:
    asked = replace(QUESTION, limits=Limits(deadline_s=24 * H, confidence=0.999))
    assert goal_line(ANSWER, asked).endswith("with 99.9 % chance")


def test_what_is_left_of_a_job_that_runs_is_repeated() -> None:
    asked = replace(
        QUESTION,
        limits=Limits(deadline_s=30 * H, budget_usd=400.0),
        progress=Progress(done_share=0.4, elapsed_s=9 * H, spent_usd=62.0),
    )
    told = goal_line(ANSWER, asked)
    assert told.endswith("chance; the rest is planned: 60 % of the work, 21 h and 338 USD")
    assert "rest" not in goal_line(ANSWER, QUESTION)
