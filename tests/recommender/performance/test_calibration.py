"""Constants fitted to a job's own runs: found again, as sure as they deserve, used by plans."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from recommender.errors import UsageError
from recommender.job.job import Fitted, TimedRun, Timing
from recommender.performance.calibration import calibrate, with_calibration
from recommender.performance.calibration_model import NOISE, StepModel, clusters, solve
from recommender.performance.calibration_spread import beyond, own_spread, spans
from recommender.performance.clusters import spread_of
from recommender.performance.machines import part_links
from recommender.performance.priors import load_priors, prior_of
from recommender.performance.speed_spread import SAME, added_sd
from recommender.performance.step import steps, terms_of
from tests.recommender.performance.parts import (
    G4DN,
    G6,
    P3,
    P4DE,
    P5,
    columns,
    llama,
    machine,
    resnet,
)
from tests.recommender.performance.parts import clusters as fleet_of

TYPES = (P3, G4DN, P5)
GPU_OF = tuple(t.gpu for t in TYPES)
JOB = resnet()


def run(machines, step_s=1.0, gpus=0, batch=0, machine="aws/p3.2xlarge", data=""):
    gpu = {f"aws/{t.instance_type}": t.gpu for t in TYPES}[machine]
    each = {f"aws/{t.instance_type}": t.gpus for t in TYPES}[machine]
    gpus = gpus or machines * each
    place = f"{machine} {machines} {gpus} {batch} {data}"
    return TimedRun(place, machine, gpu, gpus, machines, batch or 64 * gpus, step_s, data)


def timed(
    runs, compute=1.0, latency=1.0, network=1.0, links=1.0, tensor=1.0, overlap=0.0, penalty=1.0
):
    """The runs as they would take where the truth is the model with other constants."""
    found = columns(JOB, TYPES)
    truth = replace(
        found,
        compute_per_s=found.compute_per_s * compute,
        network_bytes_per_s=found.network_bytes_per_s * network,
        network_latency_s=found.network_latency_s * latency,
        intra_bytes_per_s=found.intra_bytes_per_s * links,
    )
    prior = prior_of(JOB)
    lost = prior.batch_penalty * penalty
    tensors = prior.tensor_s * tensor
    prior = replace(prior, tensor_s=tensors, batch_penalty=lost, overlap=overlap, launch_s=0.0)
    fleet = clusters(tuple(runs), truth)
    took = [
        terms_of(replace(JOB, global_batch=r.batch), prior, fleet.take(np.array([i]))).step_s.min()
        for i, r in enumerate(runs)
    ]
    return tuple(replace(r, step_s=float(s)) for r, s in zip(runs, took, strict=True))


def fitted(runs, job=JOB):
    return calibrate(job, tuple(runs), columns(job, TYPES), GPU_OF, "2026-11-21")


def test_runs_with_two_batches_show_what_small_ones_lose():
    runs = timed([run(1, batch=64), run(1, batch=4)], penalty=3.0)
    own = fitted(runs).calibration
    assert own.penalty.factor == pytest.approx(3.0, rel=0.15)
    assert own.penalty.sd < min(fitted(runs[:1]).calibration.penalty.sd / 2, 0.35)
    assert prior_of(replace(JOB, calibration=own)).batch_penalty > 2.5 * prior_of(JOB).batch_penalty


def test_one_batch_shows_nothing_of_smaller_ones_and_spans_say_so():
    (seen,) = timed([run(1, batch=64)], penalty=3.0)
    model = StepModel(JOB, (seen,), columns(JOB, TYPES))
    fit = solve(model)
    alike, smaller = (
        own_spread(model, fit, StepModel(JOB, (run(1, batch=n),), columns(JOB, TYPES), model.gpus))
        for n in (64, 4)
    )
    assert fitted([seen]).calibration.penalty.factor == 1.0
    assert smaller > 2.0 * alike


def test_one_run_already_gives_its_own_speed():
    runs = timed([run(1)], compute=0.5)
    found = fitted(runs)
    assert found.predicted_s[0] == pytest.approx(runs[0].step_s, rel=0.01)
    shipped = load_priors()["cnn", "typical"].sigma_one
    assert dict(found.calibration.gpus)["V100"].factor == pytest.approx(0.5, rel=0.02)
    assert dict(found.calibration.gpus)["V100"].sd < shipped / 3


@pytest.mark.parametrize("compute", [0.1, 0.8, 3.0])
def test_what_no_gpu_differs_by_is_the_jobs_and_holds_for_others(compute):
    """Two sd of GPUs (0.36) at most are the timed GPU's own; its speed stays what was timed."""
    own = fitted(timed([run(1)], compute=compute)).calibration
    (_, timed_gpu), shared = own.gpus[0], own.compute
    assert timed_gpu.factor == pytest.approx(compute, rel=0.06)
    assert abs(np.log(timed_gpu.factor / shared.factor)) < 0.36 + 1e-9


