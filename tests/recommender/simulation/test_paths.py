"""A simulation's figures: blocks, states, limits, histograms."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.plan.limits import Limits
from recommender.risk.monte_carlo import simulate_paths
from recommender.simulation.paths import BLOCK, simulate
from recommender.simulation.summary import histogram, limit_chances, quantiles, states
from tests.recommender.risk.cases import RESCUE, SPOT, path_inputs, random_plan

H = 3600.0


def test_the_first_block_is_what_recommend_prints() -> None:
    plan = path_inputs(SPOT)
    sample = simulate(plan, None, 3 * BLOCK, 7)
    printed = simulate_paths(plan, None, BLOCK, 7)
    assert np.array_equal(sample.time_s[:BLOCK], printed.time_s[0])
    assert not np.array_equal(sample.time_s[:BLOCK], sample.time_s[BLOCK : 2 * BLOCK])


def test_paths_that_outlast_the_others_are_simulated_as_if_alone() -> None:
    rng = np.random.default_rng(5)
    for _ in range(30):
        plan, deadline = random_plan(rng)
        plans = path_inputs(plan)
        sample = simulate(plans, deadline, BLOCK + 500, 11)
        for begin, seed, paths in ((0, 11, BLOCK), (BLOCK, 11 + 1_000_003, 500)):
            alone = simulate_paths(plans, deadline, paths, seed)
            for name in ("time_s", "cost_usd", "expected_usd", "interruptions", "fallback_s"):
                found = getattr(sample, name)[begin : begin + paths]
                assert np.array_equal(found, getattr(alone, name)[0])


def test_the_same_seed_gives_the_same_paths_and_another_does_not() -> None:
    one, same, other = (simulate(path_inputs(SPOT), None, 3000, seed) for seed in (5, 5, 6))
    assert np.array_equal(one.cost_usd, same.cost_usd)
    assert not np.array_equal(one.cost_usd, other.cost_usd)


def test_the_states_of_any_plan_take_all_its_time() -> None:
    rng = np.random.default_rng(2)
    for _ in range(40):
        plan, deadline = random_plan(rng)
        sample = simulate(path_inputs(plan), deadline, 256, 3)
        found = states(sample)
        assert sum(s.share for s in found) == pytest.approx(1.0, abs=1e-6)
        assert all(s.share >= 0.0 for s in found)


def test_the_split_is_that_of_a_usual_run_not_of_the_few_that_wait_for_months() -> None:
    """A plan of 3.7 h in the median was said to wait 89 % of its time, the answer 2 minutes."""
    sample = simulate(path_inputs(SPOT), None, 3000, 5)
    middle = np.abs(sample.time_s - np.median(sample.time_s)).argsort()[:300]
    waiting = next(s.share for s in states(sample) if s.name == "waiting")
    usual = sample.waiting_s[middle].sum() / sample.time_s[middle].sum()
    assert waiting == pytest.approx(usual, abs=0.05)
    long = np.where(sample.time_s > np.quantile(sample.time_s, 0.99), 1e8, 0.0)
    held = replace(sample, time_s=sample.time_s + long, waiting_s=sample.waiting_s + long)
    assert states(held) == states(sample)


def test_a_quiet_run_is_split_as_arithmetic_says() -> None:
    found = {s.name: s.share for s in states(simulate(path_inputs({}), None, 64, 3))}
    total = 300 + 36_000 + 35 * 20
    assert found["starting"] == pytest.approx(300 / total)
    # The model of the split counts a save for the last interval as well.
    assert found["training"] + found["saving"] == pytest.approx(36_700 / total)
    assert found["lost work"] == found["fallback"] == found["waiting"] == 0.0


def test_progress_is_reported_block_by_block() -> None:
    seen: list[tuple[int, int]] = []
    simulate(
        path_inputs(SPOT), None, BLOCK + 10, 7, tick=lambda done, total: seen.append((done, total))
    )
    assert seen == [(BLOCK, BLOCK + 10), (BLOCK + 10, BLOCK + 10)]


def test_limits_are_counted_each_and_together() -> None:
    sample = simulate(path_inputs(SPOT | RESCUE), 24 * H, 4096, 7)
    each, together = limit_chances(
        sample, Limits(deadline_s=24 * H, budget_usd=110.0, hourly_usd=90.0), 10.0
    )
    assert [k.limit for k in each] == ["deadline", "budget", "hourly"]
    both = (sample.time_s <= 24 * H) & (sample.cost_usd <= 110.0)
    assert together.mean() == both.mean() <= min(each[0].chance, each[1].chance)
    assert each[2].chance == 1.0
    assert limit_chances(sample, Limits(hourly_usd=9.0), 10.0)[1].mean() == 0.0


def test_the_error_of_a_mean_is_that_of_its_sample() -> None:
    values = np.array([1.0, 3.0] * 50)
    found = quantiles(values)
    assert (found.mean, found.error) == (2.0, pytest.approx(0.1))
    assert quantiles(values, np.full(100, 2.0)).error == 0.0


@pytest.mark.parametrize("sigma", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("unit", [1.0, 3600.0])
def test_a_histogram_has_round_edges_and_holds_every_run(sigma: float, unit: float) -> None:
    values = unit * np.exp(np.random.default_rng(1).normal(2.0, sigma, 5000))
    found = histogram(values, unit)
    assert sum(found.shares) == pytest.approx(1.0)
    assert 3 <= len(found.shares) <= 15
    widths = np.diff(found.edges) / unit
    digits = float(f"{widths[0]:.3g}") / 10.0 ** np.floor(np.log10(widths[0]))
    assert any(digits == pytest.approx(step) for step in (1.0, 2.0, 2.5, 5.0))
    assert widths == pytest.approx(widths[0])


def test_a_tail_of_a_few_long_runs_leaves_the_others_to_be_seen() -> None:
    """Most runs take 3 to 8 h, one in ten days: bars of 10 h would put 90 % into the first."""
    usual = np.linspace(3.0, 8.0, 900)
    found = histogram(np.concatenate([usual, np.linspace(10.0, 200.0, 100)]))
    assert max(found.shares) < 0.2
    assert sum(found.shares) == pytest.approx(1.0)


def test_a_figure_that_never_varies_has_a_histogram_of_one_bar() -> None:
    found = histogram(np.full(100, 36_000.0), 3600.0)
    assert found.shares == (1.0,)
    assert found.edges[0] <= 36_000.0 <= found.edges[-1]
