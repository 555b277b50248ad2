"""Bytes that a transformer keeps for the backward pass, against hand calculations of Llama 3 8B."""

import pytest

from recommender.job.activations import Layers
from recommender.job.job import Job, Method, Stack
from recommender.job.jobfile import job_from_text

H, F, KV = 4096, 14336, 1024  # widths of Llama 3 8B: the stream, the gated network, keys
LAYER = 2 * H * H + 2 * H * KV + 3 * H * F
INPUTS = 3 * H + H + 2 * H + F  # of queries, keys and values; output; gate and up; down


def layers(method: Method, adapted: float = 1.0, stack: Stack = "typical") -> Layers:
    return Layers(H, 32, LAYER, method, stack, gated=True, adapted=adapted)


# Bytes of autograd's saved tensors, a token and layer, over the width: hooks on the layers of
# transformers 5.23 and PyTorch 2.13 on a CPU, bf16, fused attention, dropout off (2026-11-23); the
# proportions are those of Llama 3 8B. Recomputed layers kept 2.0.
@pytest.mark.parametrize(
    ("experts", "counted"), [(0, 49.09), (2, 85.48)], ids=["Llama, Qwen 2, Mistral", "Mixtral"]
)
def test_full_training_keeps_what_autograd_was_seen_to_save(experts: int, counted: float) -> None:
    passed = 2 * H * H + 2 * H * KV + 3 * H * F * max(experts, 1)
    layer = Layers(H, 1, passed, "full", "typical", gated=True, experts=experts)
    assert layer.layer_bytes / H == pytest.approx(counted, rel=0.01)
    assert layer.recomputed_bytes - layer.layer_bytes == 2.0 * H


def test_fused_kernels_keep_two_thirds() -> None:
    assert layers("full", stack="tuned").layer_bytes == 34 * H


def test_frozen_matrices_keep_what_comes_out_of_them_and_adapters_what_goes_in() -> None:
    norms, outputs = 2 * 4 * H, 2 * (2 * H + 2 * KV + 3 * F)
    assert layers("lora", adapted=0.0).layer_bytes == norms + outputs
    adapters = layers("lora").layer_bytes - norms - outputs
    assert adapters == pytest.approx(3 * INPUTS, rel=0.02)  # keys count as part of the middle


def test_four_bit_matrices_give_back_the_32_bits_of_the_stream() -> None:
    more = layers("qlora").layer_bytes - layers("lora").layer_bytes
    assert more == 2 * (2 * H + 2 * KV + 3 * F)
    kept = layers("qlora").recomputed_bytes - layers("qlora").layer_bytes
    assert kept == 4 * H * 32


def job(text: str) -> Job:
    return job_from_text(f"schema: recommend.job/v1\nlike: llama3-8b-lora\n{text}")


def test_adapters_beside_fewer_matrices_keep_fewer_inputs() -> None:
    queries_and_values = 16 * 32 * (3 * H + KV)
    few = job(f"trainable_params: {queries_and_values}\nlora_rank: 16\n")
    share = queries_and_values / (16 * 20 * H * 32)
    less = job("").activation_bytes_per_sample - few.activation_bytes_per_sample
    assert less == pytest.approx(4096 * 32 * (1 - share) * 3 * INPUTS, rel=0.02)


def test_embeddings_and_head_are_not_quantised_whether_one_table_or_two() -> None:
    assert job("method: qlora\n").unquantized_parameters == pytest.approx(2 * 128256 * H, rel=1e-4)
    text = "schema: recommend.job/v1\nbatch: 8\nsamples: 64\nmethod: qlora\nmodel: "
    tied, two = (job_from_text(text + name) for name in ("google/gemma-2b", "Qwen/Qwen2.5-7B"))
    assert tied.unquantized_parameters == 256_000 * 2048
    assert two.unquantized_parameters == 2 * 152_064 * 3584
    assert job("").unquantized_parameters == 0.0