def test_what_no_run_taught_is_as_unsure_as_before():
    own = fitted(timed([run(1)], compute=0.5)).calibration
    assert own.network.factor == pytest.approx(1.0)
    assert own.network.sd == pytest.approx(1.0, rel=1e-3)
    assert own.links.sd == pytest.approx(0.7, rel=1e-3)


def test_constants_of_compute_and_network_are_found_again():
    sizes = [run(n, batch=64 * n) for n in (1, 2, 4, 8, 16)]
    small = [run(n, batch=8 * n) for n in (1, 2, 4, 8, 16)]
    own = fitted(timed(sizes + small, compute=0.7, network=4.0, latency=30.0)).calibration
    assert dict(own.gpus)["V100"].factor == pytest.approx(0.7, rel=0.03)
    assert own.network.factor == pytest.approx(4.0, rel=0.15)
    assert own.latency.factor == pytest.approx(30.0, rel=0.2)


def test_runs_on_two_machines_teach_the_network():
    alone = fitted(timed([run(1)], network=0.3)).calibration
    two = fitted(timed([run(1), run(2)], network=0.3)).calibration
    assert two.network.sd < 0.5 * alone.network.sd
    assert two.sigma < alone.sigma


def test_clusters_beyond_what_was_timed_are_the_less_sure_the_larger_they_are():
    own = fitted(timed([run(n) for n in (1, 2, 4)], network=0.3)).calibration
    found = columns(replace(JOB, calibration=own), TYPES)
    counts = np.array([[n, 0, 0] for n in (1, 4, 5, 8, 9, 16, 64)])
    spread = spread_of(found, np.arange(3), counts)
    assert (np.diff(spread[1:]) >= 0.0).all()
    assert spread[1] < spread[2] == spread[3] < spread[4] == spread[5] < spread[6]


def test_the_spread_reported_for_a_larger_cluster_is_the_one_that_studies_score():
    runs = timed([run(n) for n in (1, 2)], network=0.3)
    found = columns(JOB, TYPES)
    model = StepModel(JOB, runs, found)
    eight = replace(run(8), batch=JOB.global_batch)
    scored = spans(model, solve(model), StepModel(JOB, (eight,), found))[0]
    own = fitted(runs).calibration
    reported = spread_of(
        columns(replace(JOB, calibration=own), TYPES), np.arange(3), np.array([[8, 0, 0]])
    )
    assert reported[0] == pytest.approx(min(scored, load_priors()["cnn", "typical"].sigma_one))


def test_each_factor_scales_its_own_column_and_spreads_add_up_as_squares():
    own = replace(
        fitted(timed([run(1)])).calibration,
        network_kind="",
        network=Fitted(0.5, 0.1),
        latency=Fitted(3.0, 0.1),
        links=Fitted(0.25, 0.1),
        sigma=0.05,
        sigma_several=0.12,
        sigma_other=0.13,
        sigma_larger=((4, 0.16),),
    )
    free, found = columns(JOB, TYPES), columns(replace(JOB, calibration=own), TYPES)
    assert found.network_bytes_per_s == pytest.approx(0.5 * free.network_bytes_per_s)
    assert found.network_latency_s == pytest.approx(3.0 * free.network_latency_s)
    assert found.intra_bytes_per_s == pytest.approx(0.25 * free.intra_bytes_per_s)
    # One and three generations on: what other GPUs add to one machine is added to each size.
    others = np.hypot(0.13, [added_sd("T4", ["V100"]), added_sd("H100", ["V100"])])
    assert found.speed_sigma == pytest.approx([0.05, *others])
    added = others**2 - 0.05**2
    assert found.speed_sigma_several == pytest.approx([0.12, *np.sqrt(0.12**2 + added)])
    ((beyond, larger),) = found.speed_sigma_larger
    assert beyond == 4
    assert larger == pytest.approx([0.16, *np.sqrt(0.16**2 + added)])


