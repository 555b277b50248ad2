"""Old cheap quotes are brought back towards the level of their type."""

from datetime import timedelta

import numpy as np
import pytest

from recommender.catalogs.registry import OWN_CLIENTS
from recommender.market.offer_facts import Facts
from recommender.market.quotes import expected_quote, median, persistence
from recommender.plan.limits import Choice
from tests.recommender import planning
from tests.shipped import snapshot


def facts(days: float = 0.0, **choice: bool) -> Facts:
    catalog = snapshot()
    return Facts(catalog, Choice(**choice), planning.job(), planning.NOW + timedelta(days=days))


def test_a_quote_halfway_persistent_is_brought_halfway_to_the_level_in_its_logarithm():
    assert expected_quote(1.0, 4.0, 0.5) == pytest.approx(2.0)
    assert expected_quote(1.0, 4.0, 1.0) == pytest.approx(1.0)
    assert expected_quote(5.0, 4.0, 0.0) == 5.0  # it is not selected for being cheap


@pytest.mark.parametrize("provider", sorted(OWN_CLIENTS))
def test_the_older_a_cheap_quote_the_less_of_it_is_left(provider):
    left = [persistence(provider, age) for age in np.linspace(0.0, 800.0, 200).tolist()]
    assert left[0] == 1.0
    assert all(a >= b for a, b in zip(left, left[1:], strict=False))
    assert 0.0 <= left[-1] < 0.8
    assert persistence("own", 300.0) == 1.0


def test_the_cheapest_of_more_quotes_is_raised_by_more():
    """Zones that differ by chance only: what the cheapest retains shows the selection bias."""
    rng, left = np.random.default_rng(5), 0.4
    raised = {}
    for zones in (2, 8, 32):
        usd = np.exp(rng.normal(0.0, 0.4, (4000, zones)))
        cheapest, level = usd.min(axis=1), np.median(usd, axis=1)
        planned = [expected_quote(c, m, left) for c, m in zip(cheapest, level, strict=True)]
        raised[zones] = float(np.mean(np.log(planned / cheapest)))
    assert raised[2] < raised[8] < raised[32]


def test_no_planned_price_is_below_its_quote_and_order_within_a_type_stays():
    catalog = snapshot()
    o, fresh, later = catalog.offers, facts(), facts(days=120.0)
    found: dict[tuple[str, str, str], list[int]] = {}
    for row, market in enumerate(o.market):
        assert fresh.planning_price(row) >= o.usd_per_hour[row] * (1.0 - 1e-12)
        assert later.planning_price(row) >= fresh.planning_price(row) * (1.0 - 1e-12)
        if market == "spot" and o.flag[row] != "floor":
            found.setdefault((o.provider[row], o.instance_type[row], o.as_of[row]), []).append(row)
        elif market == "on_demand":
            assert later.planning_price(row) == o.usd_per_hour[row]
    for rows in found.values():
        quotes = sorted(rows, key=lambda row: (o.usd_per_hour[row], row))
        planned = [later.planning_price(row) for row in quotes]
        assert planned == sorted(planned)


def test_prices_taken_as_quoted_are_planned_as_quoted():
    o, found = snapshot().offers, facts(days=120.0, prices_as_quoted=True)
    kept = [r for r in range(len(o)) if o.flag[r] != "floor"]
    assert all(found.planning_price(r) == o.usd_per_hour[r] for r in kept)


def test_the_bill_says_what_old_quotes_are_expected_to_rise_by(tmp_path):
    catalog = planning.written(tmp_path)
    o = catalog.offers
    job = planning.job()
    answer = planning.ask(catalog, job, Choice(market="spot"), deadline_s=60 * planning.HOUR)
    for plan in answer.plans:
        assert sum(item.usd for item in plan.estimate.bill) == pytest.approx(
            plan.estimate.cost.mean, rel=2e-3, abs=0.02
        )
        quotes = [
            o.usd_per_hour[r]
            for r in range(len(o))
            if o.instance_type[r] == plan.machines[0].instance_type and o.market[r] == "spot"
        ]
        rise = [i.usd for i in plan.estimate.bill if i.item == "expected rise of old quotes"]
        below = plan.machines[0].usd_per_hour < median(quotes) * 0.99
        assert bool(rise) == below


def test_a_price_at_an_auctions_floor_is_less_certain():
    found = facts()
    o = found.catalog.offers
    floors = [
        r
        for r in range(len(o))
        if (o.flag[r], o.provider[r], o.market[r], o.kind[r]) == ("floor", "aws", "spot", "quote")
    ]
    assert floors
    for row in floors:
        plain = found.price_sigma("aws", "spot", o.as_of[row], o.uncertainty[row])
        assert found.offer_price_sd(row) > np.hypot(plain, 0.3)
