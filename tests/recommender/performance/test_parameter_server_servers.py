"""How sure a step under parameter servers is: by the load of the servers, against draws."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from recommender.job.job import TimedRun, Timing
from recommender.performance.calibration import calibrate
from recommender.performance.clusters import SPREAD_STEP
from recommender.performance.measured import SIGMA_CURVE
from recommender.performance.parameter_server import (
    cluster_spread,
    load_constants,
    max_server_share,
    placement_sd,
    posterior_sds,
    service_of,
    service_share,
    spread,
    updates_per_s,
    worker_s,
)
from recommender.performance.priors import prior_of
from recommender.performance.speed_spread import SIGMA_MEASURED
from recommender.performance.step import steps
from tests.recommender.optimize.samples import sampled
from tests.recommender.performance.parts import G4DN, G5X8, K80, P3, P5, clusters, columns, resnet

SMALL = 1e-5  # sd at which a secant is a slope
LOADS = some.tuples(some.integers(2, 30), some.floats(1e-2, 5.0), some.floats(1e-3, 2.0))


def share(workers, alone, served, sd=SMALL):
    given_ = (np.array(float(x)) for x in (workers, alone, served, sd))
    return float(service_share(*given_))


@pytest.mark.parametrize("load", [0.01, 0.1, 0.3, 0.5])
def test_the_share_of_two_workers_is_the_slope_of_their_closed_form(load):
    """X(2) = 2/(T + S²/2T), so -d ln X/d ln S = r²/(1 + r²/2) for r = S/T."""
    assert share(2, 1.0, load) == pytest.approx(load**2 / (1 + load**2 / 2), rel=1e-4)


@settings(deadline=None, max_examples=200)
@given(LOADS, some.floats(0.01, 0.5))
def test_the_shares_of_worker_and_servers_add_up_to_one(case, sd):
    """The speed is of degree -1 in both times together."""
    workers, alone, served = case
    alone = max(alone, served * np.exp(2 * sd))
    low, high = (
        float(updates_per_s(*map(np.array, (float(workers), alone * np.exp(m), served))))
        for m in (-SMALL, SMALL)
    )
    of_worker = np.log(low / high) / (2 * SMALL)
    assert 0.0 <= share(workers, alone, served, sd) <= 1.0
    # At the knee the slope jumps from one side to the other.
    smooth = abs(share(workers, alone, served) - share(workers, alone, served, 2 * SMALL)) < 1e-3
    if smooth:
        assert of_worker + share(workers, alone, served) == pytest.approx(1.0, abs=2e-3)


def test_idle_servers_have_no_share_and_full_ones_all_of_it():
    assert share(8, 10.0, 1e-4, 0.3) == pytest.approx(0.0, abs=1e-3)
    assert share(8, 1.0, 0.9, 0.3) == pytest.approx(1.0)
    assert share(1, 1.0, 0.3, 0.3) == pytest.approx(0.0)


def test_a_server_that_may_be_full_and_may_not_has_a_part_of_the_step():
    """Eight workers that ask for 0.96 of its capacity: full if updates take longer."""
    assert 2 * share(8, 1.0, 0.12) < share(8, 1.0, 0.12, 0.3) < 0.9


@pytest.mark.parametrize("load", [0.2, 0.6, 0.8, 1.0, 1.3, 2.0])
@pytest.mark.parametrize("worker_sd", [0.05, 0.3])
def test_the_spread_is_that_of_drawn_workers_and_servers(load, worker_sd):
    rng, sd, n = np.random.default_rng(3), 0.24, np.array(8.0)
    alone, served = np.array(1.0), np.array(load / 8)
    drawn = np.log(
        updates_per_s(
            n,
            np.exp(worker_sd * rng.standard_normal(20_000)),
            served * np.exp(sd * rng.standard_normal(20_000)),
        )
    )
    # Half of what 68.3 % of the draws lie in: a kink leaves tails that are not normal.
    low, high = np.quantile(drawn, [0.1587, 0.8413])
    found = float(spread(worker_sd, np.array(sd), service_share(n, alone, served, np.array(sd))))
    assert found == pytest.approx((high - low) / 2, rel=0.25, abs=0.02)


def test_variables_dealt_out_in_turn_put_half_or_all_of_the_bytes_on_one_of_two_servers():
    """Ten layers of one large and p - 1 small variables; the middle of both, in logarithms."""
    fullest = []
    for each in (4, 5):
        large = np.arange(10 * each) % each == 0
        held = [large[k::2].sum() / large.sum() for k in (0, 1)]
        fullest.append(max(held))
    assert fullest == [1.0, 0.5]
    assert float(max_server_share(2)) == pytest.approx(np.exp(np.mean(np.log(fullest))))
    assert float(placement_sd(2)) == pytest.approx(np.std(np.log(fullest)))
    assert float(placement_sd(1)) == 0.0


def test_a_timing_informs_whichever_of_worker_and_server_takes_the_step():
    assert posterior_sds(0.3, 0.2, np.array([0.0]), 0.05) == pytest.approx((0.0493, 0.2), abs=1e-4)
    assert posterior_sds(0.3, 0.2, np.array([1.0]), 0.05) == pytest.approx((0.3, 0.0485), abs=1e-4)


def test_a_timing_at_the_knee_determines_the_sum_only():
    """By conditioning two normals on (T + S)/2 measured to 5 %."""
    variance = (0.3**2 + 0.2**2) / 4 + 0.05**2
    expected = [np.sqrt(sd**2 - (sd**2 / 2) ** 2 / variance) for sd in (0.3, 0.2)]
    assert posterior_sds(0.3, 0.2, np.array([0.5]), 0.05) == pytest.approx(expected)


def spreads(job, types, *counts):
    found = columns(job, types)
    fleet = clusters(found, *counts)
    held = np.array([[one.get(i, 0) for i in range(len(types))] for one in counts])
    made = steps(job, found, fleet)
    return cluster_spread(job, found, fleet, made, np.arange(len(types)), held), made


SERVED = resnet(sync="parameter_server", global_batch=4096)


def test_a_cluster_is_as_sure_as_its_worker_until_servers_limit_it():
    found, made = spreads(SERVED, (G4DN,), {0: 1}, {0: 2}, {0: 512})
    assert made.exposed_network_s[1] < 0.05 * made.step_s[1]
    one = columns(SERVED, (G4DN,)).speed_sigma[0]
    assert found[0] == one
    assert found[1] == pytest.approx(one, abs=0.02)
    assert found[2] == pytest.approx(load_constants().service_sd, abs=0.01)


def test_a_second_server_that_is_full_is_less_sure_than_one():
    """Where its bytes lie is not known: ln 2 / 2 of their share of its time."""
    both = replace(SERVED, parameter_servers=2)
    (one,), _ = spreads(SERVED, (G4DN,), {0: 512})
    (two,), _ = spreads(both, (G4DN,), {0: 512})
    found = columns(both, (G4DN,))
    bytes_share = float(service_of(both, prior_of(both), clusters(found, {0: 512})).of_bytes[0])
    assert 0.5 < bytes_share < 1.0
    assert two == pytest.approx(np.hypot(one, bytes_share * np.log(2) / 2), abs=0.011)


def test_a_timing_of_one_machine_says_nothing_of_full_servers():
    timed = replace(SERVED, timings=(Timing("T4", 1, 1, 100.0),))
    found, _ = spreads(timed, (G4DN,), {0: 1}, {0: 2}, {0: 512})
    assert found[0] <= SIGMA_CURVE
    assert found[1] <= SIGMA_CURVE + 0.01
    assert found[2] == pytest.approx(load_constants().service_sd, abs=0.01)


@pytest.mark.parametrize("servers", [1, 2])
def test_timings_of_full_servers_make_them_sure(servers):
    job = replace(SERVED, parameter_servers=servers)
    found = columns(job, (G4DN,))
    rates = 4096 / steps(job, found, clusters(found, {0: 1}, {0: 256})).step_s
    timings = tuple(Timing("T4", n, n, float(x)) for n, x in zip((1, 256), rates, strict=True))
    sure, _ = spreads(replace(job, timings=timings), (G4DN,), {0: 1}, {0: 256}, {0: 512})
    assert (sure <= SIGMA_CURVE + 0.01).all()


def test_a_timing_of_a_cluster_that_cannot_run_teaches_nothing_of_workers_and_servers():
    """Sixteen GPUs cannot share a batch of eight."""
    small = replace(SERVED, global_batch=8)
    free = columns(small, (G5X8,))
    found = columns(replace(small, timings=(Timing("A10G", 16, 2, 50.0),)), (G5X8,))
    assert found.speed_sigma.tolist() == [SIGMA_MEASURED]  # the GPU was timed
    assert found.service_sigma.tolist() == free.service_sigma.tolist()
    assert found.placement_sigma.tolist() == free.placement_sigma.tolist()


def test_a_mix_may_be_less_sure_than_each_of_its_types():
    """The servers' constants are those of one type, where the bytes lie is open on the other."""
    job = replace(SERVED, parameter_servers=2, parameters=3e8, trainable_parameters=3e8)
    types, kinds = (G4DN, P3), np.arange(2)
    found = replace(
        columns(job, types),
        service_sigma=np.array([0.4, 0.05]),
        placement_sigma=np.array([0.0, float(placement_sd(2))]),
    )
    counts = np.array([[512, 0], [0, 512], [256, 256]])
    fleet = clusters(found, *({0: a, 1: b} for a, b in counts.tolist()))
    made = steps(job, found, fleet)
    *alone, mixed = cluster_spread(job, found, fleet, made, kinds, counts).tolist()
    assert mixed > max(alone) + 0.05
    assert mixed / SPREAD_STEP == pytest.approx(round(mixed / SPREAD_STEP))