def test_runs_say_no_more_of_other_gpus_than_a_timing_of_the_plan():
    """A timing is combined with the prediction without it, a calibration stands alone."""
    own = replace(fitted(timed([run(1)])).calibration, sigma=0.1, sigma_other=np.hypot(0.1, SAME))
    read = columns(replace(JOB, timings=(Timing("V100", 8, 1, 2000.0),)), TYPES)
    found = columns(replace(JOB, calibration=own), TYPES)
    assert (read.speed_sigma <= found.speed_sigma + 1e-9).all()


def test_runs_never_make_another_gpu_less_certain_than_no_run():
    tuned = replace(JOB, stack="tuned")
    own = fitted(timed([run(1)]), tuned).calibration
    far = columns(replace(tuned, calibration=own), TYPES).speed_sigma
    assert (far <= columns(tuned, TYPES).speed_sigma).all()


def test_the_other_kind_of_network_keeps_its_spread_of_before():
    own = fitted(timed([run(n) for n in (1, 2)])).calibration
    rdma, apart = TYPES.index(P5), added_sd("H100", ["V100"])
    for of_tcp in (0.02, 2.0):  # how unsure clusters over TCP are, whether less or more
        own = replace(
            own, sigma=0.01, sigma_several=of_tcp, sigma_other=0.03, sigma_larger=((2, of_tcp),)
        )
        free, found = columns(JOB, TYPES), columns(replace(JOB, calibration=own), TYPES)
        assert own.network_kind == "tcp"
        assert found.speed_sigma[rdma] == pytest.approx(np.hypot(0.03, apart))
        before = max(free.speed_sigma_several[rdma], found.speed_sigma[rdma])
        assert found.speed_sigma_several[rdma] == before
        assert found.speed_sigma_larger[0][1][rdma] == before


def test_clusters_over_the_other_kind_of_network_are_no_surer_than_one_machine():
    own = fitted(timed([run(n) for n in (1, 2)])).calibration
    found = columns(replace(JOB, calibration=replace(own, sigma_other=0.9)), TYPES)
    assert found.speed_sigma_several[TYPES.index(P5)] == pytest.approx(0.9)


def test_a_run_of_one_machine_has_no_kind_of_network():
    """Next to RDMA machines one over TCP was timed alone: its network stays as listed."""
    p5 = "aws/p5.48xlarge"
    runs = timed([run(1), *(run(n, machine=p5) for n in (1, 2, 4, 16))], network=0.1)
    own = fitted(runs).calibration
    free, found = columns(JOB, TYPES), columns(replace(JOB, calibration=own), TYPES)
    assert own.network_kind == "rdma"
    assert own.network.factor < 0.9
    assert (found.network_bytes_per_s[:2] == free.network_bytes_per_s[:2]).all()
    assert fitted([run(1)]).calibration.network_kind == "tcp"


def test_more_gpus_of_a_machine_widen_a_span_only_where_more_than_were_timed():
    slow = replace(JOB, parameters=2e9, trainable_parameters=2e9)  # links cost most of its step
    found = columns(slow, TYPES)
    eight = run(1, machine="aws/p5.48xlarge")
    four = run(1, gpus=4, machine="aws/p5.48xlarge")
    for seen, shared in ((eight, False), (four, True)):
        fit = solve(StepModel(slow, (seen,), found))
        far = beyond(StepModel(slow, (eight,), found), fit, (seen,))
        assert far.kind == (("larger" if shared else "timed"),)
        assert (far.links[0] > 0.03) == shared


def test_runs_become_clusters_of_what_they_used():
    """Two of a p5's eight GPUs; two whole machines; only what read data waits for it."""
    job = replace(JOB, data=replace(JOB.data, cpu_s_per_sample=0.01, bytes_per_sample=1e5))
    found = columns(job, TYPES)
    p5 = TYPES.index(P5)
    part = run(1, gpus=2, machine="aws/p5.48xlarge", data="synthetic")
    cached, cold = (run(2, machine="aws/p5.48xlarge", data=data) for data in ("cached", "cold"))
    fleet = clusters((part, cached, cold), found)
    assert fleet.gpus.tolist() == [2.0, 16.0, 16.0]
    assert fleet.gpus_per_machine.tolist() == [2.0, 8.0, 8.0]
    assert fleet.compute_per_s == pytest.approx(found.compute_per_s[p5] * np.array([0.25, 2, 2]))
    prepared, fetched = 2.0 * found.prepare_per_s[p5], 2.0 * found.fetch_per_s[p5]
    assert fleet.prepare_per_s.tolist() == [np.inf, prepared, prepared]
    assert fleet.fetch_per_s.tolist() == [np.inf, np.inf, fetched]


