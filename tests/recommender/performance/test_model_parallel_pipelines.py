"""Steps under model parallelism by hand, and what is published of them."""

import re
from dataclasses import replace

import numpy as np
import pytest

from recommender.performance.layouts import Layouts
from recommender.performance.memory import bytes_of
from recommender.performance.model_parallel import best_layouts, layout_terms
from recommender.performance.priors import prior_of
from recommender.performance.step import explain, steps, terms_of
from tests.recommender.performance.parts import P4DE, P5, clusters, columns, llama, machine

ZERO = np.zeros(1, dtype=np.int64)


def one_layout(job, found, machines, tensor, stages, context=1, sharded=0, experts=1, **changes):
    """The terms of one layout, nothing recomputed."""
    prior = replace(
        prior_of(job), **({"batch_penalty": 0.0, "tensor_s": 0.0, "link_wait_s": 0.0} | changes)
    )
    fleet = clusters(found, {0: machines})
    layout = tensor, stages, context, sharded, experts
    degrees = (np.array([float(degree)]) for degree in layout)
    layouts = Layouts(ZERO, ZERO, *degrees)
    return layout_terms(job, prior, fleet, bytes_of(job, prior), layouts)


def endless(job, kind=P5, **changes):
    """Columns of one type whose links and network take no time, unless changed."""
    found = columns(job, (kind,))
    free = {"intra_bytes_per_s": np.inf, "network_bytes_per_s": 1e30, "memory_bytes": 1e13}
    free |= {"network_half_bytes": 0.0, "network_latency_s": 0.0} | changes
    return replace(found, **{name: np.array([value]) for name, value in free.items()})


def test_the_bubble_of_four_stages_and_sixteen_micro_batches_is_three_of_nineteen():
    """(p - 1)/(ga + p - 1), GPipe; one sample each, on one pipeline of four machines."""
    job = llama(global_batch=16)
    terms = one_layout(job, endless(job), 4, 8, 4)
    assert terms.accumulation[0, 0] == 16
    assert terms.bubble_s[0, 0] / terms.step_s[0, 0] == pytest.approx(3 / 19)


def test_micro_batches_balance_the_bubble_and_what_each_of_them_wastes():
    """r = sqrt((p - 1)·b/(t·b0·φ)) = sqrt(3·64/(8·1.5/4)) = 8; φ = 1024/4096."""
    job = llama(global_batch=64)
    terms = one_layout(job, endless(job), 4, 8, 4, batch_penalty=1.5)
    assert terms.accumulation[0, 0] == 8


@pytest.mark.usefixtures("punctual")
def test_layers_shared_by_eight_gpus_take_four_all_reduces_each():
    """64 samples × 32 layers × 4 × 2·7/8 × s·h·2 bytes over 440 GB/s."""
    job = llama(global_batch=64)
    found = endless(job, intra_bytes_per_s=440e9)
    terms = one_layout(job, found, 1, 8, 1)
    expected = 64 * 32 * 4 * 2 * 7 / 8 * 8192 * 4096 * 2 / 440e9
    assert terms.exposed_s[:, 0] == pytest.approx([expected, 1.5 * expected, expected])
    assert terms.network_share[0, 0] == 0.0


@pytest.mark.usefixtures("punctual")
def test_all_reduces_of_shared_layers_wait_in_every_micro_batch():
    """Two micro-batches × 32 layers × 4 × 2·7/8 × 39 us, half as many again if recomputed."""
    job = llama(global_batch=16)
    found = endless(job, memory_bytes=6e10)
    terms = one_layout(job, found, 1, 8, 1, link_wait_s=39e-6)
    expected = terms.accumulation[:, 0] * 32 * 4 * 2 * 7 / 8 * 39e-6
    assert terms.exposed_s[:, 0] == pytest.approx(expected * [1.0, 1.5, 1.0])
    assert terms.network_share[0, 0] == 0.0


@pytest.mark.usefixtures("punctual")
def test_stages_on_two_machines_hand_activations_on_and_gradients_back():
    """Each way 16 samples of s·h·2 bytes; after them no other replica to sum gradients with."""
    job = llama(global_batch=16)
    found = endless(job, network_bytes_per_s=10e9)
    terms = one_layout(job, found, 2, 8, 2)
    assert terms.exposed_s[0, 0] == pytest.approx(2 * 16 * 8192 * 4096 * 2 / 10e9)
    assert terms.network_share[0, 0] == 1.0


