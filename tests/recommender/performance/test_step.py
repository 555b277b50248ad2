"""Step times by hand, strategies, explanations and reasons."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.job.job import Timing
from recommender.job.jobfile import job_from_text
from recommender.performance.data_parallel import ROWS
from recommender.performance.priors import prior_of
from recommender.performance.step import explain, steps, terms_of, why_infeasible
from tests.recommender.performance.parts import (
    G4DN,
    G5X8,
    G6,
    G6X8,
    P3,
    P5,
    clusters,
    columns,
    llama,
    machine,
    resnet,
)

FSDP_AGAIN = ROWS.index(("fsdp", True))


def plain(job, **changes):
    """The job's prior without penalties and overlap, unless changed."""
    return replace(prior_of(job), **({"batch_penalty": 0.0, "tensor_s": 0.0} | changes))


@pytest.mark.usefixtures("punctual")
def test_fsdp_traffic_is_paid_for_every_micro_batch():
    """By hand: 8 B, 4 M tokens, 2 × 8 GPUs at 100 Gb/s: 59 s of traffic, 32 s of compute."""
    job = llama(global_batch=488)
    found = columns(job, (P5,))
    rate = 488 / 32.0 / 2  # a machine's share of 32 s of compute
    found = replace(
        found,
        compute_per_s=np.array([rate]),
        network_bytes_per_s=np.array([12.5e9]),
        network_half_bytes=np.array([0.0]),
        network_latency_s=np.array([0.0]),
        intra_bytes_per_s=np.array([np.inf]),
        memory_bytes=np.array([34e9]),
    )
    terms = terms_of(job, plain(job, overlap=0.0), clusters(found, {0: 2}))
    assert terms.accumulation[FSDP_AGAIN, 0] == 31
    assert terms.compute_s[FSDP_AGAIN, 0] == pytest.approx(32.0, rel=0.02)
    assert terms.exposed_s[FSDP_AGAIN, 0] == pytest.approx(59.0, rel=0.02)


@pytest.mark.usefixtures("punctual")
def test_ddp_hides_its_all_reduce_behind_the_last_backward_pass_only():
    job = resnet(sharding="ddp")
    found = replace(
        columns(job, (P3,)),
        network_half_bytes=np.array([0.0]),
        network_latency_s=np.array([0.0]),
        network_bytes_per_s=np.array([1e9]),
        compute_per_s=np.array([1000.0]),
        memory_bytes=np.array([1.5e9 + 14 * 25.56e6 + 255.5 * 5e7]),
    )
    terms = terms_of(job, plain(job, overlap=0.5), clusters(found, {0: 4}))
    traffic = 2 * 3 / 4 * 4 * 25.56e6 / 1e9
    assert terms.accumulation[0, 0] == 3  # room for 255 of 512
    assert terms.compute_s[0, 0] == pytest.approx(0.512)
    assert terms.exposed_s[0, 0] == pytest.approx(max(traffic - 0.5 * 2 / 3 * 0.512 / 3, 0))


@pytest.mark.usefixtures("punctual")
def test_gradients_smaller_than_a_bucket_are_one_small_message():
    job = resnet(sharding="ddp", parameters=1e6, trainable_parameters=1e6)
    found = replace(
        columns(job, (P3,)),
        network_half_bytes=np.array([4e6]),
        network_latency_s=np.array([0.0]),
        network_bytes_per_s=np.array([1e9]),
    )
    terms = terms_of(job, plain(job, overlap=0.0), clusters(found, {0: 2}))
    sent = 4e6  # fp32 gradients under autocast; half of the rate at a message of 4 MB
    assert terms.exposed_s[0, 0] == pytest.approx(2 * 1 / 2 * sent / 0.5e9)


def test_a_mix_sums_what_adds_up_and_waits_for_the_slowest_of_the_rest():
    job = llama()
    one, other = columns(job, (P5,)), columns(job, (G5X8,))
    mix = clusters(columns(job, (P5, G5X8)), {0: 2, 1: 1})
    for name in ("memory_bytes", "network_bytes_per_s", "intra_bytes_per_s", "disk_bytes_per_s"):
        least = min(getattr(one, name)[0], getattr(other, name)[0])
        assert getattr(mix, name)[0] == least, name
    for name in ("network_half_bytes", "network_latency_s"):
        most = max(getattr(one, name)[0], getattr(other, name)[0])
        assert getattr(mix, name)[0] == most, name
    for name in ("gpus", "compute_per_s", "fetch_per_s", "host_bytes_per_s"):
        both = 2 * getattr(one, name)[0] + getattr(other, name)[0]
        assert getattr(mix, name)[0] == pytest.approx(both), name