def test_runs_over_tcp_teach_nothing_of_rdma():
    own = fitted(timed([run(n) for n in (1, 2, 4)], network=0.3, latency=20.0)).calibration
    free, found = columns(JOB, TYPES), columns(replace(JOB, calibration=own), TYPES)
    tcp, rdma = TYPES.index(G4DN), TYPES.index(P5)
    assert found.network_bytes_per_s[tcp] < 0.5 * free.network_bytes_per_s[tcp]
    assert found.network_bytes_per_s[rdma] == free.network_bytes_per_s[rdma]
    assert found.network_latency_s[rdma] == free.network_latency_s[rdma]
    assert found.speed_sigma_several[rdma] >= free.speed_sigma_several[rdma]


@pytest.mark.parametrize(
    ("over_machines", "on_one", "kind"),
    [(G4DN, P5, "tcp"), (P5, G4DN, "rdma")],
    ids=["tcp", "rdma"],
)
def test_a_run_on_one_machine_says_nothing_of_its_kind_of_network(over_machines, on_one, kind):
    """A second GPU timed alone must not carry what was learnt of TCP to RDMA, nor back."""
    runs = [run(n, machine=f"aws/{over_machines.instance_type}") for n in (1, 2)]
    runs = timed([*runs, run(1, machine=f"aws/{on_one.instance_type}")], network=0.3)
    own = fitted(runs).calibration
    assert own.network_kind == kind
    free, found = columns(JOB, TYPES), columns(replace(JOB, calibration=own), TYPES)
    there, other = TYPES.index(over_machines), TYPES.index(on_one)
    assert found.network_bytes_per_s[there] < free.network_bytes_per_s[there]
    assert found.network_bytes_per_s[other] == free.network_bytes_per_s[other]


def test_few_machines_predict_many():
    truth = {"compute": 0.6, "network": 0.5, "latency": 8.0}
    seen = timed([run(n) for n in (1, 2, 4, 8)], **truth)
    unseen = timed([run(32)], **truth)[0]
    own = fitted(seen).calibration
    job = replace(JOB, calibration=own, global_batch=unseen.batch)
    found = columns(job, TYPES)
    step = steps(job, found, fleet_of(found, {0: 32})).step_s[0]
    assert step == pytest.approx(unseen.step_s, rel=0.05)


def test_a_disturbed_run_among_good_ones_hardly_counts():
    good = timed([run(1, batch=b) for b in (32, 64, 128, 256, 512)], compute=0.8)
    bad = [*good[:2], replace(good[2], step_s=3 * good[2].step_s), *good[3:]]
    factor = dict(fitted(bad).calibration.gpus)["V100"].factor
    assert factor == pytest.approx(0.8, rel=0.05)


def test_scattered_runs_are_trusted_less():
    good = timed([run(1, batch=b) for b in (32, 64, 128, 256, 512)])
    loose = [
        replace(r, step_s=r.step_s * f)
        for r, f in zip(good, (1.3, 0.75, 1.2, 0.8, 1.25), strict=True)
    ]
    tidy, rough = fitted(good).calibration, fitted(loose).calibration
    assert rough.noise > 0.1 > tidy.noise
    assert rough.sigma >= rough.noise
    assert rough.sigma > 3 * tidy.sigma > 3 * NOISE
    assert tidy.sigma < 0.05  # the usual error of a form is no excess


def test_runs_that_say_little_leave_the_spread_of_an_uncalibrated_plan():
    """On many machines over TCP nothing is known of the network."""
    own = fitted(timed([run(1)], compute=0.5)).calibration
    cnn = load_priors()["cnn", "typical"]
    widest = max(cnn.sigma_one, cnn.sigma_several)
    assert own.sigma_larger[-1][1] == pytest.approx(widest, rel=0.01)


def test_where_only_runs_describe_the_network_far_clusters_may_be_less_certain_than_untimed_ones():
    """Three numbers of machines set its prior aside, and with it the spread that came with it."""
    few = fitted(timed([run(n, batch=2048) for n in (1, 2, 4)], latency=10.0)).calibration
    many = fitted(timed([run(n, batch=2048) for n in (1, 2, 4, 8)], latency=10.0)).calibration
    assert max(sigma for _, sigma in few.sigma_larger) < 0.28
    assert many.sigma_larger[-1][1] > 0.4


