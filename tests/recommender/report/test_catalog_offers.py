"""Offers side by side: what a GPU costs for an hour, what a dollar computes, how prices moved."""

import pytest

from recommender.catalogs.catalog import Catalog
from recommender.report.catalog import (
    flop_per_usd,
    matching,
    offer_key,
    offers,
    spot_capacity,
    trend_words,
    usd_per_gpu,
)
from recommender.report.layout import drawn, render
from tests.recommender.planning import small
from tests.shipped import snapshot


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return small()


def test_the_cheapest_gpu_comes_first_however_many_a_machine_has(catalog: Catalog):
    found = matching(catalog, "T4", "aws", "us-east-1", "on_demand")
    by_gpu = [usd_per_gpu(catalog, each) for each in found]
    assert by_gpu == sorted(by_gpu)
    assert by_gpu == pytest.approx([0.526, 0.752, 3.912 / 4])


def test_flop_per_dollar_is_the_measured_rate_times_an_hour(catalog: Catalog):
    (one,) = (o for o in matching(catalog, "g4dn.12x", "", "us-east-1", "on_demand"))
    speeds = {a.precision: a.tflops for a in catalog.achieved.values() if a.gpu == "T4"}
    first = next(speeds[name] for name in ("bf16", "fp16", "fp32") if name in speeds)
    assert flop_per_usd(catalog, one) == pytest.approx(first * 1e12 * 4 * 3600 / 3.912)


@pytest.mark.parametrize(
    ("prices", "words"),
    [
        ([1.0, 2.0, 4.0], "▁▃▇ +300 %"),
        ([2.0, 1.0], "▇▁ −50 %"),
        ([1.0, 1.0], "▁▁ +0 %"),
        ([1.0], ""),
        ([], ""),
    ],
)
def test_a_trend_is_a_sparkline_and_its_change(prices: list[float], words: str):
    assert trend_words([(f"2026-11-{i:02}", usd) for i, usd in enumerate(prices, 1)]) == words


def test_trends_are_printed_below_the_notes(catalog: Catalog):
    found = matching(catalog, "T4", "aws", "", "spot")
    known = {offer_key(found[0]): (("2026-11-01", 1.0), ("2026-11-02", 1.1))}
    first, second = (row[4].splitlines() for row in offers(catalog, found, 5, known).rows[:2])
    assert first[-1] == "▁▇ +10 %"
    assert len(second) == len(first) - 1


def test_eighty_columns_hold_the_longest_name_and_its_trend():
    catalog = snapshot()
    found = matching(catalog, "Standard_NCC40ads_H100_v5", "", "", "")[:1]
    trend = tuple((f"2026-11-0{day}", 1.0 + 0.02 * day) for day in range(1, 9))
    page = offers(catalog, found, 1, {offer_key(found[0]): trend})
    lines = drawn(render(page, 80), 80).splitlines()
    assert lines[0].split()[0] == "offer"  # the head of a table, not one row below the other
    assert max(map(len, lines)) <= 80


def test_spot_capacity_is_reported_once_for_each_kind_of_machine_shown():
    shipped = snapshot()
    lines = spot_capacity(shipped, matching(shipped, "H100", "gcp", "", ""))
    laws = [each for each in shipped.spot_classes if "H100" in each.gpus]
    sold = [law for law in laws if law.gpus_per_machine_min <= 8]  # no machine has more of them
    assert len(lines) == len(set(lines)) == len(sold) >= 3
    for law in sold:
        words = f"available {law.availability:.0%} of the time".replace("%", " %")
        assert any(words in line and law.as_of in line for line in lines)
    assert spot_capacity(shipped, matching(shipped, "H100", "", "", "on_demand")) == []