def test_recomputation_costs_a_third_more_arithmetic():
    job = llama()
    prior = replace(plain(job), update_bytes=0.0)
    terms = terms_of(job, prior, clusters(columns(job, (P5,)), {0: 1}))
    assert terms.recompute_s[FSDP_AGAIN] == pytest.approx(terms.compute_s[FSDP_AGAIN] / 3)


def test_input_pipelines_lengthen_the_step():
    job = resnet()
    slow = replace(job, data=replace(job.data, cpu_s_per_sample=0.1))
    found = steps(slow, columns(slow, (P3,)), clusters(columns(slow, (P3,)), {0: 1}))
    assert found.step_s[0] == pytest.approx(2048 * 0.1 / 8)
    assert found.input_s[0] > 0.9 * found.step_s[0] - 3
    large = replace(job, data=replace(job.data, bytes_per_sample=1e7))
    fetched = steps(large, columns(large, (P3,)), clusters(columns(large, (P3,)), {0: 1}))
    assert fetched.step_s[0] == pytest.approx(2048 * 1e7 / (0.6 * 0.85 * 2.5e9 / 8))


def test_parts_sum_to_the_step():
    job = llama()
    found = columns(job)
    fleet = clusters(found, {0: 1}, {0: 4}, {1: 2}, {0: 1, 1: 1}, {3: 8})
    out = steps(job, found, fleet)
    parts = out.compute_s + out.recompute_s + out.exposed_network_s + out.exposed_intra_s
    np.testing.assert_allclose(parts + out.bubble_s + out.input_s, out.step_s)


def test_one_gpu_never_communicates():
    job = resnet()
    out = steps(job, columns(job, (P3,)), clusters(columns(job, (P3,)), {0: 1}))
    assert out.exposed_network_s[0] == out.exposed_intra_s[0] == 0.0


def test_explain_adds_the_memory_up():
    job = llama()
    found = columns(job)
    split = explain(job, found, clusters(found, {0: 1}), 0)
    assert split.memory_gib == pytest.approx(sum(gib for _, gib in split.memory_parts_gib))
    assert split.memory_gib <= found.memory_bytes[0] / 2**30
    assert split.micro_batch * split.accumulation >= 64
    assert split.sharding in ("hsdp", "fsdp")


def test_too_little_memory_is_named_in_gib():
    job = llama(sharding="fsdp")
    found = columns(job, (G6X8,))
    fleet = clusters(found, {0: 1})
    assert np.isinf(steps(job, found, fleet).step_s[0])
    assert why_infeasible(job, found, fleet, 0) == (
        "needs 32.9 GiB per GPU, aws/g6.48xlarge has 20.7 usable"
    )
    with pytest.raises(ValueError, match="32.9 GiB"):
        explain(job, found, fleet, 0)


def test_too_little_memory_for_every_layout_is_named_too():
    """(2 + 2)/8 + 12/8 bytes per parameter, an eighth of inputs and logits, context."""
    job = llama(parameters=16e9, trainable_parameters=16e9, stack="tuned")
    found = columns(job, (G6X8,))
    needed = 16e9 * 16 / 8 + (2.147e9 + 10.507e9) / 8 + 1.5e9
    assert why_infeasible(job, found, clusters(found, {0: 1}), 0) == (
        f"needs {needed / 2**30:.1f} GiB per GPU, aws/g6.48xlarge has 20.7 usable"
    )


def test_more_gpus_than_samples_are_refused():
    job = resnet(global_batch=4)
    found = columns(job, (P3,))
    fleet = clusters(found, {0: 8})
    assert "8 GPUs share a batch of 4" in why_infeasible(job, found, fleet, 0)


def test_an_unknown_network_means_one_machine():
    job = resnet()
    found = columns(job, (machine("x.1", "V100", 1, network_gbit_per_s=None),))
    fleet = clusters(found, {0: 1}, {0: 2})
    assert np.isfinite(steps(job, found, fleet).step_s).tolist() == [True, False]
    assert "one machine only" in why_infeasible(job, found, fleet, 1)


def test_a_format_the_gpu_lacks_is_named():
    job = resnet(precision="bf16")
    found = columns(job, (G4DN,))
    assert why_infeasible(job, found, clusters(found, {0: 1}), 0) == "T4 has no bf16"


def test_a_machine_that_cannot_run_spoils_a_mix():
    job = resnet(precision="bf16")
    found = columns(job, (G6, G4DN))
    assert np.isinf(steps(job, found, clusters(found, {0: 1, 1: 1})).step_s[0])