def test_runs_that_contradict_each_other_are_less_sure_than_none():
    """No constants explain factors of three between like runs: a plan may be as far off."""
    like = timed([run(1, batch=128)] * 6, compute=0.5)
    factors = (1.0, 3.0, 0.35, 2.5, 0.4, 1.2)
    wild = [replace(r, step_s=r.step_s * f) for r, f in zip(like, factors, strict=True)]
    own, prior = fitted(wild).calibration, load_priors()["cnn", "typical"]
    assert own.sigma > own.noise > prior.sigma_one
    assert own.sigma_other > prior.sigma_one


def test_gpus_that_are_all_slower_share_it():
    """The mean deviation of two timed GPUs is at most two sd of a mean of two."""
    runs = timed([run(1), run(1, machine="aws/g4dn.xlarge")], compute=0.1)
    own = fitted(runs).calibration
    mean = np.mean([np.log(gpu.factor / own.compute.factor) for _, gpu in own.gpus])
    assert -0.36 / np.sqrt(2) - 1e-9 <= mean < -0.2


def test_other_gpus_move_along_and_stay_less_sure():
    own = fitted(timed([run(1)], compute=0.5)).calibration
    assert 0.5 < own.compute.factor < 1.0
    free = columns(JOB, TYPES)
    found = columns(replace(JOB, calibration=own), TYPES)
    assert found.compute_per_s[1] == pytest.approx(free.compute_per_s[1] * own.compute.factor)
    assert found.speed_sigma[0] <= found.speed_sigma[1] <= free.speed_sigma[1]


def test_two_gpus_are_both_hit():
    runs = timed([run(1)], compute=0.5)
    runs += timed([run(1, machine="aws/g4dn.xlarge")], compute=0.9)
    found = fitted(runs)
    measured = [r.step_s for r in runs]
    assert found.predicted_s.tolist() == pytest.approx(measured, rel=0.02)


def test_plans_use_the_calibration_in_every_term():
    own = fitted(timed([run(n) for n in (1, 2, 4)], compute=0.5, network=0.3)).calibration
    job = replace(JOB, calibration=own)
    free, found = columns(JOB, TYPES), columns(job, TYPES)
    counts = ({0: 1}, {0: 4}, {2: 2})
    slow = steps(job, found, fleet_of(found, *counts)).step_s
    fast = steps(JOB, free, fleet_of(free, *counts)).step_s
    assert (slow[:2] > 1.5 * fast[:2]).all()
    assert prior_of(job).overlap == own.overlap
    assert prior_of(job).tensor_s == pytest.approx(prior_of(JOB).tensor_s * own.tensor.factor)


def test_an_exact_timing_takes_precedence_over_the_calibration():
    own = fitted(timed([run(1)], compute=0.5)).calibration
    job = replace(JOB, calibration=own, timings=(Timing("V100", 1, 1, 400.0),))
    found = columns(job, TYPES)
    step = steps(job, found, fleet_of(found, {0: 1})).step_s[0]
    assert job.global_batch / step == pytest.approx(400.0, rel=1e-6)


@pytest.mark.parametrize(("sizes", "sigma"), [((1,), 0.10), ((1, 2), 0.05)])
def test_an_exact_reading_narrows_the_spread_of_every_size(sizes, sigma):
    """Timed at one size ± 10 %, at several ± 5 %, whatever a calibration said."""
    own = fitted(timed([run(1)], compute=0.5)).calibration
    name = "p3.2xlarge" if len(sizes) > 1 else ""
    timings = tuple(Timing("V100", n, n, 400.0 * n**0.9, name) for n in sizes)
    found = columns(replace(JOB, calibration=own, timings=timings), TYPES)
    assert own.sigma_larger
    spread = spread_of(found, np.arange(3), np.array([[n, 0, 0] for n in (2, 4, 16, 64)]))
    assert spread == pytest.approx(sigma)


def test_a_calibration_on_other_shipped_constants_is_refused():
    own = fitted(timed([run(1)])).calibration
    for wrong in (replace(own, constants="cnn typical 2020-01-01"), own):
        stack = "typical" if wrong is not own else "tuned"
        with pytest.raises(UsageError, match="run recommend calibrate again"):
            columns(replace(JOB, calibration=wrong, stack=stack), TYPES)


