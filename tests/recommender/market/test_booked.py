"""Booked capacity: whole blocks are paid, nothing runs beyond its time, and quotas are others'."""

import math
from dataclasses import replace

import numpy as np
import pytest

from recommender.job.jobfile import find_job
from recommender.market.offer_facts import Facts, Pool
from recommender.market.quota_rows import max_machines_by_quota, quota_market
from recommender.optimize.evaluate import reduced
from recommender.plan.limits import Choice, Limits, MarketChoice, Progress, QuotaLimit
from recommender.planner.plan_notes import commitment_note
from recommender.planner.problem import Problem, planning_problem
from recommender.risk.monte_carlo import simulate_paths
from tests.recommender.optimize import palette
from tests.recommender.planning import NOW
from tests.recommender.risk.cases import path_inputs
from tests.shipped import snapshot

HOUR_S, DAY_S = 3600.0, 86_400.0
CASES = 500


def cheapest_placement(case: dict[str, float], needed_s: float) -> tuple[float, float]:
    """Least paid hours and earliest end, over every start of a week and every length of a block."""
    step, least = case["base_step_s"], case["base_minimum_s"]
    best = (math.inf, math.inf)
    for start in range(8):  # days from now
        for steps in range(1, 400):
            length = steps * step
            usable = length - case["base_end_s"]
            if length >= least and usable >= needed_s:
                end = start * DAY_S + needed_s
                best = min(best, (length, end))
    return best


def test_a_job_in_blocks_costs_what_the_best_start_and_length_of_all_do() -> None:
    rng = np.random.default_rng(29)
    cases = []
    for _ in range(CASES):
        step = float(rng.choice([HOUR_S, 6 * HOUR_S, DAY_S]))
        work = float(rng.uniform(0.02, 0.9)) * 300 * step
        cases.append({
            "work_s": work,
            "base_usd_per_hour": float(rng.uniform(1, 100)),
            "spot_usd_per_hour": 0.0,
            "base_step_s": step,
            "base_minimum_s": step * float(rng.integers(1, 4)),
            "base_end_s": float(rng.choice([0.0, 1800.0])),
            "interval_s": 1e12,
            "stall_s": 0.0,
            "cautious_work_s": work,
        })  # fmt: skip
    found = simulate_paths(path_inputs(*cases), None, 2)
    for row, case in enumerate(cases):
        length, end = cheapest_placement(case, case["work_s"] + 300.0)  # with the changeover
        assert found.time_s[row, 0] == pytest.approx(end)
        usd = case["base_usd_per_hour"] * length / HOUR_S
        assert found.cost_usd[row, 0] == pytest.approx(usd)


def test_a_cluster_that_may_outlast_its_longest_rental_is_no_plan() -> None:
    question = palette.space(3, entries=4, most=3)
    site = question.sites[0]
    counts = palette.every_cluster(site, 3)
    counts = counts[(counts[:, site.entries.spot] == 0).all(axis=1)]
    plans = palette.every_plan(question, site, counts)
    free = reduced(question, site, plans)
    inputs = free.inputs
    needed = inputs.work_s + inputs.changeover_s
    longest = float(np.median(needed[free.allowed]))
    limited = replace(site.entries, maximum_s=np.full(len(site.entries), longest))
    some = reduced(question, replace(site, entries=limited), plans).allowed
    assert 0 < some.sum() < free.allowed.sum()
    assert (needed[some] <= longest).all()
    careful = inputs.cautious_work_s + inputs.changeover_s <= longest
    assert (some == (free.allowed & careful)).all()


def facts(quotas: tuple[QuotaLimit, ...] = ()) -> Facts:
    return Facts(snapshot(), Choice(quotas=quotas), find_job("gpt2-124m"), NOW)


def pool(provider: str, name: str, market: str) -> Pool:
    o = snapshot().offers
    columns = zip(o.provider, o.instance_type, o.market, strict=True)
    rows = tuple(row for row, key in enumerate(columns) if key == (provider, name, market))
    return Pool(rows[:1], market, 0, snapshot().instance_types[provider, name])


def test_flex_start_counts_on_the_quota_of_spot_and_blocks_on_none() -> None:
    flex = pool("gcp", "a3-highgpu-8g", "flex_start")
    block = pool("aws", "p5.48xlarge", "reserved_block")
    assert quota_market(facts(), flex) == "spot"
    region = snapshot().offers.region[flex.rows[0]]
    given = (
        QuotaLimit("gcp", "H100", "spot", region, "gpu", 16),
        QuotaLimit("gcp", "H100", "on_demand", region, "gpu", 0),
        QuotaLimit("aws", "p5", "on_demand", "", "vcpu", 0),
    )
    assert max_machines_by_quota(facts(given), flex) == pytest.approx(2, abs=0.01)
    assert max_machines_by_quota(facts(given), block) == math.inf or (
        max_machines_by_quota(facts(given), block) > 1e6
    )


def markets_of(market: MarketChoice) -> set[str]:
    asked: Problem = planning_problem(
        find_job("gpt2-124m"), Limits(), Choice(market=market), snapshot(), Progress(), NOW, 7
    )
    return {p.market for pools in asked.single_type_sites.pools for p in pools}


@pytest.mark.parametrize(
    ("choice", "markets"),
    [
        ("any", {"on_demand", "spot", "flex_start", "reserved_block"}),
        ("no_spot", {"on_demand", "flex_start", "reserved_block"}),
        ("reserved", {"flex_start", "reserved_block"}),
        ("on_demand", {"on_demand"}),
        ("spot", {"spot"}),
    ],
)
def test_a_choice_of_markets_allows_these_and_no_commitment(
    choice: MarketChoice, markets: set[str]
) -> None:
    assert markets_of(choice) == markets


def test_fallbacks_are_on_demand() -> None:
    asked = planning_problem(
        find_job("gpt2-124m"), Limits(DAY_S), Choice(), snapshot(), Progress(), NOW, 7
    )
    markets = {p.market for pools in asked.single_type_sites.fallbacks for p in pools}
    assert markets == {"on_demand"}


def test_a_commitment_pays_from_its_share_of_a_months_hours_on() -> None:
    listed = pool("gcp", "a2-highgpu-1g", "on_demand")
    region = snapshot().offers.region
    o = snapshot().offers
    here = next(
        row
        for row in range(len(o))
        if (o.instance_type[row], o.market[row], region[row])
        == ("a2-highgpu-1g", "on_demand", "us-central1")
    )
    (note,) = commitment_note(facts(), listed.at((here,)))
    assert f"{730 * 2.314207 / 3.673385:,.0f} hours" in note  # Google's page, 2026-10-05
    cheaper = pool("gcp", "a2-highgpu-1g", "flex_start")
    assert commitment_note(facts(), cheaper) == ()  # no use of it would
    assert commitment_note(facts(), pool("aws", "p5.48xlarge", "on_demand")) == ()


def test_google_without_spot_costs_less_with_flex_start() -> None:
    o = snapshot().offers
    listed = {
        (o.instance_type[row], o.region[row]): o.usd_per_hour[row]
        for row in range(len(o))
        if o.provider[row] == "gcp" and o.market[row] == "on_demand"
    }
    flex = [row for row in range(len(o)) if o.market[row] == "flex_start"]
    assert len(flex) == 10
    pairs = [
        (o.usd_per_hour[row], listed.get((o.instance_type[row], o.region[row]))) for row in flex
    ]
    assert sum(usd is not None for _, usd in pairs) >= 8
    assert all(less <= 0.66 * usd for less, usd in pairs if usd is not None)