@pytest.mark.usefixtures("punctual")
def test_half_of_a_machine_hands_activations_on_over_half_of_its_network():
    """Four stages of four GPUs on two machines: those in the middle send over four adapters."""
    job = llama(global_batch=16)
    terms = one_layout(job, endless(job, network_bytes_per_s=10e9), 2, 4, 4)
    assert terms.exposed_s[0, 0] == pytest.approx(2 * 16 * 8192 * 4096 * 2 / 5e9)


@pytest.mark.usefixtures("punctual")
def test_replicas_in_one_machine_sum_gradients_over_its_links_only():
    """Two replicas of four GPUs: 2·(1/2) of a quarter of the gradients, 2 bytes each."""
    job = llama(global_batch=16)
    found = endless(job, intra_bytes_per_s=440e9)
    terms = one_layout(job, found, 1, 1, 4, overlap=0.0)
    handed = 2 * 8 * 8192 * 4096 * 2 / 440e9
    summed = 2 * 8.03e9 / 4 / 440e9
    assert terms.exposed_s[0, 0] == pytest.approx(handed + summed)


@pytest.mark.usefixtures("punctual")
def test_an_interleaved_pipeline_sends_all_gradients_but_those_of_its_last_chunk_early():
    """A replica of two stages in each machine: an eighth is waited for, or what the last two
    micro-batches of one sample, of eight, do not hide of the other seven."""
    job = llama(global_batch=16, stack="tuned")
    busy = one_layout(job, endless(job), 2, 4, 2).compute_s[0, 0]
    for rate in (1e12, 1e9):
        summed = 2 * 8.03e9 / rate  # 2 bytes, twice, the half of them
        waited = one_layout(job, endless(job, network_bytes_per_s=rate), 2, 4, 2).exposed_s[0, 0]
        early = 7 / 8 * min(summed, 2 / 3 * 2 * busy / 8)
        assert waited == pytest.approx(summed - early)


@pytest.mark.usefixtures("punctual")
def test_vendors_recipes_sum_gradients_in_large_buckets():
    """80 MB, or 2 MB for each replica (Megatron Core), where scripts sum 25 MiB in one call."""
    job = llama(global_batch=16, family="encoder", sharding="tensor")
    found = endless(job, network_bytes_per_s=1e10, network_half_bytes=8e7)
    for stack, bucket in (("typical", 25 * 2**20), ("tuned", 80e6)):
        waited = one_layout(replace(job, stack=stack), found, 2, 8, 1, overlap=0.0)
        each = bytes_of(replace(job, stack=stack), prior_of(replace(job, stack=stack))).reduced
        assert waited.exposed_s[0, 0] == pytest.approx(each / (1e10 * bucket / (bucket + 8e7)))


def test_model_parallelism_lets_more_gpus_than_samples_work():
    job = llama(global_batch=16, stack="tuned")
    found = columns(job, (P5,))
    out = steps(job, found, clusters(found, {0: 8}))
    assert np.isfinite(out.step_s[0])
    assert out.tensor[0] * out.stages[0] >= 4
    fixed = replace(job, sharding="fsdp")
    assert np.isinf(steps(fixed, found, clusters(found, {0: 8})).step_s[0])


def test_a_pipeline_is_chosen_over_slow_networks_and_named_with_its_degrees():
    size = {"parameters": 70e9, "trainable_parameters": 70e9, "hidden": 8192, "layers": 80}
    job = llama(stack="tuned", **size)
    slow = machine("slow", "A100-80GB", 8, network_gbit_per_s=25.0)
    found = columns(job, (slow,))
    split = explain(job, found, clusters(found, {0: 4}), 0)
    assert re.fullmatch(r"(TP \d × )?PP \d( × DP \d)?", split.sharding)
    assert split.bubble_s > 0
    assert split.memory_gib <= found.memory_bytes[0] / 2**30
    parts = split.compute_s + split.recompute_s + split.exposed_network_s
    parts += split.exposed_intra_s + split.bubble_s + split.input_s
    assert parts == pytest.approx(split.step_s)