def test_fsdp_runs_of_a_language_model_calibrate():
    job = llama(global_batch=64)
    types, gpu_of = (P5, P4DE), ("H100", "A100-80GB")
    found = columns(job, types)
    truth = steps(job, found, fleet_of(found, {1: 1}, {1: 2}, {1: 8})).step_s
    runs = tuple(
        TimedRun(str(n), "aws/p4de.24xlarge", "A100-80GB", 8 * n, n, 64, float(1.4 * s))
        for n, s in zip((1, 2), truth[:2], strict=True)
    )
    own = calibrate(job, runs, found, gpu_of, "2026-11-21").calibration
    mine = columns(replace(job, calibration=own), types)
    step = steps(replace(job, calibration=own), mine, fleet_of(mine, {1: 8})).step_s[0]
    assert step == pytest.approx(1.4 * truth[2], rel=0.15)


@settings(deadline=None, max_examples=15)
@given(
    some.floats(0.2, 5.0), some.floats(0.1, 10.0), some.floats(0.05, 20.0), some.floats(0.0, 0.6)
)
def test_a_calibrated_step_keeps_the_contract_of_the_step(compute, network, latency, overlap):
    runs = timed([run(n) for n in (1, 2, 4)], compute, latency, network, overlap=overlap)
    job = replace(JOB, calibration=fitted(runs).calibration)
    found = columns(job, (*TYPES, G6))
    fleet = fleet_of(found, *({0: n} for n in (1, 2, 4, 8, 16)), {1: 3}, {2: 2}, {3: 5})
    step = steps(job, found, fleet).step_s
    assert (step >= job.global_batch / fleet.compute_per_s * (1 - 1e-12)).all()
    for name in ("compute_per_s", "network_bytes_per_s", "intra_bytes_per_s"):
        better = replace(fleet, **{name: getattr(fleet, name) * 1.7})
        assert (steps(job, found, better).step_s <= step * (1 + 1e-12)).all()


def test_a_bridged_pair_does_not_promise_its_links_to_all_gpus_of_the_machine():
    """Timed on two of four GPUs, which reach eight times what four do (Azure NC96ads A100 v4)."""
    four = machine("NC96", "A100-80GB", 4, intra_gb_per_s=25.0)
    pair = machine("NC48", "A100-80GB", 2, intra_gb_per_s=193.0)
    bare = columns(JOB, [four])
    known = replace(bare, part_links=part_links([four], [pair, four]))
    assert known.part_links == (("aws/NC96", 2, 193 / 25),)
    runs = [TimedRun("", "aws/NC96", "A100-80GB", n, 1, 64 * n, 1.0) for n in (1, 2, 4)]
    fleet = clusters(tuple(runs), known)
    assert fleet.intra_bytes_per_s.tolist() == [25e9, 193e9, 25e9]
    truth = [_step(replace(r, step_s=1.0), fleet, i) for i, r in enumerate(runs)]
    timings = tuple(replace(r, step_s=t) for r, t in zip(runs, truth, strict=True))

    def reported(found):
        fit = calibrate(JOB, timings[:2], found, ("A100-80GB",), "2026-11-22").calibration
        of_all = clusters(
            timings[2:], with_calibration(replace(JOB, calibration=fit), found, ("A100-80GB",))
        )
        return _step(timings[2], of_all, 0)

    assert reported(known) == pytest.approx(truth[2], rel=0.01)
    assert reported(bare) < 0.97 * truth[2]


def _step(run, fleet, row):
    job = replace(JOB, global_batch=run.batch)
    return float(terms_of(job, prior_of(job), fleet.take(np.array([row]))).step_s.min())


def test_a_part_of_a_machine_talks_as_a_machine_of_that_size_or_the_next_larger_does():
    eight = machine("p3.16xlarge", "V100", 8, intra_gb_per_s=130.0)
    four = machine("p3.8xlarge", "V100", 4, intra_gb_per_s=68.0)
    pair = machine("n1", "V100", 2, intra_gb_per_s=36.0, provider="gcp")
    found = dict(((g, round(times * 130)) for _, g, times in part_links([eight], [four, pair])))
    assert found == {2: 36, 3: 68, 4: 68}
    assert part_links([eight], []) == part_links([pair], [four]) == ()
