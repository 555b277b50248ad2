"""Sentences under the plans of an answer."""

from dataclasses import replace

from recommender.plan import Plan, Spread
from recommender.report.advice import tail_sentence
from tests.recommender.answers import GCP

HOUR = 3600.0


def with_time(made: Plan, time: Spread) -> Plan:
    return replace(made, estimate=replace(made.estimate, time=time))


def test_an_expected_time_above_its_span_is_explained() -> None:
    heavy = with_time(GCP, Spread(2.1 * HOUR, 0.5 * HOUR, 0.8 * HOUR, 1.6 * HOUR))
    assert "half of all runs take 48 min or less" in tail_sentence(heavy)


def test_an_expected_time_inside_its_span_is_not() -> None:
    usual = with_time(GCP, Spread(1.0 * HOUR, 0.5 * HOUR, 0.8 * HOUR, 1.6 * HOUR))
    assert tail_sentence(usual) == ""
