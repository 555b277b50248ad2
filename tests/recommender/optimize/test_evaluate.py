"""What plans are reduced to before they are simulated: fallbacks, caps, tiers and storage."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.optimize.checkpoint_paths import Saves, saves_of
from recommender.optimize.evaluate import (
    Plans,
    path_inputs_of,
    reduced,
    values_of,
    with_fallbacks,
)
from recommender.optimize.space import (
    MEMORY_TIER,
    NONE,
    OBJECT_STORE,
    Site,
    Space,
    single_clusters,
)
from recommender.performance.clusters import Clusters, Steps
from recommender.plan.limits import Limits
from recommender.risk.path_inputs import PathInputs
from tests.recommender.optimize import palette
from tests.recommender.optimize.palette import every_plan

DAY_S = 86_400.0


def spot_with_fallback(confidence: float, **limits: float) -> tuple[Space, Plans]:
    """A question with a deadline, and every plan of its spot clusters."""
    base = palette.space(3, entries=4, most=3)
    asked = Limits(deadline_s=9 * DAY_S, confidence=confidence, max_machines=3, **limits)
    question = replace(base, limits=asked)
    site = question.sites[0]
    counts = palette.every_cluster(site, 3)
    counts = counts[(counts[:, ~site.entries.spot] == 0).all(axis=1)]
    plans = every_plan(question, site, counts)
    assert (plans.fallback >= 0).any()
    return question, plans


def saved(question: Space, site: Site, plans: Plans) -> Saves:
    """How the plans save, with two minutes of notice."""
    fleet, notice_s = question.fleet(site, plans.counts), np.full(len(plans), 120.0)
    return saves_of(question, site, fleet, plans.counts, plans.checkpoint_path, notice_s)


# Waits of 3,600 s at the median behind a chance of 0.9: four in a hundred are longer than the last.
FOUR_PER_CENT_S = 3600.0 * ((0.1 / 0.04) ** (1 / 1.1) - 1.0) / (2.0 ** (1 / 1.1) - 1.0)


@pytest.mark.parametrize(
    ("confidence", "queue_s"), [(0.8, 0.0), (0.95, 0.0), (0.99, FOUR_PER_CENT_S)]
)
def test_a_fallback_starts_in_time_for_a_save_its_queue_and_two_minutes(
    confidence: float, queue_s: float
) -> None:
    """It reserves what four times as many requests wait beyond as runs may be late."""
    question, plans = spot_with_fallback(confidence)
    site = question.sites[0]
    inputs, _ = path_inputs_of(question, site, plans)
    saves = saved(question, site, plans)
    has = plans.fallback >= 0
    fall, row = site.fallbacks, plans.fallback[has]
    assert inputs.reserve_s[has] == pytest.approx(120.0 + saves.stall_s[has] + queue_s)
    start = fall.boot_s[row] + 80.0 + saves.restore_s[has]
    assert inputs.fallback_start_s[has] == pytest.approx(start)
    assert inputs.fallback_usd_per_hour[has] == pytest.approx(fall.usd_per_hour[row])
    assert (inputs.reserve_s[~has] == 0.0).all()


def test_an_hourly_limit_holds_for_the_fallback_as_well() -> None:
    question, plans = spot_with_fallback(0.8)
    site = question.sites[0]
    inputs, _ = path_inputs_of(question, site, plans)
    own = inputs.base_usd_per_hour + inputs.spot_usd_per_hour
    dear = inputs.fallback_usd_per_hour > own
    assert dear.any()
    cap = float(own[dear].max())
    capped, plans = spot_with_fallback(0.8, hourly_usd=cap)
    _, allowed = path_inputs_of(capped, site, plans)
    assert not allowed[(own > cap + 1e-9) | (inputs.fallback_usd_per_hour > cap + 1e-9)].any()
    assert allowed.any()


def test_checkpoints_are_paid_for_where_they_are_kept() -> None:
    question, plans = spot_with_fallback(0.8)
    site = replace(question.sites[0], store_usd_per_hour=0.25)
    saves = saved(question, site, plans)
    assert (saves.usd_per_hour[plans.checkpoint_path == NONE] == 0.0).all()
    assert saves.usd_per_hour[plans.checkpoint_path == OBJECT_STORE] == pytest.approx(0.25)
    tier = (plans.checkpoint_path == MEMORY_TIER) & saves.possible
    assert tier.any()
    count = saves.tier_count[tier]
    assert saves.usd_per_hour[tier] == pytest.approx(0.25 + 0.2 * count)


def test_a_limit_on_overhead_leaves_out_what_exceeds_it() -> None:
    question, plans = spot_with_fallback(0.5)
    site = question.sites[0]
    inputs, allowed = path_inputs_of(question, site, plans)
    inputs = inputs.take(np.flatnonzero(allowed))
    free = values_of(question, inputs)
    good = np.isfinite(free.goal_value)
    middle = float(np.median(free.overhead[good]))
    strict = replace(question, limits=replace(question.limits, max_overhead=middle))
    met = np.isfinite(values_of(strict, inputs).goal_value)
    assert met.any()
    assert (met == (good & (free.overhead <= middle))).all()
    assert not met[good].all()


@pytest.mark.parametrize("hourly_usd", [None, 6.0])
def test_plans_with_a_fallback_are_drafted_of_those_without_as_they_are_at_once(
    hourly_usd: float | None,
) -> None:
    question, plans = spot_with_fallback(
        0.8, **({} if hourly_usd is None else {"hourly_usd": hourly_usd})
    )
    site, alone = question.sites[0], plans.take(plans.fallback < 0)
    found, count = reduced(question, site, alone), len(site.fallbacks)
    of, fallback = np.repeat(np.arange(len(alone)), count), np.tile(np.arange(count), len(alone))
    inputs, allowed = with_fallbacks(question, site, found, of, fallback)
    having = Plans(alone.counts[of], alone.checkpoint_path[of], fallback)
    at_once, possible = path_inputs_of(question, site, having)
    assert allowed.any()
    assert hourly_usd is None or not allowed.all()
    assert (allowed & found.allowed[of] == possible).all()
    for name in PathInputs.__slots__:
        assert (getattr(inputs, name) == getattr(at_once, name))[possible].all(), name


def test_clusters_that_are_looked_up_are_those_that_are_worked_out() -> None:
    for seed in range(8):
        question = palette.space(seed, entries=4, most=3)
        known = single_clusters(question.job, question.columns, 3)
        site, counts = question.sites[0], palette.every_cluster(question.sites[0], 3)
        alone = counts[(counts > 0).sum(axis=1) == 1]
        for some in (alone, counts):
            fleet, found = replace(question, singles=known).timed(site, some)
            own_fleet, own = question.timed(site, some)
            for name in Clusters.__slots__:
                assert (getattr(fleet, name) == getattr(own_fleet, name)).all(), name
            for name in Steps.__slots__:
                assert (getattr(found, name) == getattr(own, name)).all(), name