def test_the_best_layout_is_the_fastest_of_all():
    job = llama(stack="tuned")
    found = columns(job)
    fleet = clusters(found, {0: 1}, {0: 2}, {1: 8}, {3: 4})
    prior = prior_of(job)
    best = best_layouts(job, prior, fleet, bytes_of(job, prior))
    assert (terms_of(job, prior, fleet).step_s[-1] == best.step_s).all()
    for row, step in enumerate(best.step_s[0]):
        for sharding in ("tensor", "pipeline"):
            asked = replace(job, sharding=sharding)
            other = terms_of(asked, prior, fleet).step_s[-1, row]
            assert other >= step


def test_model_parallelism_keeps_its_lead_over_sharding_as_the_batch_per_gpu_shrinks():
    """175 B, batch 1,536 (arXiv 2104.04473, table 2): 153 and 144 TFLOP/s on 384 A100 with TP
    and PP and with ZeRO-3, 141 and 44 on 1,536: the lead grows."""
    each = 2048.0 * 12288
    job = llama(
        parameters=175e9, active_parameters=175e9, trainable_parameters=175e9, hidden=12288,
        layers=96, vocabulary=51200, tokens_per_sample=2048, global_batch=1536, stack="tuned",
        flop_per_sample=6 * 175e9 * 2048 + 6 * 12288 * 96 * 2048**2,
        activation_bytes_per_sample=34 * each * 96,
        recomputed_activation_bytes_per_sample=(2 * 96 + 34) * each,
    )  # fmt: skip
    selene = replace(P4DE, network_gbit_per_s=1600.0)

    def lead(machines):
        step = {}
        for sharding in ("pipeline", "fsdp"):
            asked = replace(job, sharding=sharding)
            found = columns(asked, (selene,))
            step[sharding] = steps(asked, found, clusters(found, {0: machines})).step_s[0]
        return step["fsdp"] / step["pipeline"]

    assert lead(192) > lead(48) > 1.0


@pytest.mark.usefixtures("punctual")
@pytest.mark.parametrize(("stack", "width"), [("tuned", 1024), ("typical", 4096)])
def test_a_shared_sequence_gathers_keys_and_values_three_times_a_layer(stack, width):
    """Llama 3 8B at 8,192 tokens on two machines: of K and V half is elsewhere, 1,024 wide, or as
    wide as the queries where scripts repeat them for every head."""
    job = llama(global_batch=16, stack=stack)
    found = endless(job, network_bytes_per_s=10e9)
    terms = one_layout(job, found, 2, 8, 1, context=2, overlap=0.0)
    gathered = 16 * 3 * 32 * (2 * 8192 * width * 2) / 2 / 10e9
    summed = 2 * 8.03e9 * 2 / 2 / 10e9  # both hold the same weights
    assert terms.exposed_s[0, 0] == pytest.approx(gathered + summed)
    assert terms.compute_s[0, 0] == pytest.approx(16 / found.compute_per_s[0] / 2)


@pytest.mark.usefixtures("punctual")
def test_sharded_weights_are_gathered_twice_and_reduced_in_every_micro_batch():
    """TP 8 × FSDP 2: each machine sends half of 3 × 2 bytes a parameter."""
    job = llama(global_batch=16)
    found = endless(job, network_bytes_per_s=10e9)
    terms = one_layout(job, found, 2, 8, 1, sharded=1, overlap=0.0)
    assert terms.accumulation[0, 0] == 1
    assert terms.exposed_s[0, 0] == pytest.approx(3 * 2 * 8.03e9 / 2 / 10e9)


def test_a_sequence_that_fits_no_gpu_is_shared_and_named_with_its_degrees():
    """Llama 3.1 8B at 262,144 tokens on eight H100, as in torchtitan's table 2 of 2024-12."""
    tokens = 262_144
    each = tokens * 4096.0
    kept = {
        "activation_bytes_per_sample": 34.0 * each * 32,
        "recomputed_activation_bytes_per_sample": (2.0 * 32 + 34.0) * each,
    }
    long = llama(stack="tuned", tokens_per_sample=tokens, global_batch=4, vocabulary=32_000, **kept)
    found = columns(long, (P5,))
    fleet = clusters(found, {0: 4})
    assert np.isinf(steps(replace(long, sharding="fsdp"), found, fleet).step_s[0])
    split = explain(long, found, fleet, 0)
    assert " × CP " in split.sharding or ", CP " in split.sharding
    assert split.memory_gib <= found.memory_bytes[0] / 2**30