def test_without_parameter_servers_spreads_are_those_of_the_columns():
    job = resnet(global_batch=4096)
    found, _ = spreads(job, (G4DN, G5X8), {0: 1}, {0: 8}, {0: 2, 1: 1})
    c = columns(job, (G4DN, G5X8))
    assert found.tolist() == [
        c.speed_sigma[0],
        c.speed_sigma_several[0],
        c.speed_sigma_several.max(),
    ]


@pytest.mark.parametrize("factor", sampled((0.7, 1.0, 1.5), (1.5,)))
def test_runs_of_full_servers_teach_a_calibration_their_time(factor):
    """One machine as modelled, many whose servers take so many times as long."""
    found = columns(SERVED, (G4DN,))
    name = found.names[0]
    step = steps(SERVED, found, clusters(found, {0: 1}, {0: 64}, {0: 128})).step_s
    runs = tuple(
        TimedRun(str(n), name, "T4", n, n, 4096, float(s * (factor if n > 1 else 1.0)))
        for n, s in zip((1, 64, 128), step, strict=True)
    )
    made = calibrate(SERVED, runs, found, ("T4",), "2026-11-22")
    own = made.calibration
    assert made.predicted_s == pytest.approx([run.step_s for run in runs], rel=0.04)
    assert own.service is not None
    assert own.service.sd < 0.3 * load_constants().service_sd
    after = columns(replace(SERVED, calibration=own), (G4DN,))
    assert after.service_sigma is not None
    assert after.service_sigma[0] == own.service.sd


