"""Prices of the past are drawn where two or more are known, of the machines that lead."""

from dataclasses import replace

from recommender.plan.answer import Pick, Trio
from recommender.report.html.elements import written
from recommender.report.html.prices import moved_offers, offers_of, price_part, price_rows
from tests.recommender.answers import ANSWER

KEY = ("aws", "p5.48xlarge", "us-east-1", "use1-az1", "spot")


def test_one_price_makes_no_curve():
    assert moved_offers({KEY: [("2026-11-01", 3.0)]}) == ()
    assert price_part(()) == []


def test_every_price_is_in_the_table_and_in_the_picture():
    series = moved_offers({KEY: [("2026-11-01", 3.0), ("2026-11-03", 3.5)]})
    assert [(row.date, row.usd, row.words) for row in price_rows(series)] == [
        ("2026-11-01", 3.0, "3 USD/h"),
        ("2026-11-03", 3.5, "3.5 USD/h"),
    ]
    (part,) = price_part(series)
    text = written(part)
    assert "p5.48xlarge spot, aws use1-az1" in text
    assert all(f">{word}<" in text for word in ("2026-11-01", "2026-11-03", "3", "3.5"))


def test_the_machines_of_the_three_plans_are_requested_once():
    one, two = ANSWER.plans[:2]
    trio = Trio(Pick("sensible", 1, one), Pick("cheapest", 1, one), Pick("fastest", 2, two))
    keys = offers_of(replace(ANSWER, trio=trio))
    machines = (*one.machines, *two.machines)
    rented = {(m.provider, m.instance_type, m.region, m.zone, m.market) for m in machines}
    assert set(keys) == rented
    assert len(keys) == len(rented)
    assert offers_of(ANSWER) == ()
