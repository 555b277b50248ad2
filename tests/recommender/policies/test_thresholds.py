"""The two-threshold rule: read off the table, safe, nearly as good, and shipped for every class."""

import csv
from importlib.resources import files

import numpy as np
import pytest

from recommender.catalogs.schema import SpotClass
from recommender.policies.availability import chain
from recommender.policies.availability_fit import exit_rates, of_class
from recommender.policies.optimal import SemiMarkov
from recommender.policies.policy_table import policy_table
from recommender.policies.replay import replay, windows
from recommender.policies.rules import Greedy
from recommender.policies.state import NONE, ON_DEMAND, SPOT, ModePrices, PolicyState
from recommender.policies.thresholds import (
    TwoThresholds,
    rule_usd,
    shipped_rule,
    two_thresholds,
)
from recommender.risk.laws import RUN_FAMILY
from tests.recommender.policies.laws import HEAVY
from tests.recommender.policies.markets import PRICES, hours, simulated
from tests.research.fits import build_thresholds
from tests.shipped import snapshot

TICK = 600.0
TASK = hours(24, 36, 0.2)


def state(mode, done_h, now_h, available):
    return PolicyState(
        now_h * 3600.0,
        np.array([mode]),
        np.array([done_h * 3600.0]),
        np.zeros(1),
        np.array([available]),
    )


@pytest.mark.parametrize(
    ("mode", "done_h", "now_h", "available", "want"),
    [
        (NONE, 0.0, 0.0, False, NONE),  # 11.8 h of slack, waits above 4.8
        (NONE, 4.0, 11.5, False, ON_DEMAND),  # 4.3 h of slack for 20 h of work, waits above 4
        (NONE, 4.0, 12.0, False, ON_DEMAND),  # 3.8 h
        (NONE, 4.0, 12.0, True, SPOT),
        (ON_DEMAND, 4.0, 12.0, True, SPOT),  # 3.8 h of slack, back above 2
        (ON_DEMAND, 4.0, 14.0, True, ON_DEMAND),  # 1.8 h
        (ON_DEMAND, 4.0, 4.5, False, ON_DEMAND),
        (SPOT, 4.0, 15.5, True, SPOT),
    ],
)
def test_the_rule_does_what_its_figures_say(mode, done_h, now_h, available, want):
    rule = TwoThresholds(wait=0.2167, back=0.1)
    decide = rule.begin(TASK, PRICES, TICK, 1)
    assert decide(state(mode, done_h, now_h, available))[0] == want


def test_two_figures_keep_most_of_what_the_whole_table_saves():
    process = chain(HEAVY, TICK)
    rule = two_thresholds(policy_table(process, TASK, PRICES, TICK), process, TASK)
    series = simulated(HEAVY, TICK, 60_000, seed=6)
    starts = windows(len(series), TICK, TASK, 6 * 3600.0)
    greedy, full, short = (
        replay(policy, series, TICK, starts, TASK, PRICES)
        for policy in (Greedy(), SemiMarkov(HEAVY), rule)
    )
    assert not short.late(TASK.deadline_s).any()
    saved = greedy.cost_usd.mean() - full.cost_usd.mean()
    assert greedy.cost_usd.mean() - short.cost_usd.mean() > 0.6 * saved


def test_rates_of_a_lognormal_give_back_its_mean():
    for mean_h, sigma in ((3.35, 1.88), (1.0, 1.3)):
        law = exit_rates(RUN_FAMILY, mean_h, sigma)
        assert (np.diff(law[1:]) < 0.0).all()  # the hazard falls
        series_h = np.exp(
            np.log(mean_h) - sigma**2 / 2 + sigma * np.random.default_rng(0).normal(size=200_000)
        )
        early = series_h < 0.1
        assert law[0] == pytest.approx(early.sum() / np.minimum(series_h, 0.1).sum(), rel=0.05)


def test_the_usual_zone_of_a_class_has_its_availability():
    law = of_class(12070.0, 1.88, 1.36, 0.692, 0.0)
    assert chain(law, 120.0).share_up == pytest.approx(0.692, abs=0.05)


def test_every_shipped_class_has_a_rule():
    for spot_class in snapshot().spot_classes:
        rule = shipped_rule(spot_class.spot_class, TASK, PRICES)
        assert rule is not None
        assert 0.0 <= rule.wait < 0.6
        assert 0.0 <= rule.back < 0.6


def test_a_grid_point_is_found_as_it_was_written_and_between_two_points_lies_the_rule():
    path = files("recommender.policies").joinpath("thresholds.csv")
    rows = list(csv.DictReader(path.read_text("utf-8").splitlines()))
    first = next(row for row in rows if row["spot_class"] == "v100" and row["work_h"] == "24.0")
    ratio, changeover = float(first["deadline_ratio"]), float(first["changeover_h"])
    market = ModePrices(float(first["price_ratio"]), 1.0)
    found = shipped_rule("v100", hours(24, 24 * ratio, changeover), market)
    assert found is not None
    assert (found.wait, found.back) == pytest.approx((float(first["wait"]), float(first["back"])))
    ends = [shipped_rule("v100", hours(w, w * 1.3, 0.1), market).wait for w in (24, 40, 72)]
    assert min(ends[0], ends[2]) <= ends[1] <= max(ends[0], ends[2])


def test_the_shipped_file_is_what_its_script_writes():
    """Or costs as much: where two thresholds cost the same, the processor's last bit decides."""
    rows = build_thresholds.rows()
    path = files("recommender.policies").joinpath("thresholds.csv")
    shipped = csv.reader(path.read_text("utf-8").splitlines()[1:])
    law = snapshot().spot_classes[0]
    for _ in range(20):
        made, kept = next(rows), next(shipped)
        assert [str(made[0]), *kept[1:5]] == kept[:5]
        point, ours = [float(x) for x in kept[1:5]], [float(x) for x in kept[5:7]]
        assert point == pytest.approx([float(x) for x in made[1:5]])
        theirs = [float(x) for x in made[5:7]]
        if ours != pytest.approx(theirs, abs=2e-3):
            assert rule_cost(law, point, ours) == pytest.approx(
                rule_cost(law, point, theirs), rel=5e-3
            )


def rule_cost(law: SpotClass, point: list[float], rule: list[float]) -> float:
    """Expected USD of a two-threshold rule at a grid point, from the start of the job."""
    work_h, ratio, changeover_h, price = point
    task = hours(work_h, work_h * ratio, changeover_h)
    tick_s = task.deadline_s / build_thresholds.TICKS
    own = (law.run_mean_s, law.run_sigma, law.outage_sigma, law.availability, law.zone_sd)
    process = chain(of_class(*own), tick_s)
    return rule_usd(TwoThresholds(*rule), process, task, ModePrices(price, 1.0), tick_s)


def test_there_is_no_rule_where_there_is_nothing_to_wait_for():
    assert shipped_rule("v100", TASK, ModePrices(3.1, 3.06)) is None
    assert shipped_rule("v100", hours(24, 24.1, 0.2), PRICES) is None
    assert shipped_rule("abacus", TASK, PRICES) is None
