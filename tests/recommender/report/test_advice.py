"""Sentences under the plans of an answer."""

from dataclasses import replace

from recommender.plan.plan import Plan, Spread
from recommender.report.advice import tail_sentence
from tests.recommender.answers import GCP

HOUR = 3600.0


def with_time(made: Plan, time: Spread) -> Plan:
    return replace(made, estimate=replace(made.estimate, time=time))


def test_runs_far_longer_than_the_time_shown_are_told_of() -> None:
    times = [x * HOUR for x in (2.1, 0.5, 0.8, 1.6, 0.9)]
    said = tail_sentence(with_time(GCP, Spread(*times)))
    assert "half of all runs take 48 min or less; 1 in 20 takes longer than 1.6 h" in said


def test_a_mean_near_the_time_shown_needs_no_words() -> None:
    usual = with_time(GCP, Spread(*(x * HOUR for x in (1.0, 0.5, 0.8, 1.6, 0.95))))
    assert tail_sentence(usual) == ""