@pytest.mark.usefixtures("punctual")
def test_tokens_go_to_eight_experts_and_back_in_both_passes():
    """Each GPU sends 7/8 of its own two samples' tokens, 4 × 8 times a layer, over its links."""
    job = llama(family="moe", global_batch=16)
    found = endless(job, intra_bytes_per_s=440e9)
    needs = bytes_of(job, prior_of(job))
    terms = one_layout(job, found, 1, 1, 1, experts=8, overlap=0.0)
    moved = 2 * 32 * 4 * 8 * (7 / 8) * 8192 * 4096 * 2 / 440e9
    summed = 2 * (1 - needs.routed) * needs.reduced * (7 / 8) / 440e9  # of what all eight hold
    assert terms.exposed_s[0, 0] == pytest.approx(moved + summed)
    assert terms.compute_s[0, 0] == pytest.approx(16 / found.compute_per_s[0])


def exchanged(stack, groups=0, compute_per_s=1e12, batch=16):
    """Seconds that nothing hides of 16 experts on two machines; links take no time."""
    job = llama(family="moe", global_batch=batch, stack=stack, expert_groups=groups)
    found = endless(job, network_bytes_per_s=400e9, network_latency_s=1e-3)
    found = replace(found, compute_per_s=np.array([compute_per_s]))
    return one_layout(job, found, 2, 1, 1, experts=16).exposed_s[0, 0], job, found


@pytest.mark.usefixtures("punctual")
def test_scripts_send_every_copy_of_a_token_through_the_network():
    """Half of eight experts are in the other machine; eight GPUs share its network."""
    seconds, job, found = exchanged("typical")
    needs = bytes_of(job, prior_of(job))
    moved = 32 * 4 * 8 * (1 / 2) * 8192 * 4096 * 2 * 8 / 400e9
    summed = 2 * (1 - needs.routed) * needs.reduced * (1 / 2) / 400e9  # of what both machines hold
    latency = 32 * 4 * 1e-3 + 1e-3
    assert seconds == pytest.approx(moved + summed + latency)


@pytest.mark.usefixtures("punctual")
@pytest.mark.parametrize(("groups", "copies"), [(0, 1 - 0.5**8), (1, 1 / 2)])
def test_recipes_send_a_token_once_to_a_machine(groups, copies):
    """Unless its router is limited, one of eight experts is nearly always in the other machine."""
    seconds, job, _ = exchanged("tuned", groups)
    needs = bytes_of(job, prior_of(job))
    moved = 32 * 4 * copies * 8192 * 4096 * 2 * 8 / 400e9
    summed = 2 * (1 - needs.routed) * needs.reduced * (1 / 2) / 400e9
    assert seconds == pytest.approx(moved + summed + 32 * 4 * 1e-3 + 1e-3, rel=1e-6)


@pytest.mark.usefixtures("punctual")
@pytest.mark.parametrize(("seconds", "shown"), [(16.0, False), (0.5, True)])
def test_a_quarter_of_the_arithmetic_hides_what_recipes_exchange_between_machines(seconds, shown):
    """Of two samples a GPU the exchange of one hides while the other computes, up to 0.26 of it."""
    found, job, _ = exchanged("tuned", compute_per_s=8 / seconds, batch=32)
    needs, copies = bytes_of(job, prior_of(job)), 1 - 0.5**8
    moved = 32 * 4 * copies * 8192 * 4096 * 2 * 8 / 400e9
    summed = 2 * (1 - needs.routed) * needs.reduced * (1 / 2) / 400e9 + 1e-3
    left = 2 * max(moved - 0.26 * seconds, 0.0)
    assert (left > 0) is shown
    hidden = min(summed, prior_of(job).overlap * 2 / 3 * seconds)
    assert found == pytest.approx(left + summed - hidden + 2 * 32 * 4 * 1e-3)
