"""Spot machines are never there for more of the time than the bounds say."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.optimize.bounds.spot_time import counted_share, ideal_spot_inputs, points_of
from recommender.optimize.bounds.waiting import RATIOS, Waiting, waiting_of
from recommender.plan.limits import Limits
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.path_inputs import Paths
from recommender.risk.random_numbers import random_numbers
from recommender.risk.run_statistics import OutcomeCache, trimmed_mean
from tests.recommender.optimize.palette import space

HOUR = 3600.0
LOGITS = (-2.5, -0.8, 0.7, 2.2)
SIGMAS = (0.1, 0.25)


def waits(paths: int, zone_sd: float, zone_count: float, on_demand_share: float = 0.0) -> Waiting:
    """The bounds for machines of one kind of zone."""
    asked = replace(space(0), cache=OutcomeCache(paths, 7), limits=Limits(confidence=0.95))
    e = asked.sites[0].entries
    ones = np.ones(len(e))
    laws = replace(
        e,
        spot=ones.astype(bool),
        zone_sd=ones * zone_sd,
        zone_count=ones * zone_count,
        correlation=ones * 0.3,
    )
    return waiting_of(asked, laws, on_demand_share)


def simulated(paths: int, run_h: float, logit: float, zone_sd: float, zone_count: float,
              work_h: float, sigma: float) -> Paths:  # fmt: skip
    """Work on such machines, nothing lost but changeovers."""
    work = np.array([work_h * HOUR])
    plan = ideal_spot_inputs(work, run_h * HOUR, 1.2, 120.0, np.zeros(1, dtype=bool))
    plan = replace(
        plan,
        availability_logit=np.array([logit]),
        zone_sd=np.array([zone_sd]),
        outage_sigma=np.array([1.3]),
        zone_count=np.array([zone_count]),
        correlation=np.array([0.3]),
        speed_sigma=np.array([sigma]),
    )
    return simulate_paths(plan, None, paths, 7)


@pytest.mark.parametrize("paths", [64, 256])
@pytest.mark.parametrize("zone_count", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("zone_sd", [0.0, 1.0, 2.0])
def test_no_paths_are_done_sooner_than_the_bounds_say(
    paths: int, zone_count: float, zone_sd: float
) -> None:
    bounds = waits(paths, zone_sd, zone_count)
    over, sharp = [], 0
    for logit in LOGITS:
        log_up = np.array([-np.log1p(np.exp(-logit))])
        for run_h in (0.3, 1.5, 8.0, 60.0):
            for work_h in (0.5, 4.0, 30.0):
                for sigma in SIGMAS:
                    times = simulated(
                        paths, run_h, logit, zone_sd, zone_count, work_h, sigma
                    ).time_s[0]
                    least = float(bounds.time_of(log_up)[0]) * work_h * HOUR
                    found = float(trimmed_mean(times))
                    sharp += least > 0.6 * found
                    for ratio in (0.8, 1.1, 2.0, 5.0, 20.0):
                        share = float((times <= ratio * work_h * HOUR).mean())
                        most = float(bounds.share_of(log_up, np.array([ratio]))[0])
                        if share > most or found < least:
                            over.append((logit, run_h, work_h, sigma, ratio, share, most))
    assert not over
    assert sharp > 0


def test_machines_that_are_always_there_do_all_of_the_work() -> None:
    bounds = waits(256, 1.0, 1.0)
    always = np.zeros(3)
    assert (bounds.share_of(always, np.array([1.5, 4.0, 1e9])) > 0.9).all()
    assert (bounds.share_of(always - 30.0, np.array([1.5, 4.0, 1e9]))[:2] < 0.2).all()
    assert (np.diff(bounds.share, axis=1) >= -1e-3).all()
    assert (np.diff(bounds.time) <= 1e-9).all()


def test_what_on_demand_machines_do_within_the_budget_shortens_the_least_time() -> None:
    log_up = np.array([-2.0])
    alone, helped = (
        waits(256, 0.5, 1.0, on_demand_share).time_of(log_up)[0] for on_demand_share in (0.0, 0.5)
    )
    assert 1.0 < helped < alone
    assert alone < RATIOS[-1]


@pytest.mark.parametrize("paths", [64, 256])
@pytest.mark.parametrize("run_h", [0.15, 0.4, 1.0, 4.0])
@pytest.mark.parametrize("sure", [0.8, 0.95])
def test_the_path_that_must_meet_a_budget_pays_at_least_the_share_that_is_counted(
    paths: int, run_h: float, sure: float
) -> None:
    """Under saves, waits and shorter runs than the bound is asked about."""
    works = np.array([0.4, 1.0, 3.0, 7.0]) * HOUR
    sample = random_numbers(paths, 8, 7)
    price = np.minimum(np.exp(0.1 * sample.price - 0.005), 1.0)
    for run_sigma in (0.9, 1.4):
        law = (run_h * HOUR, HOUR, 120.0, run_sigma, 0.1, 0.1, points_of(works))
        least = counted_share(paths, 7, sure, *law)
        for stall_s, logit in ((1.0, 3.0), (60.0, 0.5)):
            plan = ideal_spot_inputs(works, run_h * HOUR, run_sigma, 200.0, np.zeros(4, dtype=bool))
            plan = replace(
                plan,
                speed_sigma=np.full(4, 0.1),
                free_s=np.full(4, HOUR),
                minimum_s=np.full(4, 60.0),
                stall_s=np.full(4, stall_s),
                interval_s=np.full(4, 900.0),
                availability_logit=np.full(4, logit),
                zone_sd=np.full(4, 1.0),
            )
            paid = simulate_paths(plan, None, paths, 7).spot_s * price
            must = int(np.ceil(sure * paths - 1e-9))
            assert (np.sort(paid, axis=1)[:, must - 1] >= least * works).all()