def test_a_feasible_cluster_has_no_reason():
    job = resnet()
    found = columns(job)
    assert why_infeasible(job, found, clusters(found, {0: 1}), 0) == ""


def test_a_parameter_server_adds_rates_until_it_is_saturated():
    job = resnet(sync="parameter_server", global_batch=4096)
    found = columns(job, (P3,))
    rate = 4096 / steps(job, found, clusters(found, {0: 1}, {0: 2}, {0: 32})).step_s
    assert rate[1] > 1.5 * rate[0]
    assert rate[2] < 16 * rate[0]


def test_a_saturated_server_passes_on_one_update_per_service_time():
    """By hand: 161 tensors, 102 MB at 0.85 x 2.5 Gbit/s, 2.02 ms; each of 32 machines once."""
    job = resnet(sync="parameter_server", global_batch=512)
    found = columns(job, (P3,))
    step = steps(job, found, clusters(found, {0: 32})).step_s[0]
    sent = 4 * 25.56e6
    service = 161 * 8.703e-5 + sent * (2.14e-10 + 8 / (0.85 * 2.5e9)) + 2.021e-3
    assert step == pytest.approx(32 * service, rel=0.001)


def test_sixteen_gpus_wait_four_doublings_for_the_slowest():
    """0.5 % of the compute per doubling, where nothing else takes time."""
    job = resnet(sharding="ddp")
    found = replace(
        columns(job, (G5X8,)),
        network_bytes_per_s=np.array([1e30]),
        network_latency_s=np.array([0.0]),
        intra_bytes_per_s=np.array([np.inf]),
    )
    terms = terms_of(job, plain(job, overlap=0.0), clusters(found, {0: 2}))
    late = 0.005 * 4 * terms.compute_s[0, 0]
    assert terms.exposed_s[0, 0] == pytest.approx(late)


def test_one_machine_needs_no_server():
    job = resnet(global_batch=512)
    found = columns(job, (P3, G5X8))
    alone = clusters(found, {0: 1}, {1: 1})
    served = steps(replace(job, sync="parameter_server"), found, alone)
    assert served.step_s.tolist() == steps(job, found, alone).step_s.tolist()


def test_the_wait_for_a_server_is_network_time_and_the_split_adds_up():
    job = resnet(sync="parameter_server", global_batch=512)
    found = columns(job, (G5X8,))
    split = explain(job, found, clusters(found, {0: 4}), 0)
    assert split.exposed_network_s > 0
    parts = split.compute_s + split.recompute_s + split.input_s
    parts += split.exposed_network_s + split.exposed_intra_s
    assert parts == pytest.approx(split.step_s)


def test_a_stated_sharding_is_kept():
    job = llama(sharding="fsdp")
    found = columns(job)
    out = steps(job, found, clusters(found, {0: 1}, {0: 4}))
    assert {ROWS[i][0] for i in out.row} == {"fsdp"}


@pytest.mark.filterwarnings("error")
def test_machines_without_gpus_pass_through_without_a_warning():
    job = resnet(timings=(Timing("V100", 1, 1, 400.0),))
    found = columns(job, (P3, machine("c5.large", "", 0)))
    out = steps(job, found, clusters(found, {0: 1}, {1: 2}, {0: 1, 1: 1}))
    assert np.isfinite(out.step_s).tolist() == [True, False, False]


def test_recomputation_that_is_stated_is_planned_everywhere():
    """Llama 3 8B on 8 H100 in the tuned stack needs none; with it a step takes a third more."""
    job = llama(stack="tuned", sharding="fsdp")
    again = replace(job, recomputation="full")
    found = columns(job, (P5,))
    free, bound = (steps(each, found, clusters(found, {0: 1})) for each in (job, again))
    assert free.recompute_s[0] == 0.0
    assert bound.recompute_s[0] == pytest.approx(bound.compute_s[0] / 3, rel=0.05)
    assert bound.step_s[0] > 1.2 * free.step_s[0]


@pytest.mark.parametrize(
    ("settings", "share"),
    [
        ("method: full", 1 / 3),
        ("method: lora", 1 / 2),  # no gradients of frozen weights
        ("post_training: dpo", 1 / 4),  # the reference network keeps nothing
        ("post_training: grpo\ngeneration_share: 70%", 0.3 / 5),
    ],
)
def test_recomputation_repeats_the_forward_pass_of_what_is_trained(settings, share):
    text = "schema: recommend.job/v1\nmodel: meta-llama/Llama-3.1-8B\ntokens: 1B\nbatch: 64\n"
    assert job_from_text(text + settings).recomputed_share == pytest.approx(share)
