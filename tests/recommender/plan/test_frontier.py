"""The frontier against a search of all pairs, and the chance against a count."""

from hypothesis import given
from hypothesis import strategies as st

from recommender.plan.frontier import chance_of, frontier_of
from recommender.plan.limits import Limits
from recommender.plan.plan import Spread
from recommender.plan.report_data import SimulatedPlan
from tests.recommender.answers import machines

FIGURES = st.integers(1, 20).map(float)


def plan(cost: float, time: float, runs: int = 4, **changes: object) -> SimulatedPlan:
    """Runs of up to twice the cost and the time, in opposite order."""
    costs = tuple(cost * (1 + i / runs) for i in range(runs))
    times = tuple(time * (2 - i / runs) for i in range(runs))
    given = {
        "kind": "other", "number": 0, "machines": (machines("box", "H100", "aws:x", "spot"),),
        "fallback": (), "fallback_due_s": None, "regions": 1, "checkpoint_path": "object_store",
        "usd_per_hour": 3.0, "gpus": 8, "cost": Spread(cost, cost, cost, cost, cost),
        "time": Spread(time, time, time, time, time), "max_usd_per_hour": 4.0, "overhead": 0.1,
        "cost_usd": costs, "time_s": times,
    }  # fmt: skip
    return SimulatedPlan(**(given | changes))  # type: ignore[arg-type]


@given(st.lists(st.tuples(FIGURES, FIGURES), max_size=20))
def test_no_plan_of_the_frontier_is_beaten_and_every_other_is(points: list[tuple[float, float]]):
    found = frontier_of([plan(*each) for each in points], Limits())
    kept = [(p.cost.mean, p.time.p50) for p in found.points]
    assert kept == sorted(kept)
    for cost, time in points:
        beaten = any((c, t) != (cost, time) and c <= cost and t <= time for c, t in points)
        assert ((cost, time) in kept) == (not beaten)
    assert (found.simulated, found.meeting) == (len(points), len(points))


@given(FIGURES, FIGURES, FIGURES, FIGURES)
def test_the_chance_is_the_share_of_runs_that_meet_both(
    cost: float, time: float, budget: float, due: float
):
    one = plan(cost, time)
    met = [t <= due and c <= budget for t, c in zip(one.time_s, one.cost_usd, strict=True)]
    assert chance_of(one, Limits(deadline_s=due, budget_usd=budget)) == sum(met) / 4
    assert chance_of(one, Limits()) == 1.0


def test_limits_that_no_run_decides_are_met_or_not():
    assert chance_of(plan(1.0, 1.0), Limits(hourly_usd=3.9)) == 0.0
    assert chance_of(plan(1.0, 1.0), Limits(hourly_usd=4.0)) == 1.0
    assert chance_of(plan(1.0, 1.0), Limits(max_overhead=0.05)) == 0.0


def test_plans_that_miss_a_limit_are_counted_but_not_on_the_frontier():
    cheap, sure = plan(1.0, 10.0), plan(2.0, 1.0)
    found = frontier_of([cheap, sure], Limits(deadline_s=5.0, confidence=0.9))
    assert [p.cost.mean for p in found.points] == [2.0]
    assert (found.simulated, found.meeting) == (2, 1)


def test_the_memory_that_may_be_too_small_lowers_every_chance_and_no_chance_is_above_one():
    due = Limits(deadline_s=plan(1.0, 1.0).time_s[-1])
    assert chance_of(plan(1.0, 1.0), due) == 0.25
    assert chance_of(plan(1.0, 1.0, weight=0.8), due) == 0.2
    assert chance_of(plan(1.0, 1.0, weight=1.02), Limits()) == 1.0
