"""What a GPU must hold, against the hand calculations for three well-known networks."""

import numpy as np
import pytest

from recommender.performance.memory import (
    bytes_of,
    extra_gathered_bytes,
    largest_micro_batch,
    per_sample,
)
from recommender.performance.priors import prior_of
from tests.recommender.performance.parts import llama, resnet

GB = 1e9


def needs(**changes):
    job = llama(**{"stack": "tuned", **changes})  # its activations are those of fused kernels
    return bytes_of(job, prior_of(job))


def test_full_training_of_8b_needs_16_bytes_per_parameter():
    assert needs().states == pytest.approx(16 * 8.03e9)


def test_8b_on_eight_gpus_with_recomputation_takes_28_7_gb():
    """Inputs of all layers 2.1 GB and logits 10.5; a layer, computed again, has 1.1 after them."""
    full = needs()
    assert full.states / 8 == pytest.approx(16.1 * GB, rel=0.01)
    assert full.layer == pytest.approx(1.1 * GB, rel=0.05)
    assert per_sample(full, recompute=True) == pytest.approx(12.7 * GB, rel=0.01)


def test_a_layer_that_takes_more_than_the_loss_is_counted_in_its_place():
    few = needs(vocabulary=8_000)
    assert few.logits < few.layer
    assert per_sample(few, recompute=True) == pytest.approx(few.recomputed)


def test_8b_sharded_gathers_two_layers_and_both_tables():
    """2·128,256·4,096 of embeddings and head and two of 32 layers, 2 bytes; gradients of one."""
    layer = 2 * (8.03e9 - 2 * 128_256 * 4096) / 32
    whole = 2 * 2 * 128_256 * 4096 + 3 * layer
    assert needs().whole == pytest.approx(whole)
    assert whole == pytest.approx(3.4 * GB, rel=0.01)
    assert extra_gathered_bytes(needs(), 1.0) == 0.0
    assert extra_gathered_bytes(needs(), 8.0) == pytest.approx(whole * 7 / 8)


def test_8b_on_eight_gpus_without_recomputation_takes_63_gb():
    assert needs().states / 8 + per_sample(needs(), False) == pytest.approx(63 * GB, rel=0.01)


def test_8b_on_two_gpus_takes_77_gb():
    assert needs().states / 2 + per_sample(needs(), True) == pytest.approx(76.9 * GB, rel=0.01)


def test_a_loss_in_plain_scripts_holds_three_times_32_bits_of_each_word():
    """Peak of a causal model's loss, transformers 5.23 on a CPU: 12.1 B (2026-11-23)."""
    assert needs(stack="typical").logits == 12 * 8192 * 128_256


def test_lora_of_8b_fits_one_gpu_of_24_to_48_gb():
    tokens = 2048
    lora = needs(
        method="lora",
        trainable_parameters=42e6,
        tokens_per_sample=tokens,
        recomputed_activation_bytes_per_sample=2.0 * tokens * 4096 * 32 + 34.0 * tokens * 4096,
    )
    assert lora.states == pytest.approx(2 * 8.03e9 + 16 * 42e6, rel=0.001)
    assert 20 * GB < lora.states + lora.context + per_sample(lora, True) < 24 * GB


def test_qlora_holds_frozen_weights_in_four_bits_and_scales_embeddings_in_32_bits():
    """Qwen2.5 7B on a T4: 3,111.5 + 388.9 MiB in 4 bits, 4,197.8 MiB in 32 (FitCheck, 2026-09)."""
    ends = 2 * 152_064 * 3584
    qlora = needs(
        method="qlora",
        parameters=7_615_616_512.0,
        unquantized_parameters=ends,
        trainable_parameters=10_092_544.0,
    )
    assert qlora.weights == pytest.approx((3111.5 + 388.9 + 4197.8) * 2**20, rel=0.001)
    assert qlora.gradients + qlora.optimizer == pytest.approx((38.5 + 77.0) * 2**20, rel=0.001)


def test_autocast_keeps_fp32_gradients_and_takes_18_bytes_under_adamw():
    job = resnet(optimizer="adamw")
    assert bytes_of(job, prior_of(job)).states == pytest.approx(18 * job.parameters)


def test_fp32_takes_16_bytes_under_adamw():
    job = resnet(optimizer="adamw", precision="fp32")
    assert bytes_of(job, prior_of(job)).states == pytest.approx(16 * job.parameters)


def test_embedding_tables_that_are_not_trained_densely_take_four_bytes_each():
    """DLRM: 3.75 billion rows' values of 4 B in fp32 are 15 GB, next to small dense networks."""
    tables = {"parameters": 3752.4e6, "trainable_parameters": 2.37e6, "optimizer": "sgd"}
    for precision in ("mixed", "fp32"):
        job = resnet(family="recsys", precision=precision, **tables)
        found = bytes_of(job, prior_of(job))
        assert found.states == pytest.approx(15.0 * GB, rel=0.01)
        assert found.reduced == 4 * 2.37e6  # their gradients are sparse: not reduced
        assert found.gathered <= 4 * 2.37e6


def test_adapters_hold_no_tables_next_to_their_frozen_weights():
    assert needs(method="lora", trainable_parameters=42e6).states == pytest.approx(
        2 * 8.03e9 + 16 * 42e6, rel=0.001
    )


def test_one_reading_sets_the_slope_of_memory():
    read = needs(memory_gib_at_batch=((2, 160.0),))
    assert read.states + read.context + 2 * per_sample(read, False) == pytest.approx(160 * 2**30)


def test_two_readings_replace_the_formula():
    read = needs(memory_gib_at_batch=((8, 30.0), (2, 12.0)))
    assert per_sample(read, False) == pytest.approx(3 * 2**30)
    assert read.states + read.context == pytest.approx(6 * 2**30)


def test_the_largest_micro_batch_is_what_room_is_left_for():
    full = needs()
    room = np.array([full.states / 8 + full.context + 2.5 * per_sample(full, True)])
    fits = largest_micro_batch(
        full, room, np.full((2, 1), full.states / 8), np.array([False, True])
    )
    assert fits.tolist() == [[0.0], [2.0]]