@pytest.mark.parametrize("most", [1, 512])
def test_runs_on_two_full_servers_determine_how_their_bytes_are_split(most):
    both = replace(SERVED, parameter_servers=2)
    found = columns(both, (G4DN,))
    sizes = (1, most) if most > 1 else (1,)
    step = steps(both, found, clusters(found, *({0: n} for n in sizes))).step_s
    runs = tuple(
        TimedRun(str(n), found.names[0], "T4", n, n, 4096, float(s))
        for n, s in zip(sizes, step, strict=True)
    )
    own = calibrate(both, runs, found, ("T4",), "2026-11-22").calibration
    (before,), _ = spreads(both, (G4DN,), {0: 512})
    (after,), _ = spreads(replace(both, calibration=own), (G4DN,), {0: 512})
    assert after == pytest.approx(before, abs=0.011) if most == 1 else after < 0.4 * before


def test_runs_over_tcp_leave_the_servers_of_rdma_as_unsure_as_before():
    """Nor where their bytes lie: the factor of their time was fitted with the network's."""
    both, types = replace(SERVED, parameter_servers=2), (G4DN, P5)
    found = columns(both, types)
    step = steps(both, found, clusters(found, {0: 1}, {0: 64}, {0: 128})).step_s
    runs = tuple(
        TimedRun(str(n), found.names[0], "T4", n, n, 4096, float(s))
        for n, s in zip((1, 64, 128), step, strict=True)
    )
    own = calibrate(both, runs, found, ("T4", "H100"), "2026-11-22").calibration
    after = columns(replace(both, calibration=own), types)
    assert own.network_kind == "tcp"
    assert own.service.sd < 0.3 * load_constants().service_sd
    assert after.service_sigma.tolist() == [own.service.sd, found.service_sigma[1]]
    assert after.placement_sigma.tolist() == [0.0, found.placement_sigma[1]]


def test_runs_on_the_only_machine_that_fits_the_batch_give_a_spread_of_several():
    """Eight GPUs, a batch of eight: two machines cannot run it, and were not asked."""
    small = replace(SERVED, global_batch=8)
    found = columns(small, (G5X8,))
    run = TimedRun("one", found.names[0], "A10G", 8, 1, 8, 0.2)
    own = calibrate(small, (run,), found, ("A10G",), "2026-11-22").calibration
    assert own.sigma_several == own.sigma


def test_a_run_of_one_machine_leaves_the_servers_as_shipped():
    found = columns(SERVED, (G4DN,))
    step = float(steps(SERVED, found, clusters(found, {0: 1})).step_s[0])
    run = TimedRun("one", found.names[0], "T4", 1, 1, 4096, 2 * step)
    own = calibrate(SERVED, (run,), found, ("T4",), "2026-11-22").calibration
    assert own.service is not None
    assert own.service.factor == pytest.approx(1.0, abs=1e-6)
    assert own.service.sd == pytest.approx(load_constants().service_sd)
    assert calibrate(resnet(), (run,), found, ("T4",), "2026-11-22").calibration.service is None


