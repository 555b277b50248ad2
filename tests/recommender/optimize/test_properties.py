"""What any optimiser must obey, whatever the numbers are."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recommender.optimize.candidate import Candidate
from recommender.optimize.evaluate import Plans, path_inputs_of
from recommender.optimize.space import Entries, Site, Space
from recommender.plan.limits import Limits
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.path_inputs import Paths
from tests.recommender.optimize.palette import space
from tests.recommender.optimize.pooled import selected

SAME = 1e-3  # the pool looks at what is rated better by more than that

questions = st.integers(0, 40_000).map(lambda seed: space(seed, 2 + seed % 2, 3))
few = settings(max_examples=10, deadline=None, derandomize=True)


def best(q: Space) -> Candidate | None:
    plans = selected(q).plans
    return plans[0] if plans else None


def goal(q: Space) -> float:
    plan = best(q)
    return np.inf if plan is None else plan.goal_value


def under(q: Space, **limits: object) -> Space:
    """The same question with these limits only, and its confidence."""
    others = {"confidence": q.limits.confidence, "max_machines": q.limits.max_machines}
    return replace(q, limits=Limits(**(others | limits)))  # type: ignore[arg-type]


def with_site(q: Space, site: Site) -> Space:
    return replace(q, sites=(site,))


def with_entries(q: Space, rows: list[int]) -> Space:
    """The same question with its entries taken by these rows, in this order."""
    return with_site(q, q.sites[0].only(np.array(rows, dtype=np.int64)))


def changed(q: Space, **columns: object) -> Space:
    return with_site(q, replace(q.sites[0], entries=replace(q.sites[0].entries, **columns)))


def paths_of(q: Space, c: Candidate) -> Paths:
    site = q.sites[0]
    counts = np.zeros((1, len(site.entries)), dtype=np.int64)
    counts[0, list(c.entries)] = c.counts
    plan = Plans(counts, np.array([c.checkpoint_path]), np.array([c.fallback]))
    inputs, allowed = path_inputs_of(q, site, plan)
    assert allowed.all()
    return simulate_paths(inputs, q.limits.deadline_s, q.cache.path_count, q.seed)


def hours_of(q: Space) -> float:
    """A time scale of a question: its fastest plan without limits."""
    return goal(under(q, objective="time", confidence=0.0)) / 3600.0


def without_fallbacks(q: Space) -> Space:
    none = q.sites[0].fallbacks.take(np.zeros(0, dtype=np.int64))
    return with_site(q, replace(q.sites[0], fallbacks=none))


@given(questions, st.floats(1.0, 6.0), st.floats(1.0, 3.0))
@few
def test_a_longer_deadline_never_costs_more(q: Space, tightness: float, longer: float) -> None:
    q = without_fallbacks(q)
    deadline = hours_of(q) * 3600 * tightness
    near = goal(under(q, deadline_s=deadline))
    far = goal(under(q, deadline_s=deadline * longer))
    assert far <= near * (1 + SAME)


@given(questions, st.floats(1.2, 6.0), st.floats(1.3, 3.0))
@few
def test_a_much_longer_deadline_never_costs_more_with_fallbacks(
    q: Space, tightness: float, longer: float
) -> None:
    deadline = hours_of(q) * 3600 * tightness
    near = goal(under(q, deadline_s=deadline))
    far = goal(under(q, deadline_s=deadline * longer))
    # The fallback is rented later then, and in other paths: a few of 64 may fare worse.
    assert far <= near * 1.02


@given(questions, st.floats(0.3, 4.0), st.floats(1.0, 3.0))
@few
def test_a_larger_budget_never_takes_longer(q: Space, tightness: float, more: float) -> None:
    budget = goal(under(q, objective="cost", confidence=0.0)) * (1 + tightness)
    assert goal(under(q, budget_usd=budget * more)) <= goal(under(q, budget_usd=budget)) * (
        1 + SAME
    )


@given(questions, st.floats(0.3, 3.0), st.floats(1.0, 3.0))
@few
def test_a_larger_hourly_limit_never_takes_longer(q: Space, least: float, more: float) -> None:
    hourly = float(q.sites[0].entries.usd_per_hour.mean()) * least
    slow = goal(under(q, hourly_usd=hourly))
    assert goal(under(q, hourly_usd=hourly * more)) <= slow * (1 + SAME)


@given(questions, st.floats(0.0, 0.9))
@few
def test_less_confidence_never_makes_a_plan_worse(q: Space, less: float) -> None:
    easier = replace(q, limits=replace(q.limits, confidence=q.limits.confidence * less))
    q, easier = map(without_fallbacks, (q, easier))  # their reserve depends on the confidence
    assert goal(easier) <= goal(q) * (1 + SAME)


@given(questions, st.integers(0, 10))
@few
def test_one_more_entry_never_makes_the_answer_worse(q: Space, which: int) -> None:
    rows = list(range(len(q.sites[0].entries)))
    fewer = [row for row in rows if row != which % len(rows)]
    assert goal(q) <= goal(with_entries(q, fewer)) * (1 + SAME)


@given(questions)
@few
def test_an_entry_that_was_not_chosen_can_go(q: Space) -> None:
    plan = best(q)
    if plan is None:
        return
    assert goal(with_entries(q, sorted(plan.entries))) == pytest.approx(plan.goal_value, rel=SAME)


@given(questions, st.randoms(use_true_random=False))
@few
def test_the_order_of_the_entries_does_not_matter(q: Space, rng: object) -> None:
    rows = list(range(len(q.sites[0].entries)))
    rng.shuffle(rows)  # type: ignore[attr-defined]
    assert goal(with_entries(q, rows)) == pytest.approx(goal(q), rel=SAME)


@given(questions)
@few
def test_names_do_not_matter(q: Space) -> None:
    names = tuple(f"other/z{i}" for i in range(len(q.columns.names)))[::-1]
    renamed = replace(q, columns=replace(q.columns, names=names))
    assert best(renamed) == best(q)


def times(e: Entries, k: float) -> Entries:
    """The same entries at other prices."""
    return replace(
        e,
        usd_per_hour=e.usd_per_hour * k,
        fixed_usd=e.fixed_usd * k,
        usd_per_move=e.usd_per_move * k,
    )


@given(questions, st.floats(0.05, 50.0))
@few
def test_all_prices_times_k_give_the_same_plan_at_k_times_the_cost(q: Space, k: float) -> None:
    q = under(q, deadline_s=hours_of(q) * 3600 * 2.5)
    site = q.sites[0]
    e, fall, tier = site.entries, site.fallbacks, site.tier
    dearer = replace(
        site,
        entries=times(e, k),
        fallbacks=replace(fall, usd_per_hour=fall.usd_per_hour * k),
        tier=replace(tier, usd_per_hour=tier.usd_per_hour * k),
        store_usd_per_hour=site.store_usd_per_hour * k,
    )
    before, after = best(q), best(with_site(q, dearer))
    if before is None or after is None:
        assert before is after
        return
    assert after.cost_usd == pytest.approx(before.cost_usd * k, rel=SAME)
    shape = ("entries", "counts", "checkpoint_path")
    same = all(getattr(before, name) == getattr(after, name) for name in shape)
    assert same or after.cost_usd == pytest.approx(before.cost_usd * k, rel=1e-4)
    if same:
        assert after.time_s == pytest.approx(before.time_s, rel=0.02)


@given(questions, st.floats(1.05, 3.0))
@few
def test_more_work_never_takes_less_time(q: Space, more: float) -> None:
    q = under(q, objective="time", confidence=0.0)
    assert goal(replace(q, steps_left=q.steps_left * more)) >= goal(q) * (1 - SAME)


@given(questions, st.floats(1.2, 3.0))
@few
def test_more_work_never_costs_less(q: Space, more: float) -> None:
    q = changed(q, free_s=np.zeros(len(q.sites[0].entries)))  # else more hours may be free
    q = under(q, objective="cost", confidence=0.0)
    assert goal(replace(q, steps_left=q.steps_left * more)) >= goal(q) * (1 - SAME)


@given(questions)
@few
def test_every_plan_meets_its_limits_on_enough_paths(q: Space) -> None:
    for plan in [each for each in selected(q).plans if each.printed]:
        h = paths_of(q, plan)
        late = over = np.zeros(h.time_s.shape, dtype=bool)
        if q.limits.deadline_s is not None:
            late = h.time_s > q.limits.deadline_s
        if q.limits.budget_usd is not None:
            over = h.cost_usd > q.limits.budget_usd
        assert (late | over).mean() <= 1 - q.limits.confidence + 1e-12
        site = q.sites[0]
        used = sum(n * site.quota_use[:, i] for i, n in zip(plan.entries, plan.counts, strict=True))
        assert (used <= site.quota + 1e-9).all()
        if q.limits.hourly_usd is not None:
            price = site.entries.usd_per_hour
            listed = sum(n * price[i] for i, n in zip(plan.entries, plan.counts, strict=True))
            assert listed <= q.limits.hourly_usd + 1e-9


@given(questions, st.floats(1.0, 4.0))
@few
def test_the_cost_of_the_deadlines_plan_as_a_budget_buys_a_plan_as_fast(
    q: Space, tightness: float
) -> None:
    q = under(q, deadline_s=hours_of(q) * 3600 * tightness, confidence=0.95)
    plan = best(q)
    if plan is None:
        return
    costs = np.sort(paths_of(q, plan).cost_usd[0])
    # More than 99 % of these paths cost, as the budget's plan is judged on more of them.
    budget = 1.2 * float(costs[int(np.ceil(0.99 * len(costs))) - 1])
    if plan.fallback < 0:
        assert goal(under(q, budget_usd=budget, confidence=0.95)) <= plan.time_s * (1 + SAME)
    both = under(
        q,
        deadline_s=q.limits.deadline_s,
        budget_usd=2.0 * float(costs[-1]),
        confidence=0.95,
        objective="time",
    )
    assert goal(both) <= plan.time_s * (1 + SAME)


def twice(q: Space, row: int) -> Space:
    """The question with one entry listed twice, under the same cap and quota."""
    site = q.sites[0]
    rows = np.append(np.arange(len(site.entries)), row)
    capped = np.zeros((1, len(rows)))
    capped[0, [row, -1]] = 1.0
    entries: Entries = site.entries.take(rows)
    use = np.concatenate([site.quota_use[:, rows], capped])
    quota = np.append(site.quota, float(site.entries.cap[row]))
    return with_site(q, replace(site, entries=entries, quota_use=use, quota=quota))


@given(questions, st.integers(0, 10))
@few
def test_an_entry_listed_twice_changes_nothing(q: Space, which: int) -> None:
    # Two spot pools of one kind are interrupted more often, which free first hours reward.
    q = changed(q, free_s=np.zeros(len(q.sites[0].entries)))
    row = which % len(q.sites[0].entries)
    assert goal(twice(q, row)) == pytest.approx(goal(q), rel=SAME)


@given(questions)
@few
def test_the_same_question_has_the_same_answer(q: Space) -> None:
    once, again = selected(q), selected(q)
    assert once.plans == again.plans
    assert once.simulated == again.simulated


@given(questions, st.integers(0, 10))
@few
def test_an_entry_more_expensive_in_everything_is_never_needed(q: Space, which: int) -> None:
    row = which % len(q.sites[0].entries)
    doubled = twice(q, row)
    e = doubled.sites[0].entries
    price = e.usd_per_hour.copy()
    price[-1] *= 1.5
    worse = changed(doubled, usd_per_hour=price, free_s=np.zeros(len(e)))
    fair = changed(q, free_s=np.zeros(len(q.sites[0].entries)))
    # It may be rented next to its twin where the goal is the time, for less than SAME of it.
    assert goal(worse) == pytest.approx(goal(fair), rel=SAME)
