"""The pool finds the best plan where a job's own runs and timings set the spreads."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.job.job import Calibration, Fitted, Job, Timing
from recommender.optimize.evaluate import drafts_of
from recommender.optimize.space import Space, single_clusters
from recommender.performance.calibration import name_of, with_calibration
from recommender.performance.clusters import SPREAD_STEP, MachineColumns, spread_at
from recommender.performance.measured import with_readings
from recommender.performance.priors import load_priors
from tests.recommender.optimize.palette import fallbacks_of, oracle, space
from tests.recommender.optimize.pooled import on_product_paths, problem
from tests.recommender.optimize.samples import thinned
from tests.recommender.optimize.test_parameter_server import served

SEEDS = range(400, 424)
TIMED = "G0"  # the GPU of the first type


def calibration(rng: np.random.Generator, job: Job, columns: MachineColumns) -> Calibration:
    """Constants of runs on the first type's GPU, unsure by the number of machines."""

    def fitted() -> Fitted:
        return Fitted(float(rng.uniform(0.5, 2.0)), 0.1)

    prior = load_priors()[job.family, job.stack]
    sigma = float(rng.choice([0.03, 0.2]))
    served_ = job.sync == "parameter_server"
    return Calibration(
        as_of="2026-11-22",
        rows=3,
        constants=name_of(prior, columns, (TIMED,)),
        compute=fitted(),
        tensor=fitted(),
        latency=fitted(),
        network=fitted(),
        links=fitted(),
        overlap=float(rng.uniform(0.0, 0.5)),
        overlap_sd=0.1,
        noise=0.05,
        sigma=sigma,
        sigma_several=float(rng.choice([0.06, 0.3])),
        sigma_other=sigma + 0.1,
        gpus=((TIMED, fitted()),),
        service=Fitted(fitted().factor, float(rng.choice([0.03, 0.2]))) if served_ else None,
        sigma_larger=((2, 0.15), (3, 0.4)) if not served_ else (),
        network_kind=("tcp", "rdma", "")[rng.integers(3)],  # type: ignore[arg-type]
    )


def calibrated(asked: Space, seed: int) -> Space:
    """The same question of a job with runs of its own and, by some seeds, timings besides."""
    rng, kinds = np.random.default_rng(seed), len(asked.columns.names)
    gpu_of = tuple(f"G{kind}" for kind in range(kinds))
    half = np.where(rng.random(kinds) < 0.5, 0.0, 3e7)  # TCP and RDMA
    bare = replace(asked.columns, network_half_bytes=half)
    job = replace(asked.job, calibration=calibration(rng, asked.job, bare))
    columns = with_calibration(job, bare, gpu_of)
    step = single_clusters(job, columns, 3).step_s[0]
    if seed % 3 == 0 and np.isfinite(step[[0, 2]]).all():
        gpus = int(columns.gpus[0])
        rates = job.global_batch / step[[0, 2]] * rng.uniform(0.6, 1.0, 2)
        job = replace(
            job,
            timings=tuple(
                Timing(TIMED, n * gpus, n, float(rate))
                for n, rate in zip((1, 3), rates, strict=True)
            ),
        )
        columns = with_readings(job, columns, gpu_of, columns.compute_per_s, np.zeros(kinds))
    site = asked.sites[0]
    if len(site.fallbacks):
        most = asked.limits.max_machines
        site = replace(
            site, fallbacks=fallbacks_of(site, single_clusters(job, columns, most).step_s)
        )
    return replace(asked, job=job, columns=columns, sites=(site,))


def question(seed: int) -> Space:
    """Half of the jobs with parameter servers."""
    return calibrated(served(seed) if seed % 2 else space(seed, 3 + seed % 2, most=5), seed)


def test_the_random_questions_hold_every_kind_of_calibration() -> None:
    asked = [question(seed) for seed in SEEDS]
    owns = [each.job.calibration for each in asked if each.job.calibration]
    assert {own.network_kind for own in owns} == {"", "tcp", "rdma"}
    assert {own.service is None for own in owns} == {False, True}
    for served_ in (False, True):
        some = [each for each in asked if (each.columns.service_sigma is not None) == served_]
        assert {bool(each.job.timings) for each in some} == {False, True}
        assert any(np.ptp(each.columns.network_half_bytes) > 0 for each in some)


@pytest.mark.parametrize("seed", thinned(SEEDS, 3))
def test_the_spreads_of_plans_are_among_those_of_the_machines(seed: int) -> None:
    asked = question(seed)
    plans, _ = oracle(asked)
    site = asked.sites[0]
    seen = drafts_of(asked, site, plans).inputs.speed_sigma
    machines = np.arange(1, asked.limits.max_machines + 1)
    each = spread_at(asked.columns, site.entries.kind[:, None], machines)
    served_ = asked.columns.service_sigma is not None
    rounded = np.isclose(seen / SPREAD_STEP, np.round(seen / SPREAD_STEP))
    assert (np.isin(seen, each) | (rounded & served_)).all()


@pytest.mark.parametrize("seed", thinned(SEEDS, 6))
def test_the_pool_equals_looking_at_every_plan(seed: int) -> None:
    assert not problem(on_product_paths(question(seed)))