# Updates/s of one to eight K80 workers with one server and 128 images each, CM-DARE (arXiv
# 2004.03072), campaign cluster_k80, github.com/cake-lab/CM-DARE data/processed_data.
K80_UPDATES = {
    "resnet15": (693_818, 50, 0.63099e9, (9.87255, 18.888, 28.4458, 37.9604, 46.7347, 57.274)),
    "resnet32": (
        1_857_722,
        104,
        1.6587e9,
        (4.50473, 9.05511, 13.5149, 18.0804, 22.4626, 26.8897, 31.4058, 36.0096),
    ),
}


def cmdare(name):
    """A network of CM-DARE's on K80 workers, and the seconds of a step by number of workers."""
    parameters, tensors, flop, updates = K80_UPDATES[name]
    job = replace(
        SERVED, parameters=parameters, active_parameters=parameters,
        trainable_parameters=parameters, gradient_tensors=tensors, flop_per_sample=3 * flop,
        global_batch=128, precision="fp32",
    )  # fmt: skip
    return job, {n: n / rate for n, rate in enumerate(updates, 1)}


def errors(job, step_s):
    """Of the predicted steps of a job on two and more workers."""
    found = []
    for n in range(2, max(step_s) + 1):
        asked = replace(job, global_batch=128 * n)
        fleet = columns(asked, (K80,))
        found.append(steps(asked, fleet, clusters(fleet, {0: n})).step_s[0] / step_s[n] - 1.0)
    return np.abs(found)


# The same of P100 workers (campaign cluster_p100) where their one server is full: five to eight.
FULL_P100 = {"resnet32": (44.63, 44.16, 47.348, 43.05), "resnet15": (93.13, 96.119, 97.317, 107.75)}
ONE_V100 = {"resnet32": 15.615, "resnet15": 27.3754}  # a worker alone (speed_data_base)


@pytest.mark.parametrize("name", FULL_P100)
@pytest.mark.parametrize("gbit", [8.0, 16.0, 100.0])
def test_a_full_server_serves_faster_workers_as_it_serves_slower_ones(name, gbit):
    """V100 workers with networks of their own speed: a server passes on no more updates."""
    job = replace(cmdare(name)[0], timings=(Timing("V100", 1, 1, 128 * ONE_V100[name]),))
    for n, rate in enumerate(FULL_P100[name], 5):
        asked = replace(job, global_batch=128 * n)
        fleet = columns(asked, (replace(P3, network_gbit_per_s=gbit),))
        step_s = float(steps(asked, fleet, clusters(fleet, {0: n})).step_s[0])
        assert n / step_s == pytest.approx(rate, rel=0.15)


@pytest.mark.parametrize("name", K80_UPDATES)
def test_a_worker_timed_with_its_server_counts_the_server_once(name):
    """Taken for pure compute, its update was added to it a second time: a quarter too slow."""
    job, step_s = cmdare(name)
    made = columns(job, (K80,))
    for servers, low, high in ((1, 0.0, 0.05), (0, 0.2, 0.35)):
        run = TimedRun("one", made.names[0], "K80", 1, 1, 128, step_s[1], servers=servers)
        calibrated = calibrate(job, (run,), made, ("K80",), "2026-11-23")
        assert calibrated.predicted_s == pytest.approx([step_s[1]], rel=0.02)
        own = replace(job, calibration=calibrated.calibration)
        assert low <= errors(own, step_s).mean() <= high
    measured = replace(job, timings=(Timing("K80", 1, 1, 128 / step_s[1]),))
    assert errors(measured, step_s).mean() < 0.05


def test_a_calibration_learns_what_an_update_costs_its_worker():
    """Timed alone without a server, and then with one: the difference is the worker's update."""
    found = columns(SERVED, (G4DN,))
    bare = float(steps(SERVED, found, clusters(found, {0: 1})).step_s[0])
    update_s = worker_s(SERVED.gradient_tensors, 8.0, load_constants())
    for factor in (0.5, 2.0):
        with_one = bare + factor * update_s
        runs = tuple(
            TimedRun(str(n), found.names[0], "T4", 1, 1, 4096, s, servers=n)
            for n, s in ((0, bare), (1, with_one))
        )
        own = calibrate(SERVED, runs, found, ("T4",), "2026-11-23").calibration
        if update_s > 0.1 * bare:
            assert own.worker.factor == pytest.approx(factor, rel=0.25)
        assert (own.worker.factor > 1.0) == (factor > 1.0)
