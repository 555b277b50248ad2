"""DeepVM's simulation: ten invented GPU types, 98 prices per hour, speed-ups by its curves.

A regression test: with the curves given, each side only has to pick from a table.
"""

from pathlib import Path

import pytest

from recommender.plan.limits import Limits
from recommender.planner.problem import Problem
from tests.research.deepvm import policies
from tests.research.deepvm.figures import FASTER_THAN_DEEPVM, REMOTE, SIMULATED, VIRTUAL
from tests.research.deepvm.ours import catalog, fastest, problem, timed_job
from tests.research.deepvm.policies import MOST, Market, Pick
from tests.research.deepvm.scaling import curve, throughput

PRICES = [tenth / 10 for tenth in range(3, 101)]
MARKET = Market(VIRTUAL, REMOTE, MOST, MOST)
LARGEST = 151  # machines of the cheapest type for 10 USD/h


def chosen(policy: str, willing: float, picks: list[Pick]) -> Pick:
    """What a policy rents for a price per hour."""
    if policy == "deepvm":
        return policies.ranked(picks, curve)[0]
    if policy == "no scale":
        return policies.no_scale(picks)
    rule = policies.cost_first if policy == "cost first" else policies.performance_first
    return rule(MARKET, willing)


def replayed() -> dict[str, list[float]]:
    """Throughput of each policy at each price, and of the best cluster DeepVM could have."""
    found: dict[str, list[float]] = {policy: [] for policy in (*SIMULATED, "best")}
    for willing in PRICES:
        picks = policies.affordable(MARKET, willing)
        for policy in SIMULATED:
            pick = chosen(policy, willing, picks)
            found[policy].append(throughput(pick.vm, pick.n))
        found["best"].append(max(throughput(pick.vm, pick.n) for pick in picks))
    return found


def planned(asked: Problem) -> list[float]:
    """Throughput of our own plan at each price, by the planner's own step times."""
    space, rates = asked.space(asked.single_type_sites), []
    for willing in PRICES:
        plan = fastest(space, willing)
        kind = int(space.sites[plan.site].entries.kind[plan.entries[0]])
        rates.append(asked.job.global_batch / float(asked.step_s[kind, sum(plan.counts) - 1]))
    return rates


def asked(folder: Path) -> Problem:
    """The problem with every type timed at every number of machines by its curve."""
    sizes = range(1, LARGEST + 1)
    speeds = {vm.name: {n: throughput(vm, n) for n in sizes} for vm in VIRTUAL}
    job = timed_job(speeds, samples=1e9)
    limits = Limits(hourly_usd=PRICES[-1], max_machines=LARGEST)
    return problem(job, limits, catalog(folder, VIRTUAL, calm=True))


@pytest.fixture(scope="module")
def deepvm() -> dict[str, list[float]]:
    return replayed()


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    return planned(asked(tmp_path_factory.mktemp("virtual")))


@pytest.mark.parametrize("policy", SIMULATED)
def test_the_policies_reproduce_the_published_simulation(deepvm, policy):
    shares = [a / b for a, b in zip(deepvm[policy], deepvm["best"], strict=True)]
    mean, worst = SIMULATED[policy]
    assert sum(shares) / len(shares) == pytest.approx(mean, abs=1e-4)
    assert min(shares) == pytest.approx(worst, abs=1e-4)


def test_performance_first_is_often_faster_than_deepvm(deepvm):
    pairs = zip(deepvm["performance first"], deepvm["deepvm"], strict=True)
    assert sum(other > own for other, own in pairs) == FASTER_THAN_DEEPVM


@pytest.mark.parametrize("policy", [*SIMULATED, "best"])
def test_our_plan_is_at_least_as_fast_as_every_policy_at_every_price(ours, deepvm, policy):
    pairs = zip(ours, deepvm[policy], strict=True)
    assert [own for own, other in pairs if own < other * (1 - 1e-9)] == []


def test_our_plan_is_the_exhaustive_best_at_every_price(ours):
    best = [
        max(
            throughput(vm, n)
            for vm in VIRTUAL
            for n in range(1, LARGEST + 1)
            if vm.spot * n <= willing + 1e-9
        )
        for willing in PRICES
    ]
    assert ours == pytest.approx(best, rel=1e-9)
